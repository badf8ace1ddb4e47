"""`pyrsistent.PMap` beside a dict, with updates of several items at once."""

from __future__ import annotations

import collections
import collections.abc

for name in collections.abc.__all__:  # where releases of that time expect them
    setattr(collections, name, getattr(collections.abc, name))

from pyrsistent import pmap  # noqa: E402

from swarmtest import Machine, action, integers, invariant, lists, tuples  # noqa: E402

KEYS = integers(0, 1000)
VALUES = integers(0, 3)
PAIRS = lists(tuples(KEYS, VALUES), max_size=6)


class PMapEvolverMachine(Machine):
    """Each operation makes the next map; it must hold what the dict holds."""

    steps = 14

    def start(self) -> None:
        self.dict: dict[int, int] = {}
        self.map = pmap()

    def key(self, number: int) -> int:
        return list(self.dict)[number % len(self.dict)]

    @action(key=KEYS, value=VALUES)
    def set(self, key: int, value: int) -> None:
        self.map = self.map.set(key, value)
        self.dict[key] = value

    @action(pairs=PAIRS)
    def update(self, pairs: list[tuple[int, int]]) -> None:
        self.map = self.map.update(dict(pairs))
        self.dict.update(pairs)

    @action(pairs=PAIRS)
    def evolve(self, pairs: list[tuple[int, int]]) -> None:
        evolver = self.map.evolver()
        for key, value in pairs:
            evolver[key] = value
        self.map = evolver.persistent()
        self.dict.update(pairs)

    @action(number=KEYS, when=lambda self: self.dict)
    def remove(self, number: int) -> None:
        key = self.key(number)
        self.map = self.map.remove(key)
        del self.dict[key]

    @action(key=KEYS)
    def discard(self, key: int) -> None:
        self.map = self.map.discard(key)
        self.dict.pop(key, None)

    @action
    def rebuild(self) -> None:
        self.map = pmap(self.dict)

    @action(number=KEYS, when=lambda self: self.dict)
    def get(self, number: int) -> None:
        key = self.key(number)
        assert self.map.get(key) == self.dict[key]

    @action(key=KEYS)
    def contains(self, key: int) -> None:
        assert (key in self.map) == (key in self.dict)

    @action
    def iterate(self) -> None:
        assert sorted(self.map.items()) == sorted(self.dict.items())

    @invariant
    def has_every_item(self) -> None:
        assert len(self.map) == len(self.dict)
