"""The kill matrix, and small sets from it: minimal tests, minimal mutants, subsumption.

A kill matrix says which tests kill which mutants. A mutant *subsumes* another if at least one test
kills it, and every test that kills it kills the other as well: a suite that kills the first is sure
to kill the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.intervals import wilson_interval
from swarmtest.core.targets import Source, Target
from swarmtest.mutate.generation import Drawn
from swarmtest.mutate.mutant import Mutant

Bools = npt.NDArray[np.bool_]

NOT_RUN, PASSED, FAILED, ENDLESS, CRASHED, SLOW, BROKEN = range(7)
"""The values of `KillMatrix.outcomes`. In this order: the test was not run on the mutant; it ended
as without the mutant; it ended differently; it took too many steps; it ended its process; it took
too much time; it could not run because the program, or the test itself, cannot be imported."""

_EXACT_STEPS = 200_000
"""How many nodes the search for a smallest cover visits before it returns the best one so far."""


@dataclass(frozen=True)
class KillMatrix:
    """What became of each mutant (row) under each test (column).

    >>> mutant = Mutant("m1", "a.py", 1, "f", "negate", "", "", (), "", "")
    >>> outcomes = np.array([[PASSED, FAILED], [PASSED, NOT_RUN]], np.uint8)
    >>> matrix = KillMatrix((mutant, mutant), ("t1", "t2"), outcomes, outcomes > 0)
    >>> matrix.score, len(matrix.survivors)
    (0.5, 1)
    """

    mutants: tuple[Mutant, ...]
    tests: tuple[str, ...]
    outcomes: npt.NDArray[np.uint8]
    """One of `NOT_RUN`, `PASSED`, `FAILED`, `ENDLESS`, `CRASHED`, `SLOW`, `BROKEN`."""
    reached: Bools
    """Whether each test executes the code that each mutant changes."""
    seconds: tuple[float, ...] = ()
    """How long each test takes without a mutant; 0 for one that was not run."""
    complete: bool = True
    """Whether all tests that reach a mutant were run on it, not only up to the first kill."""
    not_switchable: tuple[Mutant, ...] = ()
    """Mutants that cannot be switched on in the running program; no figure counts them."""
    equivalent: int = 0
    """How many mutants were dropped because they compile to the original's code."""
    population: int = 0
    """The number of mutants that these are a sample of; 0: these are all."""
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Tests that were not used, by the reason."""
    sources: tuple[Source, ...] = ()
    """The files that were mutated."""
    duplicate: int = 0
    """How many mutants of C were dropped because they compile to another mutant's code."""
    not_compiled: int = 0
    """How many mutants of C were dropped because they do not compile."""

    @cached_property
    def killed(self) -> Bools:
        """Whether each test kills each mutant."""
        killed: Bools = self.outcomes > PASSED
        return killed

    @cached_property
    def is_killed(self) -> Bools:
        """For each mutant, whether any test kills it."""
        return np.asarray(self.killed.any(1))

    @property
    def score(self) -> float:
        """The share of mutants that are killed; mutants that no test reaches are not."""
        return float(self.is_killed.mean()) if len(self.mutants) else 0.0

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the Wilson interval of the whole population's score; a point without sampling."""
        if not self.population or self.population <= len(self.mutants):
            return self.score, self.score
        low, high = wilson_interval(int(self.is_killed.sum()), len(self.mutants), confidence)
        return float(low), float(high)

    @property
    def survivors(self) -> list[Mutant]:
        """Mutants that at least one test reaches and no test kills."""
        alive = self.reached.any(1) & ~self.is_killed
        return [self.mutants[i] for i in np.flatnonzero(alive)]

    @property
    def not_reached(self) -> list[Mutant]:
        """Mutants that no test executes."""
        return [self.mutants[i] for i in np.flatnonzero(~self.reached.any(1))]

    @property
    def endless(self) -> list[Mutant]:
        """Mutants that were killed because they took too many steps, or too much time."""
        slow = (self.outcomes == ENDLESS) | (self.outcomes == SLOW)
        return [self.mutants[i] for i in np.flatnonzero(slow.any(1))]

    @property
    def broken(self) -> list[Mutant]:
        """Mutants that were killed because the program cannot be imported with them."""
        return [self.mutants[i] for i in np.flatnonzero((self.outcomes == BROKEN).any(1))]

    def killers(self, mutant: Mutant) -> list[str]:
        """Return the tests that kill a mutant."""
        row = self.killed[self.mutants.index(mutant)]
        return [self.tests[i] for i in np.flatnonzero(row)]

    @cached_property
    def _smallest_suite(self) -> tuple[list[int], bool]:
        return minimal_tests(self.killed)

    @property
    def minimal_tests(self) -> list[str]:
        """The fewest tests that kill all killed mutants (see `minimal_is_exact`)."""
        return [self.tests[i] for i in self._smallest_suite[0]]

    @property
    def minimal_is_exact(self) -> bool:
        """Whether `minimal_tests` is proven to be the smallest possible set."""
        return self._smallest_suite[1]

    @property
    def minimal_mutants(self) -> list[Mutant]:
        """The fewest mutants such that killing them, by these tests, kills all killed mutants."""
        return [self.mutants[i] for i in minimal_mutants(self.killed)]

    @property
    def forcing_mutants(self) -> list[Mutant]:
        """The minimal mutants with respect to the minimal suite (dissertation, 3.5.1.3)."""
        forcing = minimal_mutants(self.killed, self._smallest_suite[0])
        return [self.mutants[i] for i in forcing]

    @property
    def distinct(self) -> list[list[Mutant]]:
        """The killed mutants, grouped by the set of tests that kill them."""
        return [[self.mutants[i] for i in group] for group in classes(self.killed)]

    def subsumption(self) -> tuple[list[list[Mutant]], list[tuple[int, int]]]:
        """Return the groups of `distinct`, and the pairs where the first subsumes the second."""
        groups, edges = subsumption(self.killed)
        return [[self.mutants[i] for i in group] for group in groups], edges

    def targets(self) -> list[Target]:
        """Return the mutants as targets, in their order; a test that kills one hits it."""
        by_path = {source.path: source for source in self.sources}
        return [mutant.target(by_path[mutant.path]) for mutant in self.mutants]

    def with_tests(self, names: Iterable[str]) -> KillMatrix:
        """Return the matrix with more tests, which reach none of the mutants and were not run."""
        added = tuple(names)
        blank = np.zeros((len(self.mutants), len(added)), np.uint8)
        return replace(
            self,
            tests=(*self.tests, *added),
            outcomes=np.hstack((self.outcomes, blank)),
            reached=np.hstack((self.reached, blank > 0)),
            seconds=(*self.seconds, *(0.0 for _ in added)),
        )

    def drawn_from(self, drawn: Drawn) -> KillMatrix:
        """Return the matrix with the numbers of mutants that were not drawn, or dropped."""
        population = drawn.population if len(drawn.mutants) < drawn.population else 0
        return replace(
            self, population=population, equivalent=drawn.equivalent, sources=drawn.sources
        )


