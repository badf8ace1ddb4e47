"""A red-black tree: the CPU-bound program that `instrument.py` watches.

Every statement stands on one line, so that tools which count physical lines and tools which count
statements have to agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

RED, BLACK = True, False


class Node:
    """A key with its colour and its neighbours in the tree."""

    __slots__ = ("key", "left", "parent", "red", "right")

    left: Node
    right: Node
    parent: Node

    def __init__(self, key: int, red: bool, nil: Node | None) -> None:
        self.key = key
        self.red = red
        self.left = self.right = self.parent = nil or self


class BrokenTree(Exception):
    """The tree is no red-black tree."""


class RedBlackTree:
    """A set of keys in order; inserting, deleting and finding take logarithmic time."""

    def __init__(self) -> None:
        self._nil = Node(0, BLACK, None)
        self._root = self._nil
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        node, nil = self._root, self._nil
        above: list[Node] = []
        while above or node is not nil:
            if node is not nil:
                above.append(node)
                node = node.left
            else:
                node = above.pop()
                yield node.key
                node = node.right

    def __contains__(self, key: int) -> bool:
        return self._find(key) is not self._nil

    def insert(self, key: int) -> bool:
        """Add a key; whether it is new."""
        nil = self._nil
        above, below = nil, self._root
        while below is not nil:
            above = below
            if key < above.key:
                below = above.left
            elif key > above.key:
                below = above.right
            else:
                return False
        node = Node(key, RED, nil)
        node.parent = above
        if above is nil:
            self._root = node
        elif key < above.key:
            above.left = node
        else:
            above.right = node
        self._size += 1
        self._repair_insertion(node)
        return True

    def delete(self, key: int) -> bool:
        """Take a key out; whether it was there."""
        node = self._find(key)
        if node is self._nil:
            return False
        removed = node
        if node.left is not self._nil and node.right is not self._nil:
            removed = self._first(node.right)
            node.key = removed.key
        child = removed.right if removed.left is self._nil else removed.left
        self._replace(removed, child)
        self._size -= 1
        if not removed.red:
            self._repair_deletion(child)
        return True

    def check(self) -> None:
        """Raise `BrokenTree` unless the order, the colours and the size are right."""
        if self._root.red:
            raise BrokenTree("the root is red")
        self._black_height(self._root)
        keys = list(self)
        if len(keys) != self._size:
            raise BrokenTree(f"{len(keys)} keys, but a size of {self._size}")
        if any(one >= other for one, other in pairwise(keys)):
            raise BrokenTree("the keys are out of order")

    def _black_height(self, node: Node) -> int:
        if node is self._nil:
            return 0
        if node.red and (node.left.red or node.right.red):
            raise BrokenTree(f"{node.key} and a child of it are red")
        left = self._black_height(node.left)
        right = self._black_height(node.right)
        if left != right:
            raise BrokenTree(f"{node.key} has {left} black nodes to the left, {right} to the right")
        return left if node.red else left + 1

    def _find(self, key: int) -> Node:
        node, nil = self._root, self._nil
        while node is not nil:
            if key < node.key:
                node = node.left
            elif key > node.key:
                node = node.right
            else:
                break
        return node

    def _first(self, node: Node) -> Node:
        while node.left is not self._nil:
            node = node.left
        return node

    def _replace(self, node: Node, child: Node) -> None:
        """Hang a child in the place of a node; the sentinel also learns its parent."""
        parent = node.parent
        child.parent = parent
        if parent is self._nil:
            self._root = child
        elif node is parent.left:
            parent.left = child
        else:
            parent.right = child

    def _rotate_left(self, node: Node) -> None:
        riser = node.right
        node.right = riser.left
        if riser.left is not self._nil:
            riser.left.parent = node
        self._replace(node, riser)
        riser.left = node
        node.parent = riser

    def _rotate_right(self, node: Node) -> None:
        riser = node.left
        node.left = riser.right
        if riser.right is not self._nil:
            riser.right.parent = node
        self._replace(node, riser)
        riser.right = node
        node.parent = riser

    def _repair_insertion(self, node: Node) -> None:
        while node.parent.red:
            parent = node.parent
            above = parent.parent
            on_left = parent is above.left
            uncle = above.right if on_left else above.left
            if uncle.red:
                parent.red = uncle.red = BLACK
                above.red = RED
                node = above
                continue
            if on_left:
                if node is parent.right:
                    self._rotate_left(parent)
                    parent = node
                self._rotate_right(above)
            else:
                if node is parent.left:
                    self._rotate_right(parent)
                    parent = node
                self._rotate_left(above)
            parent.red = BLACK
            above.red = RED
            break
        self._root.red = BLACK

    def _repair_deletion(self, node: Node) -> None:
        """`node` lacks one black node above it."""
        while node is not self._root and not node.red:
            on_left = node is node.parent.left
            node = self._lift_left(node) if on_left else self._lift_right(node)
        node.red = BLACK

    def _lift_left(self, node: Node) -> Node:
        parent = node.parent
        sibling = parent.right
        if sibling.red:
            sibling.red, parent.red = BLACK, RED
            self._rotate_left(parent)
            sibling = parent.right
        if not sibling.left.red and not sibling.right.red:
            sibling.red = RED
            return parent
        if not sibling.right.red:
            sibling.left.red, sibling.red = BLACK, RED
            self._rotate_right(sibling)
            sibling = parent.right
        sibling.red, parent.red, sibling.right.red = parent.red, BLACK, BLACK
        self._rotate_left(parent)
        return self._root

    def _lift_right(self, node: Node) -> Node:
        parent = node.parent
        sibling = parent.left
        if sibling.red:
            sibling.red, parent.red = BLACK, RED
            self._rotate_right(parent)
            sibling = parent.left
        if not sibling.left.red and not sibling.right.red:
            sibling.red = RED
            return parent
        if not sibling.left.red:
            sibling.right.red, sibling.red = BLACK, RED
            self._rotate_left(sibling)
            sibling = parent.left
        sibling.red, parent.red, sibling.left.red = parent.red, BLACK, BLACK
        self._rotate_right(parent)
        return self._root
