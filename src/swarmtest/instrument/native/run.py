"""What came of running a native program on one input."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from swarmtest.messages import recognise
from swarmtest.result import Fault
from swarmtest.targets import Hits

_TELLING = ("sanitizers", "assert", "glibc", "c++")
"""What is looked for in what a program printed."""
_LONGEST_DETAILS = 20_000


@dataclass(frozen=True)
class Run:
    """One run: how it ended, what it printed, and what it reached.

    >>> run = Run(status=None, signal=11)
    >>> run.fault().signature
    'SIGSEGV'
    """

    status: int | None
    """The exit status; None when a signal ended it."""
    signal: int = 0
    """The signal that ended it; 0 when it exited by itself."""
    timed_out: bool = False
    stdout: bytes = b""
    """The first MiB."""
    stderr: bytes = b""
    """The first MiB."""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    hits: Hits | None = None
    """What it reached; None when that is not known, which is not the same as nothing."""
    missing: str = ""
    """Why coverage is missing (or, beside hits, partial); empty when it is all there."""

    def fault(self) -> Fault | None:
        """The fault that it showed: a time limit, a signal, or a sanitizer's complaint.

        An exit status alone is no fault: a compiler that rejects its input exits with 1.
        """
        errors = self.stderr.decode(errors="replace")
        known = recognise(errors, _TELLING)
        told = known.signature if known else ""
        if self.timed_out:
            return Fault("timeout", "timeout", errors[-_LONGEST_DETAILS:])
        if self.signal:
            words = [_signal_name(self.signal), *filter(None, [told])]
            return Fault("signal", ": ".join(words), errors[-_LONGEST_DETAILS:])
        if told:
            return Fault("exit", told, errors[-_LONGEST_DETAILS:])
        return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
