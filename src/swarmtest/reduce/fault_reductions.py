"""Reduce the tests of a campaign's faults after the campaign, as far as time allows.

`reduce_campaign` loads the subject of a stored campaign; `reduce_faults` takes a subject that is
loaded already; `reduce_and_show` shows progress in a terminal. All three continue a reduction that
was stopped.

Each result is stored as soon as its fault is done, so that stopping early loses only the fault that
is being reduced. The tests that the campaign recorded are never changed, and no run outlives the
reduction.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from swarmtest.campaign.budget import Limits
from swarmtest.campaign.reduced_faults import (
    FaultReductionProgress,
    FaultReductions,
    ReductionTime,
    reductions_of,
)
from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.signatures import is_older_form
from swarmtest.processes.fork_pool import run_isolated
from swarmtest.processes.limits import memory_limited
from swarmtest.processes.perturbation import perturbed_memory
from swarmtest.reduce.assertion_values import with_values
from swarmtest.reduce.named_tests import load_subject
from swarmtest.reduce.reduction import reduce_test
from swarmtest.reduce.same_faults import merge_same_faults
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.store.records import FaultRecord, ReductionRecord
from swarmtest.subjects.subject import Subject, printed_code

if TYPE_CHECKING:
    from swarmtest.ui.terminal.progress import ProgressView

FLAKY_AFTER = 3
"""How many runs must fail to show a fault before the fault is called flaky."""
_FEWEST_RUNS = 3
"""How many runs must fit into a fault's time for a reduction to be worth trying."""
_MERGING_SECONDS = 2.0
"""Time to find out which faults are one, if reduction took all that it had."""
_PASSING_TRIALS = 200
"""How many passing trials are read to learn how long a test takes that does not hang."""


def reduce_faults(
    subject: Subject,
    store: Store,
    campaign: int,
    allowed: ReductionTime | None = None,
    *,
    faults: Iterable[str] | None = None,
    on_run: Callable[[FaultReductionProgress], None] | None = None,
    on_fault: Callable[[ReductionRecord], None] | None = None,
) -> FaultReductions:
    """Reduce the tests of a campaign's faults and record the smaller tests in the store.

    The most frequent faults come first; `faults` selects some by their ids. A reduction that was
    not completed earlier is continued. Ctrl-C stops the work, and the results so far are kept.

    >>> from swarmtest import Campaign, Machine, action, open_store
    >>> from swarmtest.subjects import MachineSubject
    >>> class Counter(Machine):
    ...     def start(self): self.n = 0
    ...     @action
    ...     def up(self): self.n += 1; assert self.n < 3
    ...     @action
    ...     def look(self): pass
    >>> subject = MachineSubject(Counter)
    >>> with open_store(":memory:") as store:
    ...     outcome = Campaign(subject, "coin", 50, workers=0, store=store).run()
    ...     found = reduce_faults(subject, store, outcome.campaign)
    >>> [reduction.size for reduction in found.reductions.values()]
    [3]
    """
    return _Session(subject, store, campaign, allowed or ReductionTime(), on_run, on_fault).run(
        faults
    )


def reduce_campaign(
    store: str | Store | None,
    campaign: int,
    *,
    seconds: float | None = None,
    faults: Iterable[str] | None = None,
    on_run: Callable[[FaultReductionProgress], None] | None = None,
    on_fault: Callable[[ReductionRecord], None] | None = None,
) -> FaultReductions:
    """Reduce the tests of the faults of a stored campaign, and record the smaller tests there.

    The subject is loaded by the name that the campaign recorded. `seconds` limits the whole
    reduction; by default it takes as long as the campaign did, but from 20 to 60 seconds. `faults`
    selects faults by their ids. `on_run` is called after every run and `on_fault` after every
    fault. Faults whose tests cannot become smaller are not tried again, so calling this once more
    continues a reduction that Ctrl-C or the time limit stopped.

    >>> from pathlib import Path
    >>> from swarmtest import Campaign
    >>> lines = ["from swarmtest import Machine, action", "class Lamp(Machine):", "    n = 0"]
    >>> lines += ["    @action", "    def up(self): self.n += 1; assert self.n < 3"]
    >>> lines += ["    @action", "    def look(self): pass"]
    >>> _ = Path("lamp.py").write_text("\\n".join(lines))
    >>> outcome = Campaign("lamp.py", "coin", 9, store="lamp.db", workers=0).run()
    >>> [reduction.size for reduction in reduce_campaign("lamp.db", 1).reductions.values()]
    [3]
    """
    opened = (
        open_store(store, must_exist=True) if store is None or isinstance(store, str) else store
    )
    try:
        subject = load_subject(opened.campaign(campaign))[0]
        allowed = ReductionTime(seconds)
        return reduce_faults(
            subject, opened, campaign, allowed, faults=faults, on_run=on_run, on_fault=on_fault
        )
    finally:
        if opened is not store:
            opened.close()


