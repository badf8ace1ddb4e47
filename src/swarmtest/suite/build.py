"""Build a suite from a campaign: choose tests, run them, reduce them, and measure the result.

`make_suite` is the entry point. `_SuiteBuilder` gathers what counts (faults, targets) and puts the
finished suite together; `SuiteSelector` chooses whole tests, replaces those that cannot be used any
more, and reduces each to what it adds to the tests before it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from swarmtest.analysis.set_cover import needed
from swarmtest.campaign.campaign_subject import scoped_to_subject
from swarmtest.campaign.reduced_faults import reductions_of
from swarmtest.core.errors import UserError
from swarmtest.coverage.options import CoverageOptions
from swarmtest.coverage.watch import Coverage
from swarmtest.store.fault_groups import names_of_faults
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, FaultRecord, ReductionRecord
from swarmtest.subjects.stored_reference import stored_reference
from swarmtest.subjects.subject import Subject
from swarmtest.suite.functions import is_deadly
from swarmtest.suite.selection import (
    CandidateRunner,
    ChosenTests,
    SelectedTest,
    SuiteRequest,
    choose,
    sorted_by_worth,
    targets_together,
    without_redundant,
)
from swarmtest.suite.suite import (
    Candidate,
    HitTable,
    Suite,
    SuiteTest,
    read_table,
    with_new_targets,
)

_ROUNDS = 10
"""How many times tests that cannot be used are replaced by others."""
_SECONDS = 10.0
"""The time limit of one run if the campaign had none."""
_NEEDLESS = "what it adds is kept by others"

Tell = Callable[[str, int, int], None]
"""Called with the current activity, how much of it is done, and how much there is."""


def make_suite(
    store: Store,
    campaign: int,
    request: SuiteRequest | None = None,
    *,
    on_progress: Tell | None = None,
) -> Suite:
    """Return a small suite that keeps the targets that a campaign hit, or a share of them.

    If the campaign had line coverage, the program under test must not be imported yet: code that
    is already loaded cannot be watched.

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
    _check_has_tests(record)
    subject, coverage = _load_watched(record)
    subject.fault_names = names_of_faults(store, campaign)
    try:
        tell = on_progress or (lambda what, done, count: None)
        return _SuiteBuilder(store, record, subject, coverage, request, tell).suite()
    finally:
        if coverage is not None:
            coverage.uninstall()


def _check_has_tests(record: CampaignRecord) -> None:
    """Raise if the campaign has no tests that can be run again."""
    if "imported" in record.options or not record.space["dimensions"]:
        raise UserError(
            f"campaign {record.id} is coverage of another tool: there are no tests to choose from"
        )
    if not record.options.get("subject"):
        raise UserError(
            f"campaign {record.id} tested {record.subject}, which cannot be imported by name: "
            "its tests cannot be generated again"
        )


def _load_watched(record: CampaignRecord) -> tuple[Subject, Coverage | None]:
    """Load the subject; install the campaign's coverage, if it had any, before the import."""
    reference = stored_reference(record.options["subject"])
    stored_options = record.options.get("coverage")
    coverage = None
    if stored_options:
        options = scoped_to_subject(CoverageOptions.from_plain(stored_options), reference)
        coverage = Coverage(options).install()
    try:
        subject = reference.load()
    except BaseException:
        if coverage is not None:
            coverage.uninstall()
        raise
    if coverage is not None:
        early = [text for text in coverage.problems if "before coverage began" in text]
        if early:
            coverage.uninstall()
            raise UserError(early[0])
    return subject, coverage


