"""Set cover: choose few tests that hit enough targets, greedily or with the fewest tests possible.

A problem is a table of tests and *classes* of targets: targets that are hit by the same tests form
one class, whose weight is their number. `need` is the weight that has to be kept; if that is less
than the total, the suite is non-adequate (Shi et al. 2014). Tests are in order of preference: on a
tie the first is taken. `greedy` always takes the test that adds most.

`smallest_cover` finds the smallest suite, and proves that it is: by reductions, bounds, branch and
bound, and SAT. All its limits count work, not time, so that the same problem gives the same answer
on every machine. The lower bound for (partial) set cover is a Lagrangian relaxation. Each class of
targets gets a price; the reduced cost of a test is 1 minus the prices of the classes that it hits,
and a test is worth taking if that is negative. For any prices, the following is a lower bound on
the number of tests: the sum of the prices, plus all negative reduced costs, minus the highest total
price of classes that may be left out. Subgradient steps look for good prices, and on the way the
tests that the prices favour are tried as a suite.
"""

from __future__ import annotations

import importlib
import importlib.util
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


# The fewest tests.

_BOUND_STEPS = 300
_BOUND_WORK = 1_000_000_000
"""Entries of the table that all steps of the bound together may read."""
_SLACK = 1e-6
"""Rounding errors that a bound may have before it is rounded up."""
_SEARCH_WORK = 400_000_000
"""Entries of the table that the search may read."""
_CONFLICTS = 20_000
"""The SAT solver's limit of conflicts, for each number of tests."""
_LITERALS = 2_000_000
"""A table with more entries than this is not given to the SAT solver."""


def smallest_cover(problem: CoverProblem) -> tuple[list[int], int]:
    """Return the smallest suite found that keeps what is needed, and a lower bound on its size.

    >>> smallest_cover(CoverProblem.of(np.array([[0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1]], bool)))
    ([1, 2], 2)
    """
    forced, tests, core = _reduced(problem)
    if core.need <= 0:
        return sorted(forced), len(forced)
    bound = lower_bound(core, _first_suite(core))
    if not bound.proves:
        bound = _CoverSearch(core, bound).run()
    if not bound.proves and core.adequate:
        bound = _by_sat(core, bound)
    chosen = irredundant(problem, [*forced, *(tests[i] for i in bound.chosen)])
    return sorted(chosen), len(forced) + min(bound.tests, len(bound.chosen))


def _first_suite(problem: CoverProblem) -> list[int]:
    """Return a suite to start from: the greedy one, or a smallest complete one, thinned."""
    by_greed = greedy(problem)
    if problem.adequate:
        return by_greed
    everything, _ = smallest_cover(replace(problem, need=problem.total))
    return min(by_greed, thinned(problem, everything), key=len)


def _reduced(problem: CoverProblem) -> tuple[list[int], list[int], CoverProblem]:
    """Return tests that belong to a smallest suite, the other tests, and the problem of those."""
    forced: list[int] = []
    tests = list(range(len(problem.rows)))
    while True:
        before = problem.rows.shape
        if problem.adequate:
            problem = _without_implied(problem)
            alone = problem.rows[:, problem.rows.sum(0) == 1]
            essential = np.flatnonzero(alone.any(1)).tolist()
            if essential:
                forced += [tests[i] for i in essential]
                problem = problem.after(essential)
        keep = _not_contained(problem.rows)
        tests = [tests[i] for i in keep]
        problem = replace(problem, rows=np.asfortranarray(problem.rows[keep]))
        if problem.rows.shape == before or problem.need <= 0:
            return forced, tests, problem


def _without_implied(problem: CoverProblem) -> CoverProblem:
    """Drop each class that is hit by all tests that hit some other class: it is kept anyway."""
    columns = np.ascontiguousarray(problem.rows.T)
    gone = np.zeros(len(columns), bool)
    packed = np.packbits(problem.rows, axis=1)
    for k in np.argsort(columns.sum(1), kind="stable"):
        if not gone[k]:
            common = np.bitwise_and.reduce(packed[columns[k]], axis=0)
            above = np.unpackbits(common, count=len(columns)).astype(bool)
            above[k] = False
            gone |= above
    weights = problem.weights[~gone]
    members = tuple(m for m, out in zip(problem.members, gone, strict=True) if not out)
    rows = np.asfortranarray(problem.rows[:, ~gone])
    return replace(problem, rows=rows, weights=weights, need=int(weights.sum()), members=members)


