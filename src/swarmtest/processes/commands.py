"""Running a command with limits: what it printed, and how it ended.

Invariants: nothing that the command started outlives it (`tree.Supervision` adopts and kills what
it leaves behind); reading never blocks, so a program that prints without end, or whose children
keep its output open, cannot hold us; output beyond a limit is read and dropped.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.core.messages.crashes import tells_of_kill
from swarmtest.processes import tree
from swarmtest.processes.fork import KILLS
from swarmtest.processes.limits import ResidentLimit, own_memory_limit_lifted

OUTPUT_LIMIT = 1 << 20
_CHUNK = 1 << 16
_CHUNKS_IN_A_ROW = 16


@dataclass(frozen=True)
class ProcessEnd:
    """How a process ended.

    >>> ProcessEnd(status=11, timed_out=False).signal
    11
    """

    status: int
    """As of `os.waitpid`."""
    timed_out: bool
    stdout: bytes = b""
    stderr: bytes = b""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    out_of_memory: bool = False
    """Whether it was killed because it held more memory than it may."""

    @property
    def signal(self) -> int:
        """The signal that ended it; 0 when it exited by itself."""
        return os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else 0

    @property
    def perhaps_from_outside(self) -> bool:
        """Whether it, or a process that it started, was killed by a signal that others send.

        A shell exits with 128 and the signal of its last command. Others say what was killed.

        >>> ProcessEnd(status=(128 + 9) << 8, timed_out=False).perhaps_from_outside
        True
        >>> said = b"gcc: fatal error: Killed signal terminated program cc1"
        >>> ProcessEnd(status=1 << 8, timed_out=False, stderr=said).perhaps_from_outside
        True
        """
        if self.timed_out or self.out_of_memory or not self.status:
            return False
        number = self.signal or os.waitstatus_to_exitcode(self.status) - 128
        return number in KILLS or (not self.signal and tells_of_kill(self.stderr))


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
        """Read what is there; return whether more may come."""
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
        """Return what was kept since the last call."""
        kept = bytes(self._kept)
        self._kept.clear()
        return kept

    def close_write(self) -> None:
        """Close the writing end: only the program has it then."""
        if self.write >= 0:
            os.close(self.write)
            self.write = -1

    def close(self) -> None:
        """Close both ends."""
        self.close_write()
        os.close(self.read)


def watch(
    end: int, outputs: Sequence[Output], seconds: float, memory: ResidentLimit | None = None
) -> bool:
    """Drain outputs until `end` can be read; return False if the seconds are over before that.

    Also if `memory` is exceeded before that, which `memory.exceeded` says.
    """
    poll = select.poll()
    poll.register(end, select.POLLIN)
    by_number = {output.read: output for output in outputs}
    for number in by_number:
        poll.register(number, select.POLLIN)
    deadline = time.monotonic() + seconds
    while True:
        left = deadline - time.monotonic()
        patience = left if memory is None else min(left, memory.patience)
        for number, _ in poll.poll(max(patience, 0) * 1000):
            if number == end:
                for output in outputs:
                    output.drain()
                return True
            if not by_number[number].drain():
                poll.unregister(number)
        if left <= 0 or (memory is not None and memory.is_exceeded()):
            return False


def end_process(process: subprocess.Popen[Any]) -> tuple[int, float]:
    """Kill a command and its group; return its status, as of `os.waitpid`, and CPU seconds."""
    tree.kill_group(process.pid)
    status, cpu_seconds = tree.reap(process.pid)
    process.returncode = os.waitstatus_to_exitcode(status)
    return status, cpu_seconds


@dataclass(frozen=True)
class CommandLine:
    """A command line and its surroundings, which are the same for all tests."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    directory: str | None = None
    memory: int = 0
    """Bytes that it may have; 0: no limit."""
    resident: bool = False
    """Whether that is the memory that it holds, instead of its address space: a program that was
    built with a sanitizer reserves terabytes."""

    def start(
        self, stdin: int, outputs: Sequence[Output], keep: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        """Start the process, as the leader of a process group."""
        lifted = own_memory_limit_lifted() if self.resident else contextlib.nullcontext()
        try:
            with lifted:
                process: subprocess.Popen[bytes] = tree.spawn(
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
        if self.memory and not self.resident:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(process.pid, resource.RLIMIT_AS, (self.memory, self.memory))
        return process

    def resident_limit(self, pid: int) -> ResidentLimit | None:
        """Return what watches the memory of a process of this command; None if nothing does."""
        return ResidentLimit(pid, self.memory) if self.memory and self.resident else None

    def run(self, stdin: int, seconds: float) -> ProcessEnd:
        """Run it to its end, or for so many seconds; kill it and what it started."""
        outputs = (Output(), Output())
        began = time.monotonic()
        strays = tree.Supervision()
        try:
            process = self.start(stdin, outputs)
            for output in outputs:
                output.close_write()
            end = os.pidfd_open(process.pid)
            memory = self.resident_limit(process.pid)
            try:
                in_time = watch(end, outputs, seconds, memory)
            finally:
                os.close(end)
                status, cpu_seconds = end_process(process)
                strays.end()
            full = memory is not None and memory.exceeded
            return ProcessEnd(
                status,
                not in_time and not full,
                outputs[0].take(),
                outputs[1].take(),
                cpu_seconds + strays.cpu_seconds,
                time.monotonic() - began,
                full,
            )
        finally:
            strays.end()
            for output in outputs:
                output.close()


@dataclass(frozen=True)
class Captured:
    """What a command printed, and how it ended."""

    status: int | None
    """The exit status, or minus the signal that ended it; None: its time was up."""
    stdout: bytes
    stderr: bytes
    cpu_seconds: float
    wall_seconds: float


def capture(
    words: Sequence[str],
    seconds: float | None = None,
    *,
    directory: str | os.PathLike[str] | None = None,
    environment: Mapping[str, str] | None = None,
    keep_output: bool = True,
    merge_output: bool = False,
    output_to: int | None = None,
    kill_strays: bool = True,
) -> Captured:
    """Run a command to its end, and until its output ends, for so many seconds at most.

    `merge_output`: standard error goes where standard output does. `output_to`: both go to this
    descriptor, and the command is waited for only until it ends. If not `kill_strays`, a daemon
    that it starts may survive it: a compiler's cache, for example.

    >>> capture(["sh", "-c", "echo hello; exit 3"]).stdout
    b'hello\\n'
    """
    began, before = time.monotonic(), os.times()
    pipe = subprocess.PIPE if keep_output else subprocess.DEVNULL
    if output_to is not None:
        pipe = output_to
    strays = tree.Supervision()
    process: subprocess.Popen[bytes] | None = None
    try:
        process = tree.spawn(
            words,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=subprocess.STDOUT if merge_output else pipe,
            start_new_session=True,
        )
        output, errors = process.communicate(timeout=seconds)
        in_time = True
    except subprocess.TimeoutExpired:
        assert process is not None
        in_time = False
        tree.kill_and_await(process.pid)
        strays.kill_strays()  # they may hold the ends of the pipes
        output, errors = process.communicate()
    finally:
        if process is not None and process.returncode is None:  # Ctrl-C
            tree.kill_and_await(process.pid)
            process.wait()
        if process is not None and kill_strays:
            tree.kill_group(process.pid)
        strays.end(kill=kill_strays)
    after = os.times()
    cpu = after.children_user + after.children_system
    cpu -= before.children_user + before.children_system
    status = process.returncode if in_time else None
    return Captured(status, output or b"", errors or b"", cpu, time.monotonic() - began)
