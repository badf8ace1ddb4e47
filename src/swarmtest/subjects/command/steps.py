"""Run one command of a subject, and describe how it ended.

`Caller` fills in the placeholders of a command, runs it within its limits and leaves no process
behind. An `Outcome` is the result of a step, as oracles see it.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from swarmtest.core.errors import UserError
from swarmtest.core.messages.telling_lines import telling_line
from swarmtest.processes.commands import CommandLine, Output, ProcessEnd
from swarmtest.processes.scratch import Scratch
from swarmtest.subjects.command.debian_packages import remedy_for
from swarmtest.subjects.command.specification import Call
from swarmtest.subjects.command.toml_reader import Values, expanded, filled

_LONGEST_LINE = 200


class CannotStart(Exception):
    """The command could not be started; the message says why, in one line."""


@dataclass(frozen=True)
class _GuardedCommand(CommandLine):
    """A command whose process group is killed even if this process is killed."""

    guard: Callable[[int], None] = lambda group: None

    def start(
        self, stdin: int, outputs: Sequence[Output], keep: Sequence[int] = ()
    ) -> subprocess.Popen[bytes]:
        with _own_memory_limit_lifted():
            process = super().start(stdin, outputs, keep)
        self.guard(process.pid)
        return process


@contextlib.contextmanager
def _own_memory_limit_lifted() -> Iterator[None]:
    """Lift this process's memory limit while a command starts, so that it does not inherit it.

    The limit of a command is its `memory`. A program that was built with a sanitizer reserves
    terabytes, and would not start under the limit of a worker.
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


class Caller:
    """Runs commands in the directory of the current test."""

    def __init__(self, scratch: Scratch, here: str) -> None:
        self._scratch = scratch
        self._here = here
        self._environment = dict(os.environ)

    def places(self, call: Call, directory: Path, test: str) -> Values:
        """Return the values of ``{test}``, ``{dir}`` and ``{here}``.

        For a command that runs in the test's directory, the first two are relative. An absolute
        path would differ in every run, and would get into messages and, through ``__FILE__``, into
        compiled programs.
        """
        if not call.cwd:
            return {"test": test, "dir": ".", "here": self._here}
        return {"test": str(directory / test), "dir": str(directory), "here": self._here}

    def run(
        self,
        call: Call,
        directory: Path,
        values: Values,
        *,
        env: Mapping[str, str] | None = None,
        extra_memory: int = 0,
        separator: str = " ",
    ) -> ProcessEnd:
        """Run a command until it ends or reaches its time limit."""
        words = expanded(call.words, values, separator)
        environment = {**self._environment, "TMPDIR": self._scratch.temporary, **(env or {})}
        environment.update({name: filled(text, values) for name, text in call.env.items()})
        cwd = filled(call.cwd, values) if call.cwd else str(directory)
        command = _GuardedCommand(
            tuple(words),
            environment,
            cwd,
            call.memory and call.memory + extra_memory,
            self._scratch.guard,
        )
        stdin = _open(os.path.join(cwd, filled(call.stdin, values)) if call.stdin else os.devnull)
        try:
            return command.run(stdin, call.timeout)
        except (UserError, ValueError) as error:
            raise CannotStart(str(error)) from None
        finally:
            os.close(stdin)
            self._scratch.guard(0)


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError as error:
        name = os.path.basename(path)
        raise CannotStart(f"cannot read {name} as standard input: {error.strerror}") from None


# Outcomes of steps.


@dataclass(frozen=True)
class Outcome:
    """The result of one step, as a Python oracle gets it.

    >>> Outcome("run", status=1).how
    'exit status 1'
    """

    name: str
    status: int | None = None
    """The exit status; None if it did not exit by itself."""
    signal: int = 0
    """The signal that ended it; 0 if it exited by itself."""
    timed_out: bool = False
    skipped: str = ""
    """Why it did not run; empty if it ran."""
    stdout: bytes = b""
    """The first MiB of its standard output."""
    stderr: bytes = b""
    """The first MiB of its standard error."""
    ok: bool = False
    """Whether it exited in time, with an expected exit status."""
    broken: bool = False
    """Whether it could not start although all steps before it succeeded."""

    @property
    def how(self) -> str:
        """How the step ended, in words."""
        if self.skipped:
            return f"skipped: {self.skipped}"
        if self.timed_out:
            return "timeout"
        return signal_name(self.signal) if self.signal else f"exit status {self.status}"

    @property
    def text(self) -> str:
        """The output: standard error, then standard output."""
        return "\n".join(
            output.decode(errors="replace") for output in (self.stderr, self.stdout) if output
        )


def signal_name(number: int) -> str:
    """Return a signal's name.

    >>> signal_name(11)
    'SIGSEGV'
    """
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def how_it_ended(ended: ProcessEnd) -> str:
    """Return how a process ended, in words."""
    if ended.signal:
        return signal_name(ended.signal)
    return f"exit status {os.WEXITSTATUS(ended.status)}"


def said_by(stderr: bytes, stdout: bytes = b"") -> str:
    """Return what a process said about its failure and how to fix that, as the end of a message.

    >>> said_by(b"t.c:1:10: fatal error: csmith.h: No such file or directory\\nterminated.\\n")
    ': t.c:1:10: fatal error: csmith.h: No such file or directory (apt-get install libcsmith-dev)'
    >>> said_by(b"")
    ''
    """
    line = telling_line(stderr.decode(errors="replace"), stdout.decode(errors="replace"))
    if not line:
        return ""
    remedy = remedy_for(line)
    return f": {line[:_LONGEST_LINE]}{f' ({remedy})' if remedy else ''}"
