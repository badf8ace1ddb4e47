"""One process: started, watched, ended. The caller gets what it printed and how it ended.

Invariants: nothing that the process started outlives the test (its process group is killed before
it is reaped); reading never blocks, so a program that prints without end, or whose children keep
its output open, cannot hold us; output beyond a limit is read and dropped, not kept.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import subprocess
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from swarmtest.core.errors import UserError

OUTPUT_LIMIT = 1 << 20
_CHUNK = 1 << 16
_CHUNKS_IN_A_ROW = 16


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    >>> Ended(status=11, timed_out=False).signal
    11
    """

    status: int
    """As of `os.waitpid`."""
    timed_out: bool
    stdout: bytes = b""
    stderr: bytes = b""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0

    @property
    def signal(self) -> int:
        """The signal that ended it; 0 when it exited by itself."""
        return os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else 0


class Output:
    """A pipe that a program prints into; the first `OUTPUT_LIMIT` bytes are kept.

    >>> output = Output()
    >>> _ = os.write(output.write, b"hello"), output.drain()
    >>> output.take()
    b'hello'
    >>> output.close()
    """

    def __init__(self) -> None:
        self.read, self.write = os.pipe()
        os.set_blocking(self.read, False)
        self._kept = bytearray()

    def drain(self) -> bool:
        """Read what is there; whether more may come."""
        for _ in range(_CHUNKS_IN_A_ROW):
            try:
                chunk = os.read(self.read, _CHUNK)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self._kept += chunk[: OUTPUT_LIMIT - len(self._kept)]
        return True

    def take(self) -> bytes:
        """What was kept since the last time."""
        kept = bytes(self._kept)
        self._kept.clear()
        return kept

    def close_write(self) -> None:
        """Leave the writing end to the program."""
        if self.write >= 0:
            os.close(self.write)
            self.write = -1

    def close(self) -> None:
        """Close what is open."""
        self.close_write()
        os.close(self.read)


def watch(end: int, outputs: Sequence[Output], seconds: float) -> bool:
    """Drain outputs until `end` can be read; False when the seconds are over before that."""
    poll = select.poll()
    poll.register(end, select.POLLIN)
    by_number = {output.read: output for output in outputs}
    for number in by_number:
        poll.register(number, select.POLLIN)
    deadline = time.monotonic() + seconds
    while True:
        left = deadline - time.monotonic()
        for number, _ in poll.poll(max(left, 0) * 1000):
            if number == end:
                for output in outputs:
                    output.drain()
                return True
            if not by_number[number].drain():
                poll.unregister(number)
        if left <= 0:
            return False


def kill_group(leader: int) -> None:
    """Kill a process and what it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


@dataclass(frozen=True)
class Command:
    """A command line with everything around it that stays the same from test to test."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    directory: str | None = None
    memory: int = 0
    """Bytes of address space; 0: no limit."""

    def start(
        self, stdin: int, outputs: Sequence[Output], keep: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        """The process, leader of a process group of its own."""
        try:
            process = subprocess.Popen(
                self.arguments,
                env=self.environment,
                cwd=self.directory,
                stdin=stdin,
                stdout=outputs[0].write,
                stderr=outputs[1].write,
                pass_fds=keep,
                process_group=0,
            )
        except OSError as error:
            raise UserError(f"cannot start {self.arguments[0]}: {error.strerror}") from None
        if self.memory:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(process.pid, resource.RLIMIT_AS, (self.memory, self.memory))
        return process

    def run(self, stdin: int, seconds: float) -> Ended:
        """Run it to its end, or for so many seconds."""
        outputs = (Output(), Output())
        began = time.monotonic()
        try:
            process = self.start(stdin, outputs)
            for output in outputs:
                output.close_write()
            end = os.pidfd_open(process.pid)
            try:
                in_time = watch(end, outputs, seconds)
            finally:
                os.close(end)
                kill_group(process.pid)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            return Ended(
                status,
                not in_time,
                outputs[0].take(),
                outputs[1].take(),
                usage.ru_utime + usage.ru_stime,
                time.monotonic() - began,
            )
        finally:
            for output in outputs:
                output.close()


# -------------------------------------------------------------------------------------------------
# Processes that a command left behind, also those that went into a session of their own.
#
# A command's process group is killed at its end, but a daemon leaves the group. So while a command
# runs, this process is the one that orphans are given to (Linux calls it a subreaper): what was
# given
# to it meanwhile is the command's, and is ended with it. Linux tells our children only by thread,
# and
# other threads may start processes of their own: then nothing is looked for.

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
