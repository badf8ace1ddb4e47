"""Metrics: a report goes through a dictionary in a comprehension while others add names."""

from __future__ import annotations

import threading

from threaded import run_threads


class Metrics:
    """Counters by name."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.counters = {"requests": 1, "errors": 0}

    def count(self, name: str) -> None:
        with self.lock:
            self.counters[name] = self.counters.get(name, 0) + 1

    def shown(self, name: str, value: int) -> str:
        return name + "=" + str(value)

    def report(self) -> list[str]:
        return [self.shown(name, value) for name, value in self.counters.items()]


def counts(metrics: Metrics) -> None:
    for path in ("/", "/shop", "/", "/cart", "/"):
        metrics.count("requests of " + path)


def reports(metrics: Metrics) -> None:
    metrics.reports = [metrics.report()]  # type: ignore[attr-defined]


WORKERS = [counts, reports]


def setup() -> Metrics:
    return Metrics()


def holds(metrics: Metrics) -> bool:
    return bool(metrics.reports)  # type: ignore[attr-defined]


def program() -> None:
    """The whole program; it raises if something went wrong."""
    state = setup()
    run_threads(state, WORKERS)
    assert holds(state)
