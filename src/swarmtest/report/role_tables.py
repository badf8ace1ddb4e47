"""Roles of many targets at once, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from swarmtest.analysis.roles import SUPPRESSOR, TRIGGER, FeatureShare, RoleTable
from swarmtest.analysis.verdict import counted, words_for
from swarmtest.report.terminal import table


def table_rows(found: RoleTable, limit: int = 0) -> list[tuple[str, ...]]:
    """A row per target: how many tests hit it, and its discovered triggers and suppressors.

    The rarest first; targets with the same roles and hits follow each other anyway.
    """
    order = sorted(range(len(found.targets)), key=lambda t: (found.hits[t], found.targets[t]))
    rows = []
    for number in order[: limit or None]:
        names = [", ".join(found.discovered(number, role)) for role in (TRIGGER, SUPPRESSOR)]
        rows.append((str(found.targets[number]), f"{found.hits[number]:,}", *names))
    return rows


def share_table(shares: Sequence[FeatureShare], kind: str) -> str:
    """The papers' tables 2 and 6: for which share of targets each feature is what."""
    by_trigger = sorted(shares, key=lambda s: (-s.trigger, s.feature))
    by_suppressor = sorted(shares, key=lambda s: (-s.suppressor, s.feature))
    rows = [
        (a.feature, f"{a.trigger:.0%}", b.feature, f"{b.suppressor:.0%}")
        for a, b in zip(by_trigger, by_suppressor, strict=True)
    ]
    targets = max((s.targets for s in shares), default=0)
    _, many = words_for(kind)
    head = ("trigger of", many, "suppressor of", many)
    return (
        f"{table(head, rows, right=' r r')}\nof {counted(targets, kind)} with enough hits to tell"
    )
