"""`boltons.setutils.IndexedSet` beside a list without duplicates."""

from __future__ import annotations

from boltons.setutils import IndexedSet

from swarmtest import Machine, action, integers, invariant, lists

ITEMS = integers(0, 29)
PLACES = integers(0, 24)
SOME_ITEMS = lists(ITEMS, max_size=6)


class IndexedSetMachine(Machine):
    """Each operation happens to both; what they answer and what they hold must be the same."""

    steps = 20

    def start(self) -> None:
        self.items = list(range(20))
        self.set = IndexedSet(self.items)

    @action(item=ITEMS)
    def add(self, item: int) -> None:
        self.set.add(item)
        if item not in self.items:
            self.items.append(item)

    @action(items=SOME_ITEMS)
    def update(self, items: list[int]) -> None:
        self.set.update(items)
        self.items += [item for item in dict.fromkeys(items) if item not in self.items]

    @action(place=PLACES, when=lambda self: self.items)
    def remove(self, place: int) -> None:
        item = self.items.pop(place % len(self.items))
        self.set.remove(item)

    @action(item=ITEMS)
    def discard(self, item: int) -> None:
        self.set.discard(item)
        self.items = [other for other in self.items if other != item]

    @action(when=lambda self: self.items)
    def pop_last(self) -> None:
        assert self.set.pop() == self.items.pop()

    @action(place=PLACES, when=lambda self: self.items)
    def pop_at(self, place: int) -> None:
        place %= len(self.items)
        assert self.set.pop(place) == self.items.pop(place)

    @action
    def clear(self) -> None:
        self.set.clear()
        self.items.clear()

    @action
    def reverse(self) -> None:
        self.set.reverse()
        self.items.reverse()

    @action
    def sort(self) -> None:
        self.set.sort()
        self.items.sort()

    @action(place=PLACES, when=lambda self: self.items)
    def get(self, place: int) -> None:
        place %= len(self.items)
        assert self.set[place] == self.items[place]

    @action(place=PLACES, when=lambda self: self.items)
    def index(self, place: int) -> None:
        place %= len(self.items)
        assert self.set.index(self.items[place]) == place

    @action(start=PLACES, stop=PLACES)
    def slice(self, start: int, stop: int) -> None:
        assert list(self.set[start:stop]) == self.items[start:stop]

    @action(item=ITEMS)
    def contains(self, item: int) -> None:
        assert (item in self.set) == (item in self.items)

    @action(items=SOME_ITEMS)
    def union(self, items: list[int]) -> None:
        assert set(self.set | set(items)) == {*self.items, *items}

    @action
    def copy(self) -> None:
        self.set = IndexedSet(self.set)

    @invariant
    def holds_the_same(self) -> None:
        assert list(self.set) == self.items
