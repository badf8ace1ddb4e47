"""Processes that a command left behind, also those that went into a session of their own.

A command's process group is killed at its end, but a daemon leaves the group. So while a command
runs, this process is the one that orphans are given to (Linux calls it a subreaper): what was given
to it meanwhile is the command's, and is ended with it. Linux tells our children only by thread, and
other threads may start processes of their own: then nothing is looked for.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
from collections.abc import Collection, Iterator

_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None)


class Strays:
    """What came of the processes that were left behind."""

    cpu_seconds = 0.0
    """Their CPU time, and that of what they had waited for."""


@contextlib.contextmanager
def ended_strays() -> Iterator[Strays]:
    """End what is left behind by the command that is run inside.

    >>> import subprocess, time
    >>> began = time.monotonic()
    >>> with ended_strays():
    ...     _ = subprocess.run("setsid sleep 60 &", shell=True)
    >>> time.monotonic() - began < 30
    True
    """
    strays = Strays()
    if threading.active_count() > 1:
        yield strays
        return
    before = _children()
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield strays
    finally:
        strays.cpu_seconds = _end_all_but(before)
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _end_all_but(known: Collection[int]) -> float:
    """End children until only the known are left: those that die hand down theirs."""
    seconds = 0.0
    while left := [pid for pid in _children() if pid not in known]:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for pid in left:
            with contextlib.suppress(ChildProcessError):
                usage = os.wait4(pid, 0)[2]
                seconds += usage.ru_utime + usage.ru_stime
    return seconds


def _children() -> list[int]:
    try:
        file = os.open(f"/proc/self/task/{threading.get_native_id()}/children", os.O_RDONLY)
    except OSError:  # a kernel that does not tell
        return []
    try:
        return [int(pid) for pid in os.read(file, 1 << 16).split()]
    finally:
        os.close(file)
