"""What has changed, told to open pages as it happens: server-sent events.

An event is only a topic, like ``campaign:3``; a page that shows something of it asks for itself
again. So whatever is shown was rendered by the server, with everything escaped, by one code.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

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
