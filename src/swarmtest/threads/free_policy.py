"""Threads that run as they like, while we know who waits for what.

Nothing decides who runs. What waits, waits in short slices, so that a run that is decided can be
ended, and threads of which each waits for another are told from threads that take their time.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from swarmtest.faults import fault_of_exception
from swarmtest.result import Fault
from swarmtest.threads.frames import is_library
from swarmtest.threads.policy import Policy, current, switch_to
from swarmtest.threads.primitives import Lock, Started
from swarmtest.threads.raw import get_ident, raw_lock, raw_monotonic, raw_sleep, thread_join
from swarmtest.threads.stuck import CLOCK, END, fault_of_stuck
from swarmtest.threads.tasks import Task, Unwound, child_task, main_task

if TYPE_CHECKING:
    from swarmtest.threads.coverage import ConcurrencyCoverage

_FIRST_SLICE = 0.001
_SLICE = 0.005
_MOST_RAISED = 100


class FreePolicy(Policy):
    """One run of threads that nobody holds; make a new one for each run.

    Subclasses override `begins`, `before` and `shortened`, and `access`.
    """

    coverage: ConcurrencyCoverage | None = None

    def __init__(self) -> None:
        self.main = main_task()
        self.tasks = [self.main]
        self.fault: Fault | None = None
        self.problem = ""
        self.notes: list[str] = []
        self.ended = False
        self._by_ident: dict[int, Task] = {}
        self._progress = object()
        """Another one each time that a thread gets on or lets another get on."""
        self._seen: dict[Task, object] = {}
        """The last progress of which each waiting thread knows that it did not help it."""

    # What subclasses do.

    def begins(self, task: Task) -> None:
        """A thread of the run begins; called in it."""

    def before(self, kind: str) -> None:
        """A thread is about to synchronise with others: ``lock.acquire``, ``queue.get``."""

    def shortened(self, seconds: float) -> float:
        """How long a sleep or a wait with a time limit may take."""
        return seconds

    # The run.

    def enter(self, coverage: ConcurrencyCoverage | None) -> None:
        """The run begins, in this thread."""
        self.main.ident = get_ident()
        self._by_ident[get_ident()] = self.main
        self.begins(self.main)
        if coverage is not None:
            self.coverage = coverage
            self.access = coverage.watching(self.access)  # type: ignore[method-assign]

    def fail(self, fault: Fault) -> None:
        """The run shows a fault; the first one counts."""
        if not self.ended:
            self.fault = fault
        self.end()

    def end(self) -> None:
        """The run is decided: threads end at their next probe, or where they wait."""
        self.ended = True
        self.access = self._ending_access  # type: ignore[method-assign]
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
                self._wait(main, END, None, functools.partial(_ended, left[0]))
        self.end()

    # Waiting.

    def _wait(
        self, task: Task, waiting: Any, deadline: float | None, attempt: Callable[[float], bool]
    ) -> bool:
        """Wait in slices until an attempt succeeds; False when the time is over."""
        if self.coverage is not None:
            self.coverage.waits(task.doing or "lock.acquire", waiting)
        task.waiting, task.deadline = waiting, deadline
        longest = _FIRST_SLICE
        try:
            while True:
                left = longest if deadline is None else deadline - raw_monotonic()
                if attempt(max(min(longest, left), 0.0)):
                    return True
                if self.ended:
                    self._end_here(task)
                if left <= 0:
                    return False
                self._seen[task] = self._progress
                self._look_if_stuck()
                longest = _SLICE
        finally:
            task.waiting, task.deadline = None, None
            self._progress = object()

    def _look_if_stuck(self) -> None:
        """Nobody is able to run when all wait, and have looked since the last one got on."""
        progress = self._progress
        for task in list(self.tasks):
            if task.done:
                continue
            if task.waiting is None or task.deadline is not None:
                return
            if self._seen.get(task) is not progress:
                return
        if self.ended:
            return
        fault = fault_of_stuck(self.tasks)
        if fault is None:
            self.end()
        else:
            self.fail(fault)

    def _synchronises(self, task: Task, kind: str, frame: FrameType) -> None:
        if self.ended:
            self._end_here(task)
        task.doing = kind
        if self.coverage is not None:
            self.coverage.visits(kind, frame)
        self.before(kind)

    def acquire(self, lock: Lock, blocking: bool, timeout: float) -> bool:
        """Take a lock."""
        task = self._by_ident.get(get_ident())
        if task is None:
            return lock.raw.acquire(blocking, timeout)
        frame = sys._getframe(2)
        inside = is_library(frame.f_code)
        if self.ended:
            if not inside:
                self._end_here(task)
            return self._taken(task, lock) if lock.raw.acquire(False) else True
        if task.doing or inside:
            return self._take(task, lock, blocking, timeout)
        try:
            self._synchronises(task, "lock.acquire", frame)
            return self._take(task, lock, blocking, timeout)
        finally:
            task.doing = ""

    def _take(self, task: Task, lock: Lock, blocking: bool, timeout: float) -> bool:
        if lock.raw.acquire(False):
            return self._taken(task, lock)
        if not blocking or timeout == 0:
            return False
        deadline = None if timeout < 0 else raw_monotonic() + self.shortened(timeout)
        raw = lock.raw
        if self._wait(task, lock, deadline, lambda seconds: raw.acquire(True, seconds)):
            return self._taken(task, lock)
        return False

    def _taken(self, task: Task, lock: Lock) -> bool:
        lock.owner = task
        task.held.append(lock)
        if self.coverage is not None:
            self.coverage.takes(lock)
        return True

    def release(self, lock: Lock) -> None:
        """Give a lock back."""
        owner = lock.owner
        if owner is not None:
            lock.owner = None
            with suppress(ValueError):  # another thread may have been quicker
                owner.held.remove(lock)
        if not self.ended or lock.raw.locked():
            lock.raw.release()
        self._progress = object()
        task = self._by_ident.get(get_ident())
        if task is not None and not task.doing and not is_library(sys._getframe(2).f_code):
            if self.coverage is not None:
                self.coverage.gives()
            self.before("lock.release")

    def operation(self, kind: str, obj: Any, call: Callable[[], Any]) -> Any:
        """Something made of locks is used."""
        task = self._by_ident.get(get_ident())
        if task is None or task.doing:
            return call()
        frame = sys._getframe(2)
        if self.ended or not is_library(frame.f_code):
            self._synchronises(task, kind, frame)
        task.doing = kind
        try:
            return call()
        finally:
            task.doing = ""

    # Threads.

    def start(self, thread: Thread, call: Callable[[], None]) -> None:
        """Start a thread; it is one of the run."""
        parent = self._by_ident.get(get_ident())
        if parent is None or thread.ident is not None:
            call()
            return
        outer = parent.doing
        frame = sys._getframe(2)
        if not outer and not is_library(frame.f_code):
            self._synchronises(parent, "thread.start", frame)
        parent.doing = outer
        task = child_task(parent, len(self.tasks), thread)
        self.tasks.append(task)
        self._prepare(task, thread)
        try:
            call()
        except BaseException:
            task.done = True  # there was no room for another thread
            raise

    def _prepare(self, task: Task, thread: Thread) -> None:
        """Python calls `run` on a thread, and `_delete` when it has ended: both are ours here."""
        own: dict[str, Any] = thread.__dict__
        run = own.get("run")

        def free() -> None:
            if run is None:
                own.pop("run", None)
            else:
                own["run"] = run
            task.ident = get_ident()
            self._by_ident[task.ident] = task
            if self.coverage is not None:
                self.coverage.began(task.ident)
            self.begins(task)
            try:
                thread.run()
            except (Unwound, SystemExit):
                pass  # Python ignores a SystemExit in a thread as well
            except BaseException as error:
                self.fail(fault_of_exception(error))

        def ended() -> None:
            own.pop("_delete", None)
            thread._delete()  # type: ignore[attr-defined]
            if self._by_ident.get(task.ident) is task:
                del self._by_ident[task.ident]
            task.done = True
            self._progress = object()

        own["run"], own["_delete"] = free, ended
        own["_started"] = Started()

    def join(self, thread: Thread, timeout: float | None, call: Callable[[], None]) -> None:
        """Wait for a thread to end."""
        task = self._by_ident.get(get_ident())
        joined = next((one for one in self.tasks if one.thread is thread), None)
        if task is None or joined is None or joined is task:
            call()
            return
        outer = task.doing
        frame = sys._getframe(2)
        if not outer and not is_library(frame.f_code):
            self._synchronises(task, "thread.join", frame)
        task.doing = outer or "thread.join"
        seconds = None if timeout is None else self.shortened(max(timeout, 0.0))
        deadline = None if seconds is None else raw_monotonic() + seconds
        try:
            if not _ended(joined, 0.0):
                self._wait(task, joined, deadline, functools.partial(_ended, joined))
        finally:
            task.doing = outer

    # The clock, and the process.

    def sleep(self, seconds: float) -> None:
        """Sleep in slices."""
        task = self._by_ident.get(get_ident())
        if task is None:
            raw_sleep(seconds)
            return
        outer = task.doing
        frame = sys._getframe(2)
        if not outer and not is_library(frame.f_code):
            self._synchronises(task, "sleep", frame)
        task.doing = outer or "sleep"
        deadline = raw_monotonic() + self.shortened(seconds)
        try:
            self._wait(task, CLOCK, deadline, _slept)
        finally:
            task.doing = outer

    def exits(self, code: int) -> None:
        """The program wants to end its process."""
        if get_ident() in self._by_ident:
            self.problem = f"the program ends its process by os._exit({code})"
            self.end()
            raise Unwound

    def forks(self) -> None:
        """The program forks."""
        self.note("the program forks: nothing is known of what its child processes do")


def _slept(seconds: float) -> bool:
    raw_sleep(seconds)
    return False


def _ended(task: Task, seconds: float) -> bool:
    """Whether a thread has ended, after waiting for it for a while."""
    assert task.thread is not None
    if not task.done:
        thread_join(task.thread, seconds)
    return task.done