@dataclass
class _SuiteBuilder:
    """Builds the suite of one campaign for one request."""

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
        table = self._table(silent, [candidate.trial for candidate in fixed])
        seconds = self.record.options.get("seconds") or _SECONDS
        runner = CandidateRunner(
            self.store, self.record, self.subject, self.coverage, table, seconds
        )
        reductions = list(reductions_of(self.store, self.record.id).values())
        selector = SuiteSelector(runner, table, self.request, reductions, silent, self.tell)
        choice, tests = selector.tests(fixed)
        return self._finished(selector, choice, sorted_by_worth(tests))

    def _faults(self) -> list[FaultRecord]:
        """Return the faults that have a test, in the order in which they were found."""
        faults = self.store.faults(self.record.id)
        if self.request.faults != "none":
            for fault in faults:
                if fault.test is None:
                    self.notes.append(f"fault {fault.id} is left out: none of its tests was kept")
        return [fault for fault in faults if fault.test is not None]

    def _candidate(self, fault: FaultRecord) -> Candidate:
        trial = self.store.trial(self.record.id, fault.trial)
        seconds = max((trial.wall_ns or trial.cpu_ns) / 1e9, 1e-6)
        return Candidate(fault.trial, fault.size, seconds, fault.id)

    def _silent(self, faults: Sequence[FaultRecord]) -> set[str]:
        """Return the faults whose tests hit nothing in the suite.

        Such a test is left out or skipped, or is not run because it would end pytest's process.
        """
        runs = self.request.faults in ("xfail", "fail")
        return {fault.id for fault in faults if not runs or is_deadly(self.subject, fault.kind)}

    def _table(self, silent: Collection[str], fixed: Sequence[int]) -> HitTable:
        table = read_table(
            self.store,
            self.record.id,
            self.request.kinds,
            self.request.targets,
            fixed=fixed,
            without=silent,
        )
        self.notes += table.notes
        # Faults count whatever --target says, but a pattern that matches nothing is a mistake.
        unmatched = any(not pattern.startswith("fault") for pattern in self.request.targets)
        if not table.targets and (unmatched or not fixed):
            raise UserError(self._why_nothing())
        return table

    def _why_nothing(self) -> str:
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

    def _finished(
        self, selector: SuiteSelector, choice: ChosenTests, tests: Sequence[SelectedTest]
    ) -> Suite:
        """Time the tests and put the suite together, cut to its time limit."""
        timed = []
        for number, test in enumerate(tests):
            self.tell("measuring", number, len(tests))
            timed.append(_suite_test(test, selector.runner.seconds(test.data)))
        suite = Suite(
            campaign=self.record.id,
            seed=self.record.seed,
            subject=self.subject,
            tests=with_new_targets(timed, selector.table.targets),
            targets=selector.table.targets,
            method=choice.method,
            at_least=choice.at_least,
            trials=selector.table.trials,
            trials_seconds=selector.table.all_seconds,
            chosen=len(selector.whole),
            chosen_kept=len(targets_together(selector.whole)),
            faults=self.request.faults,
            limit=self.request.seconds,
            dropped=tuple(sorted(selector.dropped.items())),
            notes=(*self.notes, *selector.notes),
        )
        suite = suite.in_time({test.trial: test.seconds for test in timed})
        if not suite.tests:
            raise UserError(f"no test of campaign {suite.campaign} ends within {suite.limit:g} s")
        return suite


def _suite_test(test: SelectedTest, seconds: float) -> SuiteTest:
    return SuiteTest(
        trial=test.candidate.trial,
        data=test.data,
        before=test.before,
        size=test.size,
        hits=test.hits,
        fault=test.fault,
        seconds=seconds,
        seconds_before=test.candidate.seconds,
        complete=test.complete,
    )


