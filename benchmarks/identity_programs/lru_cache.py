"""A cache that forgets what was used least recently, with named entries."""

from __future__ import annotations

import uuid

from switches import bug

from swarmtest import Machine, action, integers, invariant

BUGS = (
    "get does not refresh",
    "delete keeps the size",
    "resize keeps entries",
    "replace counts twice",
    "rename loses the order",
    "items of a deleted one",
)
KEYS = integers(0, 7)


class Cache:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.values: dict[str, int] = {}
        self.order: list[str] = []
        self.size = 0

    def _touch(self, key: str) -> None:
        self.order.remove(key)
        self.order.append(key)

    def _evict(self) -> None:
        while self.size > self.limit:
            oldest = self.order.pop(0)
            del self.values[oldest]
            self.size -= 1

    def put(self, key: str, value: int) -> None:
        if key in self.values:
            if bug("replace counts twice"):
                self.size += 1
            self._touch(key)
        else:
            self.order.append(key)
            self.size += 1
        self.values[key] = value
        self._evict()

    def get(self, key: str) -> int | None:
        if key in self.values and not bug("get does not refresh"):
            self._touch(key)
        return self.values.get(key)

    def delete(self, key: str) -> None:
        if key not in self.values:
            raise KeyError(key)
        del self.values[key]
        if not (bug("items of a deleted one") and len(self.order) > 3):
            self.order.remove(key)
        if not bug("delete keeps the size"):
            self.size -= 1

    def resize(self, limit: int) -> None:
        self.limit = limit
        if not bug("resize keeps entries"):
            self._evict()

    def rename(self, key: str, new: str) -> None:
        self.values[new] = self.values.pop(key)
        place = self.order.index(key)
        if bug("rename loses the order") and place > 1:
            del self.order[place]
        else:
            self.order[place] = new

    def oldest(self) -> tuple[str, int]:
        if not self.order:
            raise LookupError("the cache is empty")
        return self.order[0], self.values[self.order[0]]


class CacheMachine(Machine):
    steps = 20

    def start(self) -> None:
        self.cache = Cache(4)
        self.model: dict[str, int] = {}
        self.limit = 4
        self.session = uuid.UUID(int=id(self) % 2**64)

    def _shrink(self) -> None:
        while len(self.model) > self.limit:
            del self.model[next(iter(self.model))]

    def _fail(self, what: str) -> None:
        raise AssertionError(f"session {self.session}: {what}")

    @action(key=KEYS, value=integers(0, 9))
    def put(self, key: int, value: int) -> None:
        self.cache.put(f"k{key}", value)
        self.model.pop(f"k{key}", None)
        self.model[f"k{key}"] = value
        self._shrink()

    @action(key=KEYS)
    def get(self, key: int) -> None:
        found, wanted = self.cache.get(f"k{key}"), self.model.get(f"k{key}")
        if wanted is not None:
            self.model[f"k{key}"] = self.model.pop(f"k{key}")
        if found != wanted:
            self._fail(f"k{key} is {found}, not {wanted}")

    @action(key=KEYS, raises=KeyError)
    def delete(self, key: int) -> None:
        if f"k{key}" in self.model:
            del self.model[f"k{key}"]
            self.cache.delete(f"k{key}")
        else:
            self.cache.delete(f"k{key}")
            self._fail(f"k{key} was deleted, but not there")

    @action(limit=integers(1, 6))
    def resize(self, limit: int) -> None:
        self.cache.resize(limit)
        self.limit = limit
        self._shrink()

    @action(key=KEYS, when=lambda self: self.model)
    def rename(self, key: int) -> None:
        old = list(self.model)[key % len(self.model)]
        if f"n{key}" in self.model:
            return
        self.cache.rename(old, f"n{key}")
        self.model = {(f"n{key}" if k == old else k): v for k, v in self.model.items()}

    @action(when=lambda self: self.model)
    def oldest(self) -> None:
        assert self.cache.oldest() == next(iter(self.model.items()))

    @invariant
    def has_the_same_entries(self) -> None:
        assert self.cache.values == self.model

    @invariant
    def knows_its_size(self) -> None:
        assert self.cache.size == len(self.cache.values)