# Small sets. `killed` is a row per mutant and a column per test.


def classes(killed: Bools) -> list[list[int]]:
    """Group mutants by the set of tests that kill them; mutants that survive are in no group.

    >>> classes(np.array([[1, 0], [1, 0], [0, 0], [1, 1]], bool))
    [[0, 1], [3]]
    """
    by_tests: dict[bytes, list[int]] = {}
    for i, row in enumerate(killed):
        if row.any():
            by_tests.setdefault(row.tobytes(), []).append(i)
    return list(by_tests.values())


def subsumption(killed: Bools) -> tuple[list[list[int]], list[tuple[int, int]]]:
    """Return the classes and the direct edges between them: (a, b) if a subsumes b.

    >>> subsumption(np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]], bool))[1]
    [(0, 1), (1, 2)]
    """
    groups = classes(killed)
    if not groups:
        return [], []
    rows = killed[[group[0] for group in groups]]
    within = _contained(rows)
    np.fill_diagonal(within, False)
    # Leave out an edge that a path through a third class implies.
    indirect = (within.astype(np.float32) @ within.astype(np.float32)) > 0
    return groups, [(int(a), int(b)) for a, b in np.argwhere(within & ~indirect)]


def _contained(rows: Bools) -> Bools:
    """Return a matrix of whether all tests of row i are among those of row j."""
    numbers = rows.astype(np.float32)
    shared = numbers @ numbers.T
    contained: Bools = shared >= numbers.sum(1)[:, None]
    return contained