def reduce_and_show(
    subject: Subject,
    store: Store,
    campaign: int,
    allowed: ReductionTime,
    view: ProgressView,
    faults: Iterable[str] | None = None,
) -> FaultReductions:
    """Reduce the tests of a campaign's faults and show progress in `view`."""
    view.end()  # a live progress line has a thread, and forking with threads is unsafe
    try:
        return reduce_faults(
            subject,
            store,
            campaign,
            allowed,
            faults=faults,
            on_run=lambda progress: view.reducing(progress, subject.part),
            on_fault=view.reduced,
        )
    finally:
        view.end()


class _Session:
    """Reduces the faults of one campaign, one after the other."""

    def __init__(
        self,
        subject: Subject,
        store: Store,
        campaign: int,
        allowed: ReductionTime,
        on_run: Callable[[FaultReductionProgress], None] | None,
        on_fault: Callable[[ReductionRecord], None] | None,
    ) -> None:
        record = store.campaign(campaign)
        limits = Limits(record.options.get("seconds"), record.options.get("memory", "auto"))
        # Candidates may run on all processors at once, as the tests of the campaign did.
        memory = limits.memory_bytes(os.cpu_count() or 1)
        self._subject = cast(Subject, _WithinMemory(subject, memory))
        self._limit = limits.seconds_of(subject)
        self._store = store
        self._campaign = campaign
        self._allowed = allowed
        self._deadline = time.monotonic() + allowed.within(record.wall_seconds)
        self._on_run = on_run
        self._on_fault = on_fault
        self._reductions = reductions_of(store, campaign)
        self._reasons: dict[str, str] = {}

    def run(self, wanted: Iterable[str] | None) -> FaultReductions:
        chosen = None if wanted is None else set(wanted)
        faults = [
            fault
            for fault in self._store.faults(self._campaign)
            if (chosen is None or fault.id in chosen) and not self._is_done(fault)
        ]
        faults.sort(key=lambda fault: (-fault.count, fault.first_trial))
        interrupted = False
        try:
            for index, fault in enumerate(faults):
                self._reduce(fault, index, len(faults))
            if chosen is None and faults:
                self._merge_same()
        except KeyboardInterrupt:
            interrupted = True
        tried = self._reductions.keys() | self._reasons.keys()
        untried = tuple(fault.id for fault in faults if fault.id not in tried)
        return FaultReductions(
            self._campaign, self._reductions, untried, self._reasons, interrupted
        )

    def _merge_same(self) -> None:
        """Decide which of the campaign's faults are one; a store need not keep such decisions."""
        with suppress(UserError):
            merge_same_faults(
                self._subject,
                self._store,
                self._campaign,
                seconds=self._limit,
                deadline=max(self._deadline, time.monotonic() + _MERGING_SECONDS + self._limit),
            )
        self._reductions = reductions_of(self._store, self._campaign)

    def _is_done(self, fault: FaultRecord) -> bool:
        if fault.test is None:
            return True  # there is no test to start from
        earlier = self._reductions.get(fault.id)
        size = self._subject.size(json.loads(fault.test))
        return earlier is not None and earlier.complete and earlier.size <= size

    def _reduce(self, fault: FaultRecord, index: int, faults: int) -> None:
        waits = self._time_limits(fault)
        left = self._deadline - time.monotonic()
        share = min(self._allowed.share(left, faults - index) + waits.confirmation, left)
        if share < waits.least:
            return

        def on_run(runs: int, size: int) -> None:
            if self._on_run is not None:
                self._on_run(FaultReductionProgress(fault.id, index + 1, faults, runs, size))

        reducer = _FaultReducer(self._subject, fault, self._reductions.get(fault.id), waits)
        try:
            reduction = reducer.reduction(share, on_run)
        except UserError as error:
            self._reasons[fault.id] = str(error)
            return
        self._store.add_reduction(self._campaign, reduction)
        self._reductions = reductions_of(self._store, self._campaign)
        if self._on_fault is not None:
            self._on_fault(reduction)
        if reducer.interrupted:
            raise KeyboardInterrupt

    def _time_limits(self, fault: FaultRecord) -> _TimeLimits:
        """Return how long to wait for the runs of a fault's test.

        A test that hangs takes as long as we wait for it. Waiting as long as the campaign did would
        leave time for only a run or two, so only the final test is given that long.
        """
        took = self._store.trial(self._campaign, fault.trial).wall_ns / 1e9
        if fault.kind != "timeout" or self._subject.seconds is not None:
            return _TimeLimits(self._limit, took)
        passed = islice(self._store.trials(self._campaign, verdict=Verdict.PASSED), _PASSING_TRIALS)
        slowest = max((trial.wall_ns for trial in passed), default=0) / 1e9
        seconds = 0.5 + 10 * slowest
        if seconds >= self._limit:
            return _TimeLimits(self._limit, self._limit)
        return _TimeLimits(seconds, seconds, confirmation=self._limit)


