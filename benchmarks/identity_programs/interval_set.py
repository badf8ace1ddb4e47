"""A set of disjoint intervals beside a set of points. Its own `verify` prints what it holds."""

from __future__ import annotations

import itertools

from switches import bug

from swarmtest import Machine, action, integers

BUGS = (
    "touching are not joined",
    "cut leaves the end",
    "shift forgets to sort",
    "contains the end",
    "grow overlaps",
    "first of none",
)
POINTS = integers(0, 12)


class Overlap(Exception):
    """Two intervals overlap."""


class Intervals:
    def __init__(self) -> None:
        self.parts: list[tuple[int, int]] = []

    def add(self, low: int, high: int) -> None:
        kept = []
        for begin, end in self.parts:
            touches = end < low if bug("touching are not joined") else end <= low - 1
            if touches or begin > high:
                kept.append((begin, end))
            else:
                low, high = min(low, begin), max(high, end)
        self.parts = sorted([*kept, (low, high)])

    def cut(self, low: int, high: int) -> None:
        parts = []
        for begin, end in self.parts:
            if begin < low:
                parts.append((begin, min(end, low)))
            if end > high:
                parts.append((max(begin, high), end))
            elif bug("cut leaves the end") and begin < high == end:
                parts.append((end - 1, end))
        self.parts = sorted(set(parts))

    def shift(self, by: int) -> None:
        self.parts = [(begin + by, end + by) for begin, end in self.parts]
        if bug("shift forgets to sort") and by > 2 and len(self.parts) > 2:
            self.parts.reverse()

    def grow(self, by: int) -> None:
        grown = [(begin, end + by) for begin, end in self.parts]
        if bug("grow overlaps"):
            self.parts = grown
        else:
            self.parts = []
            for begin, end in grown:
                self.add(begin, end)

    def first(self) -> tuple[int, int]:
        if not self.parts and not bug("first of none"):
            raise LookupError("there is no interval")
        return self.parts[0]

    def __contains__(self, point: int) -> bool:
        if bug("contains the end") and len(self.parts) > 1:
            return any(begin <= point <= end for begin, end in self.parts)
        return any(begin <= point < end for begin, end in self.parts)

    def verify(self) -> None:
        for before, after in zip(self.parts, self.parts[1:], strict=False):
            if before > after:
                raise Overlap(f"not sorted: {self.parts}")
            if before[1] > after[0]:
                lines = "\n".join(f"  Interval{part}" for part in self.parts)
                raise Overlap("overlaps a neighbour\n" + lines)


class IntervalsMachine(Machine):
    steps = 20

    def start(self) -> None:
        self.intervals = Intervals()
        self.points: set[int] = set()

    def _check(self) -> None:
        self.intervals.verify()
        covered = {point for begin, end in self.intervals.parts for point in range(begin, end)}
        assert covered == self.points, f"{sorted(covered)} != {sorted(self.points)}"
        assert all(end < begin for (_, end), (begin, _) in self._pairs()), "they touch"

    def _pairs(self) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        parts = self.intervals.parts
        return list(itertools.pairwise(parts))

    @action(low=POINTS, size=integers(1, 4))
    def add(self, low: int, size: int) -> None:
        self.intervals.add(low, low + size)
        self.points |= set(range(low, low + size))
        self._check()

    @action(low=POINTS, size=integers(1, 6))
    def cut(self, low: int, size: int) -> None:
        self.intervals.cut(low, low + size)
        self.points -= set(range(low, low + size))
        self._check()

    @action(by=integers(1, 4))
    def shift(self, by: int) -> None:
        self.intervals.shift(by)
        self.points = {point + by for point in self.points}
        self._check()

    @action(by=integers(1, 2))
    def grow(self, by: int) -> None:
        self.intervals.grow(by)
        self.points |= {point + k for point in self.points for k in range(by + 1)}
        self._check()

    @action(point=POINTS)
    def contains(self, point: int) -> None:
        assert (point in self.intervals) == (point in self.points)

    @action(raises=LookupError)
    def first(self) -> None:
        assert self.intervals.first()[0] == min(self.points, default=None)