def _not_contained(rows: Bools) -> list[int]:
    """Return the tests whose hits are not contained in another's; one of those that are equal."""
    packed = np.packbits(np.ascontiguousarray(rows.T), axis=1)
    gone = np.zeros(len(rows), bool)
    for i in np.argsort(rows.sum(1), kind="stable"):
        if not rows[i].any():
            gone[i] = True
            continue
        common = np.bitwise_and.reduce(packed[rows[i]], axis=0)
        above = np.unpackbits(common, count=len(rows)).astype(bool)
        above[i] = False
        gone[i] = (above & ~gone).any()
    return np.flatnonzero(~gone).tolist()


@dataclass(frozen=True)
class CoverBound:
    """A lower bound on the number of tests, with the prices that give it and the best suite."""

    value: float
    prices: Floats
    chosen: list[int]
    """The smallest suite known so far."""

    @property
    def tests(self) -> int:
        """The least number of tests that a suite needs."""
        return max(math.ceil(self.value - _SLACK), 0)

    @property
    def proves(self) -> bool:
        """Whether no suite can be smaller than the chosen one."""
        return len(self.chosen) <= self.tests


def lower_bound(problem: CoverProblem, known: list[int]) -> CoverBound:
    """Return the best bound that the subgradient steps find, starting from the suite `known`.

    >>> problem = CoverProblem.of(np.array([[1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0]], bool))
    >>> lower_bound(problem, [2, 0, 1]).tests
    2
    """
    rows = problem.rows.astype(np.float32)
    count = np.maximum(problem.rows.sum(0), 1)
    prices = 1.0 / np.maximum(rows @ (1.0 / count), 1e-9).max() / count
    best = CoverBound(-math.inf, prices, known)
    length, since = 1.0, 0
    for _ in range(min(_BOUND_STEPS, _BOUND_WORK // rows.size + 1)):
        reduced_costs = 1.0 - rows @ prices.astype(np.float32)
        left_out = _left_out(problem, prices)
        value = float(prices.sum() + np.minimum(reduced_costs, 0).sum() - (prices * left_out).sum())
        since += 1
        if value > best.value + 1e-4:
            best, since = replace(best, value=value, prices=prices), 0
            best = replace(best, chosen=_better(problem, best.chosen, reduced_costs))
        if best.proves:
            break
        if since >= 15:
            length, since = length / 2, 0
        taken = (reduced_costs < 0).astype(np.float32)
        slope = 1.0 - taken @ rows - left_out
        square = float(slope @ slope)
        if square == 0 or length < 1e-3:
            break
        prices = np.maximum(prices + length * (len(best.chosen) - value) / square * slope, 0)
    return best


def bound_of_prices(problem: CoverProblem, prices: Floats, available: Bools) -> int:
    """Return a lower bound on the number of available tests needed, by the given prices."""
    reduced_costs = 1.0 - problem.rows @ prices
    value = prices.sum() + np.minimum(reduced_costs, 0)[available].sum()
    value -= (prices * _left_out(problem, prices)).sum()
    return max(math.ceil(float(value) - _SLACK), 0)


def _left_out(problem: CoverProblem, prices: Floats) -> Floats:
    """Return the share of each class to leave out, so that the highest total price is left out.

    At most one class is left out in part.
    """
    spare = float(problem.total - problem.need)
    shares = np.zeros(len(prices))
    if spare <= 0:
        return shares
    order = np.argsort(-prices / problem.weights, kind="stable")
    before = np.cumsum(problem.weights[order]) - problem.weights[order]
    shares[order] = np.clip((spare - before) / problem.weights[order], 0, 1)
    return shares


def _better(problem: CoverProblem, known: list[int], reduced_costs: Floats) -> list[int]:
    """Return the suite of the tests with the least reduced costs if it is smaller than `known`."""
    covered: Bools = np.zeros(len(problem.weights), bool)
    kept, chosen = 0, []
    for test in np.argsort(reduced_costs, kind="stable")[: 4 * len(known) + 4]:
        new = problem.rows[test] & ~covered
        gain = int(problem.weights[new].sum())
        if gain:
            chosen.append(int(test))
            covered |= new
            kept += gain
        if kept >= problem.need:
            suite = irredundant(problem, chosen)
            return suite if len(suite) < len(known) else known
    return known


@dataclass(frozen=True)
class _Node:
    """A part of the search space: some tests are chosen, some are ruled out."""

    still: Bools
    """The classes that the chosen tests do not hit."""
    available: Bools
    """The tests that may still be chosen."""
    chosen: tuple[int, ...]
    need: int


class _CoverSearch:
    """Branch and bound: branch on whether the test that adds most is taken or ruled out."""

    def __init__(self, problem: CoverProblem, bound: CoverBound) -> None:
        self._problem = problem
        self._rows = problem.rows.astype(np.float32)
        self._weights = problem.weights.astype(np.float32)
        self._bound = bound
        self._left = _SEARCH_WORK
        self._best = bound.chosen

    def run(self) -> CoverBound:
        """Return the bound with the best suite found; it is proven if the search is exhaustive."""
        everything = np.ones(len(self._weights), bool)
        nodes = [_Node(everything, np.ones(len(self._rows), bool), (), self._problem.need)]
        while nodes and self._left > 0:
            nodes += self._branches(nodes.pop())
        value = self._bound.value if nodes else float(len(self._best))
        return replace(self._bound, chosen=self._best, value=value)

    def _branches(self, node: _Node) -> list[_Node]:
        """Return the nodes without and with the best test; the last is searched first."""
        if node.need <= 0:
            if len(node.chosen) < len(self._best):
                self._best = list(node.chosen)
            return []
        self._left -= self._rows.size
        gains = np.where(node.available, self._rows @ (self._weights * node.still), 0)
        if len(node.chosen) + self._fewest(node, gains) >= len(self._best):
            return []
        test = int(np.argmax(gains))
        rest = node.available.copy()
        rest[test] = False
        still = node.still & ~self._problem.rows[test]
        return [
            replace(node, available=rest),
            _Node(still, rest, (*node.chosen, test), node.need - int(gains[test])),
        ]

    def _fewest(self, node: _Node, gains: npt.NDArray[np.float32]) -> int:
        """Return a lower bound on the number of tests that a node still needs."""
        sums = np.cumsum(-np.sort(-gains))
        if sums[-1] < node.need:
            return len(self._best)
        by_gain = int(np.searchsorted(sums, node.need)) + 1
        if len(node.chosen) + by_gain >= len(self._best):
            return by_gain
        part = replace(
            self._problem,
            rows=self._problem.rows[:, node.still],
            weights=self._problem.weights[node.still],
            need=node.need,
        )
        return max(by_gain, bound_of_prices(part, self._bound.prices[node.still], node.available))


def sat_is_installed() -> bool:
    """Return whether python-sat is installed."""
    return importlib.util.find_spec("pysat") is not None


def _by_sat(problem: CoverProblem, bound: CoverBound) -> CoverBound:
    """Ask a SAT solver for one test fewer, repeatedly, until there is none or it gives up."""
    if not sat_is_installed() or int(problem.rows.sum()) > _LITERALS:
        return bound
    solvers = importlib.import_module("pysat.solvers")
    cards = importlib.import_module("pysat.card")
    tests = list(range(1, len(problem.rows) + 1))
    clauses = [(np.flatnonzero(column) + 1).tolist() for column in problem.rows.T]
    with (
        cards.ITotalizer(lits=tests, ubound=len(bound.chosen)) as count,
        solvers.Solver(name="glucose4", bootstrap_with=clauses) as solver,
    ):
        solver.append_formula(count.cnf.clauses)
        while not bound.proves:
            solver.conf_budget(_CONFLICTS)
            answer = solver.solve_limited(assumptions=[-count.rhs[len(bound.chosen) - 1]])
            if answer is None:
                break
            if not answer:
                return replace(bound, value=float(len(bound.chosen)))
            on = [literal - 1 for literal in solver.get_model() if 0 < literal <= len(tests)]
            bound = replace(bound, chosen=irredundant(problem, on))
    return bound
