"""Ask a SAT solver (python-sat) for colourings with fewer colours, and for proof of none.

Variable (v, c) says that vertex v has colour c. Conflicts come in pairs of sides (see `conflicts`):
for each pair and colour one more variable says which of the two sides may have the colour, which
takes one clause per vertex and colour where edges would take one per edge and colour. Colours are
interchangeable, so a clique gets the first ones, and the j-th of the other vertices has no colour
beyond the j-th of the rest.

First downwards, one colour fewer each time; the solver keeps what it has learnt. If that is not
settled in half of the time, then upwards from the lower bound, where "no" is easier to prove.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from typing import Any

from swarmtest.strategies.directed.cliques import large_clique
from swarmtest.strategies.directed.conflicts import Conflicts, members

_CONFLICTS_AT_ONCE = 1_000
"""After so many conflicts of the solver, look at the clock."""


def sat_is_installed() -> bool:
    """Whether python-sat can be used."""
    return importlib.util.find_spec("pysat") is not None


def coloured_by_sat(
    conflicts: Conflicts, vertices: int, colours: dict[int, int], lower: int, deadline: float
) -> tuple[dict[int, int], int]:
    """Fewer colours if there are, and the largest number that is known to be needed."""
    now = time.monotonic()
    colours, lower = _downwards(conflicts, vertices, colours, lower, (now + deadline) / 2)
    while lower < _count(colours):
        model = _Model(conflicts, vertices, lower)
        with _solver(model) as solver:
            answer = _solved(solver, deadline)
            if answer is None:
                break
            if answer:
                return model.colours(solver.get_model()), lower
        lower += 1
    return colours, lower


def _downwards(
    conflicts: Conflicts, vertices: int, colours: dict[int, int], lower: int, deadline: float
) -> tuple[dict[int, int], int]:
    model = _Model(conflicts, vertices, _count(colours) - 1)
    with _solver(model) as solver:
        while _count(colours) > lower:
            answer = _solved(solver, deadline)
            if answer is None:
                break
            if not answer:
                return colours, _count(colours)
            colours = model.colours(solver.get_model())
            for clause in model.without(_count(colours) - 1):
                solver.add_clause(clause)
    return colours, lower


def _count(colours: dict[int, int]) -> int:
    return max(colours.values()) + 1


def _solver(model: _Model) -> Any:
    solvers = importlib.import_module("pysat.solvers")
    return solvers.Solver(name="glucose4", bootstrap_with=model.clauses)


def _solved(solver: Any, deadline: float) -> bool | None:
    """Whether the solver finds a model; None when time is up before it knows."""
    while time.monotonic() < deadline:
        solver.conf_budget(_CONFLICTS_AT_ONCE)
        answer: bool | None = solver.solve_limited()
        if answer is not None:
            return answer
    return None


class _Model:
    """The clauses for so many colours."""

    def __init__(self, conflicts: Conflicts, vertices: int, count: int) -> None:
        self._count = count
        self._left = count
        self._vertices = list(members(vertices))
        self._place = {vertex: place for place, vertex in enumerate(self._vertices)}
        self.clauses = [
            [self._has(vertex, colour) for colour in range(count)] for vertex in self._vertices
        ]
        for number, (one, other) in enumerate(conflicts.within(vertices)):
            for colour in range(count):
                side = (len(self._vertices) + number) * count + colour + 1
                self.clauses += [[-self._has(v, colour), side] for v in members(one)]
                self.clauses += [[-self._has(v, colour), -side] for v in members(other)]
        self._break_symmetry(conflicts.neighbours, vertices)

    def without(self, first: int) -> list[list[int]]:
        """Clauses that forbid the colours from `first` on."""
        gone = range(first, self._left)
        self._left = first
        return [[-self._has(v, colour)] for v in self._vertices for colour in gone]

    def colours(self, model: list[int]) -> dict[int, int]:
        """The colours that a model of the clauses gives, without gaps."""
        on = {literal for literal in model if literal > 0}
        chosen = {
            v: next(c for c in range(self._count) if self._has(v, c) in on) for v in self._vertices
        }
        names = {colour: number for number, colour in enumerate(sorted(set(chosen.values())))}
        return {vertex: names[colour] for vertex, colour in chosen.items()}

    def _has(self, vertex: int, colour: int) -> int:
        return self._place[vertex] * self._count + colour + 1

    def _break_symmetry(self, neighbours: tuple[int, ...], vertices: int) -> None:
        clique = large_clique(neighbours, vertices)
        fixed = clique.bit_count()
        first = list(members(clique))[: self._count]
        self.clauses += [[self._has(vertex, colour)] for colour, vertex in enumerate(first)]
        others = sorted(
            members(vertices & ~clique), key=lambda v: -(neighbours[v] & vertices).bit_count()
        )
        for number, vertex in enumerate(others):
            for colour in range(fixed + number + 1, self._count):
                self.clauses.append([-self._has(vertex, colour)])
