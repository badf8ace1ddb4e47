"""A binary search tree with sizes in its nodes. Two invariants and answers are checked."""

from __future__ import annotations

from collections.abc import Iterator

from switches import bug

from swarmtest import Machine, action, integers, invariant

BUGS = (
    "size of a replaced node",
    "delete with two children",
    "rank of the largest",
    "split loses a node",
    "rotation without sizes",
    "ceiling of a missing key",
)
KEYS = integers(0, 15)


class Node:
    def __init__(self, key: int) -> None:
        self.key = key
        self.left: Node | None = None
        self.right: Node | None = None
        self.size = 1

    def update(self) -> None:
        self.size = 1 + size(self.left) + size(self.right)


def size(node: Node | None) -> int:
    return node.size if node is not None else 0


def keys(node: Node | None) -> Iterator[int]:
    if node is not None:
        yield from keys(node.left)
        yield node.key
        yield from keys(node.right)


class Tree:
    def __init__(self) -> None:
        self.root: Node | None = None

    def add(self, key: int) -> None:
        self.root = self._add(self.root, key)

    def _add(self, node: Node | None, key: int) -> Node:
        if node is None:
            return Node(key)
        if key < node.key:
            node.left = self._add(node.left, key)
        elif key > node.key:
            node.right = self._add(node.right, key)
        elif bug("size of a replaced node"):
            node.size += 1
            return node
        node.update()
        return node

    def discard(self, key: int) -> None:
        self.root = self._discard(self.root, key)

    def _discard(self, node: Node | None, key: int) -> Node | None:
        if node is None:
            return None
        if key < node.key:
            node.left = self._discard(node.left, key)
        elif key > node.key:
            node.right = self._discard(node.right, key)
        elif node.left is None:
            return node.right
        elif node.right is None:
            return node.left
        else:
            follower = node.right
            while follower.left is not None:
                follower = follower.left
            if bug("delete with two children") and follower is not node.right:
                return follower
            node.right = self._discard(node.right, follower.key)
            node.key = follower.key
        node.update()
        return node

    def pop_smallest(self) -> int:
        if self.root is None:
            raise LookupError("the tree is empty")
        smallest = self.select(0)
        self.discard(smallest)
        return smallest

    def select(self, index: int) -> int:
        node = self.root
        while True:
            before = size(node.left)  # type: ignore[union-attr]
            if index == before:
                return node.key  # type: ignore[union-attr]
            if index < before:
                node = node.left  # type: ignore[union-attr]
            else:
                index -= before + 1
                node = node.right  # type: ignore[union-attr]

    def rank(self, key: int) -> int:
        node, smaller = self.root, 0
        while node is not None:
            if key <= node.key:
                node = node.left
            else:
                smaller += size(node.left) + 1
                node = node.right
        if bug("rank of the largest") and 2 < smaller == size(self.root):
            smaller -= 1
        return smaller

    def ceiling(self, key: int) -> int | None:
        node, found = self.root, None
        while node is not None:
            if key <= node.key:
                found, node = node, node.left
            else:
                node = node.right
        if bug("ceiling of a missing key"):
            return found.key  # type: ignore[union-attr]
        return found.key if found is not None else None

    def drop_above(self, key: int) -> None:
        """Delete all keys above a key."""
        kept = [other for other in keys(self.root) if other <= key]
        if bug("split loses a node") and len(kept) > 3:
            kept = kept[:-1]
        self.root = None
        for other in kept:
            self.add(other)

    def rotate(self) -> None:
        """Make the left child the root, if there is one."""
        old = self.root
        if old is None or old.left is None:
            return
        new = old.left
        old.left, new.right = new.right, old
        if not bug("rotation without sizes"):
            old.update()
        new.update()
        self.root = new


class TreeMachine(Machine):
    steps = 20

    def start(self) -> None:
        self.tree = Tree()
        self.model: set[int] = set()

    @action(key=KEYS)
    def add(self, key: int) -> None:
        self.tree.add(key)
        self.model.add(key)

    @action(key=KEYS)
    def discard(self, key: int) -> None:
        self.tree.discard(key)
        self.model.discard(key)

    @action(raises=LookupError)
    def pop_smallest(self) -> None:
        popped = self.tree.pop_smallest()
        assert popped == min(self.model)
        self.model.remove(popped)

    @action(index=KEYS, when=lambda self: self.model)
    def select(self, index: int) -> None:
        index %= len(self.model)
        assert self.tree.select(index) == sorted(self.model)[index]

    @action(key=KEYS)
    def rank(self, key: int) -> None:
        smaller = sum(other < key for other in self.model)
        assert self.tree.rank(key) == smaller, f"rank of {key}: {self.tree.rank(key)}, {smaller}"

    @action(key=KEYS)
    def ceiling(self, key: int) -> None:
        assert self.tree.ceiling(key) == min((k for k in self.model if k >= key), default=None)

    @action(key=KEYS)
    def drop_above(self, key: int) -> None:
        self.tree.drop_above(key)
        self.model = {other for other in self.model if other <= key}

    @action
    def rotate(self) -> None:
        self.tree.rotate()

    @invariant
    def has_the_keys(self) -> None:
        assert list(keys(self.tree.root)) == sorted(self.model)

    @invariant
    def knows_its_size(self) -> None:
        assert size(self.tree.root) == len(self.model)
