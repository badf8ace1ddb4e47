"""What a host on another machine tells, in the words of the machine that the campaign runs on.

A packed subject lies elsewhere on a worker: under a directory of its own, at the path that it has
at home. Where that directory's name appears in what comes back (files that are watched, the
details of a fault, a signature), it is taken out, so that results are those of a local run.
"""

from __future__ import annotations

import marshal
from typing import Any

from swarmtest.result import Fault

_FAULT = 6
"""The place of the fault's id in a row."""


class Homeward:
    """Translates messages of one host; `away` is the directory under which the subject lies."""

    def __init__(self, away: str) -> None:
        self._away = away
        self._mark = away.encode()
        self._ids: dict[str, str] = {}

    def text(self, told: str) -> str:
        """A line without the directory.

        >>> Homeward("/scratch/7").text("cannot import /scratch/7/home/ann/stack.py")
        'cannot import /home/ann/stack.py'
        """
        return told.replace(self._away, "")

    def message(self, packed: bytes) -> bytes:
        """A message of a `swarmtest.campaign.worker.Batch`, packed as it came."""
        if self._mark not in packed and not self._ids:
            return packed
        rows, sets, (targets, sources, outside, notes), faults, tests = marshal.loads(packed)
        sources = [(path, text, self.text(place)) for path, text, place in sources]
        news = (targets, sources, outside, [self.text(note) for note in notes])
        faults = [self._fault(*fault) for fault in faults]
        if self._ids:
            rows = [self._row(row) for row in rows]
        return marshal.dumps((rows, sets, news, faults, tests))

    def _fault(self, id: str, kind: str, signature: str, details: str, *rest: Any) -> Any:
        at_home = Fault(kind, self.text(signature), self.text(details))
        if at_home.signature != signature:
            self._ids[id] = at_home.id
        return (self._ids.get(id, id), kind, at_home.signature, at_home.details, *rest)

    def _row(self, row: Any) -> Any:
        fault = row[_FAULT]
        if fault not in self._ids:
            return row
        return (*row[:_FAULT], self._ids[fault], *row[_FAULT + 1 :])
