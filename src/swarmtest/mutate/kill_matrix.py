"""Small sets from a kill matrix: tests that kill all, mutants that force them, who subsumes whom.

A matrix is mutants by tests. A mutant *subsumes* another if every test that kills it kills the
other as well (and some test kills it): who kills the one need not look at the other.
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

# -------------------------------------------------------------------------------------------------
# The kill matrix: what became of each mutant under each test.

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


# -------------------------------------------------------------------------------------------------

Bools = npt.NDArray[np.bool_]

_EXACT_STEPS = 200_000
"""Nodes of the search for a smallest cover before the best one so far has to do."""


def classes(killed: Bools) -> list[list[int]]:
    """Mutants that the same tests kill, together; those that none kills are in no class.

    >>> classes(np.array([[1, 0], [1, 0], [0, 0], [1, 1]], bool))
    [[0, 1], [3]]
    """
    found: dict[bytes, list[int]] = {}
    for i, row in enumerate(killed):
        if row.any():
            found.setdefault(row.tobytes(), []).append(i)
    return list(found.values())


def subsumption(killed: Bools) -> tuple[list[list[int]], list[tuple[int, int]]]:
    """The classes, and the edges between them: (a, b) says that a subsumes b, at once.

    >>> subsumption(np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]], bool))[1]
    [(0, 1), (1, 2)]
    """
    groups = classes(killed)
    if not groups:
        return [], []
    rows = killed[[group[0] for group in groups]]
    within = _contained(rows)
    np.fill_diagonal(within, False)
    # An edge that a way over a third class implies is left out.
    over = (within.astype(np.float32) @ within.astype(np.float32)) > 0
    return groups, [(int(a), int(b)) for a, b in np.argwhere(within & ~over)]


def _contained(rows: Bools) -> Bools:
    """Whether row i's tests are all among row j's."""
    numbers = rows.astype(np.float32)
    shared = numbers @ numbers.T
    answer: Bools = shared >= numbers.sum(1)[:, None]
    return answer


def minimal_mutants(killed: Bools, tests: Sequence[int] | None = None) -> list[int]:
    """The smallest set of mutants such that tests which kill these kill all that are killed.

    Those are the mutants, one of each class, that no other class subsumes (Ammann, Delamaro and
    Offutt 2014). `tests`: with respect to these only, as in 3.5.1.3 of the dissertation: a minimal
    suite, which is what the smallest set of mutants has to force.

    >>> minimal_mutants(np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]], bool))
    [0, 2]
    """
    rows = killed if tests is None else killed[:, list(tests)]
    groups, edges = subsumption(rows)
    subsumed = {below for _, below in edges}
    return [group[0] for i, group in enumerate(groups) if i not in subsumed]


def greedy_tests(killed: Bools, cost: Sequence[float] | None = None) -> list[int]:
    """Tests that together kill all that are killed: always the one that adds most (per cost).

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
    """Without tests whose every mutant another kills."""
    kept = list(chosen)
    for test in reversed(chosen):
        rest = [other for other in kept if other != test]
        if np.array_equal(killed[:, rest].any(1), killed[:, kept].any(1)):
            kept = rest
    return kept


def minimal_tests(killed: Bools) -> tuple[list[int], bool]:
    """The fewest tests that kill all that are killed; and whether it is known that fewer cannot.

    Greedy first; then branch and bound over the mutants that no other subsumes, and the tests that
    no other surpasses.

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
    found = search.run()
    chosen = greedy if found is None else sorted(columns[i] for i in found)
    return sorted(chosen), search.finished


def _best_columns(rows: Bools) -> list[int]:
    """The columns that are not contained in another; of equal ones the first."""
    within = _contained(rows.T)
    kept = []
    for i in range(rows.shape[1]):
        above = np.flatnonzero(within[i])
        if rows[:, i].any() and not any(j != i and (not within[j, i] or j < i) for j in above):
            kept.append(i)
    return kept


class _Cover:
    """Branch and bound for the smallest set cover, on bit masks."""

    def __init__(self, masks: list[int], rows: int, known: int) -> None:
        self._masks = masks
        self._all = (1 << rows) - 1
        self._most = known
        """A cover of this size is known: only smaller ones are of interest."""
        self._steps = 0
        self._best: list[int] | None = None
        self._by_row = [[i for i, m in enumerate(masks) if m >> r & 1] for r in range(rows)]
        self.finished = True

    def run(self) -> list[int] | None:
        """A smaller cover than the known one; None: there is none, or the search gave up."""
        self._search(0, [])
        return self._best

    def _search(self, covered: int, chosen: list[int]) -> None:
        self._steps += 1
        if self._steps > _EXACT_STEPS:
            self.finished = False
            return
        left = self._all & ~covered
        if not left:
            self._best, self._most = list(chosen), len(chosen)
            return
        if len(chosen) + self._bound(left) >= self._most:
            return
        row = min(_bits(left), key=lambda r: len(self._by_row[r]))
        for i in sorted(self._by_row[row], key=lambda i: -(self._masks[i] & left).bit_count()):
            self._search(covered | self._masks[i], [*chosen, i])
            if not self.finished:
                return

    def _bound(self, left: int) -> int:
        """A number of tests below which nothing covers the rest: rows that share no test."""
        count = 0
        while left:
            row = (left & -left).bit_length() - 1
            count += 1
            for i in self._by_row[row]:
                left &= ~self._masks[i]
        return count


def _bits(mask: int) -> list[int]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found
