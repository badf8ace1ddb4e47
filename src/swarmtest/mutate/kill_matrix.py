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
from swarmtest.analysis.set_cover import CoverProblem, greedy, smallest_cover
from swarmtest.core.targets import Source, Target
from swarmtest.mutate.generation import DrawnMutants
from swarmtest.mutate.mutant import Mutant

Bools = npt.NDArray[np.bool_]

NOT_RUN, PASSED, FAILED, ENDLESS, CRASHED, SLOW, BROKEN = range(7)
"""The values of `KillMatrix.outcomes`. In this order: the test was not run on the mutant; it ended
as without the mutant; it ended differently; it took too many steps; it ended its process; it took
too much time; it could not run because the program, or the test itself, cannot be imported."""


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

    def drawn_from(self, drawn: DrawnMutants) -> KillMatrix:
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


def greedy_tests(killed: Bools) -> list[int]:
    """Return tests that together kill all killed mutants, each the one that adds most in turn.

    >>> greedy_tests(np.array([[1, 0, 1], [1, 0, 0], [0, 1, 0]], bool))
    [0, 1]
    """
    return greedy(CoverProblem.of(killed.T))


def minimal_tests(killed: Bools) -> tuple[list[int], bool]:
    """Return the fewest tests that kill all killed mutants, and whether that is proven.

    >>> minimal_tests(np.array([[1, 1, 0], [1, 0, 1], [0, 1, 0], [0, 0, 1]], bool))
    ([1, 2], True)
    """
    tests, lower_bound = smallest_cover(CoverProblem.of(killed.T))
    return tests, len(tests) <= lower_bound
