"""A limit of calls: two callers may both find the last place free."""

from __future__ import annotations

import threading

from threaded import run_threads

MOST = 6


class Limiter:
    """The calls that were let through."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.calls: list[int] = []
        self.refused = 0

    def is_full(self) -> bool:
        with self.lock:
            return len(self.calls) >= MOST

    def enter(self, number: int) -> bool:
        if self.is_full():
            with self.lock:
                self.refused += 1
            return False
        with self.lock:
            self.calls.append(number)
        return True


def calls(limiter: Limiter) -> None:
    for number in range(4):
        if limiter.enter(number):
            str(number).zfill(8)


WORKERS = [calls, calls]


def setup() -> Limiter:
    return Limiter()


def holds(limiter: Limiter) -> bool:
    return len(limiter.calls) <= MOST


def program() -> None:
    """The whole program; it raises if something went wrong."""
    state = setup()
    run_threads(state, WORKERS)
    assert holds(state)
