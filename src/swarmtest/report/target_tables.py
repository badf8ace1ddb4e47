"""Targets that have no line of source to stand at: events, paths, predicates; and all as CSV."""

from __future__ import annotations

from swarmtest.analysis.roles import SUPPRESSOR, TRIGGER, RoleTable
from swarmtest.analysis.verdict import words_for
from swarmtest.report.figures import MARKS, csv_text
from swarmtest.report.page_tables import Cell, Table, number_cell, percent_cell
from swarmtest.report.printable import elided

MOST_TARGETS = 200
_LETTERS = 120


def target_table(kind: str, table: RoleTable, tests: int) -> Table:
    """The rarest targets of a kind, with what triggers and suppresses them."""
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
                *(_named(table, number, role) for role in (TRIGGER, SUPPRESSOR)),
            )
        )
    left = len(table.targets) - len(rows)
    note = f"The {len(rows)} rarest; {left:,} more are left out here." if left else ""
    head = (kind, "tests", "share", "triggers", "suppressors")
    return Table(f"{words_for(kind)[1].capitalize()} that were reached", head, tuple(rows), note)


def _named(table: RoleTable, number: int, role: str) -> Cell:
    marked = [f"{MARKS[role]}{feature}" for feature in table.discovered(number, role)]
    return Cell(" ".join(marked), cls=role)


def targets_csv(table: RoleTable, tests: int) -> str:
    """Every target with its hits and its discovered triggers and suppressors."""
    rows = []
    for number, target in enumerate(table.targets):
        names = [" ".join(table.discovered(number, role)) for role in (TRIGGER, SUPPRESSOR)]
        hits = int(table.hits[number])
        rows.append((target.kind, target.name, hits, tests, hits / max(tests, 1), *names))
    head = ("kind", "target", "hits", "tests", "hitting_fraction", "triggers", "suppressors")
    return csv_text(head, rows)
