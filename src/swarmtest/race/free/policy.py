"""The policy of a free run: how its threads wait, are found stuck and end, and what locks do.

Nothing decides which thread runs, but it is known which thread waits for what. Threads wait in
short slices, so that they can be ended once the run is decided, and so that threads that wait for
each other can be told apart from threads that are merely slow.

Locks that are free are acquired in C if possible (`fast_locks`), since programs do that often.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from swarmtest.core.errors import UserError
from swarmtest.race.accelerator import accelerator
from swarmtest.race.control.stuck import CLOCK, END, fault_of_stuck
from swarmtest.race.control.tasks import LOGGED, RunPolicy, ThreadTask, child_task
from swarmtest.race.primitives.frames import is_library
from swarmtest.race.primitives.locks import Lock, hook_thread
from swarmtest.race.primitives.policy import (
    Policy,
    current,
    get_ident,
    raw_lock,
    raw_monotonic,
    raw_sleep,
    switch_to,
    thread_join,
)
from swarmtest.race.unwinding import Unwound

if TYPE_CHECKING:
    from swarmtest.race.coverage.coverage import ConcurrencyCoverage


_FIRST_SLICE = 0.001
_SLICE = 0.005
_MAX_UNWINDS = 100


class WaitingPolicy(RunPolicy):
    """The threads of a free run: how they wait, are found stuck, and end."""

    coverage: ConcurrencyCoverage | None = None

    def __init__(self) -> None:
        super().__init__()
        self._disturbs = type(self).before is not WaitingPolicy.before
        self._by_ident: dict[int, ThreadTask] = {}
        self._progress = object()
        self._fruitless: dict[ThreadTask, object] = {}
        """The last progress mark that each waiting thread has seen and that did not let it
        continue."""

    # For subclasses.

    def begins(self, task: ThreadTask) -> None:
        """Handle the start of a thread; called in that thread."""

    def ends(self, task: ThreadTask) -> None:
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
            raise UserError(f"{type(self).__name__} serves one run: create a new one for each")
        self.main.ident = get_ident()
        self._by_ident[get_ident()] = self.main
        self.begins(self.main)
        if coverage is not None:
            self.coverage = coverage
            # Leaving out an inner probe that does nothing saves a call at each access.
            does_nothing = getattr(self.access, "__func__", None) is Policy.access
            inner = None if does_nothing else self.access
            self.access = coverage.watching(inner)  # type: ignore[method-assign]

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

    def _end_here(self, task: ThreadTask) -> NoReturn:
        task.raised += 1
        if task.raised > _MAX_UNWINDS and task is not self.main:
            self.note(f"{task.name} cannot be ended: it catches every exception; it was left")
            forever = raw_lock()
            forever.acquire()
            forever.acquire()  # blocks: the thread must not continue either
        raise Unwound

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
        self,
        task: ThreadTask,
        waiting: Any,
        deadline: float | None,
        attempt: Callable[[float], bool],
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
            if isinstance(task.waiting, ThreadTask) and task.waiting.done:
                return  # the other thread has just ended
            if self._fruitless.get(task) != progress:
                return
        if self.ended:
            return
        fault = fault_of_stuck(self.tasks, self.log)
        if fault is None:
            self.end()
        else:
            self.fail(fault)


def has_ended(task: ThreadTask, seconds: float) -> bool:
    """Wait for a thread for a while, and return whether it has ended."""
    assert task.thread is not None
    if not task.done:
        thread_join(task.thread, seconds)
    return task.done


# Locks, threads and the clock.


class FreePolicy(WaitingPolicy):
    """The policy of one run in which threads run freely; create a new one for each run.

    Subclasses override `begins`, `ends`, `before`, `shortened` and `access`.
    """

    _locks: Any = None
    """The C implementation for locks that no other thread holds."""

    def enter(self, coverage: ConcurrencyCoverage | None) -> None:
        """Begin the run in this thread."""
        super().enter(coverage)
        module = accelerator()
        pairs = None if coverage is None else coverage.pairs_alone()
        may_be_fast = coverage is None or isinstance(pairs, getattr(module, "Pairs", ()))
        if module is not None and may_be_fast and not self._disturbs:
            self._locks = module.Locks(self._by_ident, pairs, self.acquire, self._acquire_blocked)
            self.acquire = self._locks.acquire  # type: ignore[method-assign]
            self.release = self._locks.release  # type: ignore[method-assign]

    @contextmanager
    def fast_locks(self) -> Iterator[None]:
        """Acquire locks of ``with`` statements in C if possible, until the run is decided."""
        if self._locks is None:
            yield
            return
        before = Lock.__enter__, Lock.__exit__
        self._locks.arm()
        Lock.__enter__, Lock.__exit__ = _c_methods(accelerator(), before[0])  # type: ignore[method-assign]
        try:
            yield
        finally:
            Lock.__enter__, Lock.__exit__ = before  # type: ignore[method-assign]
            self._locks.disarm()

    def end(self) -> None:
        """Decide the run; from now on the Python methods are used, which can end threads."""
        super().end()
        if self._locks is not None:
            self._locks.disarm()

    def _progress_mark(self) -> object:
        return super()._progress_mark(), self._locks and self._locks.released

    def _before_operation(self, task: ThreadTask, kind: str, frame: FrameType) -> None:
        if self.ended:
            self._end_here(task)
        task.doing = kind
        self.before(kind)
        if self.coverage is not None:
            self.coverage.visits(kind, frame)

    def acquire(self, lock: Lock, blocking: bool, timeout: float) -> bool:
        """Acquire a lock. Programs do this often, so the common case comes first."""
        task = self._by_ident.get(get_ident())
        if task is None:
            return lock.raw.acquire(blocking, timeout)
        coverage = self.coverage
        if not task.doing:
            frame = sys._getframe(2)
            inside = is_library(frame.f_code)
            if self._locks is not None and coverage is not None:
                site = -1 if inside else coverage.site_of("lock.acquire", frame)
                self._locks.learn(frame.f_code, frame.f_lasti, site)
            if not inside:
                if self.ended:
                    self._end_here(task)
                if self._disturbs:
                    self.before("lock.acquire")
                if coverage is not None:
                    coverage.visits("lock.acquire", frame)
        if lock.raw.acquire(False):
            return self._note_taken(task, lock)
        return self._acquire_blocked(task, lock, blocking, timeout)

    def _note_taken(self, task: ThreadTask, lock: Lock) -> bool:
        lock.owner = task
        task.held.append(lock)
        if self.coverage is not None and self.coverage.sees_locks:
            self.coverage.takes(lock)
        return True

    def _acquire_blocked(
        self, task: ThreadTask, lock: Lock, blocking: bool, timeout: float
    ) -> bool:
        """Handle a lock that another thread holds."""
        if self.ended:
            return True  # an unwound condition reacquires its lock to clean up
        if not blocking or timeout == 0 or not self._wait_for_lock(task, lock, timeout):
            return False
        return self._note_taken(task, lock)

    def _wait_for_lock(self, task: ThreadTask, lock: Lock, timeout: float) -> bool:
        deadline = None if timeout < 0 else raw_monotonic() + self.shortened(timeout)
        raw, outer = lock.raw, task.doing
        task.doing = outer or "lock.acquire"
        try:
            return self._wait(task, lock, deadline, lambda seconds: raw.acquire(True, seconds))
        finally:
            task.doing = outer

    def release(self, lock: Lock) -> None:
        """Release a lock."""
        owner = lock.owner
        if owner is not None:
            lock.owner = None
            try:  # noqa: SIM105 (five times as fast as suppress())
                owner.held.remove(lock)
            except ValueError:
                pass  # another thread was faster
        raw = lock.raw
        if not self.ended or raw.locked():
            raw.release()
        self._progress = object()
        if self._disturbs:
            task = self._by_ident.get(get_ident())
            if task is not None and not task.doing and not is_library(sys._getframe(2).f_code):
                self.before("lock.release")

    def operation(self, kind: str, obj: Any, call: Callable[[], Any]) -> Any:
        """Call an operation of an object built from locks."""
        task = self._by_ident.get(get_ident())
        if task is None or task.doing:
            return call()
        frame = sys._getframe(2)
        if self.ended or not is_library(frame.f_code):
            self._before_operation(task, kind, frame)
        task.doing, task.obj = kind, obj
        try:
            answer = call()
        finally:
            task.doing = ""
        if kind in LOGGED:
            self.log.note(task.name, kind, obj, answer)
        return answer

    # Threads.

    def start(self, thread: Thread, call: Callable[[], None]) -> None:
        """Start a thread as part of the run."""
        parent = self._by_ident.get(get_ident())
        if parent is None or thread.ident is not None:
            call()
            return
        outer = parent.doing
        frame = sys._getframe(2)
        if not outer and not is_library(frame.f_code):
            self._before_operation(parent, "thread.start", frame)
        parent.doing = outer
        task = child_task(parent, len(self.tasks), thread)
        self.tasks.append(task)
        begin = functools.partial(self._begin_thread, task, thread)
        hook_thread(thread, begin, functools.partial(self._end_thread, task))
        try:
            call()
        except BaseException:
            task.done = True  # the system could not start another thread
            raise

    def _begin_thread(self, task: ThreadTask, thread: Thread) -> None:
        task.ident = get_ident()
        self._by_ident[task.ident] = task
        if self.coverage is not None:
            self.coverage.began(task.ident)
        self.begins(task)
        self.run_thread(thread)

    def _end_thread(self, task: ThreadTask) -> None:
        self.ends(task)
        del self._by_ident[task.ident]
        task.done = True
        self._progress = object()

    def join(self, thread: Thread, timeout: float | None, call: Callable[[], None]) -> None:
        """Wait for a thread to end."""
        task = self._by_ident.get(get_ident())
        joined = next((candidate for candidate in self.tasks if candidate.thread is thread), None)
        if task is None or joined is None or joined is task:
            call()
            return
        outer = task.doing
        frame = sys._getframe(2)
        if not outer and not is_library(frame.f_code):
            self._before_operation(task, "thread.join", frame)
        task.doing = outer or "thread.join"
        seconds = None if timeout is None else self.shortened(max(timeout, 0.0))
        deadline = None if seconds is None else raw_monotonic() + seconds
        try:
            if not has_ended(joined, 0.0):
                self._wait(task, joined, deadline, functools.partial(has_ended, joined))
        finally:
            task.doing = outer

    # The clock, and the process.

    def sleep(self, seconds: float) -> None:
        """Sleep in slices, so that the sleep ends when the run is decided."""
        task = self._by_ident.get(get_ident())
        if task is None:
            raw_sleep(seconds)
            return
        outer = task.doing
        frame = sys._getframe(2)
        if not outer and not is_library(frame.f_code):
            self._before_operation(task, "sleep", frame)
        task.doing = outer or "sleep"
        deadline = raw_monotonic() + self.shortened(seconds)
        try:
            self._wait(task, CLOCK, deadline, _sleep_slice)
        finally:
            task.doing = outer

    def exits(self, code: int) -> None:
        """End the run when the program wants to end its process."""
        if get_ident() in self._by_ident:
            self.problem = f"the program ends its process by os._exit({code})"
            self.end()
            raise Unwound

    def forks(self) -> None:
        """Note that the program forks."""
        self.note("the program forks: what its child processes do is not observed")


@functools.cache
def _c_methods(module: Any, enter: Callable[[Lock], bool]) -> Any:
    return module.methods_for(Lock, ThreadTask, enter)


def _sleep_slice(seconds: float) -> bool:
    raw_sleep(seconds)
    return False
