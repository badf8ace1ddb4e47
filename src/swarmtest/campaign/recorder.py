"""Recording: from the rows that workers send to what the store keeps.

A row is a `TrialRecord`. `Recorder` adds the hits to it, keeps the running totals and writes
batches.

`Retirement` finds configurations that give only invalid tests, so that they are not run any more
and are reported. A trial keeps its number, its configuration and its seed whatever happens to
others: retiring a configuration only means that later trials with it are skipped, and the budget
goes to the next numbers. The skipped trials would have given no valid test, and invalid tests hit
nothing, so no count of hits changes; see docs/commands.md.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from swarmtest.campaign.budget import Progress
from swarmtest.campaign.hits import HitReceiver
from swarmtest.core.configuration import Configuration
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.space import Space
from swarmtest.core.targets import unpack_hits
from swarmtest.store.interface import Store
from swarmtest.store.records import (
    FaultRecord,
    TestRecord,
    TrialRecord,
    WorkerRecord,
    note_of_kills,
    unpack_counts,
)

if TYPE_CHECKING:
    from swarmtest.campaign.executors.worker import BatchMessage

PATIENCE = 8
"""A configuration is retired after this many invalid tests and no valid one. One whose tests are
valid half of the time is retired by mistake once in 256 times."""
HOPELESS = 100
"""A campaign ends after this many invalid tests and no valid one."""
_SHOWN = 3
_BATCH_ROWS = 1000
_INVALID = int(Verdict.INVALID)  # comparing with an enum member takes longer


class Recorder:
    """The running totals of a campaign and the rows that are not in the store yet.

    A fault's first trial and shortest test are minima, so they do not depend on the order in which
    rows arrive.
    """

    def __init__(
        self,
        store: Store,
        campaign: int,
        space: Space,
        wanted: Collection[str] | None = None,
    ) -> None:
        """Create a recorder; `wanted`: names of the hits that `results` contain (None: all)."""
        self._store = store
        self._campaign = campaign
        self._space = space
        self._rows: list[TrialRecord] = []
        self._tests: list[TestRecord] = []
        self._changed: set[str] = set()
        self._receiver = HitReceiver(store, campaign, wanted)
        self._latest: list[TrialRecord] = []
        self.faults: dict[str, FaultRecord] = {}
        self.progress = Progress()
        self.open = True
        """Whether rows may still have to be written; users of the recorder set it to False."""
        self.retirement = Retirement(space, self._has_valid_test)
        self._never_used = set(range(len(space.features)))
        self._offered = [0] * len(space.features)
        self._killed: set[int] = set()
        self._new_kills = False

    def load(self) -> None:
        """Load the totals of a campaign that is resumed."""
        summary = self._store.summary(self._campaign)
        self.progress.tests = summary["trials"]
        self.progress.failed = summary["failed"]
        self.progress.invalid = summary["invalid"]
        self.progress.steps = summary["steps"]
        self.progress.cpu_seconds = summary["cpu_ns"] / 1e9
        self.faults = {fault.id: fault for fault in self._store.faults(self._campaign)}
        self.progress.faults = len(self.faults)
        hits: set[int] = set()
        for trial in self._store.trials(self._campaign):
            self.retirement.watch([trial])
            if self._never_used:
                self._watch_use(trial)
            if trial.hits:
                hits.update(unpack_hits(trial.hits))
        record = self._store.campaign(self._campaign)
        self._killed.update(record.killed)
        self._receiver.load(hits, record.outside)
        self.progress.targets = len(hits)

    def add(self, message: BatchMessage) -> list[str]:
        """Add a worker's batch and return the ids of the faults that are new."""
        rows = message.rows
        faults_before, hit_before = len(self.faults), len(self._receiver.hit)
        self._add_faults(rows, message.faults)
        self._tests += [TestRecord(trial, json.dumps(test)) for trial, test in message.tests]
        self._receiver.learn(message.news)
        self._new_kills = self._new_kills or not self._killed.issuperset(message.killed)
        self._killed.update(message.killed)
        if message.sets:
            rows = self._with_hits(message)
        self._rows += rows
        self._latest = rows
        new_targets = len(self._receiver.hit) > hit_before
        self._count(rows, anything_new=new_targets or len(self.faults) > faults_before)
        if len(self._rows) >= _BATCH_ROWS:
            self.flush()
        return list(self.faults)[faults_before:]

    @property
    def notes(self) -> list[str]:
        """Messages for the user, one line each."""
        kills = note_of_kills(self._killed)
        return [*self._receiver.notes, *([kills] if kills else []), *self.retirement.notes()]

    def flush(self) -> None:
        """Write everything that is waiting to the store, the rows in one transaction."""
        if self._new_kills:  # first: no row without its note, whenever we are killed
            options = self._store.campaign(self._campaign).options
            killed = {"killed": sorted(self._killed)}
            self._store.update_campaign(self._campaign, options=options | killed)
            self._new_kills = False
        if self._rows:
            changed = [self.faults[fault] for fault in self._changed]
            self._store.record(self._campaign, self._rows, changed, self._tests)
            self._rows, self._tests, self._changed = [], [], set()

    def keep_times(self, **changes: Any) -> None:
        """Store how long the campaign has taken, so that `resume` continues from there."""
        self._store.update_campaign(
            self._campaign,
            wall_seconds=self.progress.wall_seconds,
            cpu_seconds=self.progress.cpu_seconds,
            **changes,
        )

    def note_workers(self, workers: Iterable[WorkerRecord]) -> None:
        """Store the state of the workers."""
        for worker in workers:
            self._store.note_worker(self._campaign, worker)

    def latest_results(self) -> Iterator[Result]:
        """Return the results of the batch that was added last, for a strategy that learns."""
        return self.results(self._latest)

    def results(self, rows: Iterable[TrialRecord]) -> Iterator[Result]:
        """Yield the result of each row."""
        for trial in rows:
            fault = self.faults.get(trial.fault) if trial.fault else None
            yield Result(
                Verdict(trial.verdict),
                Fault(fault.kind, fault.signature, fault.details) if fault else None,
                unpack_counts(trial.used),
                self._receiver.names(trial.hits) if trial.hits else (),
                trial.steps,
                trial.skipped,
                None,
                trial.trial,
                Configuration.from_bytes(self._space, trial.configuration),
                trial.cpu_ns / 1e9,
                trial.wall_ns / 1e9,
                missing=trial.missing,
            )

    def unused(self, least: int) -> dict[str, int]:
        """Return the features that never appeared although `least` tests or more allowed them.

        The value of each is the number of tests that allowed it.
        """
        return {
            self._space.feature_names[i]: self._offered[i]
            for i in sorted(self._never_used)
            if self._offered[i] >= least
        }

    def _add_faults(self, rows: Sequence[TrialRecord], faults: Sequence[Any]) -> None:
        for fault in faults:
            *fields, test, code = fault
            new = FaultRecord._make((*fields, test and json.dumps(test), 0, code))
            old = self.faults.get(new.id)
            if old is not None:
                first = min(old.first_trial, new.first_trial)
                shortest = min(old, new, key=_preference)
                new = shortest._replace(first_trial=first)
            self.faults[new.id] = new
            self._changed.add(new.id)
        for trial, fault in [(row.trial, row.fault) for row in rows if row.fault is not None]:
            if trial < self.faults[fault].first_trial:
                self.faults[fault] = self.faults[fault]._replace(first_trial=trial)
                self._changed.add(fault)

    def _with_hits(self, message: BatchMessage) -> list[TrialRecord]:
        """Return the rows of a message with their hits packed for the store."""
        packed = self._receiver.pack(message.sets)
        rows = []
        for row, indices in zip(message.rows, message.set_indices, strict=True):
            if len(indices) == 1:
                row = row.with_hits(packed[indices[0]])
            elif indices:
                sets = (message.sets[index] for index in indices)
                row = row.with_hits(self._receiver.packed_union(sets))
            rows.append(row)
        return rows

    def _count(self, rows: Sequence[TrialRecord], anything_new: bool) -> None:
        progress = self.progress
        progress.tests += len(rows)
        progress.since_new = 0 if anything_new else progress.since_new + len(rows)
        progress.faults = len(self.faults)
        progress.targets = len(self._receiver.hit)
        progress.cpu_seconds += sum([row.cpu_ns for row in rows]) / 1e9
        progress.steps += sum([row.steps for row in rows])
        verdicts = [row.verdict for row in rows]
        progress.failed += verdicts.count(Verdict.FAILED)
        progress.invalid += verdicts.count(Verdict.INVALID)
        self.retirement.watch(rows)
        if self._never_used:
            for row in rows:
                self._watch_use(row)

    def _has_valid_test(self, configuration: bytes) -> bool:
        self.flush()
        return any(
            trial.configuration == configuration and trial.verdict != Verdict.INVALID
            for trial in self._store.trials(self._campaign)
        )

    def _watch_use(self, row: TrialRecord) -> None:
        counts = unpack_counts(row.used)
        if not counts:
            return  # an invalid test, or a subject that cannot tell what its tests contain
        included = Configuration.from_bytes(self._space, row.configuration).bits
        for i in list(self._never_used):
            self._offered[i] += included >> i & 1
            if i < len(counts) and counts[i]:
                self._never_used.discard(i)


