"""`cachetools.LRUCache`, whose items have sizes, beside a dict in the order of use."""

from __future__ import annotations

from cachetools import LRUCache

from swarmtest import Machine, action, integers, invariant

KEYS = integers(0, 2000)
SIZES = integers(1, 30)
MOST = 40


class SizedCacheMachine(Machine):
    """Each operation happens to both; the least recently used item goes when there is no room."""

    steps = 12

    def start(self) -> None:
        self.cache: LRUCache = LRUCache(MOST, getsizeof=lambda size: size)
        self.expected: dict[int, int] = {}

    def use(self, key: int) -> None:
        if key in self.expected:
            self.expected[key] = self.expected.pop(key)

    def store(self, key: int, size: int) -> None:
        """Make room for what is added, but no more than that."""
        while sum(self.expected.values()) - self.expected.get(key, 0) + size > MOST:
            del self.expected[next(iter(self.expected))]
        self.expected[key] = size
        self.use(key)

    @action(key=KEYS, size=SIZES)
    def put(self, key: int, size: int) -> None:
        self.cache[key] = size
        self.store(key, size)

    @action(key=KEYS, size=SIZES)
    def update(self, key: int, size: int) -> None:
        self.cache.update({key: size})
        self.store(key, size)

    @action(key=KEYS, size=SIZES)
    def setdefault(self, key: int, size: int) -> None:
        known = key in self.expected
        self.cache.setdefault(key, size)
        if known:
            self.use(key)
        else:
            self.store(key, size)

    @action(key=KEYS)
    def get(self, key: int) -> None:
        assert self.cache.get(key) == self.expected.get(key)
        self.use(key)

    @action(key=KEYS)
    def contains(self, key: int) -> None:
        assert (key in self.cache) == (key in self.expected)

    @action(key=KEYS)
    def pop(self, key: int) -> None:
        assert self.cache.pop(key, None) == self.expected.pop(key, None)

    @action(when=lambda self: self.expected)
    def popitem(self) -> None:
        key, _ = self.cache.popitem()
        assert key == next(iter(self.expected))
        del self.expected[key]

    @action
    def clear(self) -> None:
        self.cache.clear()
        self.expected.clear()

    @action
    def size(self) -> None:
        assert self.cache.currsize == sum(self.expected.values())

    @invariant
    def holds_the_same(self) -> None:
        assert dict(self.cache.items()).keys() == self.expected.keys()
