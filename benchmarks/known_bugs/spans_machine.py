"""`spans.intrangeset`, sets of ranges of integers, beside plain sets."""

from __future__ import annotations

from spans import intrange, intrangeset

from swarmtest import Machine, action, integers

LOWS = integers(0, 30_000)
SIZES = integers(1, 30)


class SpansMachine(Machine):
    """Three sets; each operation happens to the range set and to the plain set."""

    steps = 12

    def start(self) -> None:
        self.ranges = [intrangeset([]) for _ in range(3)]
        self.expected: list[set[int]] = [set() for _ in range(3)]

    def insert(self, which: int, low: int, size: int) -> None:
        self.ranges[which].add(intrange(low, low + size))
        self.expected[which] |= set(range(low, low + size))

    @action(low=LOWS, size=SIZES)
    def add_first(self, low: int, size: int) -> None:
        self.insert(0, low, size)

    @action(low=LOWS, size=SIZES)
    def add_second(self, low: int, size: int) -> None:
        self.insert(1, low, size)

    @action(low=LOWS, size=SIZES)
    def add_third(self, low: int, size: int) -> None:
        self.insert(2, low, size)

    @action(low=LOWS, size=SIZES)
    def remove_first(self, low: int, size: int) -> None:
        self.ranges[0].remove(intrange(low, low + size))
        self.expected[0] -= set(range(low, low + size))

    @action
    def clear_second(self) -> None:
        self.ranges[1] = intrangeset([])
        self.expected[1] = set()

    @action(low=LOWS, when=lambda self: self.expected[0])  # an empty set is another bug
    def contains(self, low: int) -> None:
        assert self.ranges[0].contains(low) == (low in self.expected[0])

    @action
    def unite(self) -> None:
        found = self.ranges[0].union(self.ranges[1], self.ranges[2])
        assert values(found) == self.expected[0] | self.expected[1] | self.expected[2]

    @action
    def subtract(self) -> None:
        found = self.ranges[0].difference(self.ranges[1], self.ranges[2])
        assert values(found) == self.expected[0] - self.expected[1] - self.expected[2]

    @action
    def intersect_one(self) -> None:
        found = self.ranges[0].intersection(self.ranges[1])
        assert values(found) == self.expected[0] & self.expected[1]

    @action
    def intersect_both(self) -> None:
        found = self.ranges[0].intersection(self.ranges[1], self.ranges[2])
        assert values(found) == self.expected[0] & self.expected[1] & self.expected[2]


def values(ranges: intrangeset) -> set[int]:
    return {value for part in ranges if part for value in part}