def _preference(fault: FaultRecord) -> tuple[bool, int, int]:
    """Return a sort key: a test that can be replayed before none, then the shorter test."""
    return fault.test is None, fault.size, fault.trial


class Retirement:
    """Which configurations are retired, found by watching all rows.

    `has_valid_test` says whether a configuration had a valid test so far. It is called only for a
    configuration that is about to be retired, so that valid tests need not be remembered here.
    """

    def __init__(self, space: Space, has_valid_test: Callable[[bytes], bool]) -> None:
        self._space = space
        self._has_valid_test = has_valid_test
        self._invalid: Counter[bytes] = Counter()
        self._useful: set[bytes] = set()
        self._reasons: Counter[str] = Counter()
        self._valid = 0
        self.retired: dict[bytes, str] = {}
        """Configurations that are not run any more, with the reason why their tests are invalid."""

    def watch(self, rows: Sequence[TrialRecord]) -> None:
        """Watch more rows, in any order."""
        if not self._invalid and _INVALID not in [row.verdict for row in rows]:
            self._valid += len(rows)
            return
        for row in rows:
            configuration, reason = row.configuration, row.missing
            if row.verdict != Verdict.INVALID:
                self._valid += 1
                if configuration in self._invalid:
                    self._useful.add(configuration)
                continue
            self._reasons[reason] += 1
            self._invalid[configuration] += 1
            if self._invalid[configuration] >= PATIENCE and self._is_useless(configuration):
                self.retired.setdefault(configuration, reason)

    def _is_useless(self, configuration: bytes) -> bool:
        if configuration in self.retired:
            return True
        if configuration not in self._useful and self._has_valid_test(configuration):
            self._useful.add(configuration)
        return configuration not in self._useful

    @property
    def hopeless(self) -> str:
        """Why the campaign should end because no test is valid; empty if it should not."""
        invalid = self._reasons.total()
        if self._valid or invalid < HOPELESS:
            return ""
        return f"none of {invalid:,} tests was valid: {self._reasons.most_common(1)[0][0]}"

    def notes(self) -> list[str]:
        """Return messages for the user, one line each."""
        lines = []
        invalid = self._reasons.total()
        if invalid:
            reasons = [f"{reason} ({n:,})" for reason, n in self._reasons.most_common(_SHOWN)]
            more = ["…"] if len(self._reasons) > _SHOWN else []
            tests = invalid + self._valid
            lines.append(
                f"{invalid:,} of {tests:,} tests were invalid: {'; '.join(reasons + more)}"
            )
        for configuration, reason in list(self.retired.items())[:_SHOWN]:
            text = str(Configuration.from_bytes(self._space, configuration))
            lines.append(f"retired because it gives only invalid tests: '{text}' ({reason})")
        not_shown = len(self.retired) - _SHOWN
        if not_shown > 0:
            lines.append(f"and {not_shown:,} more retired")
        return lines
