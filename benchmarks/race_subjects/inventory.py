"""Shop: reserving reads the stock and writes it later; cancelling does so under the lock."""

from __future__ import annotations

import threading

from threaded import run_threads


class Shop:
    """How many there are of each thing."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.stock = {"pen": 9, "cup": 9}
        self.reserved = 0
        self.cancelled = 0

    def reserve(self, thing: str, count: int) -> None:
        left = self.stock[thing] - count
        name = thing.upper() + str(left)
        if name and left >= 0:
            self.stock[thing] = left
            with self.lock:
                self.reserved += count

    def cancel(self, thing: str, count: int) -> None:
        with self.lock:
            self.stock[thing] += count
            self.cancelled += count


def buys(shop: Shop) -> None:
    for count in (1, 2, 1):
        shop.reserve("pen", count)


def cancels(shop: Shop) -> None:
    for word in ["a", "b", "c", "d"]:
        word.encode()
    shop.cancel("pen", 1)


def counts(shop: Shop) -> None:
    for _ in range(8):
        with shop.lock:
            sum(shop.stock.values())


WORKERS = [buys, cancels, counts]


def setup() -> Shop:
    return Shop()


def holds(shop: Shop) -> bool:
    return shop.stock["pen"] == 9 - shop.reserved + shop.cancelled


def program() -> None:
    """The whole program; it raises if something went wrong."""
    state = setup()
    run_threads(state, WORKERS)
    assert holds(state)
