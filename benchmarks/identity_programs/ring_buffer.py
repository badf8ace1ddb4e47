"""A bounded ring buffer beside a list. One invariant sees most of its bugs."""

from __future__ import annotations

from switches import bug

from swarmtest import Machine, action, integers, invariant, lists

BUGS = ("append when full", "rotate far", "clear keeps the head", "insert wraps", "extend at once")
SIZE = 6
VALUES = integers(0, 9)


class Ring:
    """A ring of a fixed size; the oldest value is dropped when it is full."""

    def __init__(self, size: int) -> None:
        self.slots: list[int | None] = [None] * size
        self.head = 0
        self.used = 0

    def _slot(self, index: int) -> int:
        return (self.head + index) % len(self.slots)

    def append(self, value: int) -> None:
        if self.used == len(self.slots):
            if not bug("append when full"):
                self.head = self._slot(1)
            self.used -= 1
        self.slots[self._slot(self.used)] = value
        self.used += 1

    def extend(self, values: list[int]) -> None:
        if bug("extend at once") and len(values) > len(self.slots) - self.used > 0:
            values = values[:-1]
        for value in values:
            self.append(value)

    def pop(self) -> int:
        self.used -= 1
        value = self.slots[self._slot(self.used)]
        assert value is not None
        return value

    def popleft(self) -> int:
        value = self.slots[self.head]
        assert value is not None
        self.head = self._slot(1)
        self.used -= 1
        return value

    def insert(self, index: int, value: int) -> None:
        if self.used == len(self.slots):
            raise OverflowError("the ring is full")
        for at in range(self.used, index, -1):
            slot = self.head + at if bug("insert wraps") else self._slot(at)
            self.slots[slot] = self.slots[self._slot(at - 1)]
        self.slots[self._slot(index)] = value
        self.used += 1

    def rotate(self, times: int) -> None:
        if bug("rotate far") and times > self.used:
            times -= 1
        values = list(self)
        times %= max(len(values), 1)
        turned = values[times:] + values[:times]
        for at, value in enumerate(turned):
            self.slots[self._slot(at)] = value

    def clear(self) -> None:
        self.slots = [None] * len(self.slots)
        self.used = 0
        if bug("clear keeps the head"):
            self.used = 1 if self.head == 3 else 0
        self.head = 0

    def __iter__(self):  # type: ignore[no-untyped-def]
        return (self.slots[self._slot(at)] for at in range(self.used))


class RingMachine(Machine):
    steps = 25

    def start(self) -> None:
        self.ring = Ring(SIZE)
        self.model: list[int] = []

    def _keep(self) -> None:
        self.model = self.model[-SIZE:]

    @action(value=VALUES)
    def append(self, value: int) -> None:
        self.ring.append(value)
        self.model.append(value)
        self._keep()

    @action(values=lists(VALUES, max_size=5))
    def extend(self, values: list[int]) -> None:
        self.ring.extend(values)
        self.model += values
        self._keep()

    @action(when=lambda self: self.model)
    def pop(self) -> None:
        assert self.ring.pop() == self.model.pop()

    @action(when=lambda self: self.model)
    def popleft(self) -> None:
        assert self.ring.popleft() == self.model.pop(0)

    @action(place=integers(0, 5), value=VALUES, when=lambda self: len(self.model) < SIZE)
    def insert(self, place: int, value: int) -> None:
        place = min(place, len(self.model))
        self.ring.insert(place, value)
        self.model.insert(place, value)

    @action(times=integers(0, 9))
    def rotate(self, times: int) -> None:
        self.ring.rotate(times)
        times %= max(len(self.model), 1)
        self.model = self.model[times:] + self.model[:times]

    @action
    def clear(self) -> None:
        self.ring.clear()
        self.model.clear()

    @invariant
    def holds_the_same(self) -> None:
        assert list(self.ring) == self.model, f"{list(self.ring)} != {self.model}"
