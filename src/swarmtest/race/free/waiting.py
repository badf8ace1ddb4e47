"""Threads that run as they like, while we know who waits for what.

Nothing decides who runs. What waits, waits in short slices, so that a run that is decided can be
ended, and threads of which each waits for another are told from threads that take their time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault
from swarmtest.race.control.stuck import END, fault_of_stuck
from swarmtest.race.control.tasks import Task, Unwound, main_task
from swarmtest.race.primitives.originals import get_ident, raw_lock, raw_monotonic, thread_join
from swarmtest.race.primitives.policy import Policy, current, switch_to

if TYPE_CHECKING:
    from swarmtest.race.coverage.coverage import ConcurrencyCoverage

_FIRST_SLICE = 0.001
_SLICE = 0.005
_MOST_RAISED = 100


class Waiting(Policy):
    """The threads of a free run: how they wait, how they are found stuck, and how they end."""

    coverage: ConcurrencyCoverage | None = None

    def __init__(self) -> None:
        self.main = main_task()
        self.tasks = [self.main]
        self.fault: Fault | None = None
        self.problem = ""
        self.notes: list[str] = []
        self.ended = self.interrupted = False
        self._disturbs = type(self).before is not Waiting.before
        self._by_ident: dict[int, Task] = {}
        self._progress = object()
        self._seen: dict[Task, object] = {}
        """The last progress of which each waiting thread knows that it did not help it."""

    # What subclasses do.

    def begins(self, task: Task) -> None:
        """A thread of the run begins; called in it."""

    def ends(self, task: Task) -> None:
        """A thread of the run has ended; called in it."""

    def before(self, kind: str) -> None:
        """A thread is about to synchronise with others: ``lock.acquire``, ``queue.get``."""

    def shortened(self, seconds: float) -> float:
        """How long a sleep or a wait with a time limit may take."""
        return seconds

    # The run.

    def enter(self, coverage: ConcurrencyCoverage | None) -> None:
        """The run begins, in this thread."""
        if self._by_ident:
            raise UserError(f"a {type(self).__name__} is good for one run: make a new one for each")
        self.main.ident = get_ident()
        self._by_ident[get_ident()] = self.main
        self.begins(self.main)
        if coverage is not None:
            self.coverage = coverage
            does_nothing = getattr(self.access, "__func__", None) is Policy.access
            inner = None if does_nothing else self.access
            self.access = coverage.watching(inner)  # type: ignore[method-assign]

    def fail(self, fault: Fault) -> None:
        """The run shows a fault; the first one counts."""
        if not self.ended:
            self.fault = fault
        self.end()

    def end(self) -> None:
        """The run is decided: threads end at their next probe, or where they wait."""
        self.ended = True
        self.access = self._ending_access  # type: ignore[method-assign]
        for name in ("acquire", "release"):
            self.__dict__.pop(name, None)  # the methods know what to do at the end
        if current.policy is self:
            switch_to(self)

    def _ending_access(self, site: int, obj: Any = None) -> Any:
        task = self._by_ident.get(get_ident())
        if task is not None and self.ended:
            self._end_here(task)
        return obj

    def _end_here(self, task: Task) -> NoReturn:
        task.raised += 1
        if task.raised > _MOST_RAISED and task is not self.main:
            self.note(f"{task.name} cannot be ended: it catches every exception; it was left")
            for_ever = raw_lock()
            for_ever.acquire()
            for_ever.acquire()
        raise Unwound

    def note(self, line: str) -> None:
        """Something that the user should know; once is enough."""
        if line not in self.notes:
            self.notes.append(line)

    def outlive(self) -> None:
        """Main's function has returned: other threads go on to their ends, as Python has it."""
        main = self.main
        with suppress(Unwound):
            while not self.ended:
                left = [t for t in self.tasks[1:] if not t.done and not t.daemon]
                if not left:
                    break
                main.doing = "end"
                self._wait(main, END, None, functools.partial(has_ended, left[0]))
        self.end()

    # Waiting.

    def _wait(
        self, task: Task, waiting: Any, deadline: float | None, attempt: Callable[[float], bool]
    ) -> bool:
        """Wait in slices until an attempt succeeds; False when the time is over."""
        if self.coverage is not None:
            self.coverage.waits(task.doing, waiting)
        task.waiting, task.deadline = waiting, deadline
        longest = _FIRST_SLICE
        try:
            while True:
                left = longest if deadline is None else deadline - raw_monotonic()
                progress = self._moves()  # before the attempt: what comes later may help
                if attempt(max(min(longest, left), 0.0)):
                    return True
                if self.ended:
                    self._end_here(task)
                if left <= 0:
                    return False
                self._seen[task] = progress
                self._look_if_stuck()
                longest = _SLICE
        finally:
            task.waiting, task.deadline = None, None
            self._progress = object()

    def _moves(self) -> object:
        """Another value each time that a thread gets on or lets another get on."""
        return self._progress

    def _look_if_stuck(self) -> None:
        """Nobody is able to run when all wait, and have looked since the last one got on."""
        progress = self._moves()
        for task in list(self.tasks):
            if task.done:
                continue
            if task.waiting is None or task.deadline is not None:
                return
            if isinstance(task.waiting, Task) and task.waiting.done:
                return  # it has just ended
            if self._seen.get(task) != progress:
                return
        if self.ended:
            return
        fault = fault_of_stuck(self.tasks)
        if fault is None:
            self.end()
        else:
            self.fail(fault)


def has_ended(task: Task, seconds: float) -> bool:
    """Whether a thread has ended, after waiting for it for a while."""
    assert task.thread is not None
    if not task.done:
        thread_join(task.thread, seconds)
    return task.done
