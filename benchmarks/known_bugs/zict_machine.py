"""`zict.Buffer`, a small fast dict in front of a slow one, beside a plain dict.

A value is its own weight: one that is heavier than the whole fast dict goes to the slow one.
"""

from __future__ import annotations

from zict import Buffer

from swarmtest import Machine, action, integers, lists, tuples

KEYS = integers(0, 400)
WEIGHTS = integers(1, 14)
ROOM = 10


class BufferMachine(Machine):
    """Each operation happens to both."""

    steps = 12

    def start(self) -> None:
        self.buffer = Buffer({}, {}, ROOM, weight=lambda key, value: value)
        self.expected: dict[int, int] = {}

    @action(key=KEYS, weight=WEIGHTS)
    def set(self, key: int, weight: int) -> None:
        self.buffer[key] = weight
        self.expected[key] = weight

    @action(pairs=lists(tuples(KEYS, WEIGHTS), max_size=3))
    def update(self, pairs: list[tuple[int, int]]) -> None:
        self.buffer.update(pairs)
        self.expected.update(pairs)

    @action(key=KEYS, weight=WEIGHTS)
    def setdefault(self, key: int, weight: int) -> None:
        assert self.buffer.setdefault(key, weight) == self.expected.setdefault(key, weight)

    @action(key=KEYS)
    def get(self, key: int) -> None:
        assert self.buffer.get(key) == self.expected.get(key)

    @action(number=KEYS, when=lambda self: self.expected)
    def get_known(self, number: int) -> None:
        key = sorted(self.expected)[number % len(self.expected)]
        assert self.buffer[key] == self.expected[key]

    @action(number=KEYS, when=lambda self: self.expected)
    def delete(self, number: int) -> None:
        key = sorted(self.expected)[number % len(self.expected)]
        del self.buffer[key]
        del self.expected[key]

    @action(key=KEYS)
    def contains(self, key: int) -> None:
        assert (key in self.buffer) == (key in self.expected)

    @action
    def items(self) -> None:
        assert sorted(self.buffer.items()) == sorted(self.expected.items())

    @action
    def size(self) -> None:
        assert len(self.buffer) == len(self.expected)

    @action
    def clear(self) -> None:
        self.buffer.clear()
        self.expected.clear()
