"""A cache that throws out the oldest entry: what is in it may be gone at the next line."""

from __future__ import annotations

from collections import OrderedDict

from threaded import run_threads

MOST = 2


class Cache:
    """The values that were used last."""

    def __init__(self) -> None:
        self.entries: OrderedDict[str, str] = OrderedDict()
        self.misses = 0

    def get(self, key: str) -> str:
        if key in self.entries:
            self.entries.move_to_end(key)
            return self.entries[key]
        self.misses += 1
        value = "-".join(key * 3)
        self.put(key, value)
        return value

    def put(self, key: str, value: str) -> None:
        self.entries[key] = value
        if len(self.entries) > MOST:
            self.entries.popitem(last=False)


def reads(cache: Cache) -> None:
    for key in "abab":
        cache.get(key).upper()


def reads_others(cache: Cache) -> None:
    for key in "bcb":
        cache.get(key).lower()


WORKERS = [reads, reads_others]


def setup() -> Cache:
    return Cache()


def holds(cache: Cache) -> bool:
    return len(cache.entries) <= MOST


def program() -> None:
    """The whole program; it raises if something went wrong."""
    state = setup()
    run_threads(state, WORKERS)
    assert holds(state)
