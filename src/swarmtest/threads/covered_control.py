"""A controlled run whose concurrency coverage is taken."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any

from swarmtest.threads.control import Control
from swarmtest.threads.coverage import ConcurrencyCoverage
from swarmtest.threads.frames import user_frame
from swarmtest.threads.primitives import Lock
from swarmtest.threads.schedulers.scheduler import Scheduler
from swarmtest.threads.tasks import Task
from swarmtest.threads.trace import Tracer


class CoveredControl(Control):
    """Tells the coverage what its threads do."""

    def __init__(
        self,
        scheduler: Scheduler,
        sites: Collection[int] | None,
        most_probes: int,
        feasible: bool,
        tracer: Tracer | None,
        coverage: ConcurrencyCoverage,
    ) -> None:
        super().__init__(scheduler, sites, most_probes, feasible, tracer)
        coverage.reset()
        self._coverage = coverage
        self._begun = 1
        self.access = coverage.watching(self.access)  # type: ignore[method-assign]

    def changed(self) -> None:
        """Who is able to run has changed; perhaps because there is a new thread."""
        super().changed()
        for task in self.tasks[self._begun :]:
            self._begun += 1
            self._coverage.began(task.ident)

    def _counted(self, task: Task, kind: str, obj: Any) -> None:
        super()._counted(task, kind, obj)
        frame = user_frame(sys._getframe(1))
        if frame is not None:
            self._coverage.visits(kind, frame)

    def _take(self, task: Task, lock: Lock, blocking: bool, timeout: float) -> bool:
        taken = super()._take(task, lock, blocking, timeout)
        if taken:
            self._coverage.takes(lock)
        return taken

    def block(self, task: Task, waiting: Any, deadline: float | None) -> None:
        """The running thread waits."""
        self._coverage.waits(task.doing, waiting)
        super().block(task, waiting, deadline)

    def wake(self, waited_for: Any) -> None:
        """The running thread lets others run on: what it has made, they may know."""
        self._coverage.gives()
        super().wake(waited_for)
