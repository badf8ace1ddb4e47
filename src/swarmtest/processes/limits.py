"""What a forked process may do and show before it runs a test."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from swarmtest.core.errors import UserError
from swarmtest.core.private_files import hide_private_files
from swarmtest.processes import tree

_STACK_SECONDS = 1.0
"""How long a process that hangs may take to write its stack, on a machine that is busy."""


def prepare(
    memory: int = 0,
    *,
    output: int | None = None,
    errors: int | None = None,
    quiet: bool = True,
    hears_interrupts: bool = False,
) -> None:
    """Prepare a forked process for a test: silent, limited, and killed together with its parent.

    `memory` is in bytes; 0 is no limit. `output` and `errors` are descriptors for what it prints,
    instead of nowhere; if not `quiet`, it prints where its parent does. `hears_interrupts`: a
    `KeyboardInterrupt` ends what it does, instead of being ignored.
    """
    # A group of its own: a program that signals its whole group must not hit us.
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)
    tree.die_with_parent()
    tree.adopt_orphans()
    tree.check_tests()
    hide_private_files()
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    if quiet:
        os.dup2(null if output is None else output, 1)
        os.dup2(null if errors is None else errors, 2)
    if null > 2:
        os.close(null)
    if not hears_interrupts:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if memory:
        limit_memory(memory)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # What was there before is never garbage: keep the collector from touching (and copying) it.
    gc.freeze()


def replace_streams() -> None:
    """Print to the descriptors 1 and 2 again, whatever objects the parent captures output with."""
    sys.stdout = open(1, "w", closefd=False, errors="replace")  # noqa: SIM115
    sys.stderr = open(2, "w", closefd=False, errors="replace")  # noqa: SIM115


def flush_streams() -> None:
    """Write out what was printed: a fork ends without that."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


def limit_memory(memory: int) -> None:
    """Let this process hold so many bytes."""
    # The soft limit only: a program that the test starts may need more, and may lift it.
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@contextlib.contextmanager
def memory_limited(memory: int) -> Iterator[None]:
    """Let this process, and what it starts, hold so many bytes for a while."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    limit_memory(memory)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


@contextlib.contextmanager
def own_memory_limit_lifted() -> Iterator[None]:
    """Lift this process's memory limit while a program starts, so that it does not inherit it.

    A program that was built with a sanitizer reserves terabytes, and would not start under the
    limit of a worker.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == hard:
        yield
        return
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def own_memory_limit() -> int:
    """Return how many bytes of data this process may hold; 0: no limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    return 0 if soft == resource.RLIM_INFINITY else soft


_PAGE = resource.getpagesize()
_NAMERS = ("llvm-symbolizer", "addr2line", "atos")
_FIRST_LOOK, _LOOK = 0.01, 0.03
"""Seconds until the first look at the memory of a program, and between looks."""


class ResidentLimit:
    """How much memory a process, and what it started, may hold; somebody has to look.

    >>> import os
    >>> [ResidentLimit(os.getpid(), most).is_exceeded() for most in (1 << 40, 1)]
    [False, True]
    """

    def __init__(self, pid: int, most: int) -> None:
        self._pid = pid
        self._most = most
        self.exceeded = False
        """Whether it held more when somebody looked."""
        self.patience = _FIRST_LOOK
        """Seconds until the next look."""

    def is_exceeded(self) -> bool:
        """Look; return whether it holds more than it may."""
        self.patience = _LOOK
        self.exceeded = resident_bytes(self._pid) > self._most
        return self.exceeded


def resident_bytes(pid: int) -> int:
    """Return how much memory a process and its children hold, and theirs; 0 if it is gone.

    Pages of files do not count, nor does the program that a sanitizer starts to name functions.
    """
    pages = 0
    waiting = [pid]
    while waiting:
        process = waiting.pop()
        with contextlib.suppress(OSError, ValueError, IndexError):
            _, resident, shared, *_ = Path(f"/proc/{process}/statm").read_text().split()
            if process == pid or Path(f"/proc/{process}/comm").read_text().strip() not in _NAMERS:
                pages += int(resident) - int(shared)
            children = Path(f"/proc/{process}/task/{process}/children").read_text()
            waiting += map(int, children.split())
    return pages * _PAGE


def dump_stack_on_death(file: int) -> None:
    """Write the stack to a descriptor at a crash, or when `end_with_stack` asks for it."""
    faulthandler.enable(file=file, all_threads=False)
    # With `chain` it ends after that, which `end_with_stack` waits for.
    signal.signal(signal.SIGUSR2, signal.SIG_DFL)
    faulthandler.register(signal.SIGUSR2, file=file, all_threads=False, chain=True)


def end_with_stack(pid: int, has_ended: Callable[[], bool]) -> None:
    """Have a process write its stack and end; return when it has, or cannot."""
    tree.kill(pid, signal.SIGUSR2)
    tree.kill(pid, signal.SIGCONT)  # one that was stopped would not hear it
    deadline = time.monotonic() + _STACK_SECONDS
    while time.monotonic() < deadline and not has_ended():
        time.sleep(0.002)


def refuse_debugger() -> None:
    """Have `breakpoint()` say that there is no terminal."""
    sys.breakpointhook = _no_debugger


def _no_debugger(*args: object, **kwargs: object) -> None:
    raise UserError("breakpoint() needs the terminal: run with --workers 0")
