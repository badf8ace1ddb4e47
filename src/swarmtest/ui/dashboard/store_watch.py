"""Looks at the store every second, notes how fast campaigns are, and says what has changed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord

# -------------------------------------------------------------------------------------------------
# What has changed, told to open pages as it happens: server-sent events.
#
# An event is only a topic, like ``campaign:3``; a page that shows something of it asks for itself
# again. So whatever is shown was rendered by the server, with everything escaped, by one code.

_PATIENCE = 15.0
"""Seconds after which a comment is sent, so that nothing between us cuts a silent line."""
_MOST_WAITING = 256


class Live:
    """Takes events from any thread, and gives them to all who listen."""

    def __init__(self) -> None:
        self._listeners: set[asyncio.Queue[str | None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self) -> None:
        """From the loop that serves."""
        self._loop = asyncio.get_running_loop()

    @property
    def listeners(self) -> int:
        """How many pages are open."""
        return len(self._listeners)

    def announce(self, topic: str, **facts: Any) -> None:
        """Tell all pages; from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            text = json.dumps({"topic": topic, **facts})
            self._loop.call_soon_threadsafe(self._spread, f"data: {text}\n\n")

    def close(self) -> None:
        """End all streams, for a server that waits for them would never end; from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._spread, None)

    def _spread(self, message: str | None) -> None:
        for queue in self._listeners:
            if message is None or queue.qsize() < _MOST_WAITING:  # who does not read misses some
                queue.put_nowait(message)

    async def stream(self) -> AsyncIterator[str]:
        """The events from now on, as the browser's EventSource reads them."""
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._listeners.add(queue)
        try:
            yield "retry: 2000\n\n"
            while True:
                try:
                    message = await asyncio.wait_for(queue.get(), _PATIENCE)
                except TimeoutError:
                    message = ": still here\n\n"
                if message is None:
                    return
                yield message
        finally:
            self._listeners.discard(queue)


# -------------------------------------------------------------------------------------------------

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
