"""Faults in the order in which to look at them, as text."""

from __future__ import annotations

from swarmtest.analysis.triage import Triage, TriagedFault
from swarmtest.report.terminal import plural, table

_HEAD = ("fault", "tests", "one in", "triggers", "suppressors", "signature")


def triage_lines(found: Triage, width: int = 0) -> list[str]:
    """A table of faults, and what may be one bug or two."""
    rows = [_row(one) for one in found.faults]
    lines = [table(_HEAD, rows, right=" rr", width=width)]
    related = [relation.sentence() for relation in found.relations]
    related += [
        f"{one.fault.name}: {pair.sentence()}: perhaps two bugs behind one signature"
        for one in found.faults
        for pair in one.two_causes
    ]
    return lines + (["", *related] if related else [])


def _row(one: TriagedFault) -> tuple[str, ...]:
    triggers = ", ".join(one.triggers)
    if one.missing_hits:
        triggers = f"insufficient data: {plural(one.missing_hits, 'more hit')} needed"
    return (
        one.fault.name,
        f"{one.hits:,}",
        f"{1 / one.fraction:,.0f}",
        triggers or "-",
        ", ".join(one.suppressors) or "-",
        one.fault.detail,
    )
