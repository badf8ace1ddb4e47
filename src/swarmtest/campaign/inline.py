"""The engine that runs tests in this very process: for debuggers. A crash is everybody's crash."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from swarmtest.campaign.engine import BatchShape
from swarmtest.campaign.hits import NO_NEWS
from swarmtest.campaign.worker import Batch, Job, Worker, restored
from swarmtest.store import WorkerRecord


class InlineEngine:
    """No worker processes: ``workers=0``."""

    def __init__(self, job: Job) -> None:
        self._worker = Worker(job)
        self._batches: deque[tuple[list[int], list[Any] | None]] = deque()
        self._finished: list[Batch] = [self._worker.introduction()]
        self._cell = [0, 0, 0]
        self.deaf_to_interrupts = False
        self.shape = BatchShape()
        self.slots = 1
        self.condition = ""
        self.notes: tuple[str, ...] = ()
        self.rate = 0.0

    @property
    def hungry(self) -> int:
        """How many batches could be handed over now."""
        return 1 - len(self._batches)

    @property
    def busy(self) -> bool:
        """Whether any batch is waiting."""
        return bool(self._batches or self._finished)

    def workers(self) -> list[WorkerRecord]:
        """Nobody but this process."""
        return []

    def feed(self, trials: list[int], told: list[Any] | None) -> None:
        """Take a batch; it runs in `collect`."""
        self._batches.append((trials, told))

    def collect(self, timeout: float) -> list[Any]:
        """Run a batch."""
        if self._finished or not self._batches:
            return self._taken()
        trials, told = self._batches.popleft()
        space = self._worker.job.subject.space
        proposals = self._worker.proposals(trials) if told is None else restored(space, told)
        start = time.monotonic()
        # What was finished before Ctrl-C is collected by the next call.
        self._worker.run(trials, proposals, self._cell, self._finished.append)
        self.rate = len(trials) / max(time.monotonic() - start, 1e-6)
        return self._taken()

    def _taken(self) -> list[Any]:
        taken, self._finished = self._finished, []
        return [batch.message() for batch in taken if batch.rows or batch.news != NO_NEWS]

    def stop(self) -> None:
        """Drop what is waiting."""
        self._batches.clear()

    def close(self) -> None:
        """Nothing to end."""
