"""How few tests cannot be enough: a lower bound for set cover, also for part of it.

Lagrangian relaxation: each class gets a price u; a test is worth taking if the prices of what it
hits exceed 1. For any prices, the sum of them, less what the tests that are worth taking have in
excess, less the most that classes which may be left out can be worth, is a number of tests below
which nothing does. Subgradient steps look for good prices; on the way, the tests that the prices
favour are tried as a suite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from swarmtest.suites.cover import Bools, Floats, Problem, irredundant

_STEPS = 300
_WORK = 1_000_000_000
"""Entries of the table that all steps together may look at."""
_SLACK = 1e-6


@dataclass(frozen=True)
class Bound:
    """What prices tell."""

    value: float
    prices: Floats
    chosen: list[int]
    """The best suite that was known or found."""

    @property
    def tests(self) -> int:
        """So many tests are needed at least."""
        return max(math.ceil(self.value - _SLACK), 0)

    @property
    def proves(self) -> bool:
        """Whether nothing smaller than the suite is possible."""
        return len(self.chosen) <= self.tests


def lower_bound(problem: Problem, known: list[int]) -> Bound:
    """The best bound of some steps; `known` is a suite, to be improved on.

    >>> problem = Problem.of(np.array([[1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0]], bool))
    >>> lower_bound(problem, [2, 0, 1]).tests
    2
    """
    rows = problem.rows.astype(np.float32)
    count = np.maximum(problem.rows.sum(0), 1)
    prices = 1.0 / np.maximum(rows @ (1.0 / count), 1e-9).max() / count
    best = Bound(-math.inf, prices, known)
    length, since = 1.0, 0
    for _ in range(min(_STEPS, _WORK // rows.size + 1)):
        excess = 1.0 - rows @ prices.astype(np.float32)
        left_out = _left_out(problem, prices)
        value = float(prices.sum() + np.minimum(excess, 0).sum() - (prices * left_out).sum())
        since += 1
        if value > best.value + 1e-4:
            best, since = replace(best, value=value, prices=prices), 0
            best = replace(best, chosen=_better(problem, best.chosen, excess))
        if best.proves:
            break
        if since >= 15:
            length, since = length / 2, 0
        taken = (excess < 0).astype(np.float32)
        slope = 1.0 - taken @ rows - left_out
        square = float(slope @ slope)
        if square == 0 or length < 1e-3:
            break
        prices = np.maximum(prices + length * (len(best.chosen) - value) / square * slope, 0)
    return best


def bound_of_prices(problem: Problem, prices: Floats, available: Bools) -> int:
    """So many of the available tests are needed at least, by these prices."""
    excess = 1.0 - problem.rows @ prices
    value = prices.sum() + np.minimum(excess, 0)[available].sum()
    value -= (prices * _left_out(problem, prices)).sum()
    return max(math.ceil(float(value) - _SLACK), 0)


def _left_out(problem: Problem, prices: Floats) -> Floats:
    """The classes, one perhaps in part, that are worth most of those that may be left out."""
    spare = float(problem.total - problem.need)
    shares = np.zeros(len(prices))
    if spare <= 0:
        return shares
    order = np.argsort(-prices / problem.weights, kind="stable")
    before = np.cumsum(problem.weights[order]) - problem.weights[order]
    shares[order] = np.clip((spare - before) / problem.weights[order], 0, 1)
    return shares


def _better(problem: Problem, known: list[int], excess: Floats) -> list[int]:
    """The suite that comes of taking tests in the order of their excess, if it is smaller."""
    covered: Bools = np.zeros(len(problem.weights), bool)
    kept, chosen = 0, []
    for test in np.argsort(excess, kind="stable")[: 4 * len(known) + 4]:
        new = problem.rows[test] & ~covered
        gain = int(problem.weights[new].sum())
        if gain:
            chosen.append(int(test))
            covered |= new
            kept += gain
        if kept >= problem.need:
            found = irredundant(problem, chosen)
            return found if len(found) < len(known) else known
    return known
