"""Looks at the store every second, notes how fast campaigns are, and says what has changed."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from swarmtest.dashboard.live import Live
from swarmtest.errors import UserError
from swarmtest.store import CampaignRecord, Store

_REMEMBERED = 240
"""Looks that are kept, for a campaign's rate over time."""
_WINDOW = 10.0
"""Seconds over which a rate is told."""
_NEWEST = 30
"""Campaigns that are looked at though they have ended: their faults may still be reduced."""


@dataclass(frozen=True)
class Facts:
    """What is cheap to know of a campaign, and changes when anything does."""

    status: str
    tests: int = 0
    failed: int = 0
    faults: int = 0
    reductions: int = 0
    workers: float = 0.0
    """When one of them last spoke."""


@dataclass(frozen=True)
class Sample:
    """How far a campaign was, and when."""

    at: float
    tests: int


def facts_of(store: Store, record: CampaignRecord) -> Facts:
    """The facts of one campaign; the same cost for a thousand tests as for a million."""
    points = store.progress(record.id, 1)
    last = points[-1] if points else None
    spoke = max((worker.last_seen for worker in store.workers(record.id)), default=0.0)
    if last is None:
        return Facts(record.status, workers=spoke)
    reductions = len(store.reductions(record.id)) if last.faults else 0
    return Facts(record.status, last.tests, last.failed, last.faults, reductions, spoke)


class Watch:
    """A thread with a store of its own."""

    def __init__(self, open_store: Callable[[], Store], live: Live, seconds: float) -> None:
        self._open = open_store
        self._live = live
        self._seconds = seconds
        self._known: dict[int, Facts] = {}
        self._history: dict[int, deque[Sample]] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def begin(self) -> None:
        """Start looking."""
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._end.set()
        self._thread.join()

    def history(self, campaign: int) -> list[Sample]:
        """How far it was at the last looks, oldest first."""
        return list(self._history.get(campaign, ()))

    def rate(self, campaign: int) -> float | None:
        """Tests per second over the last seconds; None if that is not known."""
        samples = self.history(campaign)
        recent = [one for one in samples if one.at >= samples[-1].at - _WINDOW]
        if len(recent) < 2 or recent[-1].at - recent[0].at < self._seconds / 2:
            return None
        return (recent[-1].tests - recent[0].tests) / (recent[-1].at - recent[0].at)

    def _run(self) -> None:
        nap = 0.0
        store: Store | None = None
        while not self._end.wait(nap):
            begun = time.monotonic()
            try:
                store = store or self._open()
                self._look(store)
            except UserError as error:  # the store is locked or gone: pages say so themselves
                self._live.announce("store", problem=str(error))
                _close(store)
                store = None
            # A store that is slow is not asked more often than it can bear.
            nap = max(self._seconds, 10 * (time.monotonic() - begun))
        _close(store)

    def _look(self, store: Store) -> None:
        """Compare with what was known, and tell."""
        records = store.campaigns()
        looked = {
            record.id: facts_of(store, record)
            for place, record in enumerate(reversed(records))
            if place < _NEWEST or record.status == "running" or record.id not in self._known
        }
        now = time.monotonic()
        gone = self._known.keys() - {record.id for record in records}
        for campaign in gone:
            del self._known[campaign]
        for campaign, facts in looked.items():
            if facts.status == "running":
                samples = self._history.setdefault(campaign, deque(maxlen=_REMEMBERED))
                samples.append(Sample(now, facts.tests))
            before = self._known.get(campaign)
            self._known[campaign] = facts
            if before != facts:
                self._tell(campaign, before, facts)
        if gone:
            self._live.announce("campaigns")

    def _tell(self, campaign: int, before: Facts | None, facts: Facts) -> None:
        new = facts.faults - (before.faults if before else facts.faults)
        self._live.announce(
            f"campaign:{campaign}", tests=facts.tests, faults=facts.faults, new=max(new, 0)
        )


def _close(store: Store | None) -> None:
    if store is not None:
        with contextlib.suppress(UserError):
            store.close()
