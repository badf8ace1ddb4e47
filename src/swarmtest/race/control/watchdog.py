"""The watchdog of runs: it ends a run, controlled or free, that takes too long.

One thread per process checks the current run periodically. When its time is up, the run is asked to
end: its threads do so at their next probe, or where they wait. A thread that has not ended then is
in code without probes (I/O, C code), and is interrupted.

On a busy machine the watchdog gets as little time as the program does, and a machine may be
suspended. So what counts is how often the watchdog has looked, not what the clock says.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import signal
import sys
import threading
from _signal import getsignal  # type: ignore[import-not-found]
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from swarmtest.race.control.tasks import ThreadTask
from swarmtest.race.primitives.frames import user_frame
from swarmtest.race.primitives.policy import get_ident, raw_lock, raw_monotonic, raw_sleep
from swarmtest.race.unwinding import Unwound

_POLL_SECONDS = 0.1
_MOST_SECONDS_OF_POLL = 2 * _POLL_SECONDS
"""How much time may count as passed since the last look."""
GRACE_SECONDS = 0.5
"""Seconds that a thread has to reach its next probe after it was asked to end."""


class TimeLimit:
    """When the current run has to end, and how far the watchdog has gone with it."""

    __slots__ = ("ask_to_end", "asked", "interrupt", "interrupted", "last", "left")

    def __init__(
        self, seconds: float, ask_to_end: Callable[[], None], interrupt: Callable[[], bool]
    ) -> None:
        self.left = seconds
        """Seconds until the next thing is due."""
        self.last = raw_monotonic()
        self.ask_to_end = ask_to_end
        self.interrupt = interrupt
        self.asked = False
        """Whether the run was asked to end."""
        self.interrupted = False

    def enforce(self) -> None:
        """Do what is due now."""
        now = raw_monotonic()
        self.left -= min(now - self.last, _MOST_SECONDS_OF_POLL)
        self.last = now
        if self.left > 0 or self.interrupted:
            return
        if not self.asked:
            self.asked, self.left = True, GRACE_SECONDS
            self.ask_to_end()
        else:
            self.interrupted = self.interrupt()


class _Watchdog:
    """The watchdog of this process."""

    limit: TimeLimit | None = None
    polls = False
    """Whether its thread has been started in this process."""
    lock = raw_lock()


def _renew() -> None:
    """Forget the parent's watchdog: a fork does not have its thread, which may hold the lock."""
    _Watchdog.limit, _Watchdog.polls, _Watchdog.lock = None, False, raw_lock()


os.register_at_fork(after_in_child=_renew)


@contextmanager
def time_limit(
    seconds: float, ask_to_end: Callable[[], None], interrupt: Callable[[], bool]
) -> Iterator[None]:
    """End a run that takes longer than the given number of seconds.

    `ask_to_end` is called when the time is up, and decides what the run shows. `interrupt` is
    called if the run goes on, repeatedly until it returns True. The watchdog's thread calls both.
    """
    if not _Watchdog.polls:
        _Watchdog.polls = True
        _thread.start_new_thread(_poll, ())
    limit = _Watchdog.limit = TimeLimit(seconds, ask_to_end, interrupt)
    try:
        with interruptible():
            yield
    finally:
        with _Watchdog.lock:
            _Watchdog.limit = None
        if limit.interrupted:
            with suppress(KeyboardInterrupt):  # the signal may arrive after the run
                raw_sleep(2 * _POLL_SECONDS)


def _poll() -> None:
    while True:
        raw_sleep(_POLL_SECONDS)
        with _Watchdog.lock:
            if _Watchdog.limit is not None:
                _Watchdog.limit.enforce()


OVERDUE = "the run did not end in time"
"""How the text of `overdue_text` begins."""


def overdue_text(task: ThreadTask) -> str:
    """Return that a run did not end in time, and where in the program its thread is."""
    frame = user_frame(sys._current_frames().get(task.ident))
    where = "in none of the program's own functions"
    if frame is not None:
        where = f"in {frame.f_code.co_qualname}, {frame.f_code.co_filename}:{frame.f_lineno}"
    return (
        f"{OVERDUE}; {task.name} is {where}: "
        "it waits where there are no probes (I/O, C code that holds a lock), or takes long"
    )


def is_main_thread(task: ThreadTask) -> bool:
    """Return whether a thread of a run is the main thread of the process."""
    return task.ident == threading.main_thread().ident


def interrupt_thread(task: ThreadTask) -> None:
    """Interrupt a thread of a run.

    A thread that is blocked in C code cannot be ended from outside. The main thread gets a signal;
    in any other thread, an exception is raised when it executes Python code again.
    """
    if is_main_thread(task):
        signal.pthread_kill(task.ident, signal.SIGINT)
    else:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(task.ident), ctypes.py_object(Unwound)
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
