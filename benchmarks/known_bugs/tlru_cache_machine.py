"""`cachetools.TLRUCache`, a cache whose items expire, beside a dict with times of expiry."""

from __future__ import annotations

from cachetools import TLRUCache

from swarmtest import Machine, action, integers, invariant

KEYS = integers(0, 4)
VALUES = integers(0, 99)
LIFETIMES = integers(5, 25)

Item = tuple[int, int]  # a value, and how long it lives


class TLRUCacheMachine(Machine):
    """Each operation happens to both; the cache is never full, so that only time removes items."""

    steps = 8

    def start(self) -> None:
        self.now = 0
        self.expected: dict[int, Item] = {}
        self.expiry: dict[int, int] = {}
        self.cache: TLRUCache = TLRUCache(
            100, ttu=lambda key, item, now: now + item[1], timer=lambda: self.now
        )

    def store(self, key: int, item: Item) -> None:
        self.expected[key], self.expiry[key] = item, self.now + item[1]

    def live(self, key: int) -> Item | None:
        return self.expected[key] if self.expiry.get(key, 0) > self.now else None

    def all_live(self) -> dict[int, Item]:
        return {key: item for key in self.expected if (item := self.live(key))}

    @action(key=KEYS, value=VALUES, lifetime=LIFETIMES)
    def put(self, key: int, value: int, lifetime: int) -> None:
        self.cache[key] = (value, lifetime)
        self.store(key, (value, lifetime))

    @action(key=KEYS, value=VALUES)
    def put_expired(self, key: int, value: int) -> None:
        self.cache[key] = (value, 0)
        self.store(key, (value, 0))

    @action(key=KEYS, value=VALUES, lifetime=LIFETIMES)
    def update(self, key: int, value: int, lifetime: int) -> None:
        items = {other % 5: (value, lifetime) for other in (key, key + 1)}
        self.cache.update(items)
        for other, item in items.items():
            self.store(other, item)

    @action(key=KEYS, value=VALUES, lifetime=LIFETIMES)
    def setdefault(self, key: int, value: int, lifetime: int) -> None:
        item = self.live(key) or (value, lifetime)
        assert self.cache.setdefault(key, (value, lifetime)) == item
        if not self.live(key):
            self.store(key, item)

    @action(time=integers(1, 9))
    def wait(self, time: int) -> None:
        self.now += time

    @action(key=KEYS)
    def get(self, key: int) -> None:
        assert self.cache.get(key) == self.live(key)

    @action(key=KEYS)
    def contains(self, key: int) -> None:
        assert (key in self.cache) == (self.live(key) is not None)

    @action(key=KEYS, raises=KeyError)
    def delete(self, key: int) -> None:
        self.expiry.pop(key, None)
        del self.cache[key]

    @action(key=KEYS)
    def pop(self, key: int) -> None:
        assert self.cache.pop(key, None) == self.live(key)
        self.expiry.pop(key, None)

    @action
    def expire(self) -> None:
        self.cache.expire()

    @action
    def clear(self) -> None:
        self.cache.clear()
        self.expiry.clear()

    @action
    def length(self) -> None:
        assert len(self.cache) == len(self.all_live())

    @action
    def iterate(self) -> None:
        assert {key: self.cache[key] for key in self.cache} == self.all_live()

    @invariant
    def knows_what_is_live(self) -> None:
        assert {key for key in range(5) if key in self.cache} == self.all_live().keys()
