"""Something that is done in a process of its own, within a time: the program may do anything."""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from swarmtest.core.errors import UserError
from swarmtest.core.faults import message_of

Answer = TypeVar("Answer")

_LOOK = 0.05
"""Seconds between looks whether a silent process has ended."""


class NoAnswer(Exception):
    """The process ended, or its time was up, before it answered; the message says which."""


def in_fork(call: Callable[[], Answer], seconds: float) -> Answer:
    """What a function answers in a copy of this process; whatever it does there stays there.

    >>> in_fork(lambda: 6 * 7, seconds=5)
    42
    >>> in_fork(lambda: os._exit(3), seconds=5)
    Traceback (most recent call last):
    ...
    swarmtest.processes.timed_fork.NoAnswer: it ended its process with exit status 3
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    read, write = os.pipe()
    with warnings.catch_warnings():
        # Other threads of this process may only wait, or belong to a run that is over.
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        os.close(read)
        _answer(call, write)
    os.close(write)
    try:
        data = _heard(read, pid, time.monotonic() + seconds)
    except BaseException:
        _kill(pid)
        raise
    finally:
        os.close(read)
    if data is None:
        _kill(pid)
        raise NoAnswer(f"it was not over after {seconds:g} s")
    _, status = os.waitpid(pid, 0)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)  # what the program started and left behind
    if not data:
        raise NoAnswer(_end(status))
    answer = pickle.loads(data)
    if isinstance(answer, UserError | NoAnswer):
        raise answer
    return answer  # type: ignore[no-any-return]


def _answer(call: Callable[[], Any], write: int) -> None:
    try:
        with suppress(OSError):
            os.setpgid(0, 0)
        _silence()
        try:
            answer = call()
        except UserError as error:
            answer = error
        except BaseException as error:
            answer = NoAnswer(message_of(error))
        with os.fdopen(write, "wb") as out:
            pickle.dump(answer, out)
    finally:
        os._exit(0)


def _silence() -> None:
    """What the program prints in a thousand runs is of no use to anybody."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    sys.stdout = open(1, "w", closefd=False, errors="replace")  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, errors="replace")  # noqa: SIM115


def _heard(read: int, pid: int, until: float) -> bytes | None:
    """All that a process tells until its end; None if that takes too long.

    A process that the program forked may hold the other end open for longer.
    """
    data = b""
    while (left := until - time.monotonic()) > 0:
        if select.select([read], [], [], min(left, _LOOK))[0]:
            chunk = os.read(read, 1 << 16)
            if not chunk:
                return data
            data += chunk
        elif os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return data
    return None


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _end(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"it was killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"it ended its process with exit status {os.WEXITSTATUS(status)}"
