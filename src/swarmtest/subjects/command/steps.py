"""Running one command of a subject: words filled in, limits kept, nothing left behind."""

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
from swarmtest.processes.commands import Command, Ended, Output
from swarmtest.processes.scratch import Scratch
from swarmtest.subjects.command.debian_packages import remedy_for
from swarmtest.subjects.command.specification import Call
from swarmtest.subjects.command.toml_reader import Values, expanded, filled

# -------------------------------------------------------------------------------------------------
# What came of each step, as values that oracles judge.

_LONGEST_LINE = 200


@dataclass(frozen=True)
class Outcome:
    """What came of one step; what a Python oracle is told.

    >>> Outcome("run", status=1).how
    'exit status 1'
    """

    name: str
    status: int | None = None
    """The exit status; None when it did not exit by itself."""
    signal: int = 0
    """The signal that ended it; 0 when it exited by itself."""
    timed_out: bool = False
    skipped: str = ""
    """Why it did not run; empty when it did."""
    stdout: bytes = b""
    """The first MiB."""
    stderr: bytes = b""
    """The first MiB."""
    ok: bool = False
    """It ran to its end in time, and its exit status was an expected one."""
    broken: bool = False
    """It could not start, though all steps before it were fine."""

    @property
    def how(self) -> str:
        """How it ended, in words."""
        if self.skipped:
            return f"skipped: {self.skipped}"
        if self.timed_out:
            return "timeout"
        return signal_name(self.signal) if self.signal else f"exit status {self.status}"

    @property
    def text(self) -> str:
        """What it printed: standard error, then standard output."""
        return "\n".join(
            output.decode(errors="replace") for output in (self.stderr, self.stdout) if output
        )


def signal_name(number: int) -> str:
    """A signal's name.

    >>> signal_name(11)
    'SIGSEGV'
    """
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def how_it_ended(ended: Ended) -> str:
    """How a process ended, in words."""
    if ended.signal:
        return signal_name(ended.signal)
    return f"exit status {os.WEXITSTATUS(ended.status)}"


def said_by(stderr: bytes, stdout: bytes = b"") -> str:
    """What a process said about its failure, as the tail of a message, and what would help.

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


# -------------------------------------------------------------------------------------------------


class CannotStart(Exception):
    """The command could not be started at all; why, in one line."""


@dataclass(frozen=True)
class _Guarded(Command):
    """A command whose process group is killed even if this process is."""

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
    """What a worker may use is no limit for commands: `memory` is.

    A program that was built with a sanitizer reserves terabytes, and would not even start.
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
    """Runs calls in a directory of the test at hand."""

    def __init__(self, scratch: Scratch, here: str) -> None:
        self._scratch = scratch
        self._here = here
        self._environment = dict(os.environ)

    def places(self, call: Call, directory: Path, test: str) -> Values:
        """What ``{test}``, ``{dir}`` and ``{here}`` stand for.

        In the test's own directory they are relative: a path that is another in every run would
        find its way into messages, and through ``__FILE__`` into programs.
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
    ) -> Ended:
        """Run it to its end, or to its time limit."""
        words = expanded(call.words, values, separator)
        environment = {**self._environment, "TMPDIR": self._scratch.temporary, **(env or {})}
        environment.update({name: filled(text, values) for name, text in call.env.items()})
        cwd = filled(call.cwd, values) if call.cwd else str(directory)
        command = _Guarded(
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
