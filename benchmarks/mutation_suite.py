"""The pytest suite of `red_black.py` that `mutation.py` runs on mutants, as one would write it.

The benchmark copies it, as ``tests/test_red_black.py``, into a project of its own for each tool.
"""

from __future__ import annotations

import random

import pytest
from red_black import BLACK, BrokenTree, Node, RedBlackTree


@pytest.fixture
def tree() -> RedBlackTree:
    return RedBlackTree()


def filled(keys: list[int]) -> RedBlackTree:
    tree = RedBlackTree()
    for key in keys:
        tree.insert(key)
    return tree


def test_a_new_tree_is_empty(tree: RedBlackTree) -> None:
    assert len(tree) == 0
    assert list(tree) == []
    tree.check()


def test_a_key_that_was_inserted_is_found(tree: RedBlackTree) -> None:
    assert tree.insert(5)
    assert 5 in tree
    assert 4 not in tree
    assert 6 not in tree


def test_a_key_is_inserted_once(tree: RedBlackTree) -> None:
    assert tree.insert(5)
    assert not tree.insert(5)
    assert len(tree) == 1


def test_deleting_from_an_empty_tree_says_no(tree: RedBlackTree) -> None:
    assert not tree.delete(1)


def test_a_deleted_key_is_gone(tree: RedBlackTree) -> None:
    tree.insert(1)
    assert tree.delete(1)
    assert 1 not in tree
    assert len(tree) == 0
    assert not tree.delete(1)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 20, 64, 200])
def test_ascending_keys_stay_in_order(count: int) -> None:
    tree = filled(list(range(count)))
    tree.check()
    assert list(tree) == list(range(count))
    assert len(tree) == count


@pytest.mark.parametrize("count", [1, 2, 3, 7, 20, 64, 200])
def test_descending_keys_stay_in_order(count: int) -> None:
    tree = filled(list(range(count, 0, -1)))
    tree.check()
    assert list(tree) == list(range(1, count + 1))


@pytest.mark.parametrize("seed", range(12))
def test_random_keys_stay_in_order(seed: int) -> None:
    keys = random.Random(seed).sample(range(1000), 60)
    tree = filled(keys)
    tree.check()
    assert list(tree) == sorted(keys)
    assert all(key in tree for key in keys)


@pytest.mark.parametrize("seed", range(12))
def test_keys_are_deleted_in_any_order(seed: int) -> None:
    rng = random.Random(seed)
    keys = rng.sample(range(1000), 40)
    tree = filled(keys)
    rng.shuffle(keys)
    while keys:
        assert tree.delete(keys.pop())
        tree.check()
        assert list(tree) == sorted(keys)


@pytest.mark.parametrize("seed", range(12))
def test_a_tree_is_a_set(seed: int) -> None:
    rng = random.Random(seed)
    tree, model = RedBlackTree(), set()
    for _ in range(300):
        key = rng.randrange(40)
        if rng.random() < 0.55:
            assert tree.insert(key) == (key not in model)
            model.add(key)
        else:
            assert tree.delete(key) == (key in model)
            model.discard(key)
        assert len(tree) == len(model)
    tree.check()
    assert list(tree) == sorted(model)


@pytest.mark.parametrize("count", [50, 500])
def test_a_tree_is_shallow(count: int) -> None:
    tree = filled(list(range(count)))

    def depth(node: Node) -> int:
        return 0 if node is tree._nil else 1 + max(depth(node.left), depth(node.right))

    assert depth(tree._root) <= 2 * (count + 1).bit_length()


def test_check_finds_a_red_root() -> None:
    tree = filled([1])
    tree._root.red = True
    with pytest.raises(BrokenTree, match="root is red"):
        tree.check()


def test_check_finds_a_red_child_of_a_red_node() -> None:
    tree = filled([1, 2, 3, 4])
    tree._root.right.red = True
    with pytest.raises(BrokenTree, match="child of it are red"):
        tree.check()


def test_check_finds_keys_out_of_order() -> None:
    tree = filled([1, 2, 3])
    tree._root.left.key = 9
    with pytest.raises(BrokenTree, match="out of order"):
        tree.check()


def test_check_finds_a_missing_black_node() -> None:
    tree = filled([1, 2, 3])
    tree._root.left.red = BLACK
    with pytest.raises(BrokenTree, match="1 black nodes to the left, 0 to the right"):
        tree.check()


def test_check_finds_a_wrong_size() -> None:
    tree = filled([1, 2, 3])
    tree._size = 4
    with pytest.raises(BrokenTree, match="3 keys, but a size of 4"):
        tree.check()
