"""Large cliques, as a bound from below: aims that all conflict with each other stay apart.

First greedily from each vertex; then branch and bound over bit sets, where a colouring of the
candidates bounds how many of them a clique can have (Tomita and Seki, "An efficient
branch-and-bound algorithm for finding a maximum clique", 2003), for a limited number of steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from swarmtest.strategies.directed.conflicts import members


def large_clique(neighbours: Sequence[int], vertices: int, steps: int = 5_000) -> int:
    """A clique among `vertices`, as a bit set: the largest, if the steps suffice.

    >>> large_clique((0b110, 0b101, 0b011, 0), 0b1111)
    7
    """
    search = _Search(neighbours, _greedy(neighbours, vertices), steps)
    search.extend(0, vertices)
    return search.best


def _greedy(neighbours: Sequence[int], vertices: int) -> int:
    """From each vertex, take in the candidate that keeps the most candidates."""
    best = 0
    for start in members(vertices):
        clique, left = 1 << start, neighbours[start] & vertices
        if left.bit_count() < best.bit_count():
            continue
        while left:
            chosen = max(members(left), key=lambda v: (neighbours[v] & left).bit_count())
            clique |= 1 << chosen
            left &= neighbours[chosen]
        if clique.bit_count() > best.bit_count():
            best = clique
    return best


class _Search:
    def __init__(self, neighbours: Sequence[int], best: int, steps: int) -> None:
        self._neighbours = neighbours
        self.best = best
        self._steps = steps

    def extend(self, clique: int, candidates: int) -> None:
        """Look for larger cliques that contain `clique` and some of the candidates."""
        size = clique.bit_count()
        for vertex, colours in reversed(self._in_colours(candidates)):
            if size + colours <= self.best.bit_count() or not self._steps:
                return
            self._steps -= 1
            grown = clique | 1 << vertex
            left = candidates & self._neighbours[vertex]
            if left:
                self.extend(grown, left)
            elif size + 1 > self.best.bit_count():
                self.best = grown
            candidates ^= 1 << vertex

    def _in_colours(self, candidates: int) -> list[tuple[int, int]]:
        """The candidates, each with the number of colours used up to it."""
        found = []
        colour = 0
        while candidates:
            colour += 1
            free = candidates
            while free:
                low = free & -free
                vertex = low.bit_length() - 1
                found.append((vertex, colour))
                candidates ^= low
                free &= ~(low | self._neighbours[vertex])
        return found
