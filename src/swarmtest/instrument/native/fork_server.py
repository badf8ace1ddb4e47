"""A fork server: the program starts once and forks a process per test, just before `main`.

Start-up (loading, linking, initialising) is then paid once. The server is in the program itself
(runtime.c): it reads one byte per test from one pipe and answers on another with messages of 16
bytes: hello, started (process id), ended (wait status, CPU time). It lives and dies with the
process that started it; one that died is replaced, and the test it died under is run again once.
"""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace

from swarmtest.errors import UserError
from swarmtest.instrument.native.process import Command, Ended, Output, kill_group, watch

_MESSAGE = struct.Struct("<iiQ")
_HELLO, _STARTED, _ENDED = range(3)
_START_SECONDS = 10.0


class ServerDied(Exception):
    """The server ended while it was needed."""


class ForkServer:
    """Runs one command again and again, each time in a fork of the process it started once."""

    def __init__(
        self,
        command: Command,
        stdin: int,
        per_process: int,
        on_start: Callable[[], None],
        on_started: Callable[[], None],
    ) -> None:
        self._command = command
        self._stdin = stdin
        self._per_process = per_process
        self._on_start = on_start
        self._on_started = on_started
        self._process: subprocess.Popen[bytes] | None = None
        self._outputs: tuple[Output, ...] = ()
        self._control = self._status = -1

    def run(self, seconds: float) -> Ended:
        """One test."""
        with contextlib.suppress(ServerDied):
            return self._run(seconds)
        self.close()
        try:
            return self._run(seconds)
        except ServerDied:
            self.close()
            program = self._command.arguments[0]
            raise UserError(f"the fork server in {program} dies: use fork_server=False") from None

    def _run(self, seconds: float) -> Ended:
        if self._process is None:
            self._start()
        began = time.monotonic()
        with contextlib.suppress(BrokenPipeError):
            os.write(self._control, b"t")
        pid, _ = self._receive(_STARTED, _START_SECONDS)
        in_time = watch(self._status, self._outputs, seconds)
        if not in_time:
            kill_group(pid)
        status, microseconds = self._receive(_ENDED, _START_SECONDS)
        if os.WIFSTOPPED(status):
            status = 0  # persistent mode: the process waits for its next test
        for output in self._outputs:
            output.drain()
        out, err = (output.take() for output in self._outputs)
        wall = time.monotonic() - began
        return Ended(status, not in_time, out, err, microseconds / 1e6, wall)

    def _start(self) -> None:
        self._on_start()
        self._outputs = (Output(), Output())
        orders, self._control = os.pipe()
        self._status, answers = os.pipe()
        how = f"{orders},{answers},{self._per_process}"
        environment = {**self._command.environment, "SWARMTEST_SERVER": how}
        command = replace(self._command, environment=environment)
        try:
            self._process = command.start(self._stdin, self._outputs, (orders, answers))
        finally:
            os.close(orders)
            os.close(answers)
            for output in self._outputs:
                output.close_write()
        try:
            self._receive(_HELLO, _START_SECONDS)
        except ServerDied:
            self.close()
            wanted = "calls swarmtest_next()" if self._per_process else "is built with swarmtest cc"
            raise UserError(
                f"{command.arguments[0]} did not start as a fork server: see that it {wanted}"
            ) from None
        self._on_started()

    def _receive(self, kind: int, seconds: float) -> tuple[int, int]:
        """The value and CPU time of the next message."""
        if not watch(self._status, self._outputs, seconds):
            raise ServerDied
        data = os.read(self._status, _MESSAGE.size)
        if len(data) != _MESSAGE.size:
            raise ServerDied
        received, value, cpu = _MESSAGE.unpack(data)
        if received != kind:
            raise ServerDied
        return value, cpu

    def abandon(self) -> None:
        """In a forked process: let go of what belongs to the parent, without ending it."""
        if self._process is not None:
            self._process.returncode = 0  # not ours to wait for
            self._process = None
            os.close(self._control)
            os.close(self._status)
            for output in self._outputs:
                output.close()

    def close(self) -> None:
        """End the server and what it started."""
        process = self._process
        if process is not None:
            kill_group(process.pid)
            process.wait()
        self.abandon()
