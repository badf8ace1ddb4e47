"""What hosts tell besides rows, and which of it the campaign has heard.

A fault that only a dropped copy of a batch showed (a program that is not the same twice) must not
count: what is known of a fault waits until a row that counts refers to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

_FAULT = 6
"""The place of the fault's id in a row."""


class Definitions:
    """Sorts what is told along with rows."""

    def __init__(self) -> None:
        self._heard: dict[str, int] = {}
        self._counted: set[str] = set()
        self._held: dict[str, list[Any]] = {}

    def heard_from(self, workers: Iterable[str]) -> dict[str, int]:
        """How much was heard of each host on these workers; others are forgotten."""
        known = set(workers)
        self._heard = {h: n for h, n in self._heard.items() if h.rpartition("/")[0] in known}
        return dict(self._heard)

    def taken(
        self, answer: dict[str, Any], messages: Sequence[Any], *, with_rows: bool
    ) -> list[Any]:
        """An answer's messages for the recorder; without rows if they came from another before."""
        host = answer.get("host")
        if host is not None:
            self._heard[host] = max(answer["told"], self._heard.get(host, 0))
        return [self._sorted(*message, with_rows=with_rows) for message in messages]

    def _sorted(
        self, rows: Any, sets: Any, news: Any, faults: Any, tests: Any, *, with_rows: bool
    ) -> Any:
        if not with_rows:
            rows, sets, tests = [], [], []
        for fault in faults:
            self._held.setdefault(fault[0], []).append(fault)
        self._counted.update(row[_FAULT] for row in rows if row[_FAULT] is not None)
        known = [fault for id in self._counted & self._held.keys() for fault in self._held.pop(id)]
        return rows, sets, news, known, tests
