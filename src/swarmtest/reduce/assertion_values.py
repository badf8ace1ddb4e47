"""Run a failing test once more to learn the values in the assert that failed."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from swarmtest.core.faults import VALUES, is_internal
from swarmtest.core.result import Fault, Result
from swarmtest.core.signatures import SignatureParts
from swarmtest.languages.python.assertions import noted_values, rewrite_assert
from swarmtest.processes.fork_pool import run_isolated
from swarmtest.subjects.subject import Subject

_FRAME = re.compile(r'^ +File "(?P<file>[^"\n]+)", line (?P<line>\d+), in .*$', re.MULTILINE)


def with_values(subject: Subject, test: Any, fault: Fault, seconds: float) -> Fault:
    """Return a fault with the values of its failed assert at the end of its details.

    The fault is returned as it is if no assert failed, or if the test does not show it again.
    """
    is_assertion = "AssertionError" in SignatureParts.of(fault.signature).type
    place = _last_frame(fault.details)
    if not is_assertion or place is None or f"\n{VALUES}\n" in fault.details:
        return fault
    shown = run_isolated(lambda: _run_noting(subject, test, *place), seconds, quiet=True).fault
    return replace(shown, name=fault.name) if shown == fault and shown is not None else fault


def _last_frame(details: str) -> tuple[str, int] | None:
    """Return file and line of the innermost frame of a traceback that is not swarmtest's."""
    frames = [(frame["file"], int(frame["line"])) for frame in _FRAME.finditer(details)]
    own = [frame for frame in frames if not is_internal(frame[0])]
    return own[-1] if own else None


def _run_noting(subject: Subject, test: Any, file: str, line: int) -> Result:
    """Run the test in this process, which is one of its own, with a rewritten assert."""
    if not rewrite_assert(file, line):
        return Result(subject.replay(test).verdict)
    result = subject.replay(test)
    values = noted_values()
    if result.fault is None or not values:
        return result
    lines = [VALUES, *(f"    {text} = {value}" for text, value in values.items())]
    details = result.fault.details.rstrip("\n") + "\n\n" + "\n".join(lines) + "\n"
    return result._replace(fault=replace(result.fault, details=details))
