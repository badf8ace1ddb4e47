"""Polling the store, and telling open pages what has changed.

A thread polls the store (`StoreWatch`), keeps the recent progress of campaigns, and announces
changes to open pages as server-sent events (`EventBroadcaster`). An event carries a topic, such as
``campaign:3``, and a page that shows that topic loads itself again. So everything that is shown was
rendered and escaped by the server, in one place.
"""

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

# Server-sent events.

_KEEPALIVE_SECONDS = 15.0
"""Seconds of silence after which a comment is sent, so that no proxy closes the connection."""
_MAX_QUEUED = 256


class EventBroadcaster:
    """A broadcaster of events, from any thread to all open pages."""

    def __init__(self) -> None:
        self._listeners: set[asyncio.Queue[str | None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self) -> None:
        """Remember the event loop; call this from the loop of the server."""
        self._loop = asyncio.get_running_loop()

    @property
    def listeners(self) -> int:
        """The number of open pages."""
        return len(self._listeners)

    def announce(self, topic: str, **facts: Any) -> None:
        """Send an event to all open pages; may be called from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            text = json.dumps({"topic": topic, **facts})
            self._loop.call_soon_threadsafe(self._broadcast, f"data: {text}\n\n")

    def close(self) -> None:
        """End all streams; may be called from any thread.

        The server waits for open responses when it shuts down, and would wait for these forever.
        """
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._broadcast, None)

    def _broadcast(self, message: str | None) -> None:
        for queue in self._listeners:
            if message is None or queue.qsize() < _MAX_QUEUED:  # a slow reader misses some
                queue.put_nowait(message)

    async def stream(self) -> AsyncIterator[str]:
        """Yield the events from now on, in the format that the browser's EventSource reads."""
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._listeners.add(queue)
        try:
            yield "retry: 2000\n\n"
            while True:
                try:
                    message = await asyncio.wait_for(queue.get(), _KEEPALIVE_SECONDS)
                except TimeoutError:
                    message = ": still here\n\n"
                if message is None:
                    return
                yield message
        finally:
            self._listeners.discard(queue)


# Polling the store.

_MAX_SAMPLES = 240
"""Samples that are kept per campaign, to draw its rate over time."""
_RATE_WINDOW = 10.0
"""Seconds over which the current rate is measured."""
_NEWEST = 30
"""How many of the newest campaigns are polled even if they have ended: their faults may still be
reduced."""


@dataclass(frozen=True)
class CampaignFacts:
    """Facts about a campaign that are cheap to read; they change whenever the campaign does."""

    status: str
    tests: int = 0
    failed: int = 0
    faults: int = 0
    reductions: int = 0
    workers: float = 0.0
    """When a worker was last seen."""


@dataclass(frozen=True)
class TestCount:
    """The number of tests that a campaign had run at a moment."""

    at: float
    tests: int


def facts_of(store: Store, record: CampaignRecord) -> CampaignFacts:
    """Return the facts of a campaign, at a cost that does not depend on its number of tests."""
    points = store.progress(record.id, 1)
    last = points[-1] if points else None
    last_seen = max((worker.last_seen for worker in store.workers(record.id)), default=0.0)
    if last is None:
        return CampaignFacts(record.status, workers=last_seen)
    reductions = len(store.reductions(record.id)) if last.faults else 0
    return CampaignFacts(record.status, last.tests, last.failed, last.faults, reductions, last_seen)


class StoreWatch:
    """A thread that polls the store through a connection of its own."""

    def __init__(
        self, open_store: Callable[[], Store], live: EventBroadcaster, seconds: float
    ) -> None:
        self._open = open_store
        self._live = live
        self._seconds = seconds
        self._known: dict[int, CampaignFacts] = {}
        self._history: dict[int, deque[TestCount]] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def begin(self) -> None:
        """Start polling the store."""
        self._thread.start()

    def close(self) -> None:
        """Stop polling the store."""
        self._end.set()
        self._thread.join()

    def history(self, campaign: int) -> list[TestCount]:
        """Return the last samples of a campaign, oldest first."""
        return list(self._history.get(campaign, ()))

    def rate(self, campaign: int) -> float | None:
        """Return the current tests per second; None if too few samples are known."""
        samples = self.history(campaign)
        recent = [sample for sample in samples if sample.at >= samples[-1].at - _RATE_WINDOW]
        if len(recent) < 2 or recent[-1].at - recent[0].at < self._seconds / 2:
            return None
        return (recent[-1].tests - recent[0].tests) / (recent[-1].at - recent[0].at)

    def _run(self) -> None:
        pause = 0.0
        store: Store | None = None
        while not self._end.wait(pause):
            started = time.monotonic()
            try:
                store = store or self._open()
                self._poll(store)
            except (
                UserError
            ) as error:  # the store is locked or gone, which the pages say themselves
                self._live.announce("store", problem=str(error))
                _close(store)
                store = None
            # Polling takes at most about a tenth of the time, also of a slow store.
            pause = max(self._seconds, 10 * (time.monotonic() - started))
        _close(store)

    def _poll(self, store: Store) -> None:
        """Read the facts of campaigns, and announce those that have changed."""
        records = store.campaigns()
        polled = {
            record.id: facts_of(store, record)
            for position, record in enumerate(reversed(records))
            if position < _NEWEST or record.status == "running" or record.id not in self._known
        }
        now = time.monotonic()
        gone = self._known.keys() - {record.id for record in records}
        for campaign in gone:
            del self._known[campaign]
        for campaign, facts in polled.items():
            if facts.status == "running":
                samples = self._history.setdefault(campaign, deque(maxlen=_MAX_SAMPLES))
                samples.append(TestCount(now, facts.tests))
            before = self._known.get(campaign)
            self._known[campaign] = facts
            if before != facts:
                self._announce_change(campaign, before, facts)
        if gone:
            self._live.announce("campaigns")

    def _announce_change(
        self, campaign: int, before: CampaignFacts | None, facts: CampaignFacts
    ) -> None:
        new_faults = facts.faults - (before.faults if before else facts.faults)
        self._live.announce(
            f"campaign:{campaign}", tests=facts.tests, faults=facts.faults, new=max(new_faults, 0)
        )


def _close(store: Store | None) -> None:
    if store is not None:
        with contextlib.suppress(UserError):
            store.close()
