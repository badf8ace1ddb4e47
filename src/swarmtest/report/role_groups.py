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
    Cells,
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
        rows, row_of = table.rows, table.row_of
        hits = np.zeros(len(rows.targets), np.int64)
        hits[row_of] = table.hits
        found = rows.discoveries(1 - table.confidence)
        known: dict[bytes, int] = {}
        entry = np.zeros(len(hits), np.int64)
        for part in rows.parts():
            cells = table.cells.of(part)
            numbers = np.column_stack([hits[part], *cells[:3]])
            for at, row in enumerate(range(part.start, part.stop)):
                entry[row] = known.setdefault(numbers[at].tobytes(), len(self.entries))
                if entry[row] == len(self.entries):
                    one = cells.of(slice(at, at + 1))
                    self._add_entry(table, one, found[row], row, int(hits[row]))
        for target, number in zip(table.targets, entry[row_of].tolist(), strict=True):
            identity = target.kind, target.name, target.source
            self.group[identity] = number
            self.hits[identity] = self.entries[number][0]

    def _add_entry(self, table: RoleTable, cells: Cells, found: Any, row: int, hits: int) -> None:
        adjusted = table.rows.adjusted_of(row)
        low, high = cells.interval(table.confidence)
        with np.errstate(invalid="ignore"):
            share = cells.containing / cells.informative
        shown = np.stack([share[0], low[0], high[0], cells.base[0]])
        order = sorted(
            np.flatnonzero(found).tolist(),
            key=lambda i: (adjusted[i], -abs(shown[0, i] - shown[3, i])),
        )
        signs = [1 if code == ROLES.index(TRIGGER) else -1 for code in found[order]]
        discoveries = [
            [i, sign, *(round(1000 * v) for v in shown[:, i].tolist()), float(f"{adjusted[i]:.1e}")]
            for i, sign in zip(order[:MOST_ROLES], signs, strict=False)
        ]
        codes = table.rows.codes[row]
        counts = [int((codes == ROLES.index(r)).sum()) for r in (IRRELEVANT, INSUFFICIENT, FIXED)]
        unsure = int(((codes == 1) | (codes == 2)).sum()) - len(order)
        self.entries.append([hits, discoveries, unsure, *counts])
        named = [
            f"{MARKS[TRIGGER if sign > 0 else SUPPRESSOR]}{table.features[i]}"
            for i, sign in zip(order[:_NAMED], signs, strict=False)
        ]
        more = [f"+{len(order) - _NAMED}"] if len(order) > _NAMED else []
        self.texts.append(" ".join([*named, *more]))
