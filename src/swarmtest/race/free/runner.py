"""Run a function whose threads run freely, with noise, a recording or nothing, within a time limit.

One thread per process checks the time limit. First the run is asked to end: its threads do so at
their next probe, or where they wait. A thread that has not ended then is in code without probes: it
is interrupted, and if that does not help, it is left behind.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from swarmtest.core.result import Fault
from swarmtest.core.targets import Hits
from swarmtest.processes.tree import end_strays
from swarmtest.race.control.runner import SECONDS, call_to_the_end
from swarmtest.race.control.stuck import fault_of_stuck
from swarmtest.race.control.tasks import Task, Unwound
from swarmtest.race.control.watchdog import interruptible
from swarmtest.race.coverage.coverage import ConcurrencyCoverage
from swarmtest.race.free.policy import FreePolicy
from swarmtest.race.primitives.frames import user_frame
from swarmtest.race.primitives.originals import raw_lock, raw_monotonic, raw_sleep, thread_join
from swarmtest.race.primitives.patches import installed
from swarmtest.race.primitives.policy import policy_on


@dataclass(frozen=True)
class FreeRun:
    """The outcome of a free run."""

    fault: Fault | None
    problem: str
    """Why the run says nothing about the program, in one line; empty if it does."""
    threads: int
    """The number of threads; 1 if the program started none."""
    hits: Hits | None
    """The targets that the run covered; None without coverage."""
    seconds: float
    notes: tuple[str, ...] = ()


def free_run(
    function: Callable[[], object],
    policy: FreePolicy | None = None,
    *,
    coverage: ConcurrencyCoverage | None = None,
    seconds: float = SECONDS,
) -> FreeRun:
    """Call a function whose threads run freely, disturbed or watched by a policy.

    A policy (`Noise`, `Recording`, or None) serves one run. Threads that wait for each other are a
    fault at once. In any case the run ends after the given number of seconds.

    >>> free_run(lambda: None).threads
    1
    """
    if policy is None:
        policy = FreePolicy()
    begin = raw_monotonic()
    with installed():
        if coverage is not None:
            coverage.reset()
        policy.enter(coverage)
        with policy_on(policy), policy.fast_locks():
            with time_limit(policy, seconds):
                call_to_the_end(function, policy)
            ended_or_left(policy)
        for task in policy.tasks:
            for lock in task.held:
                lock.free()
        end_strays()
    return FreeRun(
        None if policy.problem else policy.fault,
        policy.problem,
        len(policy.tasks),
        None if coverage is None else coverage.take(),
        raw_monotonic() - begin,
        tuple(policy.notes),
    )


# The time limit.

_POLL_SECONDS = 0.1
LAST_CHANCE = 0.5
"""Seconds that a thread has to reach its next probe after it was asked to end."""


class _Watch:
    """The current run, and when it has to end."""

    policy: FreePolicy | None = None
    deadline = 0.0
    pid = 0
    asked = 0.0
    interrupted = False
    gate = raw_lock()


@contextmanager
def time_limit(policy: FreePolicy, seconds: float) -> Iterator[None]:
    """End a run that takes longer than the given number of seconds."""
    if _Watch.pid != os.getpid():
        _Watch.pid = os.getpid()
        _Watch.gate = raw_lock()
        _thread.start_new_thread(_poll, ())
    _Watch.asked, _Watch.interrupted = 0.0, False
    _Watch.deadline = raw_monotonic() + seconds
    _Watch.policy = policy
    try:
        with interruptible():
            yield
    finally:
        with _Watch.gate:
            _Watch.policy = None
        if _Watch.interrupted:
            with suppress(KeyboardInterrupt):  # the signal may arrive after the run
                raw_sleep(2 * _POLL_SECONDS)


def _poll() -> None:
    while True:
        raw_sleep(_POLL_SECONDS)
        with _Watch.gate:
            policy = _Watch.policy
            if policy is not None and raw_monotonic() > _Watch.deadline:
                _end_overdue(policy)


def _end_overdue(policy: FreePolicy) -> None:
    now = raw_monotonic()
    if not _Watch.asked:
        _Watch.asked = now
        if not policy.ended:
            _decide_overdue(policy)
        policy.end()
    elif now > _Watch.asked + LAST_CHANCE and not _Watch.interrupted:
        _Watch.interrupted = policy.interrupted = True
        if policy.main.ident == threading.main_thread().ident:
            signal.pthread_kill(policy.main.ident, signal.SIGINT)
        else:
            _unwind(policy.main)


def _decide_overdue(policy: FreePolicy) -> None:
    """Decide what an unfinished run shows: threads that wait for each other, or nothing."""
    waiting = [t for t in policy.tasks if t.waiting is not None and t.deadline is None]
    fault = fault_of_stuck(waiting) if waiting else None
    if fault is not None and fault.kind == "deadlock":
        policy.fail(fault)
        return
    running = [t for t in policy.tasks if not t.done and t not in waiting] or [policy.main]
    policy.problem = f"the run was not over in time; {_location(running[-1])}"


def _location(task: Task) -> str:
    frame = user_frame(sys._current_frames().get(task.ident))
    where = "in none of the program's own functions"
    if frame is not None:
        where = f"in {frame.f_code.co_qualname}, {frame.f_code.co_filename}:{frame.f_lineno}"
    return f"{task.name} is {where}: it waits outside of probes, or takes long"


def _unwind(task: Task) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(task.ident), ctypes.py_object(Unwound)
    )


def ended_or_left(policy: FreePolicy) -> None:
    """Wait for the threads of a decided run, and leave behind those that do not end."""
    deadline = raw_monotonic() + LAST_CHANCE
    left = [task for task in policy.tasks[1:] if task.thread is not None and task.ident]
    for last in (False, True):
        for task in left:
            assert task.thread is not None
            thread_join(task.thread, max(deadline - raw_monotonic(), 0.0))
        left = [task for task in left if not task.done]
        if left and not last:
            for task in left:
                _unwind(task)
            deadline = raw_monotonic() + LAST_CHANCE
    for task in left:
        policy.note(f"{task.name} could not be ended and was left behind")
