"""Fast colourings and bounds for a conflict graph, without a proof that they are the best.

- Colourings: DSATUR, improved by colouring again in other orders.
- Large cliques, as a lower bound: aims that all conflict with each other need different colours.
  First greedily from each vertex; then branch and bound over bit sets, where a colouring of the
  candidates bounds how many of them a clique can have (Tomita and Seki, "An efficient
  branch-and-bound algorithm for finding a maximum clique", 2003), for a limited number of steps.
- Smaller graphs that need as many colours. The connected components are coloured one by one. In
  each, two kinds of vertices can wait until the others have their colours: a vertex with fewer
  neighbours than there are colours anyway, and a vertex whose neighbours are all neighbours of
  another vertex, not adjacent to it, whose colour it can share.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

from swarmtest.strategies.directed.aim import members


def dsatur(neighbours: Sequence[int], vertices: int) -> dict[int, int]:
    """Return a colouring, made by always colouring the vertex whose neighbours have most colours.

    Brélaz, "New methods to color the vertices of a graph", 1979.

    >>> dsatur((0b110, 0b001, 0b001), 0b111)
    {0: 0, 1: 1, 2: 1}
    """
    colours: dict[int, int] = {}
    seen = dict.fromkeys(members(vertices), 0)  # the colours around each, as a bit set
    degree = {v: (neighbours[v] & vertices).bit_count() for v in seen}
    while seen:
        vertex = max(seen, key=lambda v: (seen[v].bit_count(), degree[v], -v))
        taken = seen.pop(vertex)
        colours[vertex] = colour = lowest_not_in(taken)
        for other in members(neighbours[vertex] & vertices):
            if other in seen:
                seen[other] |= 1 << colour
    return colours


def improved(
    neighbours: Sequence[int], colours: dict[int, int], enough: int, rounds: int = 100
) -> dict[int, int]:
    """Return a colouring with as many or fewer colours, by colouring again in other orders.

    It stops at `enough` colours. If the vertices are ordered colour by colour, they never need more
    colours than before, whatever the order of the colours (Culberson, "Iterated greedy graph
    coloring", 1992).
    """
    rng = random.Random(0)
    classes = _classes(colours)
    for turn in range(rounds):
        if len(classes) <= enough:
            break
        if turn % 3 == 0:
            classes.reverse()
        elif turn % 3 == 1:
            classes.sort(key=int.bit_count, reverse=True)
        else:
            rng.shuffle(classes)
        order = [vertex for colour_class in classes for vertex in members(colour_class)]
        classes = first_fit(neighbours, order)
    return {
        vertex: colour
        for colour, colour_class in enumerate(classes)
        for vertex in members(colour_class)
    }


def first_fit(neighbours: Sequence[int], order: Iterable[int]) -> list[int]:
    """Put each vertex, in this order, into the first class without a neighbour; return the classes.

    >>> first_fit((0b110, 0b001, 0b001), [1, 2, 0])
    [6, 1]
    """
    classes: list[int] = []
    for vertex in order:
        around = neighbours[vertex]
        for number, others in enumerate(classes):
            if not others & around:
                classes[number] |= 1 << vertex
                break
        else:
            classes.append(1 << vertex)
    return classes


def lowest_not_in(colours: int) -> int:
    """Return the smallest colour that is not in a set.

    >>> lowest_not_in(0b1011)
    2
    """
    return (~colours & (colours + 1)).bit_length() - 1


def _classes(colours: dict[int, int]) -> list[int]:
    classes = [0] * (max(colours.values(), default=-1) + 1)
    for vertex, colour in colours.items():
        classes[colour] |= 1 << vertex
    return classes


# Cliques.


def large_clique(neighbours: Sequence[int], vertices: int, steps: int = 5_000) -> int:
    """Return a clique among `vertices` as a bit set: the largest one, if the steps suffice.

    >>> large_clique((0b110, 0b101, 0b011, 0), 0b1111)
    7
    """
    search = _CliqueSearch(neighbours, _greedy_clique(neighbours, vertices), steps)
    search.extend(0, vertices)
    return search.best


def _greedy_clique(neighbours: Sequence[int], vertices: int) -> int:
    """Return the largest clique found greedily from each vertex, keeping the most candidates."""
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


class _CliqueSearch:
    """A branch-and-bound search for a clique that is larger than the best so far."""

    def __init__(self, neighbours: Sequence[int], best: int, steps: int) -> None:
        self._neighbours = neighbours
        self.best = best
        self._steps = steps

    def extend(self, clique: int, candidates: int) -> None:
        """Search for larger cliques that contain `clique` and some of the candidates."""
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
        """Colour the candidates; return each with the number of colours used up to it."""
        coloured = []
        colour = 0
        while candidates:
            colour += 1
            free = candidates
            while free:
                low = free & -free
                vertex = low.bit_length() - 1
                coloured.append((vertex, colour))
                candidates ^= low
                free &= ~(low | self._neighbours[vertex])
        return coloured


# Smaller graphs that need as many colours.


def components(neighbours: Sequence[int]) -> Iterator[int]:
    """Yield the connected components as bit sets.

    >>> list(components((0b010, 0b001, 0)))
    [3, 4]
    """
    left = (1 << len(neighbours)) - 1
    while left:
        component = reached = left & -left
        while reached:
            around = 0
            for vertex in members(reached):
                around |= neighbours[vertex]
            reached = around & ~component
            component |= reached
        yield component
        left &= ~component


def kernel(neighbours: Sequence[int], vertices: int, colours: int) -> tuple[int, list[int]]:
    """Return the vertices that matter with `colours` colours, and the others in order of removal.

    >>> kernel((0b010, 0b101, 0b010), 0b111, 2)
    (0, [0, 1, 2])
    """
    removed: list[int] = []
    changed = True
    while changed:
        changed = False
        for vertex in members(vertices):
            around = neighbours[vertex] & vertices
            if around.bit_count() < colours or _can_share(neighbours, vertices, vertex, around):
                vertices ^= 1 << vertex
                removed.append(vertex)
                changed = True
    return vertices, removed


def put_back(neighbours: Sequence[int], removed: list[int], colours: dict[int, int]) -> None:
    """Colour the removed vertices too, the last removed first."""
    for vertex in reversed(removed):
        taken = 0
        for other in members(neighbours[vertex]):
            if other in colours:
                taken |= 1 << colours[other]
        colours[vertex] = lowest_not_in(taken)


def _can_share(neighbours: Sequence[int], vertices: int, vertex: int, around: int) -> bool:
    """Return whether another vertex, not a neighbour, has all of its neighbours."""
    candidates = vertices & ~around & ~(1 << vertex)
    for other in members(around):
        candidates &= neighbours[other]
        if not candidates:
            return False
    return bool(candidates)
