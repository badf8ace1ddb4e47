"""The timeline of a race for the HTML report: a column for each thread."""

from __future__ import annotations

import json
from dataclasses import dataclass

from swarmtest.subjects.threads.race_test import FORMAT, RaceTest
from swarmtest.subjects.threads.timeline import Explanation, Row


@dataclass(frozen=True)
class RaceRow:
    """A row of the picture: the cell of one thread; of all, where rows were left out."""

    column: int
    """Counted from 0; -1: all of them."""
    place: str
    row: Row


@dataclass(frozen=True)
class RaceView:
    """What a page tells of a race."""

    explanation: Explanation
    threads: tuple[str, ...]
    rows: tuple[RaceRow, ...]


def race_view(test: str | None) -> RaceView | None:
    """The picture that a saved test carries; None if it carries none."""
    data = json.loads(test) if test else None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        return None
    explanation = RaceTest.from_json(data).explanation
    if explanation is None:
        return None
    names = {row.thread for row in explanation.rows if row.thread}
    first = explanation.threads
    threads = (*first, *sorted(names - set(first)))
    rows = tuple(
        RaceRow(threads.index(row.thread) if row.thread else -1, _place(row), row)
        for row in explanation.rows
    )
    return RaceView(explanation, threads, rows)


def _place(row: Row) -> str:
    return f"{row.path}:{row.line}" if row.line else ""
