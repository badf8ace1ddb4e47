"""`boltons.cacheutils.LRI`, a cache that evicts the least recently inserted item, beside a dict."""

from __future__ import annotations

from boltons.cacheutils import LRI

from swarmtest import Machine, action, integers, invariant, lists, tuples

KEYS = integers(0, 3000)
VALUES = integers(0, 9)
SIZE = 5


class LRIMachine(Machine):
    """Each operation happens to both; the dict is in the order of insertion."""

    steps = 12

    def start(self) -> None:
        self.cache = LRI(max_size=SIZE)
        self.expected: dict[int, int] = {}

    def store(self, key: int, value: int) -> None:
        self.expected.pop(key, None)
        if len(self.expected) == SIZE:
            del self.expected[next(iter(self.expected))]
        self.expected[key] = value

    @action(key=KEYS, value=VALUES)
    def set(self, key: int, value: int) -> None:
        self.cache[key] = value
        self.store(key, value)

    @action(pairs=lists(tuples(KEYS, VALUES), max_size=3))
    def update(self, pairs: list[tuple[int, int]]) -> None:
        self.cache.update(pairs)
        for key, value in pairs:
            self.store(key, value)

    @action(key=KEYS, value=VALUES)
    def setdefault(self, key: int, value: int) -> None:
        assert self.cache.setdefault(key, value) == self.expected.get(key, value)
        if key not in self.expected:
            self.store(key, value)

    @action(key=KEYS)
    def get(self, key: int) -> None:
        assert self.cache.get(key) == self.expected.get(key)

    @action(key=KEYS)
    def contains(self, key: int) -> None:
        assert (key in self.cache) == (key in self.expected)

    @action(key=KEYS)
    def pop(self, key: int) -> None:
        assert self.cache.pop(key, None) == self.expected.pop(key, None)

    @action(number=KEYS, when=lambda self: self.expected)
    def delete(self, number: int) -> None:
        key = list(self.expected)[number % len(self.expected)]
        del self.cache[key]
        del self.expected[key]

    @action
    def clear(self) -> None:
        self.cache.clear()
        self.expected.clear()

    @action
    def items(self) -> None:
        assert sorted(self.cache.items()) == sorted(self.expected.items())

    @action
    def values(self) -> None:
        assert sorted(self.cache.values()) == sorted(self.expected.values())

    @invariant
    def has_the_same_keys(self) -> None:
        assert self.cache.keys() == self.expected.keys()
