"""Words and orders that explanations are written with: lists, ordinal numbers, orders of steps."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

_ORDINAL_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


def ordinal(number: int) -> str:
    """Return a number as in "the 21st".

    >>> [ordinal(number) for number in (1, 2, 11, 23)]
    ['1st', '2nd', '11th', '23rd']
    """
    teens = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teens else _ORDINAL_ENDINGS.get(number % 10, 'th')}"


def listed(texts: Sequence[str], word: str = "and") -> str:
    """Join texts as in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} {word} {texts[-1]}"


def closure(pairs: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return all pairs that follow from some: if a is before b, and b before c, then a before c."""
    closed = set(pairs)
    while True:
        more = {(i, k) for i, j in closed for j2, k in closed if j == j2} - closed
        if not more:
            return closed
        closed |= more


def reduced_order(pairs: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return the pairs that do not follow from others.

    >>> sorted(reduced_order({(0, 1), (1, 2), (0, 2)}))
    [(0, 1), (1, 2)]
    """
    closed = closure(pairs)
    return {
        (i, k)
        for i, k in closed
        if not any((i, j) in closed and (j, k) in closed for j in {b for _, b in closed})
    }


def layers_of(steps: Sequence[int], pairs: set[tuple[int, int]]) -> list[list[int]] | None:
    """Return steps in layers, each completely before the next; None if they have no such form.

    >>> layers_of([0, 1, 2], {(0, 2), (1, 2)})
    [[0, 1], [2]]
    >>> layers_of([0, 1, 2, 3], {(0, 2), (1, 3)})
    """
    closed = closure(pairs)
    depth = dict.fromkeys(steps, 0)
    for i, j in sorted(closed, key=lambda pair: pair[1]):
        if i in depth and j in depth:
            depth[j] = max(depth[j], depth[i] + 1)
    deepest = max(depth.values(), default=0)
    layers = [[i for i in steps if depth[i] == d] for d in range(deepest + 1)]
    for above, below in itertools.pairwise(layers):
        if any((i, j) not in closed for i in above for j in below):
            return None
    return layers
