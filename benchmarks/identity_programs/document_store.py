"""A store of nested documents: fields are set, moved and removed by path."""

from __future__ import annotations

import copy
from typing import Any

from switches import bug

from swarmtest import Machine, action, integers, lists

BUGS = (
    "copies share their parts",
    "removing keeps empty parents",
    "move into itself",
    "append to a missing list",
    "merge replaces lists",
)
PATHS = lists(integers(0, 3), min_size=1, max_size=3)
VALUES = integers(0, 9)


class Documents:
    def __init__(self) -> None:
        self.root: dict[str, Any] = {}

    def _parent(self, path: list[str], create: bool = False) -> dict[str, Any] | None:
        node = self.root
        for name in path[:-1]:
            if not isinstance(node.get(name), dict):
                if not create:
                    return None
                node[name] = {}
            node = node[name]
        return node

    def set(self, path: list[str], value: Any) -> None:
        parent = self._parent(path, create=True)
        assert parent is not None
        parent[path[-1]] = value

    def get(self, path: list[str]) -> Any:
        parent = self._parent(path)
        return None if parent is None else parent.get(path[-1])

    def remove(self, path: list[str]) -> None:
        parent = self._parent(path)
        if parent is None or path[-1] not in parent:
            return
        del parent[path[-1]]
        if not parent and len(path) > 1:
            if bug("removing keeps empty parents") and len(path) > 2:
                return
            self.remove(path[:-1])

    def copy(self, source: list[str], target: list[str]) -> None:
        found = self.get(source)
        if found is None:
            return
        if not bug("copies share their parts"):
            found = copy.deepcopy(found)
        self.set(target, found)

    def move(self, source: list[str], target: list[str]) -> None:
        if target[: len(source)] == source and not bug("move into itself"):
            return
        found = self.get(source)
        if found is not None:
            self.remove(source)
            self.set(target, found)

    def append(self, path: list[str], value: int) -> None:
        found = self.get(path)
        if isinstance(found, list):
            found.append(value)
        elif found is None and not bug("append to a missing list"):
            self.set(path, [value])
        elif found is None:
            self.get(path).append(value)

    def merge(self, path: list[str], other: dict[str, Any]) -> None:
        if not isinstance(self.get(path), dict):
            self.set(path, {})
        into = self.get(path)
        for name, value in other.items():
            if isinstance(into.get(name), list) and not bug("merge replaces lists"):
                into[name] += value
            else:
                into[name] = list(value)


class DocumentsMachine(Machine):
    steps = 25

    def start(self) -> None:
        self.documents = Documents()
        self.model: dict[tuple[int, ...], Any] = {}

    def _free(self, path: list[int]) -> None:
        """Forget what is at or below a path, and values at its parents."""
        whole = tuple(path)
        for other in list(self.model):
            if other[: len(whole)] == whole or whole[: len(other)] == other:
                del self.model[other]

    def _leaves(self, node: dict[str, Any], path: tuple[int, ...] = ()) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for name, value in node.items():
            below = (*path, int(name[1:]))
            if isinstance(value, dict):
                assert value, f"an empty document at {below}"
                found |= self._leaves(value, below)
            else:
                found[below] = value
        return found

    def _compare(self) -> None:
        assert self._leaves(self.documents.root) == self.model

    def _below(self, path: list[int]) -> dict[tuple[int, ...], Any]:
        whole = tuple(path)
        return {
            other[len(whole) :]: copy.deepcopy(value)
            for other, value in self.model.items()
            if other[: len(whole)] == whole
        }

    def _put(self, target: list[int], parts: dict[tuple[int, ...], Any]) -> None:
        if parts:
            self._free(target)
            self.model |= {(*target, *rest): value for rest, value in parts.items()}

    @action(path=PATHS, value=VALUES)
    def set(self, path: list[int], value: int) -> None:
        self.documents.set(names(path), value)
        self._put(path, {(): value})
        self._compare()

    @action(path=PATHS)
    def remove(self, path: list[int]) -> None:
        self.documents.remove(names(path))
        if self._below(path):
            for other in [p for p in self.model if p[: len(path)] == tuple(path)]:
                del self.model[other]
        self._compare()

    @action(source=PATHS, target=PATHS)
    def copy(self, source: list[int], target: list[int]) -> None:
        self.documents.copy(names(source), names(target))
        self._put(target, self._below(source))
        self._compare()

    @action(source=PATHS, target=PATHS)
    def move(self, source: list[int], target: list[int]) -> None:
        self.documents.move(names(source), names(target))
        if target[: len(source)] != source:
            parts = self._below(source)
            for rest in parts:
                del self.model[(*source, *rest)]
            self._put(target, parts)
        self._compare()

    @action(path=PATHS, value=VALUES)
    def append(self, path: list[int], value: int) -> None:
        self.documents.append(names(path), value)
        if not self._below(path):
            self._put(path, {(): [value]})
        elif isinstance(self.model.get(tuple(path)), list):
            self.model[tuple(path)].append(value)
        self._compare()

    @action(path=PATHS, name=integers(0, 3), values=lists(VALUES, min_size=1, max_size=2))
    def merge(self, path: list[int], name: int, values: list[int]) -> None:
        self.documents.merge(names(path), {f"f{name}": values})
        field = (*path, name)
        if isinstance(self.model.get(field), list):
            self.model[field] = self.model[field] + values
        else:
            self._free_for_field(path)
            self._put(list(field), {(): list(values)})
        self._compare()

    def _free_for_field(self, path: list[int]) -> None:
        """A value at the path or above it gives way to a document."""
        for length in range(1, len(path) + 1):
            self.model.pop(tuple(path[:length]), None)


def names(path: list[int]) -> list[str]:
    return [f"f{part}" for part in path]
