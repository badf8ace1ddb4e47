"""From a campaign to a suite: what counts, which tests are taken, and what came of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from swarmtest.campaign.subject_of_campaign import placed
from swarmtest.errors import UserError
from swarmtest.instrument.options import CoverageOptions
from swarmtest.instrument.watch import Coverage
from swarmtest.store import CampaignRecord, FaultRecord, Store
from swarmtest.subjects.loading import SubjectReference
from swarmtest.subjects.subject import Subject
from swarmtest.suites.choosing import Choice, SuiteRequest
from swarmtest.suites.functions import is_deadly
from swarmtest.suites.measuring import Bench
from swarmtest.suites.suite import Suite, SuiteTest, in_turn
from swarmtest.suites.table import Candidate, Table, read_table
from swarmtest.suites.taken import Taken, by_worth, together
from swarmtest.suites.taking import Taking, Tell

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
