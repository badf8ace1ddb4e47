"""Select the tests of a suite: choose whole tests, run them again, reduce them, order them.

`choose` picks whole tests by what the campaign recorded: those of faults first, then a cover of the
targets that are left. `CandidateRunner` regenerates a test, runs it to see what it hits now, and
reduces it. `SelectedTest` is a test that was run; `sorted_by_worth` and `without_redundant` order
such tests and drop those that add nothing.

A target is a number here: its index in the table's list of targets. Some targets cannot be measured
in this process (mutants of C code, or of code that runs when a module is imported). For these only
the campaign's record is known, so a test that is in the suite for one of them stays whole.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from swarmtest.analysis.set_cover import (
    CoverProblem,
    greedy,
    greedy_in_time,
    needed,
    smallest_cover,
)
from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.space import Space
from swarmtest.core.targets import Source
from swarmtest.coverage.watch import Coverage
from swarmtest.mutate.generation import mutants_of
from swarmtest.mutate.kill_matrix import minimal_mutants
from swarmtest.mutate.killing import MutantKiller
from swarmtest.mutate.loaded_files import live_files, source_of
from swarmtest.mutate.mutant import Mutant
from swarmtest.processes.fork_pool import run_isolated
from swarmtest.processes.tree import end_strays
from swarmtest.reduce.keep_criteria import Keep
from swarmtest.reduce.reduction import hits_of, reduce_test
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord
from swarmtest.subjects.subject import Subject, named_fault
from swarmtest.suite.suite import Candidate, HitTable

FAULTS = ("xfail", "fail", "skip", "none")
METHODS = ("exact", "greedy")


@dataclass(frozen=True)
class SuiteRequest:
    """What a suite has to keep, and how it is built.

    >>> SuiteRequest(keep=0.9).method
    'exact'
    >>> SuiteRequest(keep=90)
    Traceback (most recent call last):
    ...
    swarmtest.UserError: keep is a share above 0, up to 1, not 90
    """

    keep: float = 1.0
    """The share of the targets that the whole tests keep."""
    keep_parts: float = 1.0
    """The share of its own targets that a test keeps when it is reduced."""
    kinds: tuple[str, ...] = ()
    """The kinds of targets that count, like line and mutant. ``coverage`` means all kinds of
    coverage; with ``fault`` alone only faults count. Empty: all kinds that the campaign has."""
    targets: tuple[str, ...] = ()
    """Patterns of the targets that count, like ``line:shop/*``; empty: all."""
    seconds: float | None = None
    """How long the suite may take; None: no limit."""
    method: str = "exact"
    """``exact`` looks for the fewest tests; ``greedy`` always takes the test that adds most."""
    faults: str = "xfail"
    """How tests that show a fault are written: expected to fail (strictly), failing, skipped, or
    left out (``none``)."""
    reduce: bool = True
    """Whether tests are reduced."""
    budget: float = 30.0
    """The seconds for the reduction of one test."""

    def __post_init__(self) -> None:
        for name in ("keep", "keep_parts"):
            share = getattr(self, name)
            if not 0 < share <= 1:
                raise UserError(f"{name} is a share above 0, up to 1, not {share:g}")
        if self.seconds is not None and not self.seconds > 0:
            raise UserError(f"a suite cannot take {self.seconds:g} seconds")
        for name, allowed in (("faults", FAULTS), ("method", METHODS)):
            value = getattr(self, name)
            if value not in allowed:
                raise UserError(f"{name} is one of {', '.join(allowed)}, not {value!r}")


@dataclass(frozen=True)
class ChosenTests:
    """The whole tests that were chosen for a suite."""

    tests: tuple[Candidate, ...]
    """The tests of faults, then the others, those that add most first."""
    kept: int
    """How many of the table's targets they hit, according to the campaign's record."""
    method: str
    """How they were chosen."""
    at_least: int
    """A lower bound on the number of tests that are needed; 0: unknown."""
    no_time_for: int = 0
    """The number of tests of faults that do not fit the time limit."""


def choose(
    table: HitTable,
    fixed: Sequence[Candidate],
    request: SuiteRequest,
    without: Collection[int] = (),
    there: Collection[int] = (),
) -> ChosenTests:
    """Choose tests that keep what is asked for, in addition to the trials that are `there` already.

    The tests `fixed` are always taken, as far as there is time; the trials `without` never are.
    """
    usable = np.array(
        [test.trial not in without or test.trial in there for test in table.tests], bool
    )
    problem = CoverProblem.of(table.hits & usable[:, None])
    need = needed(request.keep, len(table.targets))
    problem = replace(problem, need=min(need, problem.total))
    taken = _fitting(fixed, request.seconds)
    trials = {*there, *(test.trial for test in taken)}
    first = [row for row, test in enumerate(table.tests) if test.trial in trials and usable[row]]
    left = problem.after(first) if first else problem
    rest, method, at_least = _cover(table, left, request, sum(test.seconds for test in taken))
    chosen = [row for row in _best_first(left, rest) if row not in first]
    return ChosenTests(
        (*taken, *(table.tests[row] for row in chosen)),
        problem.kept([*first, *chosen]),
        method,
        # A bound for some of the tests is none for all.
        len(taken) + at_least if at_least is not None and not table.thinned else 0,
        len(fixed) - len(taken),
    )


def _fitting(fixed: Sequence[Candidate], seconds: float | None) -> list[Candidate]:
    """Return as many tests of faults as fit the time; the quickest are taken first."""
    if seconds is None:
        return list(fixed)
    taken = set()
    left = seconds
    for test in sorted(fixed, key=lambda test: (test.seconds, test.trial)):
        if test.seconds <= left:
            taken.add(test.trial)
            left -= test.seconds
    return [test for test in fixed if test.trial in taken]


def _cover(
    table: HitTable, problem: CoverProblem, request: SuiteRequest, spent: float
) -> tuple[list[int], str, int | None]:
    """Return a cover (rows of the table), the method used, and a lower bound or None."""
    if request.seconds is not None:
        seconds = np.array([test.seconds for test in table.tests])
        left = request.seconds - spent
        rows = greedy_in_time(problem, seconds, left) if problem.need > 0 else []
        return rows, "greedy in time", None
    if request.method == "greedy":
        return greedy(problem), "greedy", None
    if problem.need <= 0:
        return [], "exact", 0
    fewest, at_least = smallest_cover(problem)
    return fewest, "exact", at_least


def _best_first(problem: CoverProblem, chosen: Sequence[int]) -> list[int]:
    """Return the same tests, ordered so that each is the one that adds most to those before."""
    only = sorted(chosen)
    part = replace(problem, rows=np.asfortranarray(problem.rows[only]), need=problem.total)
    order = [only[row] for row in greedy(part)]
    return [*order, *(row for row in only if row not in order)]


# Running tests again, and reducing them.

_QUICK = 0.2
"""A test that takes less than this many seconds is timed more than once."""


@dataclass(frozen=True)
class ReplayResult:
    """What one run of a test showed."""

    fault: Fault | None
    hits: frozenset[int]
    invalid: str = ""
    """Why the test is invalid; empty if it is valid."""


class CandidateRunner:
    """Runs and reduces tests of one campaign's subject, each in its own process."""

    def __init__(
        self,
        store: Store,
        record: CampaignRecord,
        subject: Subject,
        coverage: Coverage | None,
        table: HitTable,
        seconds: float,
    ) -> None:
        self._store = store
        self._record = record
        self.subject = subject
        self._coverage = coverage
        self._targets = table.targets
        self._hits = table.hits
        self._seconds = seconds
        self._keys = {target.key: i for i, target in enumerate(table.targets)}
        self._same_features = Space.from_json(record.space).feature_names == (
            subject.space.feature_names
        )

    # Tests of the campaign

    def test(self, trial: int) -> Any:
        """Return the test of a trial, from the store or generated again from its seed."""
        stored = self._store.test(self._record.id, trial)
        if stored is not None:
            return json.loads(stored)
        if not self._same_features:
            raise UserError(
                f"{self.subject.name} has other features now than in campaign {self._record.id}: "
                "its tests cannot be generated again; run a new campaign"
            )
        record = self._store.trial(self._record.id, trial)
        configuration = Configuration.from_bytes(self.subject.space, record.configuration)
        subject = self.subject
        result = run_isolated(
            lambda: Result(Verdict.PASSED, test=subject.test_of(configuration, record.seed)),
            self._seconds,
            quiet=True,
        )
        if result.test is None:
            raise UserError("it ends its process, and the campaign did not store it")
        return result.test

    # Runs

    def replay(self, test: Any, recorded: Collection[int] = ()) -> ReplayResult:
        """Run a test; return what it shows.

        `recorded` is what it hit in the campaign, if it is still the same test: that is all that
        is known about targets that cannot be measured here.
        """
        result, keys = hits_of(self.subject, test, self._coverage, self._seconds)
        invalid = result.missing or "it is invalid" if result.verdict == Verdict.INVALID else ""
        hits = {self._keys[key] for key in keys if key in self._keys}
        if self._killing is not None and result.verdict == Verdict.PASSED:
            killed = {mutant.id for mutant in self._killing.killed(test)}
            hits |= {index for index, mutant in self._mutants.items() if mutant.id in killed}
        hits |= self.unmeasured.intersection(recorded)
        fault = result.fault and named_fault(self.subject, result.fault)
        return ReplayResult(fault, frozenset(hits), invalid)

    def seconds(self, test: Any) -> float:
        """Return how long a test takes when it is not watched; 0 if it ends its process."""

        def timed() -> Result:
            took: list[float] = []
            # The first run in a new process is slow, so a quick test gets up to three.
            while len(took) < 3 and sum(took) < _QUICK:
                begun = time.perf_counter()
                self.subject.replay(test)
                end_strays()
                took.append(time.perf_counter() - begun)
            return Result(Verdict.PASSED, wall_seconds=min(took))

        return run_isolated(timed, self._seconds, quiet=True).wall_seconds

    @cached_property
    def unmeasured(self) -> frozenset[int]:
        """The targets that cannot be measured here."""
        mutants = {i for i, target in enumerate(self._targets) if target.kind == "mutant"}
        return frozenset(mutants - self._mutants.keys())

    @cached_property
    def _mutants(self) -> dict[int, Mutant]:
        """The mutants among the targets that can be switched on here, by target."""
        wanted = {
            (target.source, target.name.rpartition(" ")[2]): i
            for i, target in enumerate(self._targets)
            if target.kind == "mutant" and target.file.endswith(".py")
        }
        switchable: dict[int, Mutant] = {}
        sources = self._sources
        files = live_files([source_of(source.place) for source in sources]) if sources else []
        for source, file in zip(sources, files, strict=True):
            for mutant in mutants_of(file.source):
                index = wanted.get((source.id, mutant.id))
                if index is not None and file.switchable(mutant):
                    switchable[index] = mutant
        return switchable

    @cached_property
    def _sources(self) -> list[Source]:
        """The Python files that contain mutants among the targets."""
        versions = {target.source for target in self._targets if target.kind == "mutant"}
        sources = self._store.sources(self._record.id)
        return [
            source for source in sources if source.id in versions and source.place.endswith(".py")
        ]

    @cached_property
    def _killing(self) -> MutantKiller | None:
        mutants = [*self._mutants.values()]
        paths = sorted({os.path.realpath(source.place) for source in self._sources})
        return MutantKiller(self.subject, mutants, paths, self._seconds) if mutants else None

    # Reduction

    def reduced(
        self, test: Any, fault: Fault | None, own: Collection[int], share: float, budget: float
    ) -> tuple[Any, ReplayResult, bool] | None:
        """Reduce a test while it keeps its fault and a share of the targets `own`.

        Return the smaller test, what it shows, and whether no part of it can be removed; or None if
        the test has to stay whole. Killing a mutant is expensive to check, so only the mutants that
        imply the others, by the campaign's record, are criteria of the reduction; if others are
        lost all the same, the reduction is repeated with those as criteria too.
        """
        if self.unmeasured.intersection(own):
            return None
        mutants = sorted(self._mutants.keys() & set(own))
        keys = frozenset(self._targets[i].key for i in own if i not in self._mutants)
        required = self._implying(mutants) if share == 1 else mutants[: needed(share, len(mutants))]
        while True:
            reduced = reduce_test(
                self.subject,
                test,
                Keep(
                    fault=fault.id if fault else None,
                    targets=keys,
                    share=share,
                    mutants=tuple(self._mutants[i] for i in required),
                ),
                coverage=self._coverage,
                seconds=self._seconds,
                budget=budget,
            )
            result = self.replay(reduced.test)
            lost = set(mutants) - result.hits
            if share < 1 or not lost or lost.issubset(required):
                return reduced.test, result, reduced.complete
            required = sorted({*required, *lost})

    def _implying(self, mutants: Sequence[int]) -> list[int]:
        """Return the mutants whose killing implied that of the others in the whole campaign."""
        return [mutants[i] for i in minimal_mutants(self._hits[:, list(mutants)].T)]


# Tests on their way into a suite.


@dataclass(frozen=True)
class SelectedTest:
    """A test that was run, whole or reduced."""

    candidate: Candidate
    data: Any
    result: ReplayResult
    before: int
    """The number of parts that it had in the campaign."""
    size: int
    """The number of parts now."""
    counts: bool = True
    """Whether its hits count; those of a test that is skipped in the suite do not."""
    complete: bool = True
    """Whether no part of it can be removed."""

    @property
    def fault(self) -> Fault | None:
        """The fault that it shows."""
        return self.result.fault

    @property
    def hits(self) -> frozenset[int]:
        """The targets that it hits when the suite runs."""
        return self.result.hits if self.counts else frozenset()

    @property
    def seconds(self) -> float:
        """Its seconds in the campaign, scaled to the share of its parts that is left.

        Measured times vary; with this estimate the same store always gives the same order.
        """
        return self.candidate.seconds * max(self.size, 1) / max(self.before, 1)


def targets_together(tests: Iterable[SelectedTest]) -> frozenset[int]:
    """Return the targets that at least one of the tests hits."""
    return frozenset[int]().union(*(test.hits for test in tests))


def sorted_by_worth(tests: Sequence[SelectedTest]) -> list[SelectedTest]:
    """Return the same tests, always next the one that adds most targets per second.

    A fault counts as a target.
    """
    rest, order, kept = list(tests), [], frozenset[int]()
    while rest:
        best = max(rest, key=lambda test: (_worth(test, kept), -test.candidate.trial))
        rest.remove(best)
        order.append(best)
        kept |= best.hits
    return order


def _worth(test: SelectedTest, kept: frozenset[int]) -> float:
    return (len(test.hits - kept) + (test.fault is not None)) / test.seconds


def without_redundant(tests: Sequence[SelectedTest], enough: int) -> list[SelectedTest]:
    """Return the tests without redundant ones: the rest still hits `enough` targets.

    Tests that add least per second are dropped first; tests of faults stay.
    """
    left = list(tests)
    enough = min(enough, len(targets_together(left)))
    for test in reversed(sorted_by_worth(left)):
        rest = [other for other in left if other is not test]
        if test.fault is None and len(targets_together(rest)) >= enough:
            left = rest
    return left
