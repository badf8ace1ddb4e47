"""Roles of many targets at once, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from swarmtest.analysis.roles import FeatureShare, RoleTable
from swarmtest.analysis.verdict import counted
from swarmtest.report.terminal import table


def table_rows(found: RoleTable, limit: int = 0) -> list[tuple[str, ...]]:
    """A row per target: how many tests hit it, and its discovered triggers and suppressors.

    The rarest first; targets with the same roles and hits follow each other anyway.
    """
    codes = found.discoveries()
    order = sorted(range(len(found.targets)), key=lambda t: (found.hits[t], found.targets[t]))
    rows = []
    for number in order[: limit or None]:
        names = [
            ", ".join(f for f, code in zip(found.features, codes[number], strict=True) if code == c)
            for c in (1, 2)
        ]
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
    many = counted(2, kind).removeprefix("2 ")
    head = ("trigger of", many, "suppressor of", many)
    return (
        f"{table(head, rows, right=' r r')}\nof {counted(targets, kind)} with enough hits to tell"
    )
