"""`pyrsistent.PMap` beside a dict."""

from __future__ import annotations

from pyrsistent import pmap

from swarmtest import Machine, action, integers, invariant, lists, tuples

KEYS = integers(0, 200)
VALUES = integers(0, 9)


class PMapMachine(Machine):
    """Each operation makes the next map; it must hold what the dict holds."""

    steps = 40

    def start(self) -> None:
        self.dict: dict[int, int] = {}
        self.map = pmap()

    def key(self, number: int) -> int:
        return list(self.dict)[number % len(self.dict)]

    @action(key=KEYS, value=VALUES)
    def set(self, key: int, value: int) -> None:
        self.map = self.map.set(key, value)
        self.dict[key] = value

    @action(number=KEYS, value=VALUES, when=lambda self: self.dict)
    def replace(self, number: int, value: int) -> None:
        key = self.key(number)
        self.map = self.map.set(key, value)
        self.dict[key] = value

    @action(pairs=lists(tuples(KEYS, VALUES), max_size=4))
    def update(self, pairs: list[tuple[int, int]]) -> None:
        self.map = self.map.update(dict(pairs))
        self.dict.update(pairs)

    @action(pairs=lists(tuples(KEYS, VALUES), max_size=4))
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
    def clear(self) -> None:
        self.map = pmap()
        self.dict.clear()

    @action
    def rebuild(self) -> None:
        self.map = pmap(self.dict)

    @action(number=KEYS, when=lambda self: self.dict)
    def transform(self, number: int) -> None:
        key = self.key(number)
        self.map = self.map.transform([key], lambda value: value + 1)
        self.dict[key] += 1

    @action(key=KEYS)
    def get(self, key: int) -> None:
        assert self.map.get(key) == self.dict.get(key)

    @action(key=KEYS)
    def contains(self, key: int) -> None:
        assert (key in self.map) == (key in self.dict)

    @action
    def length(self) -> None:
        assert len(self.map) == len(self.dict)

    @action
    def iterate(self) -> None:
        assert sorted(self.map.items()) == sorted(self.dict.items())

    @invariant
    def finds_every_key(self) -> None:
        assert all(self.map.get(key) == value for key, value in self.dict.items())
