"""Was a process killed from outside, or does the test kill it?

The kernel does not say who sent SIGKILL or SIGTERM, so the test runs again. If it survives once,
the kills came from outside. If it is killed each time, either it does that itself, or something
kills many processes here. To tell these apart, a control process that does nothing runs beside each
run after the first kill. A killer from outside hits it about as often as the test. A test is said
to kill itself if so many kills in a row are very unlikely at the rate of control kills.

What the kernel killed for want of memory is recorded by the kernel (`OutOfMemoryRecord`).
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, TypeVar

from swarmtest.processes import limits
from swarmtest.processes.fork import KILLS, Fork

Result = TypeVar("Result")

FEWEST_KILLS = 4
"""How often a test's process must be killed before that is what the test does, at least."""
_MOST_KILLS = 40
"""How often at most: something kills everything here, and we cannot tell."""
_UNLIKELY = 0.001
_DESCRIPTORS = 1 << 16


def kills_itself(kills: int, control_kills: int = 0) -> bool:
    """Return whether a test that was killed in every run so far does that itself.

    >>> kills_itself(3), kills_itself(4)
    (False, True)
    >>> kills_itself(9, control_kills=5), kills_itself(10, control_kills=5)
    (False, True)
    >>> kills_itself(39, control_kills=38), kills_itself(40, control_kills=39)
    (False, True)
    """
    # Laplace's estimate: one more kill than was seen, in two more runs.
    rate = min(1.0, (control_kills + 1) / (kills + 2))
    return kills >= _MOST_KILLS or rate**kills < _UNLIKELY


class ControlProcess:
    """A process that does nothing, beside one that runs a test.

    >>> with ControlProcess() as control:
    ...     pass
    >>> control.was_killed
    False
    """

    def __init__(self) -> None:
        self._fork = Fork(_do_nothing)
        self.was_killed = False
        """Whether somebody killed it before `end` did."""

    def end(self) -> None:
        """End it."""
        if self._fork.has_ended:
            status, _ = self._fork.reap(kill=False)
            self.was_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) in KILLS
        else:
            self._fork.reap(kill=True)

    def __enter__(self) -> ControlProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()


def _do_nothing() -> None:
    limits.prepare()
    os.closerange(3, _DESCRIPTORS)  # nobody is to wait for the end of a pipe that is open here
    for number in KILLS:
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
    while True:
        signal.pause()


def run_until_not_killed(
    run: Callable[[], Result], was_killed: Callable[[Result], bool], seconds: float = float("inf")
) -> tuple[Result, bool]:
    """Run something again while a process of it is killed; but not after so many seconds.

    Return its result, and whether that is of another run than the first. What is killed each time,
    or for want of memory, kills itself.

    >>> results = iter(["killed", "fine"])
    >>> run_until_not_killed(lambda: next(results), lambda result: result == "killed")
    ('fine', True)
    >>> run_until_not_killed(lambda: "killed", lambda result: result == "killed")
    ('killed', False)
    """
    kills = control_kills = 0
    latest = time.monotonic() + seconds
    while True:
        out_of_memory = OutOfMemoryRecord()
        with ControlProcess() if kills else contextlib.nullcontext() as control:
            result = run()
        if not was_killed(result):
            return result, kills > 0
        kills += 1
        control_kills += control is not None and control.was_killed
        is_late = time.monotonic() > latest
        if is_late or kills_itself(kills, control_kills) or out_of_memory.happened_again():
            return result, False


_FRESH_SECONDS = 0.02
"""How old a reading of the kernel's record may be."""


class OutOfMemoryRecord:
    """What the kernel has recorded about processes that it killed for want of memory (Linux).

    >>> OutOfMemoryRecord().happened_again()
    False
    """

    _latest: ClassVar[tuple[float, list[str]]] = (-math.inf, [])
    """When it was read last, and what it was."""

    def __init__(self) -> None:
        # Reading it takes longer than a short test, so it may have been read just before.
        read, self._kills = OutOfMemoryRecord._latest
        if time.monotonic() - read > _FRESH_SECONDS:
            self._kills = self._read()

    def happened_again(self) -> bool:
        """Return whether it has killed a process of our control group since the last call."""
        before, self._kills = self._kills, self._read()
        return self._kills != before

    def _read(self) -> list[str]:
        lines: list[str] = []
        for file in _memory_events():
            with contextlib.suppress(OSError):
                lines += Path(file).read_text().splitlines()
        kills = [line for line in lines if line.startswith("oom_kill ")]
        OutOfMemoryRecord._latest = time.monotonic(), kills
        return kills


@functools.cache
def _memory_events() -> list[str]:
    """Return the files that count kills for want of memory, of our group or else of the machine."""
    files: list[str] = []
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if not controllers:
                files.append(f"/sys/fs/cgroup{group.rstrip('/')}/memory.events")
            elif "memory" in controllers.split(","):
                files.append(f"/sys/fs/cgroup/memory{group.rstrip('/')}/memory.oom_control")
    found = [file for file in files if os.access(file, os.R_OK)]
    return found or ["/proc/vmstat"]
