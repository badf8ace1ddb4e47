"""From a campaign to a suite: what counts, which tests are taken, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from swarmtest.campaign.campaign_subject import placed
from swarmtest.core.errors import UserError
from swarmtest.coverage.options import CoverageOptions
from swarmtest.coverage.watch import Coverage
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, FaultRecord, ReductionRecord
from swarmtest.subjects.loading import SubjectReference
from swarmtest.subjects.subject import Subject
from swarmtest.suite.cover import needed
from swarmtest.suite.functions import is_deadly
from swarmtest.suite.selection import (
    Bench,
    Choice,
    SuiteRequest,
    Taken,
    by_worth,
    choose,
    needed_of,
    together,
)
from swarmtest.suite.suite import Candidate, Suite, SuiteTest, Table, in_turn, read_table

# -------------------------------------------------------------------------------------------------
# The tests of a suite: chosen whole, run, and reduced to what each adds to those before it.

_ROUNDS = 10
"""How often tests that cannot be used are replaced by others."""
_NEEDLESS = "what it adds is kept by others"

Tell = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


@dataclass
class Taking:
    """Takes tests of a campaign into a suite."""

    bench: Bench
    table: Table
    request: SuiteRequest
    reductions: Sequence[ReductionRecord]
    """What the campaign has reduced already."""
    silent: Collection[str]
    """The faults whose tests hit nothing when the suite runs."""
    tell: Tell
    dropped: dict[int, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    whole: list[Taken] = field(default_factory=list)
    """All that were taken, as they were in the campaign."""

    def tests(self, fixed: Sequence[Candidate]) -> tuple[Choice, list[Taken]]:
        """What was chosen, and the tests; where time is short, that which reduction has freed is
        used for others."""
        choice, whole = self._whole_tests(fixed, self.request)
        first, tests = choice, self._needed(self._reduced(whole, []))
        while whole and self.request.seconds is not None and self.request.reduce:
            left = self.request.seconds - sum(one.seconds for one in tests)
            if left <= 0:
                break
            there = [one.candidate.trial for one in tests]
            rest = [one for one in fixed if one.trial not in there]
            choice, whole = self._whole_tests(rest, replace(self.request, seconds=left), there)
            tests = self._needed([*tests, *self._reduced(whole, tests)])
        self._note_what_is_gone()
        self._note_lack_of_time(choice, tests)
        return first, tests

    # Whole tests

    def _whole_tests(
        self, fixed: Sequence[Candidate], request: SuiteRequest, there: Collection[int] = ()
    ) -> tuple[Choice, list[Taken]]:
        """The chosen tests, as they are; those that cannot be used are replaced by others."""
        made: dict[int, Taken] = {}
        for _ in range(_ROUNDS):
            usable = [one for one in fixed if one.trial not in self.dropped]
            choice = choose(self.table, usable, request, self.dropped, there)
            new = [one for one in choice.tests if one.trial not in made]
            if not new:
                break
            for number, one in enumerate(new):
                self.tell("running chosen tests", number, len(new))
                taken = self._taken(one)
                if isinstance(taken, str):
                    self.dropped[one.trial] = taken
                else:
                    made[one.trial] = taken
        found = [made[one.trial] for one in choice.tests if one.trial in made]
        self.whole += found
        if not self.whole:
            raise UserError(f"no test can be taken: {self._why_none(fixed)}")
        return choice, found

    def _why_none(self, fixed: Sequence[Candidate]) -> str:
        if self.dropped:
            return next(iter(self.dropped.values()))
        quickest = min(one.seconds for one in [*self.table.tests, *fixed])
        return f"the quickest takes {quickest:.2g} s, more than {self.request.seconds:g} s"

    def _taken(self, one: Candidate) -> Taken | str:
        """A test, run once; or why it cannot be used."""
        try:
            test, before = self._start(one)
        except UserError as error:
            if "other features" in str(error):
                raise
            return f"cannot be made again: {error}"
        look = self.bench.look(test, self._recorded(one.trial))
        shown = look.fault.id if look.fault else None
        if look.invalid:
            return f"is no test any more: {look.invalid}"
        if shown != one.fault:
            then = f"showed fault {one.fault}" if one.fault else "passed"
            now = f"shows fault {shown}" if shown else "passes"
            return f"{then} in the campaign, and {now} now"
        size = self.bench.subject.size(test)
        return Taken(one, test, look, before, size, one.fault not in self.silent)

    def _start(self, one: Candidate) -> tuple[Any, int]:
        """The test to begin with: of a fault the one that was reduced already, if there is one."""
        if one.fault is not None and self.request.reduce:
            for known in self.reductions:
                if known.fault == one.fault and known.trial == one.trial and known.test:
                    return json.loads(known.test), known.before
        test = self.bench.test(one.trial)
        return test, self.bench.subject.size(test)

    def _recorded(self, trial: int) -> list[int]:
        for row, one in enumerate(self.table.tests):
            if one.trial == trial:
                return [int(i) for i in self.table.hits[row].nonzero()[0]]
        return []

    # Parts of tests

    def _reduced(self, whole: Sequence[Taken], there: Iterable[Taken]) -> list[Taken]:
        """Each test with no more than what it adds to those before it."""
        kept = set(together(there))
        found = []
        for number, one in enumerate(whole):
            self.tell("reducing", number, len(whole))
            own = one.hits - kept
            if one.fault is None and (not own or len(kept) >= self._enough):
                self.dropped[one.candidate.trial] = _NEEDLESS
                continue
            smaller = self._smaller(one, own) if self.request.reduce else one
            kept |= smaller.hits
            found.append(smaller)
        return found

    def _smaller(self, one: Taken, own: Collection[int]) -> Taken:
        share, budget = self.request.keep_parts, self.request.budget
        why = "it kills mutants that cannot be switched on here"
        try:
            reduced = self.bench.reduced(one.data, one.fault, own, share, budget)
        except UserError as error:
            reduced, why = None, str(error)
        if reduced is not None:
            test, look, complete = reduced
            shown = look.fault.id if look.fault else None
            if shown == one.candidate.fault and not look.invalid:
                size = self.bench.subject.size(test)
                return replace(one, data=test, look=look, complete=complete, size=size)
            why = "made smaller, it ends differently"
        self.notes.append(f"test {one.candidate.trial} stays whole: {why}")
        return one

    def _needed(self, tests: Sequence[Taken]) -> list[Taken]:
        left = needed_of(tests, self._enough)
        trials = {one.candidate.trial for one in left}
        for one in tests:
            if one.candidate.trial not in trials:
                self.dropped[one.candidate.trial] = _NEEDLESS
        return left

    @property
    def _enough(self) -> int:
        return needed(self.request.keep, len(self.table.targets))

    # What a user should know

    def _note_what_is_gone(self) -> None:
        """Say what tests hit in the campaign and do not hit now: the program is another one."""
        counted = [one.candidate.trial for one in self.whole if one.counts]
        recorded = {place for trial in counted for place in self._recorded(trial)}
        gone = recorded - together(self.whole)
        if gone:
            first = ", ".join(str(self.table.targets[i]) for i in sorted(gone)[:3])
            more = ", ..." if len(gone) > 3 else ""
            verb = "s are" if len(gone) > 1 else " is"
            self.notes.append(
                f"{len(gone):,} target{verb} not hit again when the tests are run: {first}{more}"
            )

    def _note_lack_of_time(self, choice: Choice, tests: Sequence[Taken]) -> None:
        if self.request.seconds is None:
            return
        if choice.no_time_for:
            count = choice.no_time_for
            told = "1 fault is" if count == 1 else f"{count} faults are"
            self.notes.append(f"{told} left out: no time for the tests")
        kept, count = len(together(tests)), len(self.table.targets)
        if kept < self._enough:
            self.notes.append(
                f"{self.request.seconds:g} s are enough for {kept:,} of {count:,} targets"
            )


# -------------------------------------------------------------------------------------------------

_SECONDS = 10.0


def make_suite(
    store: Store,
    campaign: int,
    request: SuiteRequest | None = None,
    *,
    on_progress: Tell | None = None,
) -> Suite:
    """A small suite that keeps what a campaign reached, or a share of it.

    The program under test has not been imported yet if the campaign watched its lines: what is
    loaded already cannot be watched.

    >>> import pathlib, tempfile
    >>> from swarmtest import Campaign, open_store
    >>> machine = pathlib.Path(tempfile.mkdtemp(), "doc_counter.py")
    >>> _ = machine.write_text('''
    ... from swarmtest import Machine, action
    ... class Counter(Machine):
    ...     def start(self): self.n = 0
    ...     @action
    ...     def up(self):
    ...         self.n += 1
    ...         if self.n == 9: self.event("nine")
    ...     @action
    ...     def reset(self):
    ...         if self.n > 4: self.event("late reset")
    ...         self.n = 0
    ... ''')
    >>> with open_store(":memory:") as store:
    ...     _ = Campaign(str(machine), budget=200, store=store, workers=1).run()
    ...     suite = make_suite(store, 1)
    >>> [(test.size, [str(target) for target in test.adds]) for test in suite.tests]
    [(10, ['event:late reset', 'event:nine'])]
    """
    request = request or SuiteRequest()
    record = store.campaign(campaign)
    _refuse(record)
    subject, coverage = _loaded(record)
    try:
        tell = on_progress or (lambda what, done, count: None)
        return _Maker(store, record, subject, coverage, request, tell).suite()
    finally:
        if coverage is not None:
            coverage.uninstall()


def _refuse(record: CampaignRecord) -> None:
    if "imported" in record.options or not record.space["dimensions"]:
        raise UserError(
            f"campaign {record.id} is coverage of another tool: there are no tests to choose from"
        )
    if not record.options.get("subject"):
        raise UserError(
            f"campaign {record.id} tested {record.subject}, which cannot be imported by name: "
            "its tests cannot be made again"
        )


def _loaded(record: CampaignRecord) -> tuple[Subject, Coverage | None]:
    """The subject, watched from its import on."""
    reference = SubjectReference.from_json(record.options["subject"])
    told = record.options.get("coverage")
    coverage = None
    if told:
        options = placed(CoverageOptions.from_plain(told), reference)
        coverage = Coverage(options).install()
    try:
        subject = reference.load()
    except BaseException:
        if coverage is not None:
            coverage.uninstall()
        raise
    if coverage is not None:
        early = [one for one in coverage.problems if "before coverage began" in one]
        if early:
            coverage.uninstall()
            raise UserError(early[0])
    return subject, coverage


@dataclass
class _Maker:
    store: Store
    record: CampaignRecord
    subject: Subject
    coverage: Coverage | None
    request: SuiteRequest
    tell: Tell
    notes: list[str] = field(default_factory=list)

    def suite(self) -> Suite:
        faults = self._faults()
        written = [fault for fault in faults if self.request.faults != "none"]
        fixed = [self._candidate(fault) for fault in written]
        silent = self._silent(faults)
        table = self._table(silent, [one.trial for one in fixed])
        seconds = self.record.options.get("seconds") or _SECONDS
        bench = Bench(self.store, self.record, self.subject, self.coverage, table, seconds)
        known = self.store.reductions(self.record.id)
        taking = Taking(bench, table, self.request, known, silent, self.tell)
        choice, tests = taking.tests(fixed)
        return self._finished(taking, choice, by_worth(tests))

    def _faults(self) -> list[FaultRecord]:
        """The faults that have a test, in the order in which they were found."""
        found = self.store.faults(self.record.id)
        if self.request.faults != "none":
            for fault in found:
                if fault.test is None:
                    self.notes.append(f"fault {fault.id} is left out: none of its tests was kept")
        return [fault for fault in found if fault.test is not None]

    def _candidate(self, fault: FaultRecord) -> Candidate:
        trial = self.store.trial(self.record.id, fault.trial)
        seconds = max((trial.wall_ns or trial.cpu_ns) / 1e9, 1e-6)
        return Candidate(fault.trial, fault.size, seconds, fault.id)

    def _silent(self, faults: Sequence[FaultRecord]) -> set[str]:
        """A test that is not run, or ends its process, reaches nothing in the suite."""
        runs = self.request.faults in ("xfail", "fail")
        return {fault.id for fault in faults if not runs or is_deadly(self.subject, fault.kind)}

    def _table(self, silent: Collection[str], fixed: Sequence[int]) -> Table:
        table = read_table(
            self.store,
            self.record.id,
            self.request.kinds,
            self.request.targets,
            fixed=fixed,
            without=silent,
        )
        self.notes += table.notes
        if not table.targets and not fixed:
            raise UserError(self._nothing())
        return table

    def _nothing(self) -> str:
        number = self.record.id
        if self.request.targets:
            return f"campaign {number} has hit nothing that {', '.join(self.request.targets)} match"
        if self.notes:
            return f"campaign {number} has nothing to keep: {self.notes[0]}"
        no_faults = "faults are left out" if self.request.faults == "none" else "no faults"
        return (
            f"campaign {number} has nothing to keep: {no_faults}, and nothing was hit; run it with "
            "--coverage line, or `swarmtest mutate` its tests"
        )

    def _finished(self, taking: Taking, choice: Choice, tests: Sequence[Taken]) -> Suite:
        written = []
        for number, one in enumerate(tests):
            self.tell("measuring", number, len(tests))
            written.append(_suite_test(one, taking.bench.seconds(one.data)))
        made = Suite(
            campaign=self.record.id,
            seed=self.record.seed,
            subject=self.subject,
            tests=in_turn(written, taking.table.targets),
            targets=taking.table.targets,
            method=choice.method,
            at_least=choice.at_least,
            trials=taking.table.trials,
            trials_seconds=taking.table.all_seconds,
            chosen=len(taking.whole),
            chosen_kept=len(together(taking.whole)),
            faults=self.request.faults,
            limit=self.request.seconds,
            dropped=tuple(sorted(taking.dropped.items())),
            notes=(*self.notes, *taking.notes),
        )
        made = made.in_time({one.trial: one.seconds for one in written})
        if not made.tests:
            raise UserError(f"no test of campaign {made.campaign} is over in {made.limit:g} s")
        return made


def _suite_test(one: Taken, seconds: float) -> SuiteTest:
    return SuiteTest(
        trial=one.candidate.trial,
        data=one.data,
        before=one.before,
        size=one.size,
        hits=one.hits,
        fault=one.fault,
        seconds=seconds,
        seconds_before=one.candidate.seconds,
        complete=one.complete,
    )
