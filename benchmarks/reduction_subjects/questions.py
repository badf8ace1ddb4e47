"""The questions of the dissertation's section 3.6, asked of one subject.

RQ1: how much smaller (SRR)? RQ2: how much of coverage and mutants is kept (CPR, MPR)? RQ3: how do
they trade off? RQ4: is that better than removing as many parts at random?
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

from swarmtest.reduction import (
    CoverageKept,
    MutantsKept,
    Reducer,
    first_to_add,
    kendall_tau,
    preservation_rate,
    randomly_reduced,
    size_reduction_rate,
)

SHARES = (70, 80, 90, 95, 100)
NUMBERS = (1, 2, 4, 8, 16, 32)
RANDOM_TESTS = 3
COVERAGE, MUTANTS, MINIMAL = "C%", "N", "minimal"


class Subject(Protocol):
    """What is reduced."""

    title: str
    part: str

    def test(self, seed: int) -> list[Any]:
        """A test, by its seed."""

    def reached(self, parts: Sequence[Any]) -> frozenset[int]:
        """The lines that parts reach."""


class MutatedSubject(Subject, Protocol):
    """One that has mutants as well."""

    all_mutants: range

    def kills(self, parts: Sequence[Any], mutant: int) -> bool:
        """Whether parts tell a mutant from the original."""

    def killed(self, parts: Sequence[Any], among: Iterable[int]) -> frozenset[int]:
        """Those of some mutants that parts kill."""


@dataclass(frozen=True)
class Point:
    """One test that was reduced in one way."""

    kind: str
    level: int
    calls: int
    srr: float
    cpr: float
    mpr: float | None
    random_cpr: float
    """The mean of tests of the same size that were reduced at random."""
    random_mpr: float | None


@dataclass
class Study:
    """Reduces tests of a subject in every way, and measures what is left."""

    subject: Subject
    seeds: range
    has_mutants: bool
    minimal_of: Callable[[list[frozenset[int]], int], dict[int, list[int]]] | None = None
    points: list[Point] = field(default_factory=list)

    def run(self) -> Study:
        """All tests, all ways."""
        killed = []
        for seed in self.seeds:
            whole = tuple(self.subject.test(seed))
            reached = self.subject.reached(whole)
            killed.append(self._killed(whole, None))
            for share in SHARES:
                self._reduce(COVERAGE, share, whole, reached, killed[-1], seed)
            for number in NUMBERS if self.has_mutants else ():
                self._reduce(MUTANTS, number, whole, reached, killed[-1], seed)
        if self.minimal_of is not None:
            self._minimal(killed)
        return self

    def _minimal(self, killed: list[frozenset[int]]) -> None:
        """Each test of the minimal suite keeps one mutant of the minimal set."""
        assert self.minimal_of is not None
        for test, mutants in self.minimal_of(killed, len(self._mutated.all_mutants)).items():
            if mutants:
                seed = self.seeds[test]
                whole = tuple(self.subject.test(seed))
                criterion = MutantsKept(self._mutated.kills, mutants[:1])
                reached = self.subject.reached(whole)
                self._measure(MINIMAL, 1, whole, reached, killed[test], criterion, (), seed)

    @property
    def _mutated(self) -> MutatedSubject:
        return self.subject  # type: ignore[return-value]

    def _killed(self, parts: Sequence[Any], among: Iterable[int] | None) -> frozenset[int]:
        if not self.has_mutants:
            return frozenset()
        return self._mutated.killed(parts, self._mutated.all_mutants if among is None else among)

    def _reduce(
        self,
        kind: str,
        level: int,
        whole: tuple[Any, ...],
        reached: frozenset[int],
        killed: frozenset[int],
        seed: int,
    ) -> None:
        suggestions: tuple[tuple[int, ...], ...] = ()
        if kind == COVERAGE:
            criterion: Any = CoverageKept(self.subject.reached, reached, level / 100)
            after_each = getattr(self.subject, "reached_after_each", None)
            if after_each is not None and level < 100:
                suggestions = (first_to_add(after_each(whole), reached, level / 100),)
        else:
            chosen = random.Random(f"{seed} {level}").sample(
                sorted(killed), min(level, len(killed))
            )
            criterion = MutantsKept(self._mutated.kills, chosen)
        self._measure(kind, level, whole, reached, killed, criterion, suggestions, seed)

    def _measure(
        self,
        kind: str,
        level: int,
        whole: tuple[Any, ...],
        reached: frozenset[int],
        killed: frozenset[int],
        criterion: Any,
        suggestions: tuple[tuple[int, ...], ...],
        seed: int,
    ) -> None:
        found = Reducer(whole, criterion, suggestions=suggestions).run()
        rng = random.Random(f"{seed} {kind} {level}")
        others = [randomly_reduced(whole, len(found.parts), rng) for _ in range(RANDOM_TESTS)]

        def cpr(parts: Sequence[Any]) -> float:
            return preservation_rate(reached, self.subject.reached(parts))

        def mpr(parts: Sequence[Any]) -> float | None:
            kept = self._killed(parts, killed)
            return preservation_rate(killed, kept) if self.has_mutants else None

        by_chance = [value for other in others if (value := mpr(other)) is not None]
        self.points.append(
            Point(
                kind,
                level,
                found.calls,
                size_reduction_rate(len(whole), len(found.parts)),
                cpr(found.parts),
                mpr(found.parts),
                statistics.mean(map(cpr, others)),
                statistics.mean(by_chance) if by_chance else None,
            )
        )

    # Answers

    def levels(self) -> list[tuple[str, int]]:
        """The ways that were tried."""
        return list(dict.fromkeys((point.kind, point.level) for point in self.points))

    def median(self, kind: str, level: int, name: str) -> float | None:
        """Of one measure over all tests that were reduced in one way."""
        of = [getattr(p, name) for p in self.points if (p.kind, p.level) == (kind, level)]
        known = [value for value in of if value is not None]
        return statistics.median(known) if known else None

    def tau(self, kind: str, name: str) -> tuple[float, float] | None:
        """Kendall's tau of the level and a measure, with its p-value."""
        pairs = [(p.level, getattr(p, name)) for p in self.points if p.kind == kind]
        known = [(level, value) for level, value in pairs if value is not None]
        if len(known) < 2:
            return None
        found = kendall_tau([level for level, _ in known], [value for _, value in known])
        return found.tau, found.p

    def largest_gain(self) -> tuple[int, int] | None:
        """Between which neighbouring shares of coverage the size falls most."""
        srr = {share: self.median(COVERAGE, share, "srr") for share in SHARES}
        steps = [
            (low_value - high_value, (low, high))
            for low, high in pairwise(SHARES)
            if (low_value := srr[low]) is not None and (high_value := srr[high]) is not None
        ]
        return max(steps)[1] if steps else None