def minimal_mutants(killed: Bools, tests: Sequence[int] | None = None) -> list[int]:
    """Return the smallest set of mutants such that tests that kill these kill all killed mutants.

    It has one mutant of each class that no other class subsumes (Ammann, Delamaro and Offutt 2014).
    `tests` restricts the columns, as in section 3.5.1.3 of the dissertation: there it is a minimal
    suite, and the set is the smallest that forces a suite to be as strong.

    >>> minimal_mutants(np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]], bool))
    [0, 2]
    """
    rows = killed if tests is None else killed[:, list(tests)]
    groups, edges = subsumption(rows)
    subsumed = {below for _, below in edges}
    return [group[0] for i, group in enumerate(groups) if i not in subsumed]


def greedy_tests(killed: Bools, cost: Sequence[float] | None = None) -> list[int]:
    """Return tests that together kill all killed mutants, always the one that adds most per cost.

    >>> greedy_tests(np.array([[1, 0, 1], [1, 0, 0], [0, 1, 0]], bool))
    [0, 1]
    """
    open_rows = killed[killed.any(1)]
    prices = np.ones(killed.shape[1]) if cost is None else np.maximum(np.array(cost), 1e-9)
    chosen: list[int] = []
    while len(open_rows):
        best = int(np.argmax(open_rows.sum(0) / prices))
        chosen.append(best)
        open_rows = open_rows[~open_rows[:, best]]
    return _irredundant(killed, chosen)


def _irredundant(killed: Bools, chosen: list[int]) -> list[int]:
    """Drop tests all of whose mutants are also killed by the other chosen tests."""
    needed = list(chosen)
    for test in reversed(chosen):
        rest = [other for other in needed if other != test]
        if np.array_equal(killed[:, rest].any(1), killed[:, needed].any(1)):
            needed = rest
    return needed


def minimal_tests(killed: Bools) -> tuple[list[int], bool]:
    """Return the fewest tests that kill all killed mutants, and whether that is proven.

    A greedy cover comes first, then branch and bound over the mutants that no other subsumes and
    the tests whose kills are not contained in another's.

    >>> minimal_tests(np.array([[1, 1, 0], [1, 0, 1], [0, 1, 0], [0, 0, 1]], bool))
    ([1, 2], True)
    """
    greedy = greedy_tests(killed)
    if not greedy:
        return [], True
    rows = killed[minimal_mutants(killed)]
    columns = _best_columns(rows)
    masks = [sum(1 << int(i) for i in np.flatnonzero(rows[:, c])) for c in columns]
    search = _Cover(masks, len(rows), len(greedy))
    smaller = search.run()
    chosen = greedy if smaller is None else sorted(columns[i] for i in smaller)
    return sorted(chosen), search.finished


def _best_columns(rows: Bools) -> list[int]:
    """Return the columns that are not contained in another; of equal ones the first."""
    within = _contained(rows.T)
    best = []
    for i in range(rows.shape[1]):
        above = np.flatnonzero(within[i])
        if rows[:, i].any() and not any(j != i and (not within[j, i] or j < i) for j in above):
            best.append(i)
    return best


class _Cover:
    """Branch and bound for the smallest set cover, on bit masks."""

    def __init__(self, masks: list[int], rows: int, known_size: int) -> None:
        self._masks = masks
        self._all = (1 << rows) - 1
        self._best_size = known_size
        """The size of the best cover known; only smaller ones are searched for."""
        self._steps = 0
        self._best: list[int] | None = None
        self._by_row = [[i for i, m in enumerate(masks) if m >> r & 1] for r in range(rows)]
        self.finished = True

    def run(self) -> list[int] | None:
        """Return a smaller cover than the known one; None if there is none or the limit is hit."""
        self._search(0, [])
        return self._best

    def _search(self, covered: int, chosen: list[int]) -> None:
        self._steps += 1
        if self._steps > _EXACT_STEPS:
            self.finished = False
            return
        left = self._all & ~covered
        if not left:
            self._best, self._best_size = list(chosen), len(chosen)
            return
        if len(chosen) + self._bound(left) >= self._best_size:
            return
        row = min(_bits(left), key=lambda r: len(self._by_row[r]))
        for i in sorted(self._by_row[row], key=lambda i: -(self._masks[i] & left).bit_count()):
            self._search(covered | self._masks[i], [*chosen, i])
            if not self.finished:
                return

    def _bound(self, left: int) -> int:
        """Return a lower bound on the tests needed: the number of rows that share no test."""
        count = 0
        while left:
            row = (left & -left).bit_length() - 1
            count += 1
            for i in self._by_row[row]:
                left &= ~self._masks[i]
        return count


def _bits(mask: int) -> list[int]:
    bits = []
    while mask:
        low = mask & -mask
        bits.append(low.bit_length() - 1)
        mask ^= low
    return bits
