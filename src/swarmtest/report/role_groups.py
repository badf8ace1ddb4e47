"""Roles of many targets in little space: targets that the same tests hit share one entry."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from swarmtest.analysis.roles import (
    FIXED,
    INSUFFICIENT,
    IRRELEVANT,
    ROLES,
    SUPPRESSOR,
    TRIGGER,
    RoleTable,
)
from swarmtest.report.figures import MARKS

MOST_ROLES = 12
"""Discoveries that are told of one target, the clearest; a page with all would be too large."""
_NAMED = 4

Identity = tuple[str, str, str]
"""Kind, name and source: what tells targets apart."""


@dataclass
class RoleGroups:
    """The different entries so far, as plain data for a page's script, and as text.

    An entry is ``[hits, discoveries, before correction, irrelevant, insufficient, fixed]``, a
    discovery ``[feature, 1 or -1, share, low, high, base, q]`` with shares in thousandths.
    """

    entries: list[list[Any]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    """Of each entry, its clearest discoveries: ``▲push ▼pop``."""
    hits: dict[Identity, int] = field(default_factory=dict)
    group: dict[Identity, int] = field(default_factory=dict)

    def add(self, table: RoleTable) -> None:
        """Take all targets of a table."""
        if not len(table.targets):
            return
        found = table.discoveries()
        numbers = np.column_stack(
            [table.hits, table.informative, table.containing, np.nan_to_num(table.base, nan=-1.0)]
        )
        _, first, place = np.unique(numbers, axis=0, return_index=True, return_inverse=True)
        start = len(self.entries)
        for row in first.tolist():
            self._add_entry(table, found[row], row)
        for target, entry in zip(table.targets, place.ravel().tolist(), strict=True):
            identity = target.kind, target.name, target.source
            self.group[identity] = start + entry
            self.hits[identity] = self.entries[start + entry][0]

    def _add_entry(self, table: RoleTable, found: Any, row: int) -> None:
        cells = sorted(
            np.flatnonzero(found).tolist(),
            key=lambda i: (
                table.adjusted[row, i],
                -abs(_share(table, row, i) - table.base[row, i]),
            ),
        )
        signs = [1 if code == ROLES.index(TRIGGER) else -1 for code in found[cells]]
        discoveries = [
            [i, sign, *_thousandths(table, row, i), float(f"{table.adjusted[row, i]:.1e}")]
            for i, sign in zip(cells[:MOST_ROLES], signs, strict=False)
        ]
        codes = table.codes[row]
        counts = [int((codes == ROLES.index(r)).sum()) for r in (IRRELEVANT, INSUFFICIENT, FIXED)]
        unsure = int(((codes == 1) | (codes == 2)).sum()) - len(cells)
        self.entries.append([int(table.hits[row]), discoveries, unsure, *counts])
        named = [
            f"{MARKS[TRIGGER if sign > 0 else SUPPRESSOR]}{table.features[i]}"
            for i, sign in zip(cells[:_NAMED], signs, strict=False)
        ]
        more = [f"+{len(cells) - _NAMED}"] if len(cells) > _NAMED else []
        self.texts.append(" ".join([*named, *more]))


def _share(table: RoleTable, row: int, feature: int) -> float:
    return float(table.containing[row, feature] / table.informative[row, feature])


def _thousandths(table: RoleTable, row: int, feature: int) -> list[int]:
    low, high = table.interval
    place = row, feature
    shown = _share(table, row, feature), low[place], high[place], table.base[place]
    return [round(1000 * float(value)) for value in shown]
