"""Set cover by the greedy algorithm: always take the test that adds most.

A problem is a table of tests and *classes* of targets: targets that are hit by the same tests form
one class, whose weight is their number. `need` is the weight that has to be kept; if that is less
than the total, the suite is non-adequate (Shi et al. 2014). Tests are in order of preference: on a
tie the first is taken.
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
class CoverProblem:
    """A set-cover problem: which tests hit which classes of targets, and how much is needed.

    >>> problem = CoverProblem.of(np.array([[1, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]], bool))
    >>> problem.weights.tolist(), greedy(problem)
    ([2, 1, 1], [0, 2])
    """

    rows: Bools
    """Whether each test (row) hits the targets of each class (column)."""
    weights: Ints
    """The number of targets in each class."""
    need: int
    """The weight that has to be kept."""
    members: tuple[tuple[int, ...], ...] = ()
    """The targets of each class, as columns of the original table."""

    @classmethod
    def of(cls, hits: Bools, share: float = 1.0) -> CoverProblem:
        """Return the problem of keeping a share of all targets that are hit."""
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
        """Return the weight that the chosen tests keep."""
        return int(self.weights[self.rows[list(chosen)].any(0)].sum()) if len(chosen) else 0

    def after(self, chosen: Sequence[int]) -> CoverProblem:
        """Return the problem that is left when some tests have been chosen."""
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
    """Return a share of a number, rounded up.

    0.07 * 100 is slightly more than 7 in floating point, so it is rounded to nine places first.
    """
    return math.ceil(round(share * total, 9))


def greedy(problem: CoverProblem, cost: Floats | None = None) -> list[int]:
    """Return tests that keep what is needed, each the one that added most (per cost) in turn."""
    chosen: list[int] = []
    kept = 0
    for test, gain in _in_greedy_order(problem, cost):
        if kept >= problem.need:
            break
        chosen.append(test)
        kept += gain
    return irredundant(problem, chosen)


def _in_greedy_order(problem: CoverProblem, cost: Floats | None) -> list[tuple[int, int]]:
    """Return all tests that add anything, each with the weight it adds, best first."""
    rows, weights = problem.rows, problem.weights.astype(np.float64)
    gains = rows @ weights
    covered = np.zeros(len(weights), bool)
    order: list[tuple[int, int]] = []
    while True:
        worth = gains if cost is None else gains / cost
        best = int(np.argmax(worth)) if len(worth) else 0
        if not len(worth) or gains[best] <= 0:
            return order
        order.append((best, int(gains[best])))
        new = np.flatnonzero(rows[best] & ~covered)
        covered[new] = True
        gains -= rows[:, new] @ weights[new]


def irredundant(problem: CoverProblem, chosen: Sequence[int]) -> list[int]:
    """Return the chosen tests without redundant ones; the last that were chosen go first.

    >>> irredundant(CoverProblem.of(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], bool)), [0, 1, 2])
    [0, 1]
    """
    left = list(chosen)
    counts = problem.rows[left].sum(0) if left else np.zeros(len(problem.weights), np.int64)
    weight = problem.kept(left)
    for test in reversed(chosen):
        lost = int(problem.weights[problem.rows[test] & (counts == 1)].sum())
        if weight - lost >= problem.need:
            weight -= lost
            counts = counts - problem.rows[test]
            left.remove(test)
    return left


def thinned(problem: CoverProblem, chosen: Sequence[int]) -> list[int]:
    """Drop the test whose loss costs least, repeatedly, while enough is kept.

    >>> problem = CoverProblem.of(np.array([[1, 1, 1, 0], [0, 0, 0, 1]], bool), share=0.75)
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


def greedy_in_time(problem: CoverProblem, seconds: Floats, budget: float) -> list[int]:
    """Return tests that keep much and together take no longer than a budget.

    The best of three candidates is returned: a greedy cover by what tests add per second, one by
    what they add, and the best single test. The first alone may fill up with tests that are merely
    quick.
    """
    cost = np.maximum(seconds, 1e-9)
    covers = [_fitting(problem, seconds, budget, cost), _fitting(problem, seconds, budget, None)]
    fits = np.flatnonzero(seconds <= budget)
    if len(fits):
        weights = problem.weights.astype(np.float64)
        covers.append([int(fits[np.argmax(problem.rows[fits] @ weights)])])
    best = max(covers, key=lambda cover: (problem.kept(cover), -float(seconds[cover].sum())))
    return irredundant(replace(problem, need=problem.kept(best)), best)


def _fitting(
    problem: CoverProblem, seconds: Floats, budget: float, cost: Floats | None
) -> list[int]:
    """Choose greedily among the tests that still fit the budget, until enough is kept."""
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
