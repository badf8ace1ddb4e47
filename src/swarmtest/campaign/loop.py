"""The campaign loop: hand out trial numbers and record the results until the budget is reached.

The executor runs batches of trials; the loop decides how large a batch is, feeds the results to the
recorder and to strategies that learn, and shows progress.
"""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, cast

from swarmtest.campaign.budget import Budget, Progress
from swarmtest.campaign.executors.executor import Executor
from swarmtest.campaign.executors.worker import CampaignJob, TrialRunner, pack_proposal, tell
from swarmtest.campaign.recorder import Recorder
from swarmtest.core.result import Result
from swarmtest.core.sampling import Proposal
from swarmtest.store.interface import Store
from swarmtest.store.records import FaultRecord
from swarmtest.strategies.strategy import LearningStrategy

_PASSED_OVER = 10_000
"""The loop gives up after this many trials in a row whose configurations are retired."""
_FLUSH_SECONDS = 0.2
_SHOW_SECONDS = 0.1
_NOTE_SECONDS = 2.0

Show: TypeAlias = Callable[[Progress, list[FaultRecord]], None]
"""Called with the progress and the new faults: a few times per second, at once for a new fault."""


class CampaignLoop:
    """The loop of one campaign."""

    def __init__(
        self, job: CampaignJob, budget: Budget, executor: Executor, recorder: Recorder, show: Show
    ) -> None:
        self._strategy = job.strategy
        self._budget = budget
        self._executor = executor
        self._recorder = recorder
        self._show = show
        self._trials: Iterator[int] = itertools.count()
        self._worker = TrialRunner(job)
        self._learns = isinstance(job.strategy, LearningStrategy)
        self._interrupt = _Interrupt(defer=executor.defers_interrupts)
        self._handed_out = 0
        self._passed_over = 0
        self._size = 8

    def skip(self, done: Iterator[int]) -> None:
        """Leave out the trials that an earlier run has recorded."""
        recorded = set(done)
        self._handed_out = len(recorded)
        self._trials = (trial for trial in itertools.count() if trial not in recorded)

    def relearn(self, store: Store, campaign: int) -> None:
        """Tell a learning strategy what an earlier run found."""
        if self._learns:
            for trial in store.trials(campaign):
                self._tell(self._recorder.results([trial]))

    def until_done(self, wall_before: float) -> tuple[str, bool]:
        """Run until the end; return why it ended, and whether the user interrupted it."""
        start = time.monotonic() - wall_before
        flushed = shown = noted = time.monotonic()
        progress, budget = self._recorder.progress, self._budget
        progress.wall_seconds = wall_before
        reason = progress.reached(budget)
        interrupted = False
        try:
            while not reason:
                if self._interrupt.pressed:
                    raise KeyboardInterrupt
                self._submit()
                if not self._executor.busy:
                    reason = "all tests done"
                    if self._passed_over >= _PASSED_OVER:
                        reason = "every configuration gives only invalid tests"
                    break
                new = self._collect(_SHOW_SECONDS)
                now = time.monotonic()
                progress.wall_seconds = now - start
                reason = progress.reached(budget) or self._recorder.retirement.hopeless
                if now - flushed > _FLUSH_SECONDS:
                    self._recorder.flush()
                    self._recorder.keep_times()
                    flushed = now
                if now - noted > _NOTE_SECONDS:
                    self._recorder.note_workers(self._executor.workers())
                    noted = now
                progress.workers, progress.condition = (
                    self._executor.slots,
                    self._executor.condition,
                )
                if new or now - shown > _SHOW_SECONDS:
                    self._show(progress, new)
                    shown = now
        except KeyboardInterrupt:
            reason, interrupted = "interrupted", True
        finally:
            self._wind_up()
            progress.wall_seconds = time.monotonic() - start
            self._interrupt.restore()
        self._show(progress, [])
        return reason, interrupted

    def _wind_up(self) -> None:
        """Stop the executor, collect the results that are still on their way, and store them."""
        try:
            if self._executor.busy:
                self._executor.stop()
                deadline = time.monotonic() + self._executor.shape.grace
                while self._executor.busy and time.monotonic() < deadline:
                    self._collect(0.05)
        finally:
            self._recorder.flush()
            self._recorder.tidy()
        # A worker that was lost at the very end has worked too.
        self._recorder.note_workers(
            worker if worker.state == "lost" else worker._replace(state="done")
            for worker in self._executor.workers()
        )

    def _submit(self) -> None:
        while self._executor.capacity > 0:
            batch = self._next_trials(self._batch_size())
            if not batch:
                return
            self._handed_out += len(batch)
            proposals = [pack_proposal(p) for p in batch.values() if p is not None]
            self._executor.submit(list(batch), proposals if self._learns else None)

    def _next_trials(self, count: int) -> dict[int, Proposal | None]:
        """Return the next trials whose configuration is not retired, with their proposals.

        Workers ask the strategy themselves unless it learns, so the proposals are None until the
        first configuration is retired.
        """
        retired = self._recorder.retirement.retired
        if not retired and not self._learns:
            return dict.fromkeys(itertools.islice(self._trials, count))
        batch: dict[int, Proposal | None] = {}
        while len(batch) < count and self._passed_over < _PASSED_OVER:
            trial = next(self._trials)
            proposal = self._worker.propose(trial)
            if proposal.configuration.to_bytes() in retired:
                self._passed_over += 1
            else:
                self._passed_over = 0
                batch[trial] = proposal
        return batch

    def _batch_size(self) -> int:
        """Return how many trials to hand out at once.

        Batches grow slowly to the size that suits the executor; near the end of the budget they
        shrink, so that all workers stay busy. A single worker is busy anyway.
        """
        shape = self._executor.shape
        if self._executor.rate:
            seconds = shape.learning_seconds if self._learns else shape.seconds
            wanted = max(1, int(self._executor.rate * seconds))
            largest = shape.largest_with_proposals if self._learns else shape.largest
            self._size = min(wanted, 4 * self._size, largest)
        tests = self._budget.tests
        if tests is None:
            return self._size
        left = tests - self._handed_out
        slots = self._executor.slots
        share = -(-left // (2 * slots)) if slots > 1 else left
        shortest = int(self._executor.rate * shape.shortest_seconds)
        return max(0, min(self._size, left, max(share, shortest, 1)))

    def _collect(self, timeout: float) -> list[FaultRecord]:
        new: list[str] = []
        for batch in self._executor.collect(timeout):
            new += self._recorder.add(batch)
            self._tell(self._recorder.latest_results())
        return [self._recorder.faults[fault] for fault in new]

    def _tell(self, results: Iterator[Result]) -> None:
        # A flag: to ask whether an object follows a protocol takes a tenth of a millisecond.
        if self._learns:
            tell(cast(LearningStrategy, self._strategy), results)


class _Interrupt:
    """A SIGINT handler that defers Ctrl-C until the loop checks for it.

    An exception raised between the arrival of a row and its recording would lose the row. A second
    Ctrl-C is not deferred.
    """

    def __init__(self, defer: bool) -> None:
        self.pressed = False
        self._previous: Any = None
        if defer and threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._press)

    def _press(self, number: int, frame: object) -> None:
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True

    def restore(self) -> None:
        """Put the previous SIGINT handler back."""
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
            self._previous = None
