"""`jsonpatch.make_patch`: a patch that is made of two documents turns the first into the second."""

from __future__ import annotations

import copy
from typing import Any

import old_collections  # noqa: F401  # before jsonpatch is imported
from jsonpatch import apply_patch, make_patch

from swarmtest import Machine, action, integers

KEYS = integers(0, 40)
VALUES = integers(0, 500)
PLACES = integers(0, 5)


def name(key: int) -> str:
    """Return a key of a document; every second one looks like a number."""
    return str(key) if key % 2 else f"k{key}"


class JsonPatchMachine(Machine):
    """Two documents are edited: a dict with a list and a dict in it."""

    steps = 14

    def start(self) -> None:
        self.old: dict[str, Any] = {"list": [], "dict": {}}
        self.new: dict[str, Any] = {"list": [], "dict": {}}

    @action(value=VALUES)
    def append_old(self, value: int) -> None:
        self.old["list"].append(value)

    @action(place=PLACES, value=VALUES)
    def insert_new(self, place: int, value: int) -> None:
        self.new["list"].insert(place, value)

    @action(key=KEYS, value=VALUES)
    def set_old(self, key: int, value: int) -> None:
        self.old["dict"][name(key)] = value

    @action(key=KEYS, value=VALUES)
    def set_new(self, key: int, value: int) -> None:
        self.new["dict"][name(key)] = value

    @action(key=KEYS, value=VALUES)
    def set_top(self, key: int, value: int) -> None:
        self.new[name(key)] = value

    @action(key=KEYS)
    def delete(self, key: int) -> None:
        self.new["dict"].pop(name(key), None)

    @action(place=PLACES)
    def drop(self, place: int) -> None:
        del self.new["list"][place : place + 1]

    @action
    def copy_all(self) -> None:
        self.old = copy.deepcopy(self.new)

    @action
    def patch(self) -> None:
        patch = make_patch(self.old, self.new)
        assert apply_patch(self.old, patch) == self.new

    @action
    def patch_back(self) -> None:
        patch = make_patch(self.new, self.old)
        assert apply_patch(self.new, patch) == self.old
