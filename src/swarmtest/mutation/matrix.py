"""The kill matrix: what became of each mutant under each test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.intervals import wilson_interval
from swarmtest.mutation.drawing import Drawn
from swarmtest.mutation.minimal import (
    Bools,
    classes,
    minimal_mutants,
    minimal_tests,
    subsumption,
)
from swarmtest.mutation.mutant import Mutant
from swarmtest.targets import Source, Target

NOT_RUN, PASSED, FAILED, ENDLESS, CRASHED, SLOW, BROKEN = range(7)
"""An entry of `KillMatrix.outcomes`: the test was not run on the mutant; it ended as without it;
otherwise; it took too many steps; it ended its process; it took too much time; it could not be run
because the program, or the test itself, cannot be imported."""


@dataclass(frozen=True)
class KillMatrix:
    """Mutants by tests.

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
    """Whether a test executes what a mutant changes."""
    seconds: tuple[float, ...] = ()
    """What each test takes without a mutant; 0 for one that was not run."""
    complete: bool = True
    """Whether all tests that reach a mutant were run on it, or only up to the first kill."""
    not_switchable: tuple[Mutant, ...] = ()
    """Mutants that the running program cannot be given: they are in no figure."""
    equivalent: int = 0
    """Mutants that were dropped because they compile to what is there already."""
    population: int = 0
    """Of how many mutants these are a sample; 0: they are all."""
    left_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Tests that were not used, by the reason."""
    sources: tuple[Source, ...] = ()
    """The files that were mutated."""
    duplicate: int = 0
    """Mutants of C that were dropped because they compile to what another does."""
    not_compiled: int = 0
    """Mutants of C that were dropped because they do not compile."""

    @cached_property
    def killed(self) -> Bools:
        """Whether a test kills a mutant."""
        answer: Bools = self.outcomes > PASSED
        return answer

    @cached_property
    def is_killed(self) -> Bools:
        """For each mutant whether any test kills it."""
        return np.asarray(self.killed.any(1))

    @property
    def score(self) -> float:
        """The share of mutants that are killed; of those that no test reaches none is."""
        return float(self.is_killed.mean()) if len(self.mutants) else 0.0

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Where the score of all mutants lies (Wilson); without sampling it is known."""
        if not self.population or self.population <= len(self.mutants):
            return self.score, self.score
        low, high = wilson_interval(int(self.is_killed.sum()), len(self.mutants), confidence)
        return float(low), float(high)

    @property
    def survivors(self) -> list[Mutant]:
        """Mutants that tests reach and none kills."""
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
        """The tests that kill a mutant."""
        row = self.killed[self.mutants.index(mutant)]
        return [self.tests[i] for i in np.flatnonzero(row)]

    @cached_property
    def _smallest_suite(self) -> tuple[list[int], bool]:
        return minimal_tests(self.killed)

    @property
    def minimal_tests(self) -> list[str]:
        """The fewest tests that kill all that are killed (see `minimal_is_exact`)."""
        return [self.tests[i] for i in self._smallest_suite[0]]

    @property
    def minimal_is_exact(self) -> bool:
        """Whether it is proven that no fewer tests do."""
        return self._smallest_suite[1]

    @property
    def minimal_mutants(self) -> list[Mutant]:
        """The fewest mutants whose killing kills all, by the tests at hand: none subsumed."""
        return [self.mutants[i] for i in minimal_mutants(self.killed)]

    @property
    def forcing_mutants(self) -> list[Mutant]:
        """The minimal mutants with respect to the minimal suite (dissertation, 3.5.1.3)."""
        found = minimal_mutants(self.killed, self._smallest_suite[0])
        return [self.mutants[i] for i in found]

    @property
    def distinct(self) -> list[list[Mutant]]:
        """Killed mutants, those that the same tests kill together."""
        return [[self.mutants[i] for i in group] for group in classes(self.killed)]

    def subsumption(self) -> tuple[list[list[Mutant]], list[tuple[int, int]]]:
        """The classes of `distinct`, and the pairs of which the first subsumes the second."""
        groups, edges = subsumption(self.killed)
        return [[self.mutants[i] for i in group] for group in groups], edges

    def targets(self) -> list[Target]:
        """The mutants as targets, in their order: what kills one hits it."""
        by_path = {source.path: source for source in self.sources}
        return [mutant.target(by_path[mutant.path]) for mutant in self.mutants]

    def with_tests(self, names: Iterable[str]) -> KillMatrix:
        """The same, with tests that reach none of the mutants and were not run."""
        more = tuple(names)
        blank = np.zeros((len(self.mutants), len(more)), np.uint8)
        return replace(
            self,
            tests=(*self.tests, *more),
            outcomes=np.hstack((self.outcomes, blank)),
            reached=np.hstack((self.reached, blank > 0)),
            seconds=(*self.seconds, *(0.0 for _ in more)),
        )

    def drawn_from(self, drawn: Drawn) -> KillMatrix:
        """The same, with what is known of the mutants that it does not show."""
        population = drawn.population if len(drawn.mutants) < drawn.population else 0
        return replace(
            self, population=population, equivalent=drawn.equivalent, sources=drawn.sources
        )
