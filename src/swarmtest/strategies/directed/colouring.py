"""Colour a conflict graph with as few colours as possible, and know how few that is.

What cannot matter is put aside (`kernel`). The rest is bounded from below by a clique and from
above by DSATUR, coloured again in other orders. Where the two differ a SAT solver settles it, or a
search of our own if none is installed; and if time is up before, both bounds are told.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from swarmtest.strategies.directed.backtracking import coloured_by_trying
from swarmtest.strategies.directed.cliques import large_clique
from swarmtest.strategies.directed.conflicts import Conflicts
from swarmtest.strategies.directed.greedy_colours import dsatur, improved
from swarmtest.strategies.directed.kernel import components, kernel, put_back
from swarmtest.strategies.directed.sat_colours import coloured_by_sat, sat_is_installed


@dataclass(frozen=True)
class Colouring:
    """A colour for each vertex, so that neighbours differ."""

    colours: tuple[int, ...]
    lower_bound: int
    """No colouring has fewer colours."""
    how: str
    """What settled it, or why it is not settled."""


def minimum_colouring(conflicts: Conflicts, seconds: float = 5.0) -> Colouring:
    """A colouring with the fewest colours, as far as the time allows.

    >>> minimum_colouring(Conflicts(3, ((0b001, 0b110),)))
    Colouring(colours=(0, 1, 1), lower_bound=2, how='proven by a clique')
    """
    deadline = time.monotonic() + seconds
    neighbours = conflicts.neighbours
    colours: dict[int, int] = {}
    parts = sorted(components(neighbours), key=int.bit_count, reverse=True)
    clique = lower = max((large_clique(neighbours, p).bit_count() for p in parts), default=0)
    for part in parts:
        core, removed = kernel(neighbours, part, lower)
        found = improved(neighbours, dsatur(neighbours, core), lower)
        if len(set(found.values())) > lower:
            found, least = _with_fewer(conflicts, core, found, lower, deadline)
            lower = max(lower, least)
        put_back(neighbours, removed, found)
        colours |= found
    ordered = tuple(colours[vertex] for vertex in range(conflicts.size))
    return Colouring(ordered, lower, _how(len(set(ordered)), lower, clique, seconds))


def _with_fewer(
    conflicts: Conflicts, core: int, colours: dict[int, int], lower: int, deadline: float
) -> tuple[dict[int, int], int]:
    if sat_is_installed():
        return coloured_by_sat(conflicts, core, colours, lower, deadline)
    return coloured_by_trying(conflicts.neighbours, core, colours, lower, deadline)


def _how(count: int, lower: int, clique: int, seconds: float) -> str:
    if count == clique:
        return "proven by a clique"
    solver = "SAT" if sat_is_installed() else "trying all"
    if count == lower:
        return f"proven by {solver}"
    advice = "" if sat_is_installed() else "; quicker with pip install 'swarmtest[exact]'"
    return f"between {lower} and {count}: not settled by {solver} in {seconds:g} s{advice}"
