"""The policy of a free run: what threads do with locks, each other and the clock."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from types import FrameType
from typing import TYPE_CHECKING, Any

from swarmtest.core.faults import fault_of_exception
from swarmtest.race.accelerator import accelerator
from swarmtest.race.control.stuck import CLOCK
from swarmtest.race.control.tasks import Task, Unwound, child_task
from swarmtest.race.free.waiting import Waiting, has_ended
from swarmtest.race.primitives.frames import is_library
from swarmtest.race.primitives.locks import Lock, Started
from swarmtest.race.primitives.originals import get_ident, raw_monotonic, raw_sleep

if TYPE_CHECKING:
    from swarmtest.race.coverage.coverage import ConcurrencyCoverage


class FreePolicy(Waiting):
    """One run of threads that nobody holds; make a new one for each run.

    Subclasses override `begins`, `ends`, `before`, `shortened` and `access`.
    """

    _locks: Any = None
    """Locks that nobody else holds, in C."""

    def enter(self, coverage: ConcurrencyCoverage | None) -> None:
        """The run begins, in this thread."""
        super().enter(coverage)
        module = accelerator()
        pairs = None if coverage is None else coverage.pairs_alone()
        may_be_fast = coverage is None or isinstance(pairs, getattr(module, "Pairs", ()))
        if module is not None and may_be_fast and not self._disturbs:
            self._locks = module.Locks(self._by_ident, pairs, self.acquire, self._blocked)
            self.acquire = self._locks.acquire  # type: ignore[method-assign]
            self.release = self._locks.release  # type: ignore[method-assign]

    @contextmanager
    def fast_locks(self) -> Iterator[None]:
        """While this lasts, `with lock` is done in C if it can be, until the run is decided."""
        if self._locks is None:
            yield
            return
        before = Lock.__enter__, Lock.__exit__
        self._locks.arm()
        Lock.__enter__, Lock.__exit__ = _methods_in_c(accelerator(), before[0])  # type: ignore[method-assign]
        try:
            yield
        finally:
            Lock.__enter__, Lock.__exit__ = before  # type: ignore[method-assign]
            self._locks.disarm()

    def end(self) -> None:
        """The run is decided: the methods in Python know what to do then."""
        super().end()
        if self._locks is not None:
            self._locks.disarm()

    def _moves(self) -> object:
        return super()._moves(), self._locks and self._locks.released

    def _synchronises(self, task: Task, kind: str, frame: FrameType) -> None:
        if self.ended:
            self._end_here(task)
        task.doing = kind
        self.before(kind)
        if self.coverage is not None:
            self.coverage.visits(kind, frame)

    def acquire(self, lock: Lock, blocking: bool, timeout: float) -> bool:
        """Take a lock. Programs do this often: what is common comes first."""
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
            return self._taken(task, lock)
        return self._blocked(task, lock, blocking, timeout)

    def _taken(self, task: Task, lock: Lock) -> bool:
        lock.owner = task
        task.held.append(lock)
        if self.coverage is not None and self.coverage.sees_locks:
            self.coverage.takes(lock)
        return True

    def _blocked(self, task: Task, lock: Lock, blocking: bool, timeout: float) -> bool:
        """Another thread has the lock."""
        if self.ended:
            return True  # a condition that is unwound tidies up when it has its lock
        if not blocking or timeout == 0 or not self._wait_for(task, lock, timeout):
            return False
        return self._taken(task, lock)

    def _wait_for(self, task: Task, lock: Lock, timeout: float) -> bool:
        deadline = None if timeout < 0 else raw_monotonic() + self.shortened(timeout)
        raw, outer = lock.raw, task.doing
        task.doing = outer or "lock.acquire"
        try:
            return self._wait(task, lock, deadline, lambda seconds: raw.acquire(True, seconds))
        finally:
            task.doing = outer

    def release(self, lock: Lock) -> None:
        """Give a lock back."""
        owner = lock.owner
        if owner is not None:
            lock.owner = None
            try:  # noqa: SIM105 (five times as fast as suppress)
                owner.held.remove(lock)
            except ValueError:
                pass  # another thread was quicker
        raw = lock.raw
        if not self.ended or raw.locked():
            raw.release()
        self._progress = object()
        if self._disturbs:
            task = self._by_ident.get(get_ident())
            if task is not None and not task.doing and not is_library(sys._getframe(2).f_code):
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
            self.ends(task)
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
            if not has_ended(joined, 0.0):
                self._wait(task, joined, deadline, functools.partial(has_ended, joined))
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


@functools.cache
def _methods_in_c(module: Any, enter: Callable[[Lock], bool]) -> Any:
    return module.methods_for(Lock, Task, enter)


def _slept(seconds: float) -> bool:
    raw_sleep(seconds)
    return False
