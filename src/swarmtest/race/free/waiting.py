"""The base policy of free runs: how threads wait, are found stuck, and end.

Nothing decides which thread runs, but it is known which thread waits for what. Threads wait in
short slices, so that they can be ended once the run is decided, and so that threads that wait for
each other can be told apart from threads that are merely slow.
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
_MAX_UNWINDS = 100


class Waiting(Policy):
    """The threads of a free run: how they wait, are found stuck, and end."""

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
        self._fruitless: dict[Task, object] = {}
        """The last progress mark that each waiting thread has seen and that did not let it
        continue."""

    # For subclasses.

    def begins(self, task: Task) -> None:
        """Handle the start of a thread; called in that thread."""

    def ends(self, task: Task) -> None:
        """Handle the end of a thread; called in that thread."""

    def before(self, kind: str) -> None:
        """Handle a thread that is about to synchronise: ``lock.acquire``, ``queue.get``."""

    def shortened(self, seconds: float) -> float:
        """Return how long a sleep or a wait with a time limit may take."""
        return seconds

    # The run.

    def enter(self, coverage: ConcurrencyCoverage | None) -> None:
        """Begin the run in this thread."""
        if self._by_ident:
            raise UserError(f"a {type(self).__name__} is good for one run: make a new one for each")
        self.main.ident = get_ident()
        self._by_ident[get_ident()] = self.main
        self.begins(self.main)
        if coverage is not None:
            self.coverage = coverage
            # Leaving out an inner probe that does nothing saves a call at each access.
            does_nothing = getattr(self.access, "__func__", None) is Policy.access
            inner = None if does_nothing else self.access
            self.access = coverage.watching(inner)  # type: ignore[method-assign]

    def fail(self, fault: Fault) -> None:
        """End the run with a fault; the first fault counts."""
        if not self.ended:
            self.fault = fault
        self.end()

    def end(self) -> None:
        """Decide the run: threads end at their next probe, or where they wait."""
        self.ended = True
        self.access = self._ending_access  # type: ignore[method-assign]
        for name in ("acquire", "release"):
            self.__dict__.pop(name, None)  # the class's own methods know how to end threads
        if current.policy is self:
            switch_to(self)

    def _ending_access(self, site: int, obj: Any = None) -> Any:
        task = self._by_ident.get(get_ident())
        if task is not None and self.ended:
            self._end_here(task)
        return obj

    def _end_here(self, task: Task) -> NoReturn:
        task.raised += 1
        if task.raised > _MAX_UNWINDS and task is not self.main:
            self.note(f"{task.name} cannot be ended: it catches every exception; it was left")
            forever = raw_lock()
            forever.acquire()
            forever.acquire()  # blocks: the thread must not continue either
        raise Unwound

    def note(self, line: str) -> None:
        """Note something that the user should know; duplicates are dropped."""
        if line not in self.notes:
            self.notes.append(line)

    def outlive(self) -> None:
        """Let other threads run to their ends after main has returned, as Python does."""
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
        """Wait in slices until an attempt succeeds; return False when the time is over."""
        if self.coverage is not None:
            self.coverage.waits(task.doing, waiting)
        task.waiting, task.deadline = waiting, deadline
        longest = _FIRST_SLICE
        try:
            while True:
                left = longest if deadline is None else deadline - raw_monotonic()
                progress = self._progress_mark()  # taken first: later progress may still help
                if attempt(max(min(longest, left), 0.0)):
                    return True
                if self.ended:
                    self._end_here(task)
                if left <= 0:
                    return False
                self._fruitless[task] = progress
                self._check_if_stuck()
                longest = _SLICE
        finally:
            task.waiting, task.deadline = None, None
            self._progress = object()

    def _progress_mark(self) -> object:
        """Return a value that differs whenever a thread continues or lets another continue."""
        return self._progress

    def _check_if_stuck(self) -> None:
        """End the run if no thread is able to run.

        That is so if all threads wait, and each has tried in vain since the last progress.
        """
        progress = self._progress_mark()
        for task in list(self.tasks):
            if task.done:
                continue
            if task.waiting is None or task.deadline is not None:
                return
            if isinstance(task.waiting, Task) and task.waiting.done:
                return  # the other thread has just ended
            if self._fruitless.get(task) != progress:
                return
        if self.ended:
            return
        fault = fault_of_stuck(self.tasks)
        if fault is None:
            self.end()
        else:
            self.fail(fault)


def has_ended(task: Task, seconds: float) -> bool:
    """Wait for a thread for a while, and return whether it has ended."""
    assert task.thread is not None
    if not task.done:
        thread_join(task.thread, seconds)
    return task.done
