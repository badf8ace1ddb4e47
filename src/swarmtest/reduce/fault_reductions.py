"""After a campaign: the tests of its faults are made small, as far as time allows.

Invariants: what is found is stored fault by fault, so that ending it early costs the fault at hand
only; the tests that it begins with are never changed; no run outlives it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from swarmtest.campaign.budget import Limits
from swarmtest.campaign.reduced_faults import (
    FaultReductions,
    Reducing,
    ReductionTime,
    reductions_of,
)
from swarmtest.core.errors import UserError
from swarmtest.core.result import Result, Verdict
from swarmtest.processes.fork_pool import run_isolated
from swarmtest.processes.limits import limit_memory
from swarmtest.reduce.reduction import reduce_test
from swarmtest.store.interface import Store
from swarmtest.store.records import FaultRecord, ReductionRecord
from swarmtest.subjects.subject import Subject

FLAKY_AFTER = 3
"""Runs that do not show a fault again before it is called flaky."""
_FEWEST_RUNS = 3
"""What has to fit into a fault's time for it to be worth a try."""
_LOOKED_AT = 200
"""Tests that passed, of which the slowest tells how long one takes that does not hang."""


def reduce_faults(
    subject: Subject,
    store: Store,
    campaign: int,
    allowed: ReductionTime | None = None,
    *,
    faults: Iterable[str] | None = None,
    on_run: Callable[[Reducing], None] | None = None,
    on_fault: Callable[[ReductionRecord], None] | None = None,
) -> FaultReductions:
    """Make the tests of a campaign's faults small and keep what is left of them in the store.

    The most frequent faults come first; `faults` (ids) picks some. What was reduced earlier is
    gone on with, unless nothing more can go. Ctrl-C ends it, and what was found is kept.

    >>> from swarmtest import Campaign, Machine, MachineSubject, action, open_store
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


class _Session:
    """The faults of one campaign, one after the other."""

    def __init__(
        self,
        subject: Subject,
        store: Store,
        campaign: int,
        allowed: ReductionTime,
        on_run: Callable[[Reducing], None] | None,
        on_fault: Callable[[ReductionRecord], None] | None,
    ) -> None:
        record = store.campaign(campaign)
        limits = Limits(record.options.get("seconds"), record.options.get("memory", "auto"))
        # Candidates may run on all processors at a time, as the tests of the campaign did.
        memory = limits.memory_bytes(os.cpu_count() or 1)
        self._subject = cast(Subject, _WithinMemory(subject, memory))
        self._limit = limits.seconds_of(subject)
        self._store = store
        self._campaign = campaign
        self._allowed = allowed
        self._deadline = time.monotonic() + allowed.within(record.wall_seconds)
        self._on_run = on_run
        self._on_fault = on_fault
        self._known = reductions_of(store, campaign)
        self._why: dict[str, str] = {}

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
            for place, fault in enumerate(faults):
                self._reduce(fault, place, len(faults))
        except KeyboardInterrupt:
            interrupted = True
        tried = self._known.keys() | self._why.keys()
        untried = tuple(fault.id for fault in faults if fault.id not in tried)
        return FaultReductions(self._campaign, self._known, untried, self._why, interrupted)

    def _is_done(self, fault: FaultRecord) -> bool:
        if fault.test is None:
            return True  # there is nothing to begin with
        known = self._known.get(fault.id)
        size = self._subject.size(json.loads(fault.test))
        return known is not None and known.complete and known.size <= size

    def _reduce(self, fault: FaultRecord, place: int, faults: int) -> None:
        patience = self._patience(fault)
        left = self._deadline - time.monotonic()
        share = min(self._allowed.share(left, faults - place) + patience.again, left)
        if share < patience.least:
            return

        def on_run(runs: int, size: int) -> None:
            if self._on_run is not None:
                self._on_run(Reducing(fault.id, place + 1, faults, runs, size))

        one = _OneFault(self._subject, fault, self._known.get(fault.id), patience)
        try:
            reduction = one.reduction(share, on_run)
        except UserError as error:
            self._why[fault.id] = str(error)
            return
        self._store.add_reduction(self._campaign, reduction)
        self._known = reductions_of(self._store, self._campaign)
        if self._on_fault is not None:
            self._on_fault(reduction)
        if one.interrupted:
            raise KeyboardInterrupt

    def _patience(self, fault: FaultRecord) -> _Patience:
        """How long to wait for the fault's runs.

        A test that hangs takes as long as we wait for it. To wait as long as the campaign did would
        leave time for a run or two: so only what is left in the end is waited for as long.
        """
        took = self._store.trial(self._campaign, fault.trial).wall_ns / 1e9
        if fault.kind != "timeout" or self._subject.seconds is not None:
            return _Patience(self._limit, took)
        passed = islice(self._store.trials(self._campaign, verdict=Verdict.PASSED), _LOOKED_AT)
        slowest = max((trial.wall_ns for trial in passed), default=0) / 1e9
        seconds = 0.5 + 10 * slowest
        if seconds >= self._limit:
            return _Patience(self._limit, self._limit)
        return _Patience(seconds, seconds, again=self._limit)


@dataclass(frozen=True)
class _Patience:
    """How long to wait for the runs of one fault."""

    seconds: float
    """For a run, at most."""
    usual: float
    """What a run takes, most likely."""
    again: float = 0.0
    """For the last one, which makes sure of a test that hangs; 0: there is no need."""

    @property
    def least(self) -> float:
        """The time that is worth a try."""
        return _FEWEST_RUNS * self.usual + self.again


class _OneFault:
    """One fault, from the test that it has, or what is left of that."""

    def __init__(
        self,
        subject: Subject,
        fault: FaultRecord,
        known: ReductionRecord | None,
        patience: _Patience,
    ) -> None:
        self._subject = subject
        self._fault = fault
        self._patience = patience
        self._test = json.loads(str(fault.test))
        size = subject.size(self._test)
        self._begun = ReductionRecord(fault.id, fault.trial, size, size, None)
        if known is not None and known.test is not None and known.size <= size:
            self._test = json.loads(known.test)
            self._begun = known
        self.interrupted = False

    def reduction(self, share: float, on_run: Callable[[int, int], None]) -> ReductionRecord:
        """What is left after so many seconds."""
        patience, begun = self._patience, time.monotonic()
        if not self._shows(self._test, min(patience.seconds, share), FLAKY_AFTER):
            if patience.again:
                raise UserError(
                    f"it hangs elsewhere at first, and a run takes {patience.again:g} s"
                )
            seconds = time.monotonic() - begun
            return self._begun._replace(test=None, runs=FLAKY_AFTER, seconds=seconds)
        reduced = reduce_test(
            self._subject,
            self._test,
            self._fault.id,
            seconds=patience.seconds,
            budget=max(begun + share - patience.again - time.monotonic(), 0.0),
            on_run=on_run,
        )
        self.interrupted = reduced.interrupted
        if patience.again and not self._shows(reduced.test, patience.again):
            raise UserError("what is left of it comes to an end after all, only late")
        return self._begun._replace(
            size=reduced.size,
            test=json.dumps(reduced.test),
            details=reduced.fault.details if reduced.fault else "",
            runs=self._begun.runs + reduced.runs,
            seconds=self._begun.seconds + time.monotonic() - begun,
            complete=reduced.complete,
        )

    def _shows(self, test: Any, seconds: float, runs: int = 1) -> bool:
        """Whether a test shows the fault in one of some runs."""
        for _ in range(runs):
            fault = run_isolated(lambda: self._subject.replay(test), seconds, quiet=True).fault
            if fault is not None and fault.id == self._fault.id:
                return True
        return False


class _WithinMemory:
    """A subject whose tests may hold so much memory; they run in processes of their own."""

    def __init__(self, subject: Subject, memory: int) -> None:
        vars(self).update(_subject=subject, _memory=memory)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._subject, name)
        return self._limited(found) if name in ("replay", "told_again") else found

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._subject, name, value)

    def _limited(self, run: Callable[[Any], Result]) -> Callable[[Any], Result]:
        def limited(test: Any) -> Result:
            if self._memory:
                limit_memory(self._memory)
            return run(test)

        return limited
