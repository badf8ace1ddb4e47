"""Recording: from the rows that workers send to what the store keeps.

Workers pack their results into blocks, into which a recorder looks only if it has to: it translates
the ids of targets, adds up totals and writes. From small batches and for strategies that learn, it
gets rows, to which it adds the hits.

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
from swarmtest.campaign.fault_sightings import FaultSightings
from swarmtest.campaign.hits import HitReceiver
from swarmtest.core.configuration import Configuration
from swarmtest.core.result import Result, Verdict
from swarmtest.core.space import Space
from swarmtest.store.fault_groups import groups_of
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
    from swarmtest.store.blocks import FeatureSummary, TrialBlock
    from swarmtest.store.loose_blocks import PackedBlock

PATIENCE = 8
"""A configuration is retired after this many invalid tests and no valid one. One whose tests are
valid half of the time is retired by mistake once in 256 times."""
HOPELESS = 100
"""A campaign ends after this many invalid tests and no valid one."""
_SHOWN = 3
_BATCH_ROWS = 1000
_SMALL_BLOCK = 1000
_SMALL_BLOCKS = 100
"""After so many small blocks, the store is asked to merge them."""
_FEW_BLOCKS = 32
"""So few small blocks are left as they are: every campaign starts with some, and to pack their
tests again takes longer than reading them does dozens of times."""
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
        self._blocks: list[PackedBlock] = []
        self._waiting = 0
        self._small_blocks = 0
        self._tests: list[TestRecord] = []
        self._changed: set[str] = set()
        self._receiver = HitReceiver(store, campaign, wanted)
        self._latest: list[TrialRecord] = []
        self._sightings = FaultSightings(store, campaign)
        self._groups = groups_of(store.fault_decisions())
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
        recorded = self._store.recorded.faults(self._campaign)
        self.faults = {fault.id: fault for fault in recorded}
        self.progress.faults = len(self.faults)
        self.retirement.load(self._store, self._campaign, summary)
        self._watch_features(self._store.feature_summary(self._campaign))
        hit = self._store.hit_summary(self._campaign).targets.tolist()
        record = self._store.campaign(self._campaign)
        self._killed.update(record.killed)
        self._receiver.load(hit, record.outside)
        self.progress.targets = len(hit)

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
        block = None
        if message.block is not None:
            block = self._add_block(message.block)
        new_targets = len(self._receiver.hit) > hit_before
        anything_new = new_targets or len(self.faults) > faults_before
        if block is not None:
            self._count_block(block, anything_new=anything_new)
        if rows or block is None:
            self._count(rows, anything_new=anything_new)
        self._waiting += len(rows) if block is None else block.totals.trials
        if self._waiting >= _BATCH_ROWS:
            self.flush()
        return list(self.faults)[faults_before:]

    def _add_block(self, sent: tuple[Any, ...]) -> PackedBlock:
        """Keep a worker's block for the store."""
        from swarmtest.campaign.executors.block_batch import SentBlock

        block = self._receiver.packed_block(SentBlock._make(sent))
        self._blocks.append(block)
        for fault in block.faults:
            self._note_first_trial(fault.fault, fault.first_trial)
        return block

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
        if self._rows or self._blocks:
            changed = [self.faults[fault] for fault in self._changed]
            batch = (self._rows, changed, self._tests)
            if self._blocks:
                self._store.record_blocks(self._campaign, self._blocks, *batch)
            else:
                self._store.record(self._campaign, *batch)
            self._small_blocks += bool(self._rows)
            self._small_blocks += sum(each.totals.trials < _SMALL_BLOCK for each in self._blocks)
            self._sightings.flush()
            self._rows, self._blocks, self._tests, self._changed = [], [], [], set()
            self._waiting = 0
            if self._small_blocks >= _SMALL_BLOCKS + _FEW_BLOCKS:
                self._store.merge_blocks(self._campaign, running=True)
                self._small_blocks = _FEW_BLOCKS + 1  # those next to a gap are still there

    def tidy(self) -> None:
        """Let the store merge what many small batches left behind."""
        if self._small_blocks > _FEW_BLOCKS:
            self._store.merge_blocks(self._campaign)
            self._small_blocks = 0

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
        """Yield the result of each row; a fault has the id as which the store shows it."""
        for trial in rows:
            fault = self.faults.get(trial.fault) if trial.fault else None
            if fault is not None and fault.id in self._groups:
                fault = fault._replace(id=self._groups[fault.id])
            yield Result(
                Verdict(trial.verdict),
                fault.fault if fault else None,
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
            new = FaultRecord._make((*fields, test and json.dumps(test), 0, code, ()))
            old = self.faults.get(new.id)
            if old is not None:
                first = min(old.first_trial, new.first_trial)
                shortest = min(old, new, key=_preference)
                new = shortest._replace(first_trial=first)
            self.faults[new.id] = new
            self._changed.add(new.id)
        for trial, fault in [(row.trial, row.fault) for row in rows if row.fault is not None]:
            self._note_first_trial(fault, trial)

    def _note_first_trial(self, fault: str, trial: int) -> None:
        self._sightings.note(fault)
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

    def _count_block(self, block: PackedBlock, anything_new: bool) -> None:
        progress, totals = self.progress, block.totals
        progress.tests += totals.trials
        progress.since_new = 0 if anything_new else progress.since_new + totals.trials
        progress.faults = len(self.faults)
        progress.targets = len(self._receiver.hit)
        progress.cpu_seconds += totals.cpu_ns / 1e9
        progress.steps += totals.steps
        progress.failed += totals.failed
        progress.invalid += totals.invalid
        self._watch_block(block)
        if self._never_used:
            from swarmtest.store.blocks.codec import unpack_features

            self._watch_features(unpack_features(block.features))

    def _watch_block(self, block: PackedBlock) -> None:
        """Let `retirement` watch a block; it looks into blocks only once tests were invalid."""
        if not block.totals.invalid and not self.retirement.any_invalid:
            self.retirement.count_valid(block.totals.trials)
            return
        from swarmtest.store.blocks.codec import unpack_block
        from swarmtest.store.loose_blocks import BlockLayout

        layout = BlockLayout(len(self._space.features), 0)  # without seeds, which nobody reads here
        self.retirement.watch(list(watched_rows(unpack_block(block.columns, layout))))

    def _watch_features(self, features: FeatureSummary) -> None:
        """Note which features have appeared in tests, and which could have."""
        for i in list(self._never_used):
            self._offered[i] += int(features.offered[i])
            if features.used[i]:
                self._never_used.discard(i)

    def _has_valid_test(self, configuration: bytes) -> bool:
        self.flush()
        return any(
            configuration in _valid_configurations(block)
            for block in self._store.blocks(self._campaign, hits=False)
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


def _valid_configurations(block: TrialBlock) -> set[bytes]:
    rows = watched_rows(block)
    return {row.configuration for row in rows if row.verdict != Verdict.INVALID}


def watched_rows(block: TrialBlock) -> Iterator[TrialRecord]:
    """Yield what `Retirement` watches of the trials of a block, and nothing else."""
    reasons = map(block.missing.__getitem__, block.missing_index.tolist())
    columns = (block.numbers.tolist(), block.configurations(), block.verdicts.tolist(), reasons)
    for trial, configuration, verdict, reason in zip(*columns, strict=True):
        yield TrialRecord(trial, configuration, verdict=verdict, missing=reason)


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

    @property
    def any_invalid(self) -> bool:
        """Whether any test was invalid."""
        return bool(self._invalid)

    def count_valid(self, tests: int) -> None:
        """Count valid tests, before any test was invalid."""
        self._valid += tests

    def load(self, store: Store, campaign: int, summary: dict[str, int]) -> None:
        """Watch the tests of an earlier run; if none was invalid, their number is enough."""
        if not summary["invalid"]:
            self.count_valid(summary["trials"])
            return
        for block in store.blocks(campaign, hits=False):
            self.watch(list(watched_rows(block)))

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
