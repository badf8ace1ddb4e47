"""The watchdog of controlled runs: it ends a run that stays in code without probes.

One thread per process checks the run periodically. A thread that is blocked in C code cannot be
ended from outside, so the run ends without it. If it is the main thread, it is interrupted.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import signal
import sys
import threading
from _signal import getsignal  # type: ignore[import-not-found]
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from swarmtest.race.control.baton_scheduler import Handing
from swarmtest.race.control.tasks import Task, Unwound
from swarmtest.race.primitives import originals as raw
from swarmtest.race.primitives.frames import user_frame
from swarmtest.race.primitives.originals import get_ident, raw_lock

_POLL_SECONDS = 0.1
_GRACE_SECONDS = 0.5
"""Seconds that a thread has to reach its next probe after it was asked to end."""


class _Watch:
    """The current run, and when it has to end."""

    control: Handing | None = None
    deadline = 0.0
    pid = 0
    asked = 0.0
    """When the run was asked to end."""
    interrupted = False
    gate = raw_lock()


@contextmanager
def watched(control: Handing, seconds: float) -> Iterator[None]:
    """End a run that takes longer than the given number of seconds."""
    if _Watch.pid != os.getpid():
        _Watch.pid = os.getpid()
        _thread.start_new_thread(_poll, ())
    _Watch.asked, _Watch.interrupted = 0.0, False
    _Watch.deadline = raw.raw_monotonic() + seconds
    _Watch.control = control
    try:
        with interruptible():
            yield
    finally:
        with _Watch.gate:
            _Watch.control = None
        if _Watch.interrupted:
            with suppress(KeyboardInterrupt):  # the signal may arrive after the run
                raw.raw_sleep(2 * _POLL_SECONDS)


def _poll() -> None:
    while True:
        raw.raw_sleep(_POLL_SECONDS)
        with _Watch.gate:
            control = _Watch.control
            if control is not None and raw.raw_monotonic() > _Watch.deadline:
                _end_overdue(control)


def _end_overdue(control: Handing) -> None:
    """Ask the run to stop at its next probe; if it passes none, continue without the thread."""
    task = control.running
    now = raw.raw_monotonic()
    if not _Watch.asked:
        _Watch.asked = now
        control.problem = control.problem or _problem(task)
        control.end()
    elif now > _Watch.asked + _GRACE_SECONDS and not _Watch.interrupted:
        control.abandon(task, control.problem)
        if task is control.main and task.ident == threading.main_thread().ident:
            _Watch.interrupted = control.interrupted = True
            signal.pthread_kill(task.ident, signal.SIGINT)
        else:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(task.ident), ctypes.py_object(Unwound)
            )


def _problem(task: Task) -> str:
    frame = user_frame(sys._current_frames().get(task.ident))
    where = "in none of the program's own functions"
    if frame is not None:
        where = f"in {frame.f_code.co_qualname}, {frame.f_code.co_filename}:{frame.f_lineno}"
    return (
        f"the run was not over in time; {task.name} is {where}: "
        "it waits outside of probes (I/O, C code that holds a lock), or takes long"
    )


@contextmanager
def interruptible() -> Iterator[None]:
    """Make SIGINT raise KeyboardInterrupt while a run is on.

    A shell starts background jobs with SIGINT ignored, as some CI systems do, and a program may
    have a handler of its own.
    """
    before = getsignal(signal.SIGINT)  # signal.getsignal() converts to an enumeration: slower
    if before in (signal.default_int_handler, None) or get_ident() != threading.main_thread().ident:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
