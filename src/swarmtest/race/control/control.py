"""Control: what a controlled run makes of probes, locks, threads and the clock."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from threading import Thread
from types import FrameType
from typing import Any

from swarmtest.race.control.baton_scheduler import IDENT, LIMIT, STEP, Handing
from swarmtest.race.control.schedulers import Scheduler
from swarmtest.race.control.stuck import CLOCK
from swarmtest.race.control.tasks import Task, Unwound, child_task
from swarmtest.race.control.worker_threads import under_control
from swarmtest.race.coverage.trace import Tracer
from swarmtest.race.primitives import originals as raw
from swarmtest.race.primitives.frames import code_of, is_event_loop, is_library, is_own
from swarmtest.race.primitives.locks import OWN_POINT, SYNCHRONISERS, Lock
from swarmtest.race.primitives.originals import get_ident
from swarmtest.race.weaving.sites import SITES

# -------------------------------------------------------------------------------------------------
# The probes of a controlled run: closures, because they are passed more often than all else.


def deciding_access(control: Handing, sites: Collection[int] | None) -> Callable[..., Any]:
    """The probe of a run. This is the path that has to be fast."""
    state, decide, ident = control.state, control.decide, get_ident

    def access(site: int, obj: Any = None) -> Any:
        if ident() == state[2]:
            step = state[0] = state[0] + 1
            if step >= state[1]:
                decide(site, obj)
        return obj

    if sites is None:
        return access
    allowed = bytearray(len(SITES))
    for site in sites:
        allowed[site] = 1

    def chosen_access(site: int, obj: Any = None) -> Any:
        if ident() == state[2]:
            step = state[0] = state[0] + 1
            if step >= state[1] and (allowed[site] or control.must_stop()):
                decide(site, obj)
        return obj

    return chosen_access


def counting_access(control: Handing) -> Callable[..., Any]:
    """The probe of a run in feasible mode: threads are switched elsewhere."""
    state, ident = control.state, get_ident

    def access(site: int, obj: Any = None) -> Any:
        if ident() == state[2]:
            state[0] += 1
            if control.must_stop():
                control.decide(site, obj)
        return obj

    return access


# -------------------------------------------------------------------------------------------------

_TICK = 0.001
"""Looking at the clock takes so long: a loop that waits for a time ends."""
_MONOTONIC_AT_BEGIN = 1_000.0
_TIME_AT_BEGIN = 1_750_000_000.0
"""All runs begin at the same time, so that they can be repeated."""
USES_ASYNCIO = "the program runs an asyncio event loop: the order of its tasks is not controlled"
FORKS = "the program forks: what its child processes do is not controlled"


class Control(Handing):
    """One controlled run."""

    def __init__(
        self,
        scheduler: Scheduler,
        sites: Collection[int] | None,
        most_probes: int,
        feasible: bool = False,
        tracer: Tracer | None = None,
    ) -> None:
        super().__init__(scheduler, most_probes)
        self._feasible = feasible
        self._numbers = 0
        self.tracer = tracer
        access = counting_access(self) if feasible else deciding_access(self, sites)
        if tracer is not None:
            access = tracer.watching(access, self)
        self.access = access  # type: ignore[method-assign]

    def decide(self, site: int, obj: Any) -> None:
        """The running thread is before an access, and it is time to ask who goes on."""
        place = SITES[site]
        if place.kind == "call" and place.name in OWN_POINT and isinstance(obj, SYNCHRONISERS):
            has_its_own = not self.scheduler.is_replay and not self.must_stop()
            if has_its_own:
                return  # the operation that follows has a point of its own
        super().decide(site, obj)

    # Feasible mode: only where the interpreter looks whether another thread wants to run.

    def event(self) -> None:
        """The running thread is where this interpreter may switch."""
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
        """Call something; threads may switch when Python code is entered, or other code left."""
        code = code_of(function)
        if code is not None and not is_own(code):
            if is_library(code):
                self.event()
            return function(*args, **kwargs)
        answer = function(*args, **kwargs)
        self.event()
        return answer

    # Synchronisation. What the standard library does inside is not counted.

    def _counted(self, task: Task, kind: str, obj: Any) -> None:
        """A point before an operation that the program itself calls."""
        if self.ended:
            self.end_here(task)
        task.doing = kind
        if self.tracer is not None:
            self.tracer.arrives(task)
        if self._feasible:
            if not kind.startswith("lock."):  # those are functions in Python: they are entered
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
        """Take a lock; others run while it is not free."""
        if get_ident() != self.state[IDENT]:
            return lock.raw.acquire(blocking, timeout)
        task = self.running
        if self.ended:
            if not _is_inside_library():
                self.end_here(task)
            return self._seem_to_take(task, lock)
        if task.doing or _is_inside_library():
            return self._take(task, lock, blocking, timeout)
        try:
            self._counted(task, "lock.acquire", lock)
            return self._take(task, lock, blocking, timeout)
        finally:
            task.doing = ""

    def _take(self, task: Task, lock: Lock, blocking: bool, timeout: float) -> bool:
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
            self.event()  # it has the lock, and waits for the GIL
        return True

    def _seem_to_take(self, task: Task, lock: Lock) -> bool:
        """A condition that is unwound tidies up when it has its lock."""
        if lock.raw.acquire(False):
            lock.owner = task
            task.held.append(lock)
        return True

    def release(self, lock: Lock) -> None:
        """Give a lock back; those that wait for it are able to run."""
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
        """Something made of locks is used."""
        if get_ident() != self.state[IDENT]:
            return call()
        task = self.running
        if task.doing:
            return call()
        if self.ended:
            self.end_here(task)
        if not _is_inside_library():
            self._counted(task, kind, obj)
        task.doing = kind
        try:
            return call()
        finally:
            task.doing = ""

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
        under_control(self, task, thread, call)
        self.tasks.append(task)
        self.changed()
        if not outer and not _is_inside_library():
            self._counted(parent, "thread.start", thread)
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
            self._counted(task, "thread.join", thread)
        task.doing = outer or "thread.join"
        deadline = None if timeout is None else self.clock + max(timeout, 1e-9)
        try:
            while not joined.done:
                self.block(task, joined, deadline)
                if task.expired:
                    break
        finally:
            task.doing = outer

    def is_alive(self, thread: Thread, call: Callable[[], bool]) -> bool:
        """Whether a thread of the run has not ended."""
        task = self._task_of(thread)
        return call() if task is None else not task.done

    def _task_of(self, thread: Thread) -> Task | None:
        return next((task for task in self.tasks if task.thread is thread), None)

    def new_number(self) -> int:
        """Threads and futures of a run are numbered: sets of them have the same order each time."""
        if get_ident() != self.state[IDENT]:
            return 0
        self._numbers += 1
        return self._numbers

    # The clock.

    def sleep(self, seconds: float) -> None:
        """Wait for the clock: it is set on when nobody else is able to run, or all are slow."""
        if get_ident() != self.state[IDENT]:
            raw.raw_sleep(seconds)
            return
        task = self.running
        outer = task.doing
        if not outer and not _is_inside_library():
            self._counted(task, "sleep", None)
        if self.ended:
            self.end_here(task)
        if seconds <= 0:  # it lets others run, and may go on at once
            task.doing = outer
            return
        task.doing = "sleep"
        self.sleeps = True
        try:
            self.block(task, CLOCK, self.clock + max(seconds, 1e-9))
        finally:
            task.doing = outer

    def monotonic(self) -> float:
        """The time of the run."""
        if get_ident() != self.state[IDENT]:
            return raw.raw_monotonic()
        if is_event_loop(sys._getframe(2).f_code):
            self.note(USES_ASYNCIO)
            return raw.raw_monotonic()  # it waits for real
        self.clock += _TICK
        return _MONOTONIC_AT_BEGIN + self.clock

    def time(self) -> float:
        """The time of day, in the run."""
        if get_ident() != self.state[IDENT]:
            return raw.raw_time()
        self.clock += _TICK
        return _TIME_AT_BEGIN + self.clock

    def forks(self) -> None:
        """The program forks."""
        self.note(FORKS)

    def exits(self, code: int) -> None:
        """The program wants to end its process."""
        if get_ident() == self.state[IDENT]:
            self.problem = f"the program ends its process by os._exit({code})"
            self.end()
            raise Unwound


def _is_inside_library() -> bool:
    """Whether it is library code that calls the primitive that calls the method that asks."""
    frame: FrameType | None = sys._getframe(3)
    if frame is not None and frame.f_code is _CALL:
        frame = frame.f_back
    return frame is not None and is_library(frame.f_code)


_CALL = Control.call.__code__
