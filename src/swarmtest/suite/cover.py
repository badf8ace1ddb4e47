"""Few tests that keep much: set cover by always taking the test that adds most.

A problem is tests by *classes* of targets: targets that the same tests hit are one class, which
weighs as many as they are. `need` says what weight has to be kept; below the whole, the suite is
non-adequate (Shi et al. 2014). Tests stand in the order of preference: on a tie the first is taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """Tests by classes of targets.

    >>> problem = Problem.of(np.array([[1, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]], bool))
    >>> problem.weights.tolist(), greedy(problem)
    ([2, 1, 1], [0, 2])
    """

    rows: Bools
    """Whether a test hits the targets of a class."""
    weights: Ints
    """How many targets a class has."""
    need: int
    """The weight that has to be kept."""
    members: tuple[tuple[int, ...], ...] = ()
    """The targets of each class, as columns of the table that it was made from."""

    @classmethod
    def of(cls, hits: Bools, share: float = 1.0) -> Problem:
        """The problem of keeping a share of all targets that are hit."""
        groups: dict[bytes, list[int]] = {}
        packed = np.packbits(hits, axis=0)
        for column, bits in enumerate(np.ascontiguousarray(packed.T)):
            if bits.any():
                groups.setdefault(bits.tobytes(), []).append(column)
        members = tuple(map(tuple, groups.values()))
        rows = np.asfortranarray(hits[:, [group[0] for group in members]])
        weights = np.array([len(group) for group in members], np.int64)
        return cls(rows, weights, needed(share, int(weights.sum())), members)

    @cached_property
    def total(self) -> int:
        """The weight of all classes."""
        return int(self.weights.sum())

    @property
    def adequate(self) -> bool:
        """Whether everything has to be kept."""
        return self.need >= self.total

    def kept(self, chosen: Sequence[int]) -> int:
        """The weight that tests keep."""
        return int(self.weights[self.rows[list(chosen)].any(0)].sum()) if len(chosen) else 0

    def after(self, chosen: Sequence[int]) -> Problem:
        """What is left to be kept when some tests are there already."""
        open_classes = np.flatnonzero(~self.rows[list(chosen)].any(0))
        members = tuple(self.members[i] for i in open_classes)
        return replace(
            self,
            rows=np.asfortranarray(self.rows[:, open_classes]),
            weights=self.weights[open_classes],
            need=max(self.need - self.kept(chosen), 0),
            members=members,
        )


def needed(share: float, total: int) -> int:
    """How many are a share of a number; 0.07 of 100 are seven, whatever floating point says."""
    return math.ceil(round(share * total, 9))


def greedy(problem: Problem, cost: Floats | None = None) -> list[int]:
    """Tests that keep what is needed, each the one that added most (per cost) when it was taken."""
    chosen: list[int] = []
    kept = 0
    for test, gain in _in_greedy_order(problem, cost):
        if kept >= problem.need:
            break
        chosen.append(test)
        kept += gain
    return irredundant(problem, chosen)


def _in_greedy_order(problem: Problem, cost: Floats | None) -> list[tuple[int, int]]:
    """All tests that add anything, with what they add, best first."""
    rows, weights = problem.rows, problem.weights.astype(np.float64)
    gains = rows @ weights
    covered = np.zeros(len(weights), bool)
    found: list[tuple[int, int]] = []
    while True:
        worth = gains if cost is None else gains / cost
        best = int(np.argmax(worth)) if len(worth) else 0
        if not len(worth) or gains[best] <= 0:
            return found
        found.append((best, int(gains[best])))
        new = np.flatnonzero(rows[best] & ~covered)
        covered[new] = True
        gains -= rows[:, new] @ weights[new]


def irredundant(problem: Problem, chosen: Sequence[int]) -> list[int]:
    """Without tests that the rest can do without; the last that were taken go first.

    >>> irredundant(Problem.of(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], bool)), [0, 1, 2])
    [0, 1]
    """
    kept = list(chosen)
    counts = problem.rows[kept].sum(0) if kept else np.zeros(len(problem.weights), np.int64)
    weight = problem.kept(kept)
    for test in reversed(chosen):
        lost = int(problem.weights[problem.rows[test] & (counts == 1)].sum())
        if weight - lost >= problem.need:
            weight -= lost
            counts = counts - problem.rows[test]
            kept.remove(test)
    return kept


def thinned(problem: Problem, chosen: Sequence[int]) -> list[int]:
    """Without the tests that are missed least, one after the other, while enough is kept.

    >>> problem = Problem.of(np.array([[1, 1, 1, 0], [0, 0, 0, 1]], bool), share=0.75)
    >>> thinned(problem, [0, 1])
    [0]
    """
    left = list(chosen)
    weights = problem.weights.astype(np.float64)
    counts = problem.rows[left].sum(0)
    spare = problem.kept(left) - problem.need
    while left:
        losses = problem.rows[left] @ (weights * (counts == 1))
        least = len(left) - 1 - int(np.argmin(losses[::-1]))
        spare -= int(losses[least])
        if spare < 0:
            break
        counts = counts - problem.rows[left.pop(least)]
    return left


def greedy_in_time(problem: Problem, seconds: Floats, budget: float) -> list[int]:
    """Tests that keep much, and take no longer than a budget together.

    Those that add most per second, as long as they fit; or those that add most, or the best single
    one, if that keeps more: the first alone may fill up with what is merely quick.
    """
    cost = np.maximum(seconds, 1e-9)
    ways = [_fitting(problem, seconds, budget, cost), _fitting(problem, seconds, budget, None)]
    fits = np.flatnonzero(seconds <= budget)
    if len(fits):
        weights = problem.weights.astype(np.float64)
        ways.append([int(fits[np.argmax(problem.rows[fits] @ weights)])])
    best = max(ways, key=lambda way: (problem.kept(way), -float(seconds[way].sum())))
    return irredundant(replace(problem, need=problem.kept(best)), best)


def _fitting(problem: Problem, seconds: Floats, budget: float, cost: Floats | None) -> list[int]:
    """Greedy, over those that still fit, until what is needed is kept."""
    rows, weights = problem.rows, problem.weights.astype(np.float64)
    gains = rows @ weights
    covered = np.zeros(len(weights), bool)
    chosen: list[int] = []
    left, kept = budget, 0.0
    while kept < problem.need:
        worth = np.where(seconds <= left, gains if cost is None else gains / cost, 0.0)
        best = int(np.argmax(worth)) if len(worth) else 0
        if not len(worth) or worth[best] <= 0:
            break
        chosen.append(best)
        left -= float(seconds[best])
        kept += float(gains[best])
        new = np.flatnonzero(rows[best] & ~covered)
        covered[new] = True
        gains -= rows[:, new] @ weights[new]
    return chosen
