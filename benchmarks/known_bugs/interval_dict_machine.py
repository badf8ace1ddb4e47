"""`portion.IntervalDict`, a dict whose keys are intervals, beside a list of assignments."""

from __future__ import annotations

import portion
from portion_machine import LOWS, SIZES, Part, has

from swarmtest import Machine, action, integers

VALUES = integers(0, 50)


class IntervalDictMachine(Machine):
    """A later assignment overrides an earlier one where they overlap."""

    steps = 12

    def start(self) -> None:
        self.dict = portion.IntervalDict()
        self.assigned: list[tuple[Part, int | None]] = []

    def expected(self, point: float) -> int | None:
        return next((value for part, value in reversed(self.assigned) if has(part, point)), None)

    def assign(self, interval: portion.Interval, part: Part, value: int) -> None:
        self.dict[interval] = value
        self.assigned.append((part, value))

    @action(low=LOWS, size=SIZES, value=VALUES)
    def closed(self, low: int, size: int, value: int) -> None:
        self.assign(portion.closed(low, low + size), (low, low + size, True, True), value)

    @action(low=LOWS, size=SIZES, value=VALUES)
    def open(self, low: int, size: int, value: int) -> None:
        self.assign(portion.open(low, low + size), (low, low + size, False, False), value)

    @action(low=LOWS, size=SIZES, value=VALUES)
    def closedopen(self, low: int, size: int, value: int) -> None:
        self.assign(portion.closedopen(low, low + size), (low, low + size, True, False), value)

    @action(low=LOWS, size=SIZES, value=VALUES)
    def openclosed(self, low: int, size: int, value: int) -> None:
        self.assign(portion.openclosed(low, low + size), (low, low + size, False, True), value)

    @action(low=LOWS, value=VALUES)
    def singleton(self, low: int, value: int) -> None:
        self.assign(portion.singleton(low), (low, low, True, True), value)

    @action(low=LOWS, size=SIZES)
    def delete(self, low: int, size: int) -> None:
        interval = portion.closed(low, low + size)
        self.dict.pop(interval, None)
        self.assigned.append(((low, low + size, True, True), None))

    @action
    def clear(self) -> None:
        self.dict.clear()
        self.assigned.clear()

    @action(value=LOWS)
    def get(self, value: int) -> None:
        assert self.dict.get(value) == self.expected(value)

    @action
    def items(self) -> None:
        starts = [(key[0].lower, key[0].left is portion.OPEN) for key, _ in self.dict.items()]
        assert starts == sorted(starts), "items are in the order of their keys"

    @action
    def length(self) -> None:
        assert len(self.dict) == len(self.dict.as_dict())
