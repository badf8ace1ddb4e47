"""What takes long is computed beside the page, kept, and told when it is there.

A page never waits: it shows what is known so far, or that it is being computed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from swarmtest.dashboard.live import Live
from swarmtest.errors import UserError
from swarmtest.store import Store

T = TypeVar("T")
_THREADS = 2
_MOST_KEPT = 64
_RESTS = 8.0
"""After a computation it rests so many times as long as it took: the campaign needs the CPU."""


@dataclass(frozen=True)
class Computed(Generic[T]):
    """What is known of a question."""

    value: T | None = None
    problem: str = ""
    """Why there is no value, if it could not be computed."""
    version: Hashable = None
    """Of the data that the value is about."""
    is_computing: bool = False
    seconds: float = 0.0


class Computing:
    """Questions to a store, their last answers, and who is working on them."""

    def __init__(self, open_store: Callable[[], Store], live: Live) -> None:
        self._open = open_store
        self._live = live
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="computing")
        self._lock = threading.Lock()
        self._known: dict[str, Computed[Any]] = {}
        self._due: dict[str, float] = {}
        self._running: dict[str, Future[None]] = {}

    def close(self) -> None:
        """Begin nothing more, and wait for what has begun."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def ask(
        self, topic: str, version: Hashable, question: Callable[[Store], T], hurry: bool = False
    ) -> Computed[T]:
        """The last answer; a new one is begun if the data has changed and it is time for that.

        `topic`: what pages are told when there is a new one. `hurry`: the campaign has ended.
        """
        with self._lock:
            known = self._known.get(topic, Computed())
            fresh = known.version == version
            due = hurry or time.monotonic() >= self._due.get(topic, 0.0)
            if not fresh and due and topic not in self._running:
                self._running[topic] = self._pool.submit(self._answer, topic, version, question)
            return Computed(
                known.value,
                known.problem,
                known.version,
                not fresh and topic in self._running,
                known.seconds,
            )

    def _answer(self, topic: str, version: Hashable, question: Callable[[Store], T]) -> None:
        begun = time.monotonic()
        value, problem = None, ""
        try:
            with self._open() as store:
                value = question(store)
        except UserError as error:
            problem = str(error)
        except Exception as error:  # a page says so; the others go on
            problem = f"a bug in swarmtest: {type(error).__name__}: {error}"
        took = time.monotonic() - begun
        with self._lock:
            self._known[topic] = Computed(value, problem, version, False, took)
            self._due[topic] = time.monotonic() + _RESTS * took
            del self._running[topic]
            while len(self._known) > _MOST_KEPT:
                del self._known[next(iter(self._known))]
        self._live.announce(topic)
