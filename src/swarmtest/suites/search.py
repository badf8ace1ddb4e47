"""The smallest suite, and whether it is known to be: reductions, bounds, search, and SAT.

Everything here is counted, not timed, so that the same problem gives the same answer everywhere.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from swarmtest.suites.bounds import Bound, bound_of_prices, lower_bound
from swarmtest.suites.cover import Bools, Problem, greedy, irredundant, thinned

_WORK = 400_000_000
"""Entries of the table that the search may look at."""
_CONFLICTS = 20_000
"""Of the SAT solver, for each number of tests."""
_LITERALS = 2_000_000
"""Beyond so many entries a table is not given to the SAT solver."""


def smallest(problem: Problem) -> tuple[list[int], int]:
    """The fewest tests that were found to keep what is needed; and how many it takes at least.

    >>> smallest(Problem.of(np.array([[0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 1, 1]], bool)))
    ([1, 2], 2)
    """
    forced, tests, core = _reduced(problem)
    if core.need <= 0:
        return sorted(forced), len(forced)
    bound = lower_bound(core, _known(core))
    if not bound.proves:
        bound = _Search(core, bound).run()
    if not bound.proves and core.adequate:
        bound = _by_sat(core, bound)
    chosen = irredundant(problem, [*forced, *(tests[i] for i in bound.chosen)])
    return sorted(chosen), len(forced) + min(bound.tests, len(bound.chosen))


def _known(problem: Problem) -> list[int]:
    """A suite to begin with: greedy, or what is left of one that keeps all, if that is smaller."""
    found = greedy(problem)
    if problem.adequate:
        return found
    everything, _ = smallest(replace(problem, need=problem.total))
    return min(found, thinned(problem, everything), key=len)


def _reduced(problem: Problem) -> tuple[list[int], list[int], Problem]:
    """Tests that are in every smallest suite, and what is left to choose from."""
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


def _without_implied(problem: Problem) -> Problem:
    """Only classes that are not hit by all tests that hit another: those are kept anyway."""
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
    """The tests that hit something that no other hits along with all the rest; of equals one."""
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
class _Node:
    """A part of what there is to search."""

    still: Bools
    """The classes that are not kept yet."""
    available: Bools
    """The tests that may be taken."""
    chosen: tuple[int, ...]
    need: int


class _Search:
    """Branch and bound: the test that adds most is taken, or is left out for good."""

    def __init__(self, problem: Problem, bound: Bound) -> None:
        self._problem = problem
        self._rows = problem.rows.astype(np.float32)
        self._weights = problem.weights.astype(np.float32)
        self._bound = bound
        self._left = _WORK
        self._best = bound.chosen

    def run(self) -> Bound:
        """The bound with the best suite that was found; proven, if the search came to an end."""
        everything = np.ones(len(self._weights), bool)
        nodes = [_Node(everything, np.ones(len(self._rows), bool), (), self._problem.need)]
        while nodes and self._left > 0:
            nodes += self._branches(nodes.pop())
        value = self._bound.value if nodes else float(len(self._best))
        return replace(self._bound, chosen=self._best, value=value)

    def _branches(self, node: _Node) -> list[_Node]:
        """Without the best test, and with it: the last one is looked at first."""
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
        """So many more tests are needed at least."""
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
    """Whether python-sat can be used."""
    return importlib.util.find_spec("pysat") is not None


def _by_sat(problem: Problem, bound: Bound) -> Bound:
    """Fewer tests, one fewer each time, until there are none or the solver gives up."""
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
