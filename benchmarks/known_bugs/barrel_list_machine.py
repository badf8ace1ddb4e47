"""`boltons.listutils.BarrelList`, a list kept as a list of short lists, beside a plain list."""

from __future__ import annotations

from boltons.listutils import BarrelList

from swarmtest import Machine, action, integers, invariant, lists

VALUES = integers(0, 99)
PLACES = integers(0, 19)
SOME_VALUES = lists(VALUES, max_size=4)


class ShortBarrels(BarrelList):
    """Splits at a dozen items instead of at thousands."""

    _size_factor = 2


class BarrelListMachine(Machine):
    """Each operation happens to both; what they answer and what they hold must be the same."""

    steps = 40

    def start(self) -> None:
        self.plain = list(range(12))
        self.barrels = ShortBarrels(self.plain)

    def place(self, place: int) -> int:
        return place % len(self.plain)

    @action(value=VALUES)
    def append(self, value: int) -> None:
        self.barrels.append(value)
        self.plain.append(value)

    @action(values=SOME_VALUES)
    def extend(self, values: list[int]) -> None:
        self.barrels.extend(values)
        self.plain.extend(values)

    @action(place=PLACES, value=VALUES, when=lambda self: self.plain)
    def insert(self, place: int, value: int) -> None:
        place = self.place(place)
        self.barrels.insert(place, value)
        self.plain.insert(place, value)

    @action(when=lambda self: self.plain)
    def pop_last(self) -> None:
        assert self.barrels.pop() == self.plain.pop()

    @action(place=PLACES, when=lambda self: self.plain)
    def pop_at(self, place: int) -> None:
        place = self.place(place)
        assert self.barrels.pop(place) == self.plain.pop(place)

    @action(place=PLACES, when=lambda self: self.plain)
    def delete_at(self, place: int) -> None:
        place = self.place(place)
        del self.barrels[place]
        del self.plain[place]

    @action(place=PLACES, when=lambda self: self.plain)
    def get(self, place: int) -> None:
        place = self.place(place)
        assert self.barrels[place] == self.plain[place]

    @action(place=PLACES, value=VALUES, when=lambda self: self.plain)
    def set(self, place: int, value: int) -> None:
        place = self.place(place)
        self.barrels[place] = value
        self.plain[place] = value

    @action(start=PLACES, stop=PLACES)
    def slice(self, start: int, stop: int) -> None:
        assert list(self.barrels[start:stop]) == self.plain[start:stop]

    @action(start=PLACES, stop=PLACES, when=lambda self: self.plain)
    def delete_slice(self, start: int, stop: int) -> None:
        start, stop = sorted((self.place(start), self.place(stop)))
        del self.barrels[start:stop]
        del self.plain[start:stop]

    @action(start=PLACES, stop=PLACES, values=SOME_VALUES)
    def set_slice(self, start: int, stop: int, values: list[int]) -> None:
        self.barrels[start:stop] = values
        self.plain[start:stop] = values

    @action
    def sort(self) -> None:
        self.barrels.sort()
        self.plain.sort()

    @action
    def reverse(self) -> None:
        self.barrels.reverse()
        self.plain.reverse()

    @action(value=VALUES)
    def count(self, value: int) -> None:
        assert self.barrels.count(value) == self.plain.count(value)

    @action(place=PLACES, when=lambda self: self.plain)
    def index(self, place: int) -> None:
        value = self.plain[self.place(place)]
        assert self.barrels.index(value) == self.plain.index(value)

    @invariant
    def holds_the_same(self) -> None:
        assert list(self.barrels) == self.plain
