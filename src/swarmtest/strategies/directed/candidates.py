"""The configurations among which `Adaptive` chooses: around what the paper's strategies propose.

A candidate is made for one aim. Without the aim's suppressors, it has most or all of its triggers
and, of the other features, none, a few, half or all. So triggers-only, half-swarm and
no-suppressors are among the candidates, and what lies between them; a trigger that only seemed
one can be left out, a feature that helps without having been noticed can come in.

A *thin* candidate has all its features at a weight below 1, so its tests execute fewer steps and
take less time. Many targets are hit within a fraction of a test's steps; to stop there gives more
hits per second than any choice of features. How thin is best differs between subjects and targets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swarmtest.seeds import Stream
from swarmtest.space import Configuration, Proposal, Space, toss
from swarmtest.space.dimensions import Scalar
from swarmtest.space.sampling import draw_settings
from swarmtest.strategies.directed.aim import Aim
from swarmtest.strategies.directed.rate_model import Floats, RateModel
from swarmtest.strategies.directed.single import COIN_WITHOUT_SUPPRESSORS, fitted

Bools = npt.NDArray[np.bool_]

WEIGHTS = (1.0, 0.7, 0.5, 0.35, 0.25)
"""How much of its steps a test executes."""
_LEFT_OUT = (0.0, 0.0, 0.1, 0.25)
"""How likely each trigger is left out, in candidates of different kinds."""
_IN_DOUBT = 0.05
"""How likely a sparse candidate leaves out a trigger: some only seemed to be triggers."""
_FEW = 1.5
"""How many other features a sparse candidate has on average."""
_CHANGES = 1.5
"""By how many features a candidate differs from its parent on average."""
_FULL = 65535
"""The weight 1, as configurations keep it."""
_OTHERS = 4
"""Columns before those of the features: one, thinness, its square, how many features."""


@dataclass(frozen=True)
class Candidate:
    """A configuration before it is one."""

    aim: int
    included: Bools
    weight: float
    row: Floats
    """What the model knows it by."""


@dataclass(frozen=True)
class Draws:
    """Many candidates, in groups of the same size."""

    aims: npt.NDArray[np.int64]
    included: Bools
    weights: Floats
    rows: Floats
    """Groups by candidates by columns."""

    def chosen(self, best: Sequence[int]) -> list[Candidate]:
        """Of each group the candidate of this number."""
        size = self.rows.shape[1]
        return [
            Candidate(
                int(self.aims[group * size + number]),
                self.included[group * size + number],
                float(self.weights[group * size + number]),
                self.rows[group, number],
            )
            for group, number in enumerate(best)
        ]


class Candidates:
    """Draws candidates for some aims in a space."""

    def __init__(self, aims: Sequence[Aim], space: Space, weights: Sequence[float]) -> None:
        self.aims, self.space = aims, space
        self._weights = np.array(weights)
        self._on = np.array([_mask(aim.triggers, space) for aim in aims])
        self._off = np.array([_mask(aim.suppressors, space) for aim in aims])
        free = (~self._on & ~self._off).sum(1)
        self._few = np.minimum(0.25, _FEW / np.maximum(free, 1))

    def around(
        self,
        aims: npt.NDArray[np.int64],
        parents: Sequence[Candidate],
        size: int,
        rng: np.random.Generator,
    ) -> Draws:
        """Candidates in groups of this size, one for each aim; the last ones are for parents' aims.

        Those resemble a parent each, with a feature or two more or less.
        """
        count = len(aims) - len(parents)
        aims = aims.copy()
        aims[count:] = [parent.aim for parent in parents]
        few = self._few[aims]
        rates = np.stack([0 * few, 0 * few, few, 2 * few, 0 * few + 0.5, 0 * few + 1])
        rate = rates[rng.integers(len(rates), size=len(aims)), np.arange(len(aims))]
        kept = 1 - rng.choice(_LEFT_OUT, size=len(aims))
        weights = rng.choice(self._weights, size=len(aims))
        on = self._on[aims]
        chances = np.where(on, kept[:, None], rate[:, None])
        if parents:
            changed = _CHANGES / on.shape[1]
            included = np.array([parent.included for parent in parents])
            chances[count:] = np.where(included, 1 - changed, changed)
            own = np.array([parent.weight for parent in parents])
            weights[count:] = np.where(rng.random(len(own)) < 0.5, own, weights[count:])
        order = rng.permutation(len(aims))
        return self._drawn(aims[order], chances[order], weights[order], size, rng)

    def sparse(self, aims: Sequence[int], rng: np.random.Generator) -> Draws:
        """For each aim a fresh configuration with nearly all triggers and a few other features.

        It is a group of its own, with a candidate for each weight.
        """
        numbers = np.array(aims, np.int64)
        few = self._few[numbers]
        chances = np.where(self._on[numbers], 1 - _IN_DOUBT, few[:, None])
        ones = self._drawn(numbers, chances, np.ones(len(aims)), 1, rng)
        size = len(self._weights)
        included = ones.included.repeat(size, axis=0)
        weights = np.tile(self._weights, len(aims))
        rows = rows_of(included, weights).reshape(len(aims), size, -1)
        return Draws(numbers.repeat(size), included, weights, rows)

    def propose(self, candidate: Candidate, rng: Stream, origin: str) -> Proposal:
        """A candidate as a configuration that the space allows, the suppressors left out."""
        space, included = self.space, candidate.included
        if space.clauses:
            suppressors = self.aims[candidate.aim].suppressors
            plan = fitted(COIN_WITHOUT_SUPPRESSORS, frozenset(), suppressors, space)
            allowed = toss(space, included.astype(float).tolist(), rng, origin, plan.known)
            included = np.array(allowed.configuration.weights) > 0
        settings = draw_settings(space, rng)
        return Proposal(_configuration(space, included, candidate.weight, settings), (), origin)

    def model(self, goals: Sequence[int]) -> RateModel:
        """A model of candidates, with what is believed before the first test.

        `goals`: for each goal the number of its aim. Triggers help, each its part; thin tests hit
        somewhat less and take less time, and so do those with many features.
        """
        count = self._on.shape[1]
        mattering = (self._on | self._off).any(0)
        spread = np.concatenate([[0.3, 0.3, 0.2, 0.2], np.where(mattering, 0.15, 0.07)])
        hits = np.zeros((_OTHERS + count, len(goals)))
        hits[:_OTHERS] = np.array([0.2, -0.2, 0.0, -0.1])[:, None]
        for column, aim in zip(hits.T, goals, strict=True):
            triggers, suppressors = self._on[aim], self._off[aim]
            column[_OTHERS:] = np.where(triggers, 0.6 / max(triggers.sum(), 1), -0.02)
            column[_OTHERS:] -= 0.1 * suppressors
        log_cost = np.zeros(_OTHERS + count)
        log_cost[1] = -0.8
        return RateModel(spread, hits, log_cost)

    def _drawn(
        self,
        aims: npt.NDArray[np.int64],
        chances: Floats,
        weights: Floats,
        size: int,
        rng: np.random.Generator,
    ) -> Draws:
        """Features come in by chance, but no suppressors; nothing is left empty."""
        on, off = self._on[aims], self._off[aims]
        included = (rng.random(on.shape, np.float32) < chances) & ~off
        for number in np.flatnonzero(~included.any(1)):
            included[number] = on[number] if on[number].any() else ~off[number] | off[number].all()
        rows = rows_of(included, weights).reshape(len(aims) // size, size, -1)
        return Draws(aims, included, weights, rows)


def rows_of(included: Bools, weight: Floats) -> Floats:
    """Candidates as rows of numbers.

    >>> rows_of(np.array([[True, False]]), np.array([1.0])).shape
    (1, 6)
    """
    count = included.shape[1]
    thin = -np.log(weight) / -math.log(WEIGHTS[-1])
    rows = np.empty((len(included), _OTHERS + count))
    rows[:, 0], rows[:, 1], rows[:, 2] = 1.0, thin, thin * thin
    rows[:, 3] = np.log(np.maximum(included.sum(1), 1) / (count / 4))
    rows[:, _OTHERS:] = included
    return rows


def row_of(configuration: Configuration) -> Floats:
    """The row of a configuration, whoever proposed it."""
    weights = np.array(configuration.weights)
    used = weights[weights > 0]
    mean = float(used.mean()) if len(used) and not configuration.renormalised else 1.0
    row: Floats = rows_of((weights > 0)[None, :], np.array([max(mean, WEIGHTS[-1])]))[0]
    return row


def _configuration(
    space: Space, included: Bools, weight: float, settings: tuple[Scalar, ...]
) -> Configuration:
    """These features at this weight; many times faster than `weighted`, which checks them all."""
    bits = int.from_bytes(np.packbits(included, bitorder="little").tobytes(), "little")
    if weight == 1.0:
        return Configuration(space, bits, None, settings)
    steps = (included * round(weight * _FULL)).tolist()
    return Configuration(space, bits, tuple(steps), settings)


def _mask(names: frozenset[str], space: Space) -> Bools:
    return np.array([name in names for name in space.feature_names], bool)
