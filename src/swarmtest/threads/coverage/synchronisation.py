"""Synchronisation coverage: where threads synchronise, where one had to wait, and for whom.

A place is visited when a thread comes to it, blocked when the thread has to wait there, and
blocking when a lock was taken there for which another thread has to wait.
"""

from __future__ import annotations

import sys
from typing import Any

from swarmtest.threads.coverage.places import Places
from swarmtest.threads.frames import user_frame
from swarmtest.threads.raw import get_ident

STATES = ("visited", "blocked", "blocking")
_BLOCKED, _BLOCKING = 1, 2


class Synchronisation:
    """Notes what happens at places of synchronisation, during one run."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._seen: set[int] = set()
        self._at: dict[int, int] = {}
        self._taken: dict[Any, int] = {}

    def reset(self) -> None:
        """Forget everything."""
        self._seen.clear()
        self._at.clear()
        self._taken.clear()

    def seen(self) -> set[int]:
        """What happened: the place's number times four, plus the number of the state."""
        return self._seen

    def visits(self, place: int) -> None:
        """This thread is about to synchronise."""
        self._seen.add(place << 2)
        self._at[get_ident()] = place

    def takes(self, lock: Any) -> None:
        """This thread has taken a lock."""
        place = self._at.get(get_ident())
        if place is not None:
            self._taken[lock] = place

    def waits(self, kind: str, waiting: Any) -> None:
        """This thread has to wait."""
        frame = user_frame(sys._getframe(1))
        if frame is None:
            return
        place = self._places.number(kind, frame)
        if place << 2 not in self._seen:
            return  # a library waits, on its own account
        self._seen.add(place << 2 | _BLOCKED)
        taken = self._taken.get(waiting) if kind.endswith(".acquire") else None
        if taken is not None:
            self._seen.add(taken << 2 | _BLOCKING)
