"""Colourings with fewer colours by trying, for when no SAT solver is installed.

DSATUR as a search: the vertex whose neighbours have the most colours gets each of the colours in
turn that they leave, and one new one, as long as fewer are used than in the best colouring so far
(Brélaz 1979). What was tried to the end is a proof.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from swarmtest.strategies.directed.cliques import large_clique
from swarmtest.strategies.directed.conflicts import members

_STEPS_AT_ONCE = 1_000
"""After so many steps, look at the clock."""
_DEEPEST = 500
"""More vertices than this would be more calls inside each other than Python likes."""


def coloured_by_trying(
    neighbours: Sequence[int], vertices: int, colours: dict[int, int], lower: int, deadline: float
) -> tuple[dict[int, int], int]:
    """Fewer colours if there are, and the largest number that is known to be needed."""
    if vertices.bit_count() > _DEEPEST:
        return colours, lower
    search = _Search(neighbours, vertices, colours, lower, deadline)
    clique = large_clique(neighbours, vertices)
    for colour, vertex in enumerate(members(clique)):
        search.put(vertex, colour)
    search.go_on(clique.bit_count())
    return search.best, lower if search.is_late else search.count


class _Search:
    def __init__(
        self,
        neighbours: Sequence[int],
        vertices: int,
        best: dict[int, int],
        lower: int,
        deadline: float,
    ) -> None:
        self._neighbours = neighbours
        self._around = {v: list(members(neighbours[v] & vertices)) for v in members(vertices)}
        self._lower = lower
        self._deadline = deadline
        self._steps = 0
        self._colours: dict[int, int] = {}
        self._seen = {v: [0] * (len(best) + 1) for v in self._around}
        """How many neighbours of each vertex have each colour."""
        self._taken = dict.fromkeys(self._around, 0)
        """Which colours they have, as a bit set."""
        self.best = best
        self.count = max(best.values()) + 1
        self.is_late = False

    def put(self, vertex: int, colour: int) -> None:
        """Give a vertex a colour."""
        self._colours[vertex] = colour
        for other in self._around[vertex]:
            self._seen[other][colour] += 1
            self._taken[other] |= 1 << colour

    def _take_back(self, vertex: int) -> None:
        colour = self._colours.pop(vertex)
        for other in self._around[vertex]:
            self._seen[other][colour] -= 1
            if not self._seen[other][colour]:
                self._taken[other] &= ~(1 << colour)

    def go_on(self, used: int) -> None:
        """Try all ways to colour the rest with fewer colours than the best so far has."""
        left = [v for v in self._around if v not in self._colours]
        if not left:
            self.best, self.count = dict(self._colours), used
            return
        vertex = max(left, key=lambda v: (self._taken[v].bit_count(), len(self._around[v])))
        for colour in range(used + 1):
            if self._is_over() or max(used, colour + 1) >= self.count:
                return
            if not self._taken[vertex] >> colour & 1:
                self.put(vertex, colour)
                self.go_on(max(used, colour + 1))
                self._take_back(vertex)

    def _is_over(self) -> bool:
        self._steps += 1
        if self._steps % _STEPS_AT_ONCE == 0 and time.monotonic() > self._deadline:
            self.is_late = True
        return self.is_late or self.count <= self._lower
