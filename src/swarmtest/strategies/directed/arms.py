"""The ways to aim that `Adaptive` chooses from, and what it expects of each of them.

An *arm* is a kind of configuration for one aim, at one length of tests. `Arms` counts the tests,
the reward and the CPU time of each arm, and draws what each arm promises from what is known
(Thompson sampling). There may be a hundred arms and only a few hundred tests, so an arm that was
not tried promises what a simple model says: the steps of a test are shared out among the features
that are on, each step hits with the same small probability, and so a test with the features k and
the length n hits with the probability 1 - exp(-r n / k). The rate r of an aim is known from its
*plain* arm, triggers-only at full length, which is the best of the paper's strategies wherever it
works. How far the model is off is learned for each kind and each length, over all aims; it begins
a little below what the model says, so that the plain arm is left only on evidence.

Hits per test and CPU time per test are learned apart: one is a share, which takes dozens of tests
to know, the other is known well after a few.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swarmtest.core.seeds import Stream, uniforms
from swarmtest.strategies.directed.aim import (
    HALF_SWARM,
    NO_SUPPRESSORS,
    TRIGGERS_ONLY,
    TRIGGERS_TOSSED,
    Aim,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

PLAIN, CERTAIN, TOSSED, ALONE, TOGETHER, HALF, REST = range(7)
"""Kinds of arms: triggers-only; with the certain triggers only; with a coin for each uncertain one;
for one of the aims that were merged; for all aims at once, also if they conflict; half-swarm;
no-suppressors."""
SINGLE_OF_KIND = (
    TRIGGERS_ONLY,
    TRIGGERS_ONLY,
    TRIGGERS_TOSSED,
    TRIGGERS_ONLY,
    TRIGGERS_ONLY,
    HALF_SWARM,
    NO_SUPPRESSORS,
)
_WORDS = ("", "certain ", "", "alone ", "together ", "", "")
LENGTHS = (1.0, 0.5, 0.25, 0.125)
"""The weights of all features, and so the shares of a test's steps that are run."""

_TRUST_OF_KIND = (1.0, 0.95, 0.9, 0.9, 0.7, 0.8, 0.8)
_TRUST_OF_LENGTH = (1.0, 0.85, 0.75, 0.65)
"""The share of what the model says that an arm promises, before any test."""
_COST_OF_LENGTH = (1.0, 0.6, 0.4, 0.3)
_ELSEWHERE = {REST: 0.8, HALF: 0.3}
"""The same for the goals of other groups: the features that they need may be on as well."""
_EXPECTED = 3.0
"""The weight of these numbers, in expected hits."""
_DOUBT_OF_KIND = (1.0, 0.5, 0.5, 0.5, 0.7, 1.0, 1.0)
"""How far the model may be off: the standard deviation, relative to what it says."""
_PRIOR_TESTS, _MOST_PRIOR_TESTS = 5.0, 30.0
"""The weight of what an arm promises before it was tried, in tests."""
_RIVALS = 4
"""Only so many arms, the best by what is known, have a chance at a time."""
_LEAST = 0.02
"""No arm is thought to be worse than this before it was tried."""


@dataclass(frozen=True)
class Arm:
    """A way to aim: one kind of configuration for one aim, at one length."""

    kind: int
    length: int
    """Its number in `LENGTHS`."""
    group: int
    """The number of its merged aim; of the arms for all aims, the number of merged aims."""
    aim: Aim
    place: str
    """The way of merging, and the number of the aim."""
    size: float
    """How many features are on, on average."""

    @property
    def origin(self) -> str:
        """The origin of its tests."""
        short = f"{LENGTHS[self.length]:g} " if self.length else ""
        return f"{short}{_WORDS[self.kind]}{SINGLE_OF_KIND[self.kind]}/{self.place}"


