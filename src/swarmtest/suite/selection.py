"""Making a campaign's tests again, seeing what they hit, and making them smaller.

Targets are numbers here: places in the list of those that count. Some cannot be measured in this
process (mutants of C, or of code that runs when a module is imported): of these only what was
recorded is known, so a test that is in the suite for one of them stays whole.
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

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.space import Space
from swarmtest.core.targets import Source
from swarmtest.coverage.watch import Coverage
from swarmtest.mutate.generation import mutants_of
from swarmtest.mutate.kill_matrix import minimal_mutants
from swarmtest.mutate.killing import Killing
from swarmtest.mutate.loaded_files import live_files, source_of
from swarmtest.mutate.mutant import Mutant
from swarmtest.processes.fork_pool import run_isolated
from swarmtest.processes.tree import end_strays
from swarmtest.reduce.keep_criteria import Keep
from swarmtest.reduce.reduction import hits_of, reduce_test
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord
from swarmtest.subjects.subject import Subject
from swarmtest.suite.cover import Problem, greedy, greedy_in_time, needed
from swarmtest.suite.exact_cover import smallest
from swarmtest.suite.suite import Candidate, Table

_QUICK = 0.2
"""Seconds: what is quicker is timed more than once."""


@dataclass(frozen=True)
class Look:
    """What came of one run of a test."""

    fault: Fault | None
    hits: frozenset[int]
    invalid: str = ""
    """Why it is no test; empty when it is."""


class Bench:
    """Runs tests of one campaign's subject, each in a process of its own."""

    def __init__(
        self,
        store: Store,
        record: CampaignRecord,
        subject: Subject,
        coverage: Coverage | None,
        table: Table,
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
        """The test of a trial: kept, or made again from its seed."""
        kept = self._store.test(self._record.id, trial)
        if kept is not None:
            return json.loads(kept)
        if not self._same_features:
            raise UserError(
                f"{self.subject.name} has other features now than in campaign {self._record.id}: "
                "its tests cannot be made again; run a new campaign"
            )
        told = self._store.trial(self._record.id, trial)
        configuration = Configuration.from_bytes(self.subject.space, told.configuration)
        subject = self.subject
        made = run_isolated(
            lambda: Result(Verdict.PASSED, test=subject.test_of(configuration, told.seed)),
            self._seconds,
            quiet=True,
        )
        if made.test is None:
            raise UserError("it ends its process, and was not kept whole")
        return made.test

    # What they hit

    def look(self, test: Any, recorded: Collection[int] = ()) -> Look:
        """Run a test; `recorded`: what it hit in the campaign, if it is as it was there."""
        result, keys = hits_of(self.subject, test, self._coverage, self._seconds)
        invalid = result.missing or "it is invalid" if result.verdict == Verdict.INVALID else ""
        hits = {self._keys[key] for key in keys if key in self._keys}
        if self._killing is not None and result.verdict == Verdict.PASSED:
            killed = {mutant.id for mutant in self._killing.killed(test)}
            hits |= {place for place, mutant in self._mutants.items() if mutant.id in killed}
        hits |= self.unmeasured.intersection(recorded)
        return Look(result.fault, frozenset(hits), invalid)

    def seconds(self, test: Any) -> float:
        """What a test takes, without what it takes to watch it; 0 if it ends its process."""

        def timed() -> Result:
            took: list[float] = []
            while len(took) < 3 and sum(took) < _QUICK:  # a new process is slow at first
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
        """The mutants among the targets that can be switched on, by their places."""
        wanted = {
            (target.source, target.name.rpartition(" ")[2]): i
            for i, target in enumerate(self._targets)
            if target.kind == "mutant" and target.file.endswith(".py")
        }
        found: dict[int, Mutant] = {}
        sources = self._sources
        files = live_files([source_of(source.place) for source in sources]) if sources else []
        for source, file in zip(sources, files, strict=True):
            for mutant in mutants_of(file.source):
                place = wanted.get((source.id, mutant.id))
                if place is not None and file.switchable(mutant):
                    found[place] = mutant
        return found

    @cached_property
    def _sources(self) -> list[Source]:
        """The Python files that mutants among the targets lie in."""
        versions = {target.source for target in self._targets if target.kind == "mutant"}
        sources = self._store.sources(self._record.id)
        return [one for one in sources if one.id in versions and one.place.endswith(".py")]

    @cached_property
    def _killing(self) -> Killing | None:
        mutants = [*self._mutants.values()]
        places = sorted({os.path.realpath(one.place) for one in self._sources})
        return Killing(self.subject, mutants, places, self._seconds) if mutants else None

    # Making them smaller

    def reduced(
        self, test: Any, fault: Fault | None, own: Collection[int], share: float, budget: float
    ) -> tuple[Any, Look, bool] | None:
        """A smaller test that keeps its fault and a share of targets; None: it has to stay.

        With what it hits, and whether nothing more of it can go. Of its mutants only those are
        asked for whose killing kills the others, as far as the campaign knows; those that were lost
        all the same are asked for in another go.
        """
        if self.unmeasured.intersection(own):
            return None
        mutants = sorted(self._mutants.keys() & set(own))
        keys = frozenset(self._targets[i].key for i in own if i not in self._mutants)
        some = self._forcing(mutants) if share == 1 else mutants[: needed(share, len(mutants))]
        while True:
            reduced = reduce_test(
                self.subject,
                test,
                Keep(
                    fault=fault.id if fault else None,
                    targets=keys,
                    share=share,
                    mutants=tuple(self._mutants[i] for i in some),
                ),
                coverage=self._coverage,
                seconds=self._seconds,
                budget=budget,
            )
            look = self.look(reduced.test)
            lost = set(mutants) - look.hits
            if share < 1 or not lost or lost.issubset(some):
                return reduced.test, look, reduced.complete
            some = sorted({*some, *lost})

    def _forcing(self, mutants: Sequence[int]) -> list[int]:
        """The mutants that force the others to be killed, by all tests of the campaign."""
        return [mutants[i] for i in minimal_mutants(self._hits[:, list(mutants)].T)]


# -------------------------------------------------------------------------------------------------
# Tests on their way into a suite: what they hit together, which are needed, and their order.


@dataclass(frozen=True)
class Taken:
    """A test that was run, whole or reduced."""

    candidate: Candidate
    data: Any
    look: Look
    before: int
    """The parts that it had in the campaign."""
    size: int
    """The parts that it has."""
    counts: bool = True
    """Whether what it hits is hit when the suite runs: not by a test that is skipped."""
    complete: bool = True
    """Whether nothing more of it can go."""

    @property
    def fault(self) -> Fault | None:
        """The fault that it is there for."""
        return self.look.fault

    @property
    def hits(self) -> frozenset[int]:
        """What it hits, as far as that counts."""
        return self.look.hits if self.counts else frozenset()

    @property
    def seconds(self) -> float:
        """Those of the campaign, in proportion to what is left: the same store, the same order."""
        return self.candidate.seconds * max(self.size, 1) / max(self.before, 1)


def together(tests: Iterable[Taken]) -> frozenset[int]:
    """What tests hit together."""
    return frozenset[int]().union(*(one.hits for one in tests))


def by_worth(tests: Sequence[Taken]) -> list[Taken]:
    """The same tests, each time the one that adds most per second; a fault counts as a target."""
    rest, order, kept = list(tests), [], frozenset[int]()
    while rest:
        best = max(rest, key=lambda one: (_worth(one, kept), -one.candidate.trial))
        rest.remove(best)
        order.append(best)
        kept |= best.hits
    return order


def _worth(one: Taken, kept: frozenset[int]) -> float:
    return (len(one.hits - kept) + (one.fault is not None)) / one.seconds


def needed_of(tests: Sequence[Taken], enough: int) -> list[Taken]:
    """Without tests that have become redundant, those that add least per second first."""
    left = list(tests)
    enough = min(enough, len(together(left)))
    for one in reversed(by_worth(left)):
        rest = [other for other in left if other is not one]
        if one.fault is None and len(together(rest)) >= enough:
            left = rest
    return left


# -------------------------------------------------------------------------------------------------
# Which whole tests are taken: those of faults first, then a cover of what is left.

FAULTS = ("xfail", "fail", "skip", "none")
METHODS = ("exact", "greedy")


@dataclass(frozen=True)
class SuiteRequest:
    """What a suite has to keep, and how it is made.

    >>> SuiteRequest(keep=0.9).method
    'exact'
    >>> SuiteRequest(keep=90)
    Traceback (most recent call last):
    ...
    swarmtest.UserError: keep is a share above 0, up to 1, not 90
    """

    keep: float = 1.0
    """The share of the targets that whole tests keep."""
    keep_parts: float = 1.0
    """The share of what a test was chosen for that is left when it is reduced."""
    kinds: tuple[str, ...] = ()
    """The kinds of targets that count, like line and mutant; ``coverage`` is all of that, and with
    ``fault`` alone only faults count; empty: all that the campaign has."""
    targets: tuple[str, ...] = ()
    """Patterns of targets that count, like ``line:shop/*``; empty: all."""
    seconds: float | None = None
    """What the suite may take; None: any time."""
    method: str = "exact"
    """``exact`` looks for the fewest tests, ``greedy`` takes the one that adds most."""
    faults: str = "xfail"
    """What tests that show a fault are in the file: expected to fail (strictly), tests that fail,
    skipped, or not there at all."""
    reduce: bool = True
    """Whether tests are made smaller."""
    budget: float = 30.0
    """Seconds for the reduction of one test."""

    def __post_init__(self) -> None:
        for name in ("keep", "keep_parts"):
            share = getattr(self, name)
            if not 0 < share <= 1:
                raise UserError(f"{name} is a share above 0, up to 1, not {share:g}")
        if self.seconds is not None and not self.seconds > 0:
            raise UserError(f"a suite cannot take {self.seconds:g} seconds")
        for name, known in (("faults", FAULTS), ("method", METHODS)):
            if getattr(self, name) not in known:
                raise UserError(f"{name} is one of {', '.join(known)}, not {getattr(self, name)!r}")


@dataclass(frozen=True)
class Choice:
    """The whole tests of a suite."""

    tests: tuple[Candidate, ...]
    """Those of faults, then the others, those that add most first."""
    kept: int
    """How many of the table's targets they hit, as it was recorded."""
    method: str
    """How they were chosen."""
    at_least: int
    """So many tests it takes, as far as is known; 0: nothing is known."""
    no_time_for: int = 0
    """The tests of faults that the time is too short for."""


def choose(
    table: Table,
    fixed: Sequence[Candidate],
    request: SuiteRequest,
    without: Collection[int] = (),
    there: Collection[int] = (),
) -> Choice:
    """Tests that keep what is asked for, in addition to those of the trials that are `there`.

    `fixed` are taken anyway, as far as there is time; trials `without` never are.
    """
    usable = np.array([one.trial not in without or one.trial in there for one in table.tests], bool)
    problem = Problem.of(table.hits & usable[:, None])
    need = needed(request.keep, len(table.targets))
    problem = replace(problem, need=min(need, problem.total))
    taken = _fitting(fixed, request.seconds)
    trials = {*there, *(one.trial for one in taken)}
    first = [row for row, one in enumerate(table.tests) if one.trial in trials and usable[row]]
    left = problem.after(first) if first else problem
    rest, method, at_least = _cover(table, left, request, sum(one.seconds for one in taken))
    chosen = [row for row in _best_first(left, rest) if row not in first]
    return Choice(
        (*taken, *(table.tests[row] for row in chosen)),
        problem.kept([*first, *chosen]),
        method,
        len(taken) + at_least if at_least is not None else 0,
        len(fixed) - len(taken),
    )


def _fitting(fixed: Sequence[Candidate], seconds: float | None) -> list[Candidate]:
    """The tests of faults, as many as fit the time: quick ones first."""
    if seconds is None:
        return list(fixed)
    taken = set()
    left = seconds
    for one in sorted(fixed, key=lambda one: (one.seconds, one.trial)):
        if one.seconds <= left:
            taken.add(one.trial)
            left -= one.seconds
    return [one for one in fixed if one.trial in taken]


def _cover(
    table: Table, problem: Problem, request: SuiteRequest, spent: float
) -> tuple[list[int], str, int | None]:
    """Tests, how they were found, and how many it takes at least (None: not known)."""
    if request.seconds is not None:
        seconds = np.array([one.seconds for one in table.tests])
        left = request.seconds - spent
        found = greedy_in_time(problem, seconds, left) if problem.need > 0 else []
        return found, "greedy in time", None
    if request.method == "greedy":
        return greedy(problem), "greedy", None
    if problem.need <= 0:
        return [], "exact", 0
    fewest, at_least = smallest(problem)
    return fewest, "exact", at_least


def _best_first(problem: Problem, chosen: Sequence[int]) -> list[int]:
    """The same tests, each time the one that adds most to those before it."""
    only = sorted(chosen)
    part = replace(problem, rows=np.asfortranarray(problem.rows[only]), need=problem.total)
    order = [only[row] for row in greedy(part)]
    return [*order, *(row for row in only if row not in order)]
