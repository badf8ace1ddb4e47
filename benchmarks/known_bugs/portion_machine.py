"""`portion.Interval`, a union of intervals, beside a plain list of them."""

from __future__ import annotations

import portion

from swarmtest import Machine, action, integers

LOWS = integers(0, 2000)
SIZES = integers(1, 60)

Part = tuple[float, float, bool, bool]  # both ends, and whether they belong to it


def has(part: Part, point: float) -> bool:
    low, high, has_low, has_high = part
    return low < point < high or (point == low and has_low) or (point == high and has_high)


class PortionMachine(Machine):
    """Intervals are collected, and then joined all at once."""

    steps = 12

    def start(self) -> None:
        self.pending: list[tuple[portion.Interval, Part]] = []
        self.joined = portion.empty()
        self.parts: list[Part] = []
        self.cuts: list[Part] = []

    def expects(self, point: float) -> bool:
        cut = any(has(part, point) for part in self.cuts)
        return not cut and any(has(part, point) for part in self.parts)

    def check(self) -> None:
        """Look at all ends of intervals, and on both sides of them."""
        ends = {end for part in (*self.parts, *self.cuts) for end in part[:2]}
        for point in sorted(end + side for end in ends for side in (-0.5, 0, 0.5)):
            assert (point in self.joined) == self.expects(point)

    @action(low=LOWS, size=SIZES)
    def closed(self, low: int, size: int) -> None:
        self.pending.append((portion.closed(low, low + size), (low, low + size, True, True)))

    @action(low=LOWS, size=SIZES)
    def open(self, low: int, size: int) -> None:
        self.pending.append((portion.open(low, low + size), (low, low + size, False, False)))

    @action(low=LOWS, size=SIZES)
    def closedopen(self, low: int, size: int) -> None:
        self.pending.append((portion.closedopen(low, low + size), (low, low + size, True, False)))

    @action(low=LOWS, size=SIZES)
    def openclosed(self, low: int, size: int) -> None:
        self.pending.append((portion.openclosed(low, low + size), (low, low + size, False, True)))

    @action(value=LOWS)
    def singleton(self, value: int) -> None:
        self.pending.append((portion.singleton(value), (value, value, True, True)))

    @action
    def forget(self) -> None:
        self.pending.clear()

    @action(when=lambda self: self.pending)
    def join(self) -> None:
        self.joined = portion.Interval(*(interval for interval, _ in self.pending))
        self.parts = [part for _, part in self.pending]
        self.cuts = []
        self.check()
        highest = -1.0
        for part in self.joined:
            assert part.lower > highest, "parts are in order and do not touch"
            highest = part.upper

    @action(low=LOWS, size=SIZES)
    def cut(self, low: int, size: int) -> None:
        self.joined -= portion.closed(low, low + size)
        self.cuts.append((low, low + size, True, True))
        self.check()

    @action(value=LOWS)
    def contains(self, value: int) -> None:
        assert (value in self.joined) == self.expects(value)

    @action(low=LOWS, size=SIZES)
    def contains_closed(self, low: int, size: int) -> None:
        inside = portion.closed(low, low + size) in self.joined
        assert not inside or (self.expects(low) and self.expects(low + size))

    @action(low=LOWS, size=SIZES, other=LOWS)
    def contains_two(self, low: int, size: int, other: int) -> None:
        both = portion.closed(low, low + size) | portion.singleton(other)
        assert both not in self.joined or (self.expects(low) and self.expects(other))