@dataclass(frozen=True)
class _TimeLimits:
    """How long, in seconds, to wait for the runs of one fault's test."""

    seconds: float
    """The limit of a run."""
    usual: float
    """What a run is likely to take."""
    confirmation: float = 0.0
    """The limit of the last run, which confirms that the final test hangs; 0: not needed."""

    @property
    def least(self) -> float:
        """The time below which a reduction is not worth trying."""
        return _FEWEST_RUNS * self.usual + self.confirmation


class _FaultReducer:
    """Reduces one fault's test, starting from its recorded test or from an earlier reduction."""

    def __init__(
        self,
        subject: Subject,
        fault: FaultRecord,
        earlier: ReductionRecord | None,
        waits: _TimeLimits,
    ) -> None:
        self._subject = subject
        self._fault = fault
        self._waits = waits
        self._test = json.loads(str(fault.test))
        size = subject.size(self._test)
        self._seen: Fault | None = None
        self._begun = ReductionRecord(fault.id, fault.trial, size, size, None)
        if earlier is not None and earlier.test is not None and earlier.size <= size:
            self._test = json.loads(earlier.test)
            self._begun = earlier
        self.interrupted = False

    def reduction(self, share: float, on_run: Callable[[int, int], None]) -> ReductionRecord:
        """Reduce for `share` seconds; return the record without a test if the fault is flaky."""
        begun = time.monotonic()
        seconds = min(self._waits.seconds, share)
        with perturbed_memory(lambda: self._shown(self._test, seconds) is not None) as known:
            return self._reduction(begun, share, on_run, known)

    def _reduction(
        self, begun: float, share: float, on_run: Callable[[int, int], None], known: bool
    ) -> ReductionRecord:
        waits = self._waits
        limit = min(waits.seconds, share)
        original = self._seen if known else self._shown(self._test, limit, FLAKY_AFTER)
        if original is None:
            if waits.confirmation:
                raise UserError(
                    f"it hangs elsewhere at first, and a run takes {waits.confirmation:g} s"
                )
            seconds = time.monotonic() - begun
            return self._begun._replace(test=None, runs=FLAKY_AFTER, seconds=seconds)
        reduced = reduce_test(
            self._subject,
            self._test,
            original.key,
            seconds=waits.seconds,
            budget=max(begun + share - waits.confirmation - time.monotonic(), 0.0),
            on_run=on_run,
        )
        self.interrupted = reduced.interrupted
        if waits.confirmation and self._shown(reduced.test, waits.confirmation) is None:
            raise UserError("the reduced test does end, only late")
        shown = reduced.fault
        if shown is not None:
            shown = with_values(self._subject, reduced.test, shown, waits.seconds)
        return self._begun._replace(
            size=reduced.size,
            test=json.dumps(reduced.test),
            details=shown.details if shown else "",
            runs=self._begun.runs + reduced.runs,
            seconds=self._begun.seconds + time.monotonic() - begun,
            complete=reduced.complete,
            code=printed_code(self._subject, reduced.test),
        )

    def _shown(self, test: Any, seconds: float, runs: int = 1) -> Fault | None:
        """Return the fault if a test shows it in one of `runs` runs, as this version names it."""
        recorded = self._fault.fault
        for _ in range(runs):
            fault = run_isolated(lambda: self._subject.replay(test), seconds, quiet=True).fault
            if fault is None or fault.kind != recorded.kind:
                continue
            if fault == recorded or is_older_form(recorded.signature, fault.signature):
                self._seen = fault
                return fault
        return None


class _WithinMemory:
    """A subject whose tests may hold so much memory; they run in processes of their own."""

    def __init__(self, subject: Subject, memory: int) -> None:
        vars(self).update(_subject=subject, _memory=memory)

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._subject, name)
        return self._limited(member) if name in ("replay", "told_again") else member

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._subject, name, value)

    def _limited(self, run: Callable[[Any], Result]) -> Callable[[Any], Result]:
        def limited(test: Any) -> Result:
            # Lifted afterwards: a process in which a limit stays lower answers no more.
            with memory_limited(self._memory) if self._memory else nullcontext():
                return run(test)

        return limited
