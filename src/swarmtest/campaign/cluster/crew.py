"""The workers of a cluster as a campaign sees them: who worked, who is gone, who refused."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from swarmtest.store import WorkerRecord


class Crew:
    """Remembers workers by their addresses."""

    def __init__(self) -> None:
        self._known: dict[str, WorkerRecord] = {}
        self._refusals: dict[str, str] = {}

    @property
    def refusing(self) -> Collection[str]:
        """The addresses of workers that run nothing of ours."""
        return self._refusals.keys()

    @property
    def refusals(self) -> list[str]:
        """Why, one line each."""
        return list(self._refusals.values())

    def refused(self, worker: str, why: str) -> None:
        """A worker has another version of something."""
        self._refusals[worker] = why

    def worked(self, answer: dict[str, Any]) -> None:
        """A worker has finished a batch, or a part of it."""
        now = time.time()
        known = self._known.get(answer["worker"]) or WorkerRecord(
            answer["worker"], answer["machine"], answer["pid"], now, now
        )
        tests = known.tests + answer["done"]
        self._known[answer["worker"]] = known._replace(tests=tests, last_seen=now)

    def records(self, present: Collection[str]) -> list[WorkerRecord]:
        """What is known of all who worked."""
        return [
            record if record.name in present else record._replace(state="lost")
            for record in self._known.values()
        ]
