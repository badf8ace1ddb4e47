"""Numbering the ways through a function without loops (Ball and Larus, MICRO 1996).

Adding a number at some decisions gives every way from entry to exit a sum of its own, from 0 to the
number of ways; so a call is told by one store into a list, where other functions need a string. The
sums of two ways that have come to the same place differ as well, or their ends could not be told
apart: so the sum and the line of an exception tell where a call was when it failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

MOST = 64
"""Ways through a function up to which they are numbered."""


def number_ways(outline: Any) -> tuple[int, dict[str, int]] | None:
    """How many ways there are, and what each symbol of the outline adds.

    None if there are too many, or if a loop, ``try`` or ``with`` is in the function.

    >>> number_ways(([], [("if", 1, "a", [("jump", 2, "return")], "", []), ("run", 3)]))
    (2, {'a': 1})
    """
    added: dict[str, int] = {}
    count = _count(outline[1], 1, added)
    return (count, added) if 0 < count <= MOST else None


def _count(items: Sequence[Any], after: int, added: dict[str, int]) -> int:
    """The ways through a suite and what comes `after` it; 0 if they cannot be numbered."""
    ways = after
    for kind, *parts in reversed(items):
        if kind == "jump":
            ways = 1
        elif kind == "if":
            _, symbol, body, _, orelse = parts
            inside, beside = _count(body, ways, added), _count(orelse, ways, added)
            added[symbol] = beside
            ways = inside + beside if inside and beside else 0
        elif kind == "match":
            ways = _count_cases(parts[1], 0 if parts[2] else ways, ways, added)
        elif kind != "run":
            return 0
        if not 0 < ways <= MOST:
            return 0
    return ways


def _count_cases(cases: Any, none: int, after: int, added: dict[str, int]) -> int:
    total = none
    for symbol, body in cases:
        inside = _count(body, after, added)
        if not inside:
            return 0
        added[symbol] = total
        total += inside
    return total


def symbols_of_way(outline: Any, added: dict[str, int], way: int, line: int = 0) -> str:
    """The symbols of a way; up to the block with a `line`, if it ended there."""
    reader = _Reader(outline[0], added, way, line)
    reader.suite(outline[1])
    return "".join(reader.symbols)


class _Reader:
    """Walks the way that a sum tells; True from a suite means that the way goes no further."""

    def __init__(self, blocks: Any, added: dict[str, int], way: int, line: int) -> None:
        self._blocks = blocks
        self._added = added
        self._left = way
        self._line = line
        self.symbols: list[str] = []

    def suite(self, items: Sequence[Any]) -> bool:
        for kind, block, *parts in items:
            first, last, _, _, clauses = self._blocks[block]
            if any(a <= self._line <= b for a, b in ((first, last), *clauses)):
                return True
            if kind == "jump" or self._leaves(kind, parts):
                return True
        return False

    def _leaves(self, kind: str, parts: Sequence[Any]) -> bool:
        if kind == "if":
            symbol, body, _, orelse = parts
            return self.suite(body if self._takes(symbol) else orelse)
        if kind == "match":
            for symbol, body in reversed(parts[0]):
                if self._takes(symbol):
                    return self.suite(body)
        return False

    def _takes(self, symbol: str) -> bool:
        if self._left < self._added[symbol]:
            return False
        self._left -= self._added[symbol]
        self.symbols.append(symbol)
        return True
