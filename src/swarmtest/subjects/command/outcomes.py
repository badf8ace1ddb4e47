"""What came of each step, as values that oracles judge."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

from swarmtest.instrument.native.process import Ended
from swarmtest.messages import telling_line
from swarmtest.subjects.command.packages import remedy_for

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
