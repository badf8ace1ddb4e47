"""Pool of connections: whether one more may be opened is asked before the lock is taken."""

from __future__ import annotations

import threading

from threaded import run_threads

MOST = 3


class Pool:
    """Connections that are free, and how many there are."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.free: list[int] = []
        self.opened = 0
        self.most_opened = 0

    def take(self) -> int | None:
        with self.lock:
            if self.free:
                return self.free.pop()
        if self.opened >= MOST:
            return None
        return self.open()

    def open(self) -> int:
        number = sum(range(5))  # some work
        with self.lock:
            self.opened += 1
            self.most_opened = max(self.most_opened, self.opened)
        return number

    def give(self, connection: int) -> None:
        with self.lock:
            self.free.append(connection)


def uses(pool: Pool) -> None:
    for word in ("select", "insert", "update"):
        connection = pool.take()
        if connection is not None:
            word.upper().encode()
            pool.give(connection)


WORKERS = [uses, uses, uses, uses]


def setup() -> Pool:
    return Pool()


def holds(pool: Pool) -> bool:
    return pool.most_opened <= MOST


def program() -> None:
    """The whole program; it raises if something went wrong."""
    state = setup()
    run_threads(state, WORKERS)
    assert holds(state)
