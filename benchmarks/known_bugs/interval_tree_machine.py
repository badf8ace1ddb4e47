"""`intervaltree.IntervalTree` beside a set of pairs."""

from __future__ import annotations

import old_collections  # noqa: F401  # before intervaltree is imported
from intervaltree import Interval, IntervalTree

from swarmtest import Machine, action, integers, lists, tuples

BEGINS = integers(0, 5000)
SIZES = integers(1, 25)


class IntervalTreeMachine(Machine):
    """Each operation happens to both."""

    steps = 16

    def start(self) -> None:
        self.tree = IntervalTree()
        self.expected: set[tuple[int, int]] = set()

    def found(self) -> set[tuple[int, int]]:
        return {(interval.begin, interval.end) for interval in self.tree}

    def pick(self, number: int) -> tuple[int, int]:
        return sorted(self.expected)[number % len(self.expected)]

    @action(begin=BEGINS, size=SIZES)
    def add(self, begin: int, size: int) -> None:
        self.tree.add(Interval(begin, begin + size))
        self.expected.add((begin, begin + size))

    @action(pairs=lists(tuples(BEGINS, SIZES), max_size=3))
    def update(self, pairs: list[tuple[int, int]]) -> None:
        intervals = [(begin, begin + size) for begin, size in pairs]
        self.tree.update(Interval(*interval) for interval in intervals)
        self.expected |= set(intervals)

    @action(number=BEGINS, when=lambda self: self.expected)
    def remove(self, number: int) -> None:
        interval = self.pick(number)
        self.tree.remove(Interval(*interval))
        self.expected.remove(interval)

    @action(begin=BEGINS, size=SIZES)
    def discard(self, begin: int, size: int) -> None:
        self.tree.discard(Interval(begin, begin + size))
        self.expected.discard((begin, begin + size))

    @action(point=BEGINS)
    def search_point(self, point: int) -> None:
        found = {(i.begin, i.end) for i in self.tree[point]}
        assert found == {(a, b) for a, b in self.expected if a <= point < b}

    @action(begin=BEGINS, size=SIZES)
    def search_range(self, begin: int, size: int) -> None:
        found = {(i.begin, i.end) for i in self.tree[begin : begin + size]}
        assert found == {(a, b) for a, b in self.expected if a < begin + size and b > begin}

    @action
    def items(self) -> None:
        assert self.found() == self.expected

    @action
    def clear(self) -> None:
        self.tree.clear()
        self.expected.clear()
