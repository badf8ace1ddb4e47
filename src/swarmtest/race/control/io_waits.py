"""Threads of a run that wait for input or output: a socket, a pipe, another process.

Such a thread hands over as one that waits for a lock does. It is able to continue as soon as its
descriptor is ready, which is asked whenever the scheduler is. If no thread is able to run, real
time passes, because an answer from outside of the process takes real time. Simulated time limits
of other threads are then reached in a twentieth of their length, or in all of it while the program
has child processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from swarmtest.race.primitives.policy import raw_monotonic, raw_sleep

_LEAST_PATIENCE = 0.01
_SHARE_OF_TIME = 0.05
"""The share of a simulated time limit for which it is really waited."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0002, 0.005


class IoWait:
    """What a thread waits for: input or output that is not ready yet."""

    __slots__ = ("is_ready",)

    def __init__(self, is_ready: Callable[[], bool]) -> None:
        self.is_ready = is_ready


def wait_really(
    wakes: Callable[[], bool], has_ended: Callable[[], bool], limit: float | None
) -> bool:
    """Let real time pass until a thread is woken; False if the run has ended or the time is over.

    `limit` is the simulated time until another thread's time is over; None if none waits for one.
    """
    begin, pause = raw_monotonic(), _FIRST_PAUSE
    patience = None if limit is None else _patience(limit)
    while not wakes():
        if has_ended():
            return False
        if patience is not None and raw_monotonic() - begin >= patience:
            return False
        raw_sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
    # Answers from outside of the process come in any order: if others are about to come, the
    # scheduler chooses among them.
    raw_sleep(min(max(raw_monotonic() - begin, _FIRST_PAUSE), _LONGEST_PAUSE))
    wakes()
    return True


def _patience(limit: float) -> float:
    return limit if _has_children() else min(limit, max(_LEAST_PATIENCE, limit * _SHARE_OF_TIME))


def _has_children() -> bool:
    """Return whether this process has child processes, as far as the system tells.

    It calls no Python code of the library, at whose lines threads may be switched.
    """
    tasks = f"/proc/{os.getpid()}/task"
    try:
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/children") as file:
                if file.read().strip():
                    return True
    except OSError:
        pass
    return False
