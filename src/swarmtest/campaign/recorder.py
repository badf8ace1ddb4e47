"""From rows as workers send them to what the store keeps, and the running totals on the way."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from swarmtest.campaign.budget import Progress
from swarmtest.campaign.hits import Receiver
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
    unpack_counts,
)

# -------------------------------------------------------------------------------------------------
# Configurations that give only invalid tests: found early, retired, reported.
#
# A trial keeps its number, its configuration and its seed whatever happens to others: retiring
# only
# means that later trials with that configuration are passed over, and the budget goes to the next
# numbers. What is dropped would have given no valid test, and invalid tests hit nothing, so no
# count
# of hits changes; see docs/commands.md.

PATIENCE = 8
"""Invalid tests, and no valid one, after which a configuration is retired. One that is valid half
of the time is retired by mistake once in 256 times."""
HOPELESS = 100
"""Invalid tests, and no valid one at all, after which a campaign ends."""
_SHOWN = 3


class Retirement:
    """Watches rows; knows which configurations are retired.

    `has_valid_test` looks a configuration up among all tests so far: it is asked once for each that
    is about to be retired, so that valid tests need not be remembered here.
    """

    def __init__(self, space: Space, has_valid_test: Callable[[bytes], bool]) -> None:
        self._space = space
        self._has_valid_test = has_valid_test
        self._invalid: Counter[bytes] = Counter()
        self._useful: set[bytes] = set()
        self._reasons: Counter[str] = Counter()
        self._valid = 0
        self.retired: dict[bytes, str] = {}
        """Configurations that are not run any more, with why their tests were invalid."""

    def watch(self, rows: Sequence[Any]) -> None:
        """Take rows in, in any order."""
        if not self._invalid and not any(row[5] == Verdict.INVALID for row in rows):
            self._valid += len(rows)
            return
        for row in rows:
            configuration, verdict, reason = row[1], row[5], row[13]
            if verdict != Verdict.INVALID:
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
        """Why no test can be expected to be valid; empty if there is hope."""
        invalid = self._reasons.total()
        if self._valid or invalid < HOPELESS:
            return ""
        return f"none of {invalid:,} tests was valid: {self._reasons.most_common(1)[0][0]}"

    def notes(self) -> list[str]:
        """What a user should know, one line each."""
        found = []
        invalid = self._reasons.total()
        if invalid:
            reasons = [f"{reason} ({n:,})" for reason, n in self._reasons.most_common(_SHOWN)]
            more = ["…"] if len(self._reasons) > _SHOWN else []
            tests = invalid + self._valid
            found.append(
                f"{invalid:,} of {tests:,} tests were invalid: {'; '.join(reasons + more)}"
            )
        for configuration, reason in list(self.retired.items())[:_SHOWN]:
            text = str(Configuration.from_bytes(self._space, configuration))
            found.append(f"retired, for it gives only invalid tests: '{text}' ({reason})")
        unsaid = len(self.retired) - _SHOWN
        if unsaid > 0:
            found.append(f"and {unsaid:,} more retired")
        return found


# -------------------------------------------------------------------------------------------------

_ROWS = 1000


class Recorder:
    """Collects rows, keeps totals, and writes batches to the store.

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
        """`wanted`: the hits that `results` tell of, by name; all of them unless given."""
        self._store = store
        self._campaign = campaign
        self._space = space
        self._rows: list[Any] = []
        self._tests: list[TestRecord] = []
        self._changed: set[str] = set()
        self._receiver = Receiver(store, campaign, wanted)
        self._latest: list[Any] = []
        self.faults: dict[str, FaultRecord] = {}
        self.progress = Progress()
        self.open = True
        """Whether somebody still has to write the rest and close."""
        self.retirement = Retirement(space, self._has_valid_test)
        self._never_used = set(range(len(space.features)))
        self._offered = [0] * len(space.features)

    def load(self) -> None:
        """Take up the totals of a campaign that goes on."""
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
        self._receiver.load(hits, self._store.campaign(self._campaign).outside)
        self.progress.targets = len(hits)

    def add(self, batch: tuple[Any, ...]) -> list[str]:
        """Take a worker's batch; the ids of faults that are new."""
        rows, sets, news, faults, tests = batch
        known, hit = len(self.faults), len(self._receiver.hit)
        self._add_faults(rows, faults)
        self._tests += [TestRecord(trial, json.dumps(test)) for trial, test in tests]
        self._receiver.learn(news)
        if sets:
            packed = self._receiver.pack(sets)
            rows = [self._with_hits(row, sets, packed) for row in rows]
        self._rows += rows
        self._latest = rows
        new_targets = len(self._receiver.hit) > hit
        self._count(rows, anything_new=new_targets or len(self.faults) > known)
        if len(self._rows) >= _ROWS:
            self.flush()
        return list(self.faults)[known:]

    @property
    def notes(self) -> list[str]:
        """What a user should know, one line each."""
        return [*self._receiver.notes, *self.retirement.notes()]

    def flush(self) -> None:
        """Write what is waiting, in one transaction."""
        if self._rows:
            changed = [self.faults[fault] for fault in self._changed]
            self._store.record(self._campaign, self._rows, changed, self._tests)
            self._rows, self._tests, self._changed = [], [], set()

    def keep_times(self, **changes: Any) -> None:
        """Write how long the campaign has taken, so that `resume` goes on counting from there."""
        self._store.update_campaign(
            self._campaign,
            wall_seconds=self.progress.wall_seconds,
            cpu_seconds=self.progress.cpu_seconds,
            **changes,
        )

    def note_workers(self, workers: Iterable[WorkerRecord]) -> None:
        """Keep how the workers do."""
        for worker in workers:
            self._store.note_worker(self._campaign, worker)

    def latest_results(self) -> Iterator[Result]:
        """The batch that was added last as results, for a strategy that learns."""
        return self.results(self._latest)

    def results(self, rows: Iterable[Any]) -> Iterator[Result]:
        """Rows as results."""
        for row in rows:
            trial = TrialRecord(*row)
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
        """Features that never appeared though `least` tests or more allowed them, and how many."""
        return {
            self._space.feature_names[i]: self._offered[i]
            for i in sorted(self._never_used)
            if self._offered[i] >= least
        }

    def _add_faults(self, rows: Sequence[Any], faults: Sequence[Any]) -> None:
        for fault in faults:
            new = FaultRecord._make((*fault[:-1], fault[-1] and json.dumps(fault[-1]), 0))
            old = self.faults.get(new.id)
            if old is not None:
                first = min(old.first_trial, new.first_trial)
                shortest = min(old, new, key=_rank)
                new = shortest._replace(first_trial=first)
            self.faults[new.id] = new
            self._changed.add(new.id)
        for row in rows:
            if row[6] is not None and row[0] < self.faults[row[6]].first_trial:
                self.faults[row[6]] = self.faults[row[6]]._replace(first_trial=row[0])
                self._changed.add(row[6])

    def _with_hits(self, row: Any, sets: Sequence[bytes], packed: Sequence[bytes]) -> Any:
        """A row with its hits as the store keeps them, instead of places in the list of sets."""
        places = row[10]
        if places is None:
            return row
        if len(places) == 1:
            hits = packed[places[0]]
        else:
            hits = self._receiver.packed_union(sets[place] for place in places)
        return (*row[:10], hits, *row[11:])

    def _count(self, rows: Sequence[Any], anything_new: bool) -> None:
        progress = self.progress
        progress.tests += len(rows)
        progress.since_new = 0 if anything_new else progress.since_new + len(rows)
        progress.faults = len(self.faults)
        progress.targets = len(self._receiver.hit)
        progress.cpu_seconds += sum([row[11] for row in rows]) / 1e9
        progress.steps += sum([row[7] for row in rows])
        failed = [row for row in rows if row[5]]
        progress.failed += sum(row[5] == Verdict.FAILED for row in failed)
        progress.invalid += sum(row[5] == Verdict.INVALID for row in failed)
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

    def _watch_use(self, row: Any) -> None:
        counts = unpack_counts(row[9])
        if not counts:
            return  # an invalid test, or a subject that cannot tell what its tests contain
        included = Configuration.from_bytes(self._space, row[1]).bits
        for i in list(self._never_used):
            self._offered[i] += included >> i & 1
            if i < len(counts) and counts[i]:
                self._never_used.discard(i)


def _rank(fault: FaultRecord) -> tuple[bool, int, int]:
    """Shorter is better, and a test that can be replayed is better than none."""
    return fault.test is None, fault.size, fault.trial
