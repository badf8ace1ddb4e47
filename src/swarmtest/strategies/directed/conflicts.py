"""Which aims conflict, as bit sets.

A feature that triggers the aims A and suppresses the aims B makes every aim of A conflict with
every aim of B, so the conflict graph is a union of complete bipartite graphs, one per feature.
Kept that way it has far fewer parts than edges, which is what a SAT solver wants to be told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from swarmtest.strategies.directed.aim import Aim


@dataclass(frozen=True)
class Conflicts:
    """A graph whose vertices are aims, by number, and whose edges are conflicts.

    >>> Conflicts(3, ((0b001, 0b110),)).neighbours
    (6, 1, 1)
    """

    size: int
    sides: tuple[tuple[int, int], ...]
    """Pairs of disjoint sets of vertices; each of the one conflicts with each of the other."""

    @classmethod
    def between(cls, aims: Sequence[Aim]) -> Conflicts:
        """The conflicts between aims."""
        sides: dict[str, list[int]] = {}
        for number, aim in enumerate(aims):
            for side, names in enumerate((aim.triggers, aim.suppressors)):
                for name in names:
                    sides.setdefault(name, [0, 0])[side] |= 1 << number
        both = {(one, other) for one, other in sides.values() if one and other}
        return cls(len(aims), tuple(sorted(both)))

    @cached_property
    def neighbours(self) -> tuple[int, ...]:
        """For each vertex the set of those that it conflicts with."""
        found = [0] * self.size
        for one, other in self.sides:
            for vertex in members(one):
                found[vertex] |= other
            for vertex in members(other):
                found[vertex] |= one
        return tuple(found)

    def within(self, vertices: int) -> tuple[tuple[int, int], ...]:
        """The sides of the conflicts between some of the vertices."""
        cut = ((one & vertices, other & vertices) for one, other in self.sides)
        return tuple(sorted({pair for pair in cut if pair[0] and pair[1]}))


def members(bits: int) -> Iterator[int]:
    """The numbers in a bit set, smallest first.

    >>> list(members(0b1010))
    [1, 3]
    """
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
