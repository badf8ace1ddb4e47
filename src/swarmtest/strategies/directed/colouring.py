"""Colour a conflict graph with as few colours as possible, with a proof of how few that is.

`minimum_colouring` puts aside what cannot matter (`kernel`). For the rest, a clique is a lower
bound, and DSATUR, coloured again in other orders, an upper bound. If the two differ, a SAT solver
decides, or a search of our own if none is installed. If time is up before that, both bounds are
returned.

*SAT* (python-sat). Variable (v, c) says that vertex v has colour c. Conflicts come in pairs of
sides (see `aim.Conflicts`): for each pair and colour, one more variable says which of the two sides
may have the colour. That takes one clause per vertex and colour where edges would take one per edge
and colour. Colours are interchangeable, so a clique gets the first ones, and the j-th of the other
vertices has no colour beyond the j-th of the rest. The search first goes downwards, one colour
fewer each time; the solver keeps what it has learnt. If that takes more than half of the time, it
goes upwards from the lower bound, where "no" is easier to prove.

*Own search.* DSATUR as a search (Brélaz 1979): the vertex whose neighbours have the most colours is
tried with each of the used colours that they leave and with one new one, as long as fewer colours
are used than in the best colouring so far. A search that ends is a proof.

*Fast colourings and bounds.* DSATUR is improved by colouring again in other orders. A large clique
is a lower bound, since aims that all conflict with each other need different colours. It is looked
for greedily from each vertex, and then by branch and bound over bit sets, where a colouring of the
candidates bounds how many of them a clique can have (Tomita and Seki, "An efficient
branch-and-bound algorithm for finding a maximum clique", 2003), for a limited number of steps. The
connected components are coloured one by one. In each, two kinds of vertices can wait until the
others have their colours: a vertex with fewer neighbours than there are colours anyway, and a
vertex whose neighbours are all neighbours of another vertex, not adjacent to it, whose colour it
can share.
"""

from __future__ import annotations

import importlib
import importlib.util
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from swarmtest.strategies.directed.aim import Conflicts, members


@dataclass(frozen=True)
class Colouring:
    """A colour for each vertex, different from those of its neighbours."""

    colours: tuple[int, ...]
    lower_bound: int
    """No colouring has fewer colours."""
    how: str
    """What proved the lower bound, or why it is not proven."""


def minimum_colouring(conflicts: Conflicts, seconds: float = 5.0) -> Colouring:
    """Return a colouring with the fewest colours that can be colours_of_part in the time.

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
        colours_of_part = improved(neighbours, dsatur(neighbours, core), lower)
        if len(set(colours_of_part.values())) > lower:
            colours_of_part, least = _with_fewer(conflicts, core, colours_of_part, lower, deadline)
            lower = max(lower, least)
        put_back(neighbours, removed, colours_of_part)
        colours |= colours_of_part
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


# Our own search.

_STEPS_AT_ONCE = 1_000
"""The search checks the time after this many steps."""
_DEEPEST = 500
"""With more vertices, the search would reach Python's recursion limit."""


def coloured_by_trying(
    neighbours: Sequence[int], vertices: int, colours: dict[int, int], lower: int, deadline: float
) -> tuple[dict[int, int], int]:
    """Return a colouring with fewer colours if there is one, and the proven lower bound."""
    if vertices.bit_count() > _DEEPEST:
        return colours, lower
    search = _ColouringSearch(neighbours, vertices, colours, lower, deadline)
    clique = large_clique(neighbours, vertices)
    for colour, vertex in enumerate(members(clique)):
        search.put(vertex, colour)
    search.go_on(clique.bit_count())
    return search.best, lower if search.is_late else search.count


class _ColouringSearch:
    """A depth-first search for colourings with fewer colours than the best so far."""

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
        """Which colours the neighbours of each vertex have, as a bit set."""
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
        """Try all ways to colour the rest with fewer colours than the best so far."""
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


# The SAT solver.

_CONFLICTS_AT_ONCE = 1_000
"""The time is checked after this many conflicts in the solver."""


def sat_is_installed() -> bool:
    """Return whether python-sat can be used."""
    return importlib.util.find_spec("pysat") is not None


def coloured_by_sat(
    conflicts: Conflicts, vertices: int, colours: dict[int, int], lower: int, deadline: float
) -> tuple[dict[int, int], int]:
    """Return a colouring with fewer colours if there is one, and the proven lower bound."""
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
    """Return whether the solver finds a model; None if the time is up before it knows."""
    while time.monotonic() < deadline:
        solver.conf_budget(_CONFLICTS_AT_ONCE)
        answer: bool | None = solver.solve_limited()
        if answer is not None:
            return answer
    return None


class _Model:
    """The clauses that say that a graph has a colouring with `count` colours."""

    def __init__(self, conflicts: Conflicts, vertices: int, count: int) -> None:
        self._count = count
        self._left = count
        self._vertices = list(members(vertices))
        self._index = {vertex: index for index, vertex in enumerate(self._vertices)}
        self.clauses = [
            [self._has(vertex, colour) for colour in range(count)] for vertex in self._vertices
        ]
        for number, (left, right) in enumerate(conflicts.within(vertices)):
            for colour in range(count):
                side = (len(self._vertices) + number) * count + colour + 1
                self.clauses += [[-self._has(v, colour), side] for v in members(left)]
                self.clauses += [[-self._has(v, colour), -side] for v in members(right)]
        self._break_symmetry(conflicts.neighbours, vertices)

    def without(self, first: int) -> list[list[int]]:
        """Return clauses that forbid the colours from `first` on."""
        forbidden = range(first, self._left)
        self._left = first
        return [[-self._has(v, colour)] for v in self._vertices for colour in forbidden]

    def colours(self, model: list[int]) -> dict[int, int]:
        """Return the colours in a model of the clauses, renumbered without gaps."""
        on = {literal for literal in model if literal > 0}
        chosen = {
            v: next(c for c in range(self._count) if self._has(v, c) in on) for v in self._vertices
        }
        names = {colour: number for number, colour in enumerate(sorted(set(chosen.values())))}
        return {vertex: names[colour] for vertex, colour in chosen.items()}

    def _has(self, vertex: int, colour: int) -> int:
        """Return the variable that says that a vertex has a colour."""
        return self._index[vertex] * self._count + colour + 1

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


# Fast colourings and bounds.


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
