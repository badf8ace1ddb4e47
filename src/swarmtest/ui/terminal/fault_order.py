"""The order in which faults are shown, and how many of them.

A campaign may find thousands. What ends the process comes first, then what an oracle found, then
other exceptions. A few are shown in full and some more with a line each; the rest is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from swarmtest.core.formatting import plural, printable_line
from swarmtest.store.records import FaultRecord
from swarmtest.ui.terminal.text import kind_and_signature

IN_FULL = 3
"""Faults that are shown with their test."""
IN_A_LINE = 15
_FATAL = frozenset(("signal", "timeout", "memory", "exit"))
_ORACLES = frozenset(("invariant", "oracle", "differential", "message"))


def severity(fault: FaultRecord) -> int:
    """Return 0 for a crash, a hang or a sanitizer's report, 1 for a violated oracle, otherwise 2.

    >>> def fault(kind, signature): return FaultRecord("", kind, signature, "", 0, 0, 0, None)
    >>> [severity(fault(*words)) for words in (("signal", "SIGSEGV"), ("invariant", "x"),
    ...     ("exception", "AssertionError [Till.pay]"), ("exception", "KeyError: 3"))]
    [0, 1, 1, 2]
    """
    if fault.kind in _FATAL or "sanitizer" in fault.signature.lower():
        return 0
    asserted = fault.signature.startswith("AssertionError")
    return 1 if fault.kind in _ORACLES or asserted else 2


class FaultList(NamedTuple):
    """Faults in the order of their severity, divided by how they are shown."""

    full: list[FaultRecord]
    brief: list[FaultRecord]
    others: int
    """How many more there are."""


def divided(faults: Sequence[FaultRecord], everything: bool = False) -> FaultList:
    """Return the faults in their order, with those that are shown in full; all, if asked for."""
    ordered = sorted(faults, key=severity)
    if everything:
        return FaultList(ordered, [], 0)
    brief = ordered[IN_FULL : IN_FULL + IN_A_LINE]
    return FaultList(ordered[:IN_FULL], brief, len(ordered) - IN_FULL - len(brief))


def brief_lines(faults: FaultList, command: str) -> list[str]:
    """Return a line for each fault that is not shown in full; `command` shows all of them."""
    if not faults.brief:
        return []
    lines = ["", f"{plural(len(faults.brief) + max(faults.others, 0), 'more fault')}:"]
    lines += [
        f"fault {printable_line(fault.id)}  {kind_and_signature(fault.kind, fault.signature)}"
        for fault in faults.brief
    ]
    if faults.others > 0:
        lines.append(f"... and {faults.others:,} more")
    return [*lines, f"all, with their tests: {command}"]
