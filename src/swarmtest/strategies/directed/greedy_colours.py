"""Good colourings of a conflict graph, quickly, without a proof that there is no better one."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from swarmtest.strategies.directed.conflicts import members


def dsatur(neighbours: Sequence[int], vertices: int) -> dict[int, int]:
    """Always colour the vertex next whose neighbours have the most colours.

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
    """The same or fewer colours, by colouring again in another order; `enough`: then stop.

    Vertices that come one colour after the other never need more colours than before, whatever the
    order of the colours (Culberson, "Iterated greedy graph coloring", 1992).
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
        order = [vertex for each in classes for vertex in members(each)]
        classes = first_fit(neighbours, order)
    return {vertex: colour for colour, each in enumerate(classes) for vertex in members(each)}


def first_fit(neighbours: Sequence[int], order: Iterable[int]) -> list[int]:
    """Each vertex, in this order, in the first class where it has no neighbour; the classes.

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
    """The smallest colour that is not in a set.

    >>> lowest_not_in(0b1011)
    2
    """
    return (~colours & (colours + 1)).bit_length() - 1


def _classes(colours: dict[int, int]) -> list[int]:
    classes = [0] * (max(colours.values(), default=-1) + 1)
    for vertex, colour in colours.items():
        classes[colour] |= 1 << vertex
    return classes
