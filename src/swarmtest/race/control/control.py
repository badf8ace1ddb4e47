"""The control of one run: what it does at probes, locks, threads and the clock.

The probes are closures because they are executed more often than anything else.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection
from threading import Thread
from types import FrameType
from typing import Any

from swarmtest.coverage.scope import shown_path
from swarmtest.race.control.baton_scheduler import IDENT, LIMIT, STEP, BatonPolicy, Where
from swarmtest.race.control.io_waits import IoWait
from swarmtest.race.control.library_lines import LibraryLines
from swarmtest.race.control.schedulers import ThreadScheduler
from swarmtest.race.control.stuck import CLOCK
from swarmtest.race.control.tasks import LOGGED, ThreadTask, child_task
from swarmtest.race.control.worker_threads import start_controlled_thread
from swarmtest.race.coverage.trace import Tracer
from swarmtest.race.loops.control import LOOP_TICK, LoopControl
from swarmtest.race.primitives.frames import code_of, is_event_loop, is_library, is_own
from swarmtest.race.primitives.locks import OWN_POINT, SYNCHRONISERS, Lock
from swarmtest.race.primitives.policy import get_ident, raw_monotonic, raw_sleep, raw_time
from swarmtest.race.unwinding import Unwound
from swarmtest.race.weaving.sites import SITES

_TICK = 0.001
"""The seconds by which reading the clock advances it, so that a loop that polls the time ends."""
_MONOTONIC_START = 1_000.0
_TIME_START = 1_750_000_000.0
"""All runs begin at the same time, so that they can be repeated."""
FORKS = "the program forks: what its child processes do is not controlled"


class ControlPolicy(BatonPolicy):
    """One controlled run."""

    watches_loops = True

    def __init__(
        self,
        scheduler: ThreadScheduler,
        sites: Collection[int] | None,
        most_probes: int,
        feasible: bool = False,
        tracer: Tracer | None = None,
        library: bool = False,
    ) -> None:
        super().__init__(scheduler, most_probes)
        self.loops = LoopControl(self, scheduler.loop)
        self.library = LibraryLines(self) if library else None
        self._feasible = feasible
        self._numbers = 0
        self.tracer = tracer
        access = counting_access(self) if feasible else deciding_access(self, sites)
        if tracer is not None:
            access = tracer.watching(access, self)
        self.access = access  # type: ignore[method-assign]

    def run_thread(self, thread: Thread) -> None:
        """Run what a thread is for."""
        if self.library is None:
            super().run_thread(thread)
        else:
            self.library.calls(lambda: BatonPolicy.run_thread(self, thread))

    def decide(self, site: int, obj: Any) -> None:
        """Ask the scheduler which thread continues, unless the operation that follows asks."""
        accessed = SITES[site]
        calls_operation = accessed.kind == "call" and accessed.name in OWN_POINT
        if (
            calls_operation
            and isinstance(obj, SYNCHRONISERS)
            and not self.scheduler.is_replay
            and not self.must_stop()
        ):
            return  # the operation that follows has a point of its own
        super().decide(site, obj)

    # Feasible mode: switches only where the interpreter checks whether another thread wants to run.

    def event(self) -> None:
        """Let the scheduler stop the running thread where this interpreter may switch."""
        state = self.state
        if get_ident() != state[IDENT]:
            return
        if state[STEP] + 1 < state[LIMIT] and not self.scheduler.is_replay:
            return
        task = self.running
        task.site, task.obj = -1, None
        task.count += 1  # the switch comes before the thread's next probe
        try:
            self.point(task)
        finally:
            task.count -= 1

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function.

        Threads may switch when Python code is entered, and when a call of other code returns.
        """
        code = code_of(function)
        if code is not None and not is_own(code):
            if is_library(code):
                self.event()
            return function(*args, **kwargs)
        result = function(*args, **kwargs)
        self.event()
        return result

    # Synchronisation. Operations inside the standard library are not counted.

    def _counted_point(self, task: ThreadTask, kind: str, obj: Any) -> None:
        """Count an operation that the program itself calls; the thread may stop before it."""
        if self.ended:
            self.end_here(task)
        task.doing = kind
        if self.tracer is not None:
            self.tracer.arrives(task)
        if self._feasible:
            # Lock methods are Python code, so entering them is already an event.
            if not kind.startswith("lock."):
                self.event()
            self.state[STEP] += 1
            task.site, task.obj = -1, obj
        else:
            state = self.state
            state[STEP] += 1
            task.site, task.obj = -1, obj
            if state[STEP] >= state[LIMIT]:
                self.point(task)
        if self.tracer is not None:
            self.tracer.operation(task, kind, obj, self.count_of(task))

    def acquire(self, lock: Lock, blocking: bool, timeout: float) -> bool:
        """Acquire a lock; other threads run while it is not free."""
        if get_ident() != self.state[IDENT]:
            return lock.raw.acquire(blocking, timeout)
        task = self.running
        if self.ended:
            if not _is_inside_library():
                self.end_here(task)
            return self._take_while_unwinding(task, lock)
        if task.doing or _is_inside_library():
            return self._take(task, lock, blocking, timeout)
        try:
            self._counted_point(task, "lock.acquire", lock)
            return self._take(task, lock, blocking, timeout)
        finally:
            task.doing = ""

    def _take(self, task: ThreadTask, lock: Lock, blocking: bool, timeout: float) -> bool:
        waited = not lock.raw.acquire(False)
        if waited:
            if not blocking or not timeout:
                return False
            deadline = None if timeout < 0 else self.clock + timeout
            while True:
                self.block(task, lock, deadline)
                if lock.raw.acquire(False):
                    break
                if task.expired:
                    return False
        lock.owner = task
        task.held.append(lock)
        if waited and self._feasible:
            self.event()  # the thread has the lock and waits for the GIL
        return True

    def _take_while_unwinding(self, task: ThreadTask, lock: Lock) -> bool:
        """Pretend to acquire a lock: an unwound condition reacquires it to clean up."""
        if lock.raw.acquire(False):
            lock.owner = task
            task.held.append(lock)
        return True

    def release(self, lock: Lock) -> None:
        """Release a lock, and make the threads that wait for it able to run."""
        if not self.ended or lock.raw.locked():
            lock.raw.release()
        owner = lock.owner
        if owner is not None:
            lock.owner = None
            owner.held.remove(lock)
        if get_ident() != self.state[IDENT] or self.ended:
            return
        self.wake(lock)
        if self.running.doing or _is_inside_library():
            return
        if self.tracer is not None:
            task = self.running
            self.tracer.arrives(task)
            self.tracer.operation(task, "lock.release", lock, self.count_of(task))
        if self._feasible:
            self.event()

    def operation(self, kind: str, obj: Any, call: Callable[[], Any]) -> Any:
        """Call an operation of an object that is built from locks."""
        if get_ident() != self.state[IDENT]:
            return call()
        task = self.running
        if task.doing:
            return call()
        if self.ended:
            self.end_here(task)
        if not _is_inside_library():
            self._counted_point(task, kind, obj)
        task.doing = kind
        try:
            answer = call()
        finally:
            task.doing = ""
        if kind in LOGGED:
            self.log.note(task.name, kind, obj, answer)
        return answer

    # Threads.

    def start(self, thread: Thread, call: Callable[[], None]) -> None:
        """Start a thread under control; it waits for its baton."""
        if get_ident() != self.state[IDENT] or thread.ident is not None:
            call()
            return
        parent = self.running
        if self.ended:
            self.end_here(parent)
        outer = parent.doing
        task = child_task(parent, len(self.tasks), thread)
        start_controlled_thread(self, task, thread, call)
        self.tasks.append(task)
        if self.library is not None:
            self.library.begin()
        self.changed()
        if not outer and not _is_inside_library():
            self._counted_point(parent, "thread.start", thread)
        parent.doing = outer

    def join(self, thread: Thread, timeout: float | None, call: Callable[[], None]) -> None:
        """Wait for a thread to end."""
        joined = self._task_of(thread)
        task = self.running
        if joined is None or joined is task or get_ident() != self.state[IDENT]:
            call()
            return
        outer = task.doing
        if not outer and not _is_inside_library():
            self._counted_point(task, "thread.join", thread)
        task.doing = outer or "thread.join"
        # A deadline of 0 would count as none.
        deadline = None if timeout is None else self.clock + max(timeout, 1e-9)
        try:
            while not joined.done:
                self.block(task, joined, deadline)
                if task.expired:
                    break
        finally:
            task.doing = outer

    def is_alive(self, thread: Thread, call: Callable[[], bool]) -> bool:
        """Return whether a thread of the run has not ended."""
        task = self._task_of(thread)
        return call() if task is None else not task.done

    def _task_of(self, thread: Thread) -> ThreadTask | None:
        return next((task for task in self.tasks if task.thread is thread), None)

    def new_number(self) -> int:
        """Return a number for a new thread or future, so that sets of them have a stable order."""
        if get_ident() != self.state[IDENT]:
            return 0
        self._numbers += 1
        return self._numbers

    # The clock.

    def sleep(self, seconds: float) -> None:
        """Wait for the clock.

        It advances when no other thread is able to run, or if the scheduler treats them all as
        slow.
        """
        if get_ident() != self.state[IDENT]:
            raw_sleep(seconds)
            return
        task = self.running
        outer = task.doing
        if not outer and not _is_inside_library():
            self._counted_point(task, "sleep", None)
        if self.ended:
            self.end_here(task)
        if seconds <= 0:  # others may run, and the thread may continue at once
            task.doing = outer
            return
        task.doing = "sleep"
        self.sleeps = True
        try:
            self.block(task, CLOCK, self.clock + max(seconds, 1e-9))
        finally:
            task.doing = outer

    def wait_until(
        self, kind: str, obj: Any, is_ready: Callable[[], bool], timeout: float | None
    ) -> bool | None:
        """Let other threads run until input or output is ready; return whether it is."""
        if get_ident() != self.state[IDENT] or self.loops.selects:
            return None
        task = self.running
        outer = task.doing
        if not outer and not _is_inside_library():
            self._counted_point(task, kind, obj)
        if self.ended:
            self.end_here(task)
        self.gives_way(task)
        task.doing = outer or kind
        waiting = IoWait(is_ready)
        deadline = None if timeout is None else self.clock + max(timeout, 1e-9)
        try:
            while not is_ready():
                self.block(task, waiting, deadline)
                if task.expired:
                    return is_ready()
        finally:
            task.doing = outer
        return True

    def wait_for_timer(self, call: Callable[[], Any]) -> None:
        """Let a thread wait for its timer; like a sleep, it may end before others got far."""
        if get_ident() != self.state[IDENT]:
            call()
            return
        task = self.running
        self.sleeps = task.timed = True
        try:
            call()
        finally:
            task.timed = False

    def monotonic(self) -> float:
        """Return the run's monotonic time."""
        if get_ident() != self.state[IDENT]:
            return raw_monotonic()
        if is_event_loop(sys._getframe(2).f_code):
            self.clock += LOOP_TICK
            return self.loop_time()
        self.clock += _TICK
        return _MONOTONIC_START + self.clock

    def time(self) -> float:
        """Return the run's time of day."""
        if get_ident() != self.state[IDENT]:
            return raw_time()
        self.clock += _TICK
        return _TIME_START + self.clock

    # Event loops.

    def runs_loop(self, loop: Any, call: Callable[[], None]) -> None:
        """Run one iteration of an event loop, whose tasks are controlled."""
        if get_ident() == self.state[IDENT]:
            self.loops.run_once(loop)
        else:
            call()

    def creates_task(self, task: Any) -> None:
        """Name a new task."""
        if get_ident() == self.state[IDENT]:
            self.loops.creates_task(task)

    def sets_timer(self, handle: Any) -> None:
        """Give a new timer a number."""
        if get_ident() == self.state[IDENT]:
            self.loops.sets_timer(handle)

    def calls_loop(self, loop: Any) -> bool:
        """Wake the loop; only a thread outside of the run needs to send it a signal."""
        if get_ident() != self.state[IDENT]:
            return False
        self.loops.woken(loop)
        return True

    def loop_reports(
        self, loop: Any, context: dict[str, Any], original: Callable[..., None]
    ) -> None:
        """Turn what an event loop would log into a fault."""
        self.loops.reports(loop, context, original)

    def loop_time(self) -> float:
        """Return the time of event loops."""
        return _MONOTONIC_START + self.clock

    def loop_clock(self, when: float) -> float:
        """Return a time of event loops on the run's clock."""
        return when - _MONOTONIC_START

    def wait_in_loop(self, idle: Any, deadline: float | None) -> None:
        """Make the thread of a loop wait for a time, or for other threads."""
        task = self.running
        if self.ended:
            self.end_here(task)
        outer, task.doing = task.doing, "event loop"
        try:
            self.block(task, idle, deadline)
        finally:
            task.doing = outer

    def others_are_able(self) -> bool:
        """Return whether another thread could run now."""
        self.wake_ready()
        return len(self.able) > 1

    def actor_name(self, task: ThreadTask) -> str:
        """Return who acts in a thread: a task of its event loop, or the thread itself."""
        actor = self.loops.actor
        return task.name if actor is None or task is not self.running else actor.name

    def place_text(self, where: Where) -> str:
        """Return the text that names a place in a schedule."""
        return place_text(where)

    def forks(self) -> None:
        """Note that the program forks."""
        self.note(FORKS)

    def exits(self, code: int) -> None:
        """End the run when the program wants to end its process."""
        if get_ident() == self.state[IDENT]:
            self.problem = f"the program ends its process by os._exit({code})"
            self.end()
            raise Unwound


