"""The questions of the dissertation's section 3.6, asked of one subject.

RQ1: how much smaller (SRR)? RQ2: how much of coverage and mutants is kept (CPR, MPR)? RQ3: how do
they trade off? RQ4: is that better than removing as many parts at random?
"""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing import get_context
from typing import Any, Protocol

import numpy as np

from swarmtest.mutate.kill_matrix import greedy_tests, minimal_mutants
from swarmtest.reducer.criteria import (
    CoverageKept,
    Criterion,
    KendallTau,
    MutantsKept,
    kendall_tau,
    preservation_rate,
    randomly_reduced,
    size_reduction_rate,
)
from swarmtest.reducer.reducer import Reducer

SHARES = (70, 80, 90, 95, 100)
NUMBERS = (1, 2, 4, 8, 16, 32)
RANDOM_TESTS = 3
COVERAGE, MUTANTS, MINIMAL = "C%", "N", "minimal N"


class Subject(Protocol):
    """What is reduced."""

    title: str
    part: str

    @property
    def all_mutants(self) -> range:
        """The numbers of its mutants."""

    def test(self, seed: int) -> list[Any]:
        """A test, by its seed."""

    def reached(self, parts: Sequence[Any]) -> frozenset[int]:
        """The lines that parts reach."""

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
    mpr: float
    random_cpr: float
    """The mean of tests of the same size that were reduced at random."""
    random_mpr: float


@dataclass(frozen=True)
class Original:
    """A test before it is reduced."""

    seed: int
    parts: tuple[Any, ...]
    reached: frozenset[int]
    killed: frozenset[int]


@dataclass
class Study:
    """Reduces tests of a subject in every way, and measures what is left."""

    subject: Subject
    seeds: range
    points: list[Point] = field(default_factory=list)
    sizes: str = ""
    """Of the tests, for people."""

    def run(self, workers: int = 1) -> Study:
        """All tests, all ways; several tests at a time, each in a fork of this process."""
        with ProcessPoolExecutor(workers, get_context("fork"), _at_work, (self,)) as pool:
            originals, points = zip(*pool.map(_reduced_in_all_ways, self.seeds), strict=True)
        self.points += itertools.chain.from_iterable(points)
        of = [len(one.parts) for one in originals]
        sizes = f"{min(of)} to {max(of)}" if min(of) < max(of) else str(of[0])
        self.sizes = f"{sizes} {self.subject.part}s each"
        self._keep_minimal_mutants(originals)
        return self

    def reduced_in_all_ways(self, seed: int) -> tuple[Original, list[Point]]:
        """One test: what it was, and what was left of it."""
        one = self._original(seed)
        points = []
        for share in SHARES:
            criterion = CoverageKept(self.subject.reached, one.reached, share / 100)
            points.append(self._measured(COVERAGE, share, one, criterion))
        for number in NUMBERS:
            rng = random.Random(f"{one.seed} {number}")
            chosen = rng.sample(sorted(one.killed), min(number, len(one.killed)))
            kept = MutantsKept(self.subject.kills, chosen)
            points.append(self._measured(MUTANTS, number, one, kept))
        return one, points

    def _original(self, seed: int) -> Original:
        parts = tuple(self.subject.test(seed))
        killed = self.subject.killed(parts, self.subject.all_mutants)
        return Original(seed, parts, self.subject.reached(parts), killed)

    def _keep_minimal_mutants(self, originals: Sequence[Original]) -> None:
        """Each test of the minimal suite keeps one mutant of the minimal set (3.5.1.3)."""
        matrix = np.zeros((len(self.subject.all_mutants), len(originals)), bool)
        for test, one in enumerate(originals):
            matrix[sorted(one.killed), test] = True
        rows = np.flatnonzero(matrix.any(axis=1))
        suite = greedy_tests(matrix[rows])
        minimal = [int(rows[i]) for i in minimal_mutants(matrix[rows], suite)]
        for test in suite:
            own = [mutant for mutant in minimal if matrix[mutant, test]]
            if own:
                criterion = MutantsKept(self.subject.kills, own[:1])
                self.points.append(self._measured(MINIMAL, 1, originals[test], criterion))

    def _measured(self, kind: str, level: int, one: Original, criterion: Criterion) -> Point:
        found = Reducer(one.parts, criterion).run()
        rng = random.Random(f"{one.seed} {kind} {level}")
        others = [randomly_reduced(one.parts, len(found.parts), rng) for _ in range(RANDOM_TESTS)]

        def cpr(parts: Sequence[Any]) -> float:
            return preservation_rate(one.reached, self.subject.reached(parts))

        def mpr(parts: Sequence[Any]) -> float:
            return preservation_rate(one.killed, self.subject.killed(parts, one.killed))

        return Point(
            kind,
            level,
            found.calls,
            size_reduction_rate(len(one.parts), len(found.parts)),
            cpr(found.parts),
            mpr(found.parts),
            statistics.mean(map(cpr, others)),
            statistics.mean(map(mpr, others)),
        )

    # Answers

    def levels(self) -> list[tuple[str, int]]:
        """The ways that were tried."""
        return list(dict.fromkeys((point.kind, point.level) for point in self.points))

    def median(self, kind: str, level: int, name: str) -> float:
        """Of one measure over all tests that were reduced in one way."""
        return statistics.median(
            float(getattr(p, name)) for p in self.points if (p.kind, p.level) == (kind, level)
        )

    def tau(self, kind: str, name: str) -> KendallTau:
        """Kendall's tau of the level and a measure, with its p-value."""
        of = [point for point in self.points if point.kind == kind]
        return kendall_tau([p.level for p in of], [getattr(p, name) for p in of])

    def tau_between(self, one: str, other: str) -> KendallTau:
        """Kendall's tau of two measures, over all that was reduced."""
        first, second = ([getattr(p, name) for p in self.points] for name in (one, other))
        return kendall_tau(first, second)

    def beside_random(self, name: str) -> tuple[int, int, float]:
        """How many reductions keep more, and less, than chance does; and how likely that is."""
        from scipy.stats import binomtest

        pairs = [(getattr(p, name), getattr(p, f"random_{name}")) for p in self.points]
        better = sum(ours > chance for ours, chance in pairs)
        worse = sum(ours < chance for ours, chance in pairs)
        return better, worse, binomtest(better, better + worse).pvalue if better + worse else 1.0

    def largest_gain(self) -> tuple[int, int]:
        """Between which neighbouring shares of coverage the size falls most."""
        srr = {share: self.median(COVERAGE, share, "srr") for share in SHARES}
        return max(pairwise(SHARES), key=lambda pair: srr[pair[0]] - srr[pair[1]])


_STUDY: list[Study] = []
"""What a forked process works on; a subject cannot be sent to it."""


def _at_work(study: Study) -> None:
    _STUDY[:] = [study]


def _reduced_in_all_ways(seed: int) -> tuple[Original, list[Point]]:
    return _STUDY[0].reduced_in_all_ways(seed)