@dataclass
class SuiteSelector:
    """Takes tests of a campaign into a suite: whole first, then reduced."""

    runner: CandidateRunner
    table: HitTable
    request: SuiteRequest
    reductions: Sequence[ReductionRecord]
    """The reductions that the campaign already has."""
    silent: Collection[str]
    """The faults whose tests do not run, and so hit nothing, when the suite runs."""
    tell: Tell
    dropped: dict[int, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    whole: list[SelectedTest] = field(default_factory=list)
    """All tests that were selected, before they were reduced."""

    def tests(self, fixed: Sequence[Candidate]) -> tuple[ChosenTests, list[SelectedTest]]:
        """Return the first choice of whole tests, and the tests that came of it, reduced.

        If the suite has a time limit, the time that reduction frees is used for more tests.
        """
        choice, whole = self._whole_tests(fixed, self.request)
        first, tests = choice, self._needed(self._reduced(whole, []))
        while whole and self.request.seconds is not None and self.request.reduce:
            left = self.request.seconds - sum(test.seconds for test in tests)
            if left <= 0:
                break
            present = [test.candidate.trial for test in tests]
            rest = [candidate for candidate in fixed if candidate.trial not in present]
            choice, whole = self._whole_tests(rest, replace(self.request, seconds=left), present)
            tests = self._needed([*tests, *self._reduced(whole, tests)])
        self._note_lost_targets()
        self._note_lack_of_time(choice, tests)
        return first, tests

    # Whole tests

    def _whole_tests(
        self, fixed: Sequence[Candidate], request: SuiteRequest, present: Collection[int] = ()
    ) -> tuple[ChosenTests, list[SelectedTest]]:
        """Choose whole tests and run them; replace those that cannot be used by others."""
        usable_tests: dict[int, SelectedTest] = {}
        for _ in range(_ROUNDS):
            usable = [candidate for candidate in fixed if candidate.trial not in self.dropped]
            choice = choose(self.table, usable, request, self.dropped, present)
            new = [candidate for candidate in choice.tests if candidate.trial not in usable_tests]
            if not new:
                break
            for number, candidate in enumerate(new):
                self.tell("running chosen tests", number, len(new))
                tried = self._usable_test(candidate)
                if isinstance(tried, str):
                    self.dropped[candidate.trial] = tried
                else:
                    usable_tests[candidate.trial] = tried
        whole = [
            usable_tests[candidate.trial]
            for candidate in choice.tests
            if candidate.trial in usable_tests
        ]
        self.whole += whole
        if not self.whole:
            raise UserError(f"no test can be used: {self._why_none(fixed)}")
        return choice, whole

    def _why_none(self, fixed: Sequence[Candidate]) -> str:
        if self.dropped:
            return next(iter(self.dropped.values()))
        quickest = min(candidate.seconds for candidate in [*self.table.tests, *fixed])
        return f"the quickest takes {quickest:.2g} s, more than {self.request.seconds:g} s"

    def _usable_test(self, candidate: Candidate) -> SelectedTest | str:
        """Run a test once; return it, or the reason why it cannot be used."""
        try:
            test, before = self._starting_test(candidate)
        except UserError as error:
            if "other features" in str(error):
                raise  # this holds for every test of the campaign
            return f"cannot be generated again: {error}"
        result = self.runner.replay(test, self._recorded(candidate.trial))
        shown = result.fault.id if result.fault else None
        if result.invalid:
            return f"is no longer a valid test: {result.invalid}"
        if shown != candidate.fault:
            then = f"showed fault {candidate.fault}" if candidate.fault else "passed"
            now = f"shows fault {shown}" if shown else "passes"
            return f"{then} in the campaign, and {now} now"
        size = self.runner.subject.size(test)
        return SelectedTest(
            candidate, test, result, before, size, candidate.fault not in self.silent
        )

    def _starting_test(self, candidate: Candidate) -> tuple[Any, int]:
        """Return the test to start from and its original size.

        For a fault whose test the campaign has already reduced, this is the reduced test.
        """
        if candidate.fault is not None and self.request.reduce:
            for reduction in self.reductions:
                same_trial = reduction.trial == candidate.trial
                if reduction.fault == candidate.fault and same_trial and reduction.test:
                    return json.loads(reduction.test), reduction.before
        test = self.runner.test(candidate.trial)
        return test, self.runner.subject.size(test)

    def _recorded(self, trial: int) -> list[int]:
        """Return the targets that a trial hit in the campaign."""
        for row, candidate in enumerate(self.table.tests):
            if candidate.trial == trial:
                return [int(i) for i in self.table.hits[row].nonzero()[0]]
        return []

    # Reduced tests

    def _reduced(
        self, whole: Sequence[SelectedTest], present: Iterable[SelectedTest]
    ) -> list[SelectedTest]:
        """Reduce each test to what it adds to those before it; drop tests that add nothing."""
        kept = set(targets_together(present))
        reduced = []
        for number, test in enumerate(whole):
            self.tell("reducing", number, len(whole))
            own = test.hits - kept
            if test.fault is None and (not own or len(kept) >= self._enough):
                self.dropped[test.candidate.trial] = _NEEDLESS
                continue
            smaller = self._smaller(test, own) if self.request.reduce else test
            kept |= smaller.hits
            reduced.append(smaller)
        return reduced

    def _smaller(self, whole: SelectedTest, own: Collection[int]) -> SelectedTest:
        """Reduce a test while it hits its own targets; keep it whole if that is impossible."""
        share, budget = self.request.keep_parts, self.request.budget
        why = "it kills mutants that cannot be switched on here"
        try:
            reduced = self.runner.reduced(whole.data, whole.fault, own, share, budget)
        except UserError as error:
            reduced, why = None, str(error)
        if reduced is not None:
            test, result, complete = reduced
            shown = result.fault.id if result.fault else None
            if shown == whole.candidate.fault and not result.invalid:
                size = self.runner.subject.size(test)
                return replace(whole, data=test, result=result, complete=complete, size=size)
            why = "made smaller, it ends differently"
        self.notes.append(f"test {whole.candidate.trial} stays whole: {why}")
        return whole

    def _needed(self, tests: Sequence[SelectedTest]) -> list[SelectedTest]:
        """Return the tests without those that have become redundant."""
        left = without_redundant(tests, self._enough)
        trials = {test.candidate.trial for test in left}
        for test in tests:
            if test.candidate.trial not in trials:
                self.dropped[test.candidate.trial] = _NEEDLESS
        return left

    @property
    def _enough(self) -> int:
        """The number of targets that the suite has to hit."""
        return needed(self.request.keep, len(self.table.targets))

    # Notes for the user

    def _note_lost_targets(self) -> None:
        """Note targets that were hit in the campaign but not now: the program has changed."""
        counted = [test.candidate.trial for test in self.whole if test.counts]
        recorded = {target for trial in counted for target in self._recorded(trial)}
        lost = recorded - targets_together(self.whole)
        if lost:
            first = ", ".join(str(self.table.targets[i]) for i in sorted(lost)[:3])
            more = ", ..." if len(lost) > 3 else ""
            verb = "s are" if len(lost) > 1 else " is"
            self.notes.append(
                f"{len(lost):,} target{verb} not hit again when the tests are run: {first}{more}"
            )

    def _note_lack_of_time(self, choice: ChosenTests, tests: Sequence[SelectedTest]) -> None:
        if self.request.seconds is None:
            return
        if choice.no_time_for:
            count = choice.no_time_for
            faults_are = "1 fault is" if count == 1 else f"{count} faults are"
            self.notes.append(f"{faults_are} left out: no time for the tests")
        kept, count = len(targets_together(tests)), len(self.table.targets)
        if kept < self._enough:
            self.notes.append(
                f"{self.request.seconds:g} s are enough for {kept:,} of {count:,} targets"
            )