def deciding_access(control: BatonPolicy, sites: Collection[int] | None) -> Callable[..., Any]:
    """Return the probe of a controlled run; it has to be fast.

    With `sites`, only these accesses may stop the thread.
    """
    # The indexes of the state are literals, because a global name takes longer to look up.
    state, decide, ident = control.state, control.decide, get_ident

    def access(site: int, obj: Any = None) -> Any:
        if ident() == state[2]:
            step = state[0] = state[0] + 1
            if step >= state[1]:
                decide(site, obj)
        return obj

    if sites is None:
        return access
    known = len(SITES)  # a module that the run imports has more
    allowed = bytearray(known)
    for site in sites:
        allowed[site] = 1

    def restricted_access(site: int, obj: Any = None) -> Any:
        if ident() == state[2]:
            step = state[0] = state[0] + 1
            if step >= state[1] and (site >= known or allowed[site] or control.must_stop()):
                decide(site, obj)
        return obj

    return restricted_access


def counting_access(control: BatonPolicy) -> Callable[..., Any]:
    """Return the probe of a run in feasible mode, which only counts accesses.

    In feasible mode, threads are switched at events and at synchronisation.
    """
    state, ident = control.state, get_ident

    def access(site: int, obj: Any = None) -> Any:
        if ident() == state[2]:
            state[0] += 1
            if control.must_stop():
                control.decide(site, obj)
        return obj

    return access


def place_text(where: Where) -> str:
    """Return the text that names where a thread stopped."""
    if isinstance(where, int):
        return SITES[where].text
    doing, code = where
    if not doing:
        return ""  # an event of feasible mode has no place of its own
    return f"{shown(code.co_filename)} {code.co_qualname} {doing}" if code else doing


@functools.cache
def shown(path: str) -> str:
    """Return a file as a person would name it."""
    return shown_path(path)


def _is_inside_library() -> bool:
    """Return whether library code called the primitive whose policy method asks."""
    frame: FrameType | None = sys._getframe(3)
    if frame is not None and frame.f_code is _CALL_CODE:
        frame = frame.f_back
    return frame is not None and is_library(frame.f_code)


_CALL_CODE = ControlPolicy.call.__code__