class Arms:
    """All arms, with their results; `goals` are the numbers of goals of the merged aims."""

    def __init__(self, arms: Sequence[Arm], goals: Sequence[int]) -> None:
        self.arms = tuple(arms)
        count = len(self.arms)
        self._kind = np.array([arm.kind for arm in self.arms], np.intp)
        self._length = np.array([arm.length for arm in self.arms], np.intp)
        self._group = np.array([arm.group for arm in self.arms], np.intp)
        self._scale = np.array([LENGTHS[arm.length] for arm in self.arms])
        groups = len(goals)
        self._shares_of_goals = np.array([*goals, sum(goals)]) / max(sum(goals), 1)
        sizes = np.ones(groups + 1)
        plains = np.zeros(groups, np.intp)
        first: dict[tuple[int, int, str], int] = {}
        for position, arm in enumerate(self.arms):
            if arm.kind == PLAIN and not arm.length:
                sizes[arm.group], plains[arm.group] = max(arm.size, 1.0), position
            first.setdefault((arm.group, arm.kind, arm.place), position)
        sizes[-1] = float(self._shares_of_goals[:-1] @ sizes[:-1])
        self._plains = plains
        self._base = np.array([first[a.group, a.kind, a.place] for a in self.arms], np.intp)
        """For each arm the one that differs in nothing but the full length."""
        self._density = np.array([sizes[arm.group] / max(arm.size, 1.0) for arm in self.arms])
        """How many times as many steps each feature gets, compared with the plain arm."""
        self._cover = np.array(
            [
                len(arm.aim.goals) / max(goals[arm.group], 1) if arm.kind == ALONE else 1.0
                for arm in self.arms
            ]
        )
        """The share of the group's goals that the arm is for."""
        rests = np.array([_ELSEWHERE.get(arm.kind, 0.0) for arm in self.arms])
        self._shares_elsewhere = rests * (1 - self._shares_of_goals[self._group])
        """How much of what other groups aim at an arm may hit as well."""
        self.tests = np.zeros(count)
        self.reward = np.zeros(count)
        """The sum of the shares of all goals that its tests hit."""
        self.own = np.zeros(count)
        """The same for the goals of its group."""
        self.seconds = np.zeros(count)
        self.squares = [0.0, 0.0]
        """The sums of the squares of all rewards, and of all own rewards."""
        self._doubt = np.array([_DOUBT_OF_KIND[arm.kind] for arm in self.arms])
        self._promises: tuple[tuple[Floats, Floats], tuple[Floats, Floats]] | None = None

    def note(self, position: int, reward: float, own: float, seconds: float) -> None:
        """Count a test of an arm."""
        self.tests[position] += 1
        self.reward[position] += reward
        self.own[position] += own
        self.seconds[position] += seconds
        self.squares[0] += reward**2
        self.squares[1] += own**2
        self._promises = None

    def best(self, rng: Stream, group: int | None = None) -> int:
        """Return the arm with the best drawn reward per second; in a group, for its own goals."""
        if self._promises is None:
            self._promises = self._promised()
        values, shapes = self._promises[group is not None]
        if group is not None:
            mine = (self._group == group) | (self._group == len(self._plains))
            # Of arms that are equally good for the group, the one that is better for the others.
            values = np.where(mine, values + self._promises[0][0], 0.0)
        few = np.argsort(-values)[:_RIVALS]
        values, shapes = values[few], shapes[few]
        keys = np.arange(1, len(few) + 1, dtype=np.uint64) * np.uint64(rng.getrandbits(63))
        chance = uniforms(keys) * (1 - 2e-9) + 1e-9
        normal = np.log(chance / (1 - chance)) / 1.702
        # Wilson and Hilferty's approximation of a gamma distribution with this mean and shape.
        cube = 1 - 1 / (9 * shapes) + normal / (3 * np.sqrt(shapes))
        drawn = values * (np.maximum(cube, 0.0) ** 3 + 1e-9)
        return int(few[drawn.argmax()])

    def _promised(self) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """Return each arm's mean reward per second, and the shape of its distribution.

        First for all goals, then for the goals of its group.
        """
        own, cross, costs = self._expected()
        known = _PRIOR_TESTS + self.tests
        costs = (_PRIOR_TESTS * costs + self.seconds) / known
        total = own * self._shares_of_goals[self._group] + cross
        pairs = ((total, self.reward, 0), (own, self.own, 1))
        first, second = (self._believed(*pair, costs) for pair in pairs)
        return first, second

    def _believed(
        self, before: Floats, sums: Floats, which: int, costs: Floats
    ) -> tuple[Floats, Floats]:
        """Return the mean reward per second after the tests, and the shape of what is believed."""
        before = np.clip(before, 1e-4, 0.98)
        found = sums / np.maximum(self.tests, 1.0)
        # Of many goals together, the reward varies less than that of one.
        bernoulli = float((self.tests * found * (1 - found)).sum()) + 1.0
        spread = float(self.squares[which] - (self.tests * found**2).sum()) + 1.0
        noise = min(spread / bernoulli, 1.0) * before * (1 - before)
        weight = np.clip(noise / (self._doubt * before) ** 2, 1.0, _MOST_PRIOR_TESTS)
        mean = (weight * before + sums) / (weight + self.tests)
        variance = np.maximum(noise, 1e-6) / (weight + self.tests)
        return mean / costs, np.maximum(mean**2 / variance, 0.1)

    def _expected(self) -> tuple[Floats, Floats, Floats]:
        """Return what each arm promises before it was tried: own reward, other reward, and cost."""
        tests, own, seconds, kind, length = (
            self.tests,
            self.own,
            self.seconds,
            self._kind,
            self._length,
        )
        usual = (seconds.sum() + 1e-9) / max(tests.sum(), 1.0)
        at = self._plains
        pooled = (own[at].sum() + 0.5) / (tests[at].sum() + 1.0)
        share = (own[at] + pooled) / (tests[at] + 1.0)
        cost = (seconds[at] + 2 * usual) / (tests[at] + 2.0)
        goals = self._shares_of_goals[:-1]
        cross = np.append(np.maximum(self.reward[at] - own[at] * goals, 0) / (tests[at] + 2.0), 0.0)
        anywhere = -math.log1p(-min(float(goals @ share), 0.98))
        share, cost = np.append(share, goals @ share), np.append(cost, goals @ cost)
        share, cost = share[self._group], cost[self._group]
        # Full length: by the density of steps.
        is_long = length == 0
        rate = -np.log1p(-np.minimum(share, 0.98))
        model = self._cover * -np.expm1(-rate * self._density)
        model[kind == PLAIN] = share[kind == PLAIN]
        model = np.maximum(model, _LEAST)
        model *= _trust(kind, own, tests * model, _TRUST_OF_KIND, is_long, _EXPECTED)[kind]
        cost *= _trust(kind, seconds, tests * cost, (1.0,) * 7, is_long, 3 * usual)[kind]
        # Shorter tests: from what is known about those of full length.
        base, known = self._base, tests[self._base] + _PRIOR_TESTS
        long_share = (own[base] + _PRIOR_TESTS * model[base]) / known / self._cover
        long_cost = (seconds[base] + _PRIOR_TESTS * cost[base]) / known
        rate = -np.log1p(-np.minimum(long_share, 0.98))
        short = np.maximum(self._cover * -np.expm1(-rate * self._scale), _LEAST)
        short *= _trust(length, own, tests * short, _TRUST_OF_LENGTH, ~is_long, _EXPECTED)[length]
        short_cost = _trust(
            length, seconds, tests * long_cost, _COST_OF_LENGTH, ~is_long, 3 * usual
        )
        elsewhere = -np.expm1(-anywhere * self._density) * self._shares_elsewhere
        return (
            np.where(is_long, model, short),
            np.maximum(cross[self._group] * self._scale, elsewhere),
            np.where(is_long, cost, long_cost * short_cost[length]),
        )


def _trust(
    classes: Ints,
    found: Floats,
    expected: Floats,
    before: Sequence[float],
    counted: npt.NDArray[np.bool_],
    weight: float,
) -> Floats:
    """Return for each class how what was found compares with what was expected."""
    size = len(before)
    sums = [
        np.bincount(classes, np.where(counted, values, 0.0), size) for values in (found, expected)
    ]
    ratios: Floats = (sums[0] + weight * np.array(before)) / (sums[1] + weight)
    ratios[0] = 1.0
    return ratios
