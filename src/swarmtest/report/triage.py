"""Faults in the order in which to look at them, as text."""

from __future__ import annotations

from swarmtest.analysis.triage import Triage, TriagedFault
from swarmtest.report.fitting import lines_of
from swarmtest.report.printable import one_line
from swarmtest.report.terminal import plural, table

_HEAD = ("fault", "tests", "one in", "signature")


def triage_lines(found: Triage, screen: int = 0) -> list[str]:
    """Each fault with what is known about its features, and what may be one bug or two."""
    rows = [_row(one) for one in found.faults]
    head, rule, *body = table(_HEAD, rows, right=" rr", width=screen).split("\n")
    lines = [head, rule]
    for row, one in zip(body, found.faults, strict=True):
        lines += [row, *(f"          {part}" for part in lines_of(_features(one), screen - 10))]
    related = [relation.sentence() for relation in found.relations]
    related += [
        f"{one.fault.name}: {pair.sentence()}: perhaps two bugs behind one signature"
        for one in found.faults
        for pair in one.two_causes
    ]
    told = [part for line in related for part in lines_of(line, screen)]
    return lines + (["", *told] if told else [])


def _row(one: TriagedFault) -> tuple[str, ...]:
    least, most = (f"{1 / share:,.0f}" if share else "" for share in (one.high, one.low))
    rarity = f"{1 / one.fraction:,.0f} ({least} to {most})"
    return one.fault.name, f"{one.hits:,}", rarity, one_line(one.fault.detail)


def _features(one: TriagedFault) -> str:
    if one.missing_hits:
        return f"insufficient data: {plural(one.missing_hits, 'more hit')} needed"
    named = [
        f"{word}: {', '.join(names)}"
        for word, names in (("triggers", one.triggers), ("suppressors", one.suppressors))
        if names
    ]
    return "; ".join(named) or "no triggers or suppressors found"
