"""Targets that have no line of source to stand at: events, paths, predicates; and all as CSV."""

from __future__ import annotations

from collections.abc import Sequence

from swarmtest.analysis.roles import ROLES, SUPPRESSOR, TRIGGER, RoleTable
from swarmtest.report.figures import MARKS, csv_text
from swarmtest.report.page_tables import Cell, Table, number_cell, percent_cell
from swarmtest.report.printable import elided
from swarmtest.report.study_figures import kind_name

MOST_TARGETS = 200
_LETTERS = 120


def target_table(kind: str, table: RoleTable, tests: int) -> Table:
    """The rarest targets of a kind, with what triggers and suppresses them."""
    codes = table.discoveries()
    order = sorted(range(len(table.targets)), key=lambda t: (table.hits[t], table.targets[t].name))
    rows = []
    for number in order[:MOST_TARGETS]:
        target, hits = table.targets[number], int(table.hits[number])
        told = " ".join(filter(None, [target.name, target.detail]))
        rows.append(
            (
                Cell(elided(told, _LETTERS), cls="name", title=told),
                number_cell(hits),
                percent_cell(hits / max(tests, 1)),
                *(
                    Cell(_named(table, codes[number].tolist(), role), cls=role)
                    for role in (TRIGGER, SUPPRESSOR)
                ),
            )
        )
    left = len(table.targets) - len(rows)
    note = f"The {len(rows)} rarest; {left:,} more are left out here." if left else ""
    head = (kind, "tests", "share", "triggers", "suppressors")
    return Table(f"{kind_name(kind).capitalize()} that were reached", head, tuple(rows), note)


def _named(table: RoleTable, codes: Sequence[int], role: str) -> str:
    number = ROLES.index(role)
    found = zip(table.features, codes, strict=True)
    return " ".join(f"{MARKS[role]}{feature}" for feature, code in found if code == number)


def targets_csv(table: RoleTable, tests: int) -> str:
    """Every target with its hits and its discovered triggers and suppressors."""
    codes = table.discoveries()
    rows = []
    for number, target in enumerate(table.targets):
        names = [
            " ".join(f for f, c in zip(table.features, codes[number], strict=True) if c == code)
            for code in (1, 2)
        ]
        hits = int(table.hits[number])
        rows.append((target.kind, target.name, hits, tests, hits / max(tests, 1), *names))
    head = ("kind", "target", "hits", "tests", "hitting_fraction", "triggers", "suppressors")
    return csv_text(head, rows)
