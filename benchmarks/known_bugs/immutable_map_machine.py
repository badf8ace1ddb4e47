"""The pure Python `immutables.Map` beside a dict; one key in 3,000 is None."""

from __future__ import annotations

from immutables.map import Map

from swarmtest import Machine, action, integers, sampled_from

KEYS = sampled_from([None, *range(3, 30_000, 10)])
VALUES = integers(0, 99)


class ImmutableMapMachine(Machine):
    """Each operation happens to both."""

    steps = 10

    def start(self) -> None:
        self.map = Map()
        self.expected: dict[int | None, int] = {}

    @action(key=KEYS, value=VALUES)
    def set(self, key: int | None, value: int) -> None:
        self.map = self.map.set(key, value)
        self.expected[key] = value

    @action(key=KEYS, value=VALUES)
    def mutate(self, key: int | None, value: int) -> None:
        mutation = self.map.mutate()
        mutation[key] = value
        self.map = mutation.finish()
        self.expected[key] = value

    @action(key=KEYS, raises=KeyError)
    def delete(self, key: int | None) -> None:
        known = self.expected.pop(key, None)
        try:
            self.map = self.map.delete(key)
        except KeyError:
            assert known is None
            raise

    @action(key=KEYS)
    def get(self, key: int | None) -> None:
        assert self.map.get(key) == self.expected.get(key)

    @action(key=KEYS)
    def contains(self, key: int | None) -> None:
        assert (key in self.map) == (key in self.expected)

    @action
    def size(self) -> None:
        assert len(self.map) == len(self.expected)

    @action
    def items(self) -> None:
        assert dict(self.map.items()) == self.expected

    @action
    def clear(self) -> None:
        self.map = Map()
        self.expected = {}
