"""The watchdog: a run that stays where no probe is does not go on for ever.

One thread for the process, that looks now and then. A thread that is blocked in C code cannot be
ended from outside; the run ends without it. If it is the main thread, it is interrupted.
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

# -------------------------------------------------------------------------------------------------
# The main thread of a run that is over can be interrupted, wherever it is.


@contextmanager
def interruptible() -> Iterator[None]:
    """See that SIGINT is a KeyboardInterrupt while a run is on.

    A shell starts what runs in the background with SIGINT ignored, as some CI systems do; and a
    program may have a handler of its own.
    """
    before = getsignal(signal.SIGINT)  # signal's own looks the answer up in an enumeration
    if before in (signal.default_int_handler, None) or get_ident() != threading.main_thread().ident:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# -------------------------------------------------------------------------------------------------

_LOOKS = 0.1
_LAST_CHANCE = 0.5
"""How long a thread that was asked to end may take to the next probe."""


class _Watch:
    """The run that is on, and when it has to be over."""

    control: Handing | None = None
    deadline = 0.0
    pid = 0
    asked = 0.0
    """When it was asked to end."""
    interrupted = False
    gate = raw_lock()


@contextmanager
def watched(control: Handing, seconds: float) -> Iterator[None]:
    """See that a run is over after so many seconds."""
    if _Watch.pid != os.getpid():
        _Watch.pid = os.getpid()
        _thread.start_new_thread(_look, ())
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
            with suppress(KeyboardInterrupt):  # it may have come too late
                raw.raw_sleep(2 * _LOOKS)


def _look() -> None:
    while True:
        raw.raw_sleep(_LOOKS)
        with _Watch.gate:
            control = _Watch.control
            if control is not None and raw.raw_monotonic() > _Watch.deadline:
                _end(control)


def _end(control: Handing) -> None:
    """First ask the run to stop at its next probe; if there is none, go on without the thread."""
    task = control.running
    now = raw.raw_monotonic()
    if not _Watch.asked:
        _Watch.asked = now
        control.problem = control.problem or _problem(task)
        control.end()
    elif now > _Watch.asked + _LAST_CHANCE and not _Watch.interrupted:
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
