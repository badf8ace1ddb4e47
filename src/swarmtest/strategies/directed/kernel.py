"""Make a graph smaller without changing how many colours it needs.

Its connected components are coloured one by one. In each, two kinds of vertices can wait until the
others have their colours: one with fewer neighbours than there are colours anyway, and one whose
neighbours are all neighbours of another vertex that is none of them, whose colour it can share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from swarmtest.strategies.directed.conflicts import members
from swarmtest.strategies.directed.greedy_colours import lowest_not_in


def components(neighbours: Sequence[int]) -> Iterator[int]:
    """The connected parts, as bit sets.

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
    """The vertices that matter when there are so many colours, and the others as they went.

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
    """Give the vertices that were removed a colour too, the last removed first."""
    for vertex in reversed(removed):
        taken = 0
        for other in members(neighbours[vertex]):
            if other in colours:
                taken |= 1 << colours[other]
        colours[vertex] = lowest_not_in(taken)


def _can_share(neighbours: Sequence[int], vertices: int, vertex: int, around: int) -> bool:
    """Whether another vertex, not a neighbour, has all of its neighbours."""
    rivals = vertices & ~around & ~(1 << vertex)
    for other in members(around):
        rivals &= neighbours[other]
        if not rivals:
            return False
    return bool(rivals)
