"""Paths of a function's control-flow graph: prime paths, and the paths that a call took.

Nodes are numbered from 0; a graph is the list of each node's successors. A path is a sequence of
nodes that follow each other, its length is its number of edges, and it is *simple* if no node comes
twice, except that the first may also be the last. These are the notions of Ammann and Offutt
(*Introduction to Software Testing*), with a bound on the length as in the paper on swarm testing.

Invariants: nothing is left out silently (`TooManyPaths` says when the work would be too much), and
following a call takes time in proportion to its length, however often its loops went round.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

Path = tuple[int, ...]

MOST = 250_000
"""How many simple paths `prime_paths` walks unless told otherwise: under a second of work."""


class TooManyPaths(Exception):
    """A graph with more simple paths than were to be walked; shorter ones are fewer.

    >>> try:
    ...     paths = prime_paths([[0, 1, 2], [0, 1, 2], [0, 1, 2]], most=20)
    ... except TooManyPaths:
    ...     paths = prime_paths([[0, 1, 2], [0, 1, 2], [0, 1, 2]], longest=1, most=20)
    >>> len(paths)
    9
    """


def prime_paths(
    successors: Sequence[Sequence[int]], longest: int = 10, most: int = MOST
) -> list[Path]:
    """The prime paths of a graph, with the length bounded, in order.

    A path is prime if it is simple and not part of another simple path. With the bound, both are
    taken among the paths of at most `longest` edges. That gives every prime path of that length,
    and for a longer one all its parts of exactly `longest` edges: whoever toured all of them has
    toured every simple path of at most `longest` edges.

    >>> prime_paths([[1], [1, 2], []])
    [(0, 1, 2), (1, 1)]
    >>> prime_paths([[1], [2], [3], []], longest=2)
    [(0, 1, 2), (1, 2, 3)]

    All simple paths of at most `longest` edges are walked; if they are more than `most`, that is
    an error rather than an answer with some missing.

    >>> prime_paths([[1], [1, 2], []], most=3)
    Traceback (most recent call last):
    ...
    swarmtest.instrument.graph_paths.TooManyPaths: more than 3 simple paths of at most 10 edges
    """
    if longest < 1:
        raise ValueError(f"paths of at most {longest} edges: at least 1 is needed")
    predecessors: list[list[int]] = [[] for _ in successors]
    for node, following in enumerate(successors):
        for after in following:
            predecessors[after].append(node)
    found: list[Path] = []
    to_walk: list[Path] = [(node,) for node in range(len(successors))]
    seen = len(to_walk)
    while to_walk:
        path = to_walk.pop()
        longer = _ways_on(path, successors, longest)
        seen += len(longer)
        if seen > most:
            raise TooManyPaths(f"more than {most} simple paths of at most {longest} edges")
        to_walk += [(*path, node) for node in longer]
        if not longer and not _ways_on(path[::-1], predecessors, longest):
            found.append(path)
    return sorted(found)


def _ways_on(path: Path, successors: Sequence[Sequence[int]], longest: int) -> set[int]:
    """The nodes with which a simple path stays simple, and short enough, when it grows."""
    edges = len(path) - 1
    if edges == longest or (edges and path[0] == path[-1]):
        return set()
    return set(successors[path[-1]]).difference(path[1:])


class PathIndex:
    """Paths to look for in the calls of a function, made ready once: an Aho-Corasick automaton.

    A state is the longest end of what was seen so far that some path starts with.

    >>> index = PathIndex(prime_paths([[1], [1, 2], []]))
    >>> [index.paths[i] for i in toured([0, 1, 1, 2], index)]
    [(1, 1)]
    """

    def __init__(self, paths: Iterable[Sequence[int]]) -> None:
        self.paths: list[Path] = [tuple(path) for path in paths]
        self._next: list[dict[int, int]] = [{}]
        self._ends: list[set[int]] = [set()]
        for number, path in enumerate(self.paths):
            state = 0
            for node in path:
                state = self._grow(state, node)
            self._ends[state].add(number)
        self._shorter = [0] * len(self._next)
        self._link()

    def states(self, path: Iterable[int]) -> set[int]:
        """The states that are passed through along a path."""
        state = 0
        passed = {0}
        for node in path:
            ways = self._next[state]
            if node not in ways:
                ways[node] = self._fall(state, node)
            state = ways[node]
            passed.add(state)
        return passed

    def ends(self, states: Iterable[int]) -> set[int]:
        """The numbers of the paths that end in some of the states."""
        return set().union(*(self._ends[state] for state in states))

    def _grow(self, state: int, node: int) -> int:
        ways = self._next[state]
        if node not in ways:
            ways[node] = len(self._next)
            self._next.append({})
            self._ends.append(set())
        return ways[node]

    def _link(self) -> None:
        """Find for each state the next shorter end of what was seen that a path starts with."""
        waiting = deque(self._next[0].values())
        while waiting:
            state = waiting.popleft()
            self._ends[state] |= self._ends[self._shorter[state]]
            for node, after in self._next[state].items():
                self._shorter[after] = self._fall(state, node)
                waiting.append(after)

    def _fall(self, state: int, node: int) -> int:
        """Where a node leads that no path has after the state."""
        while state:
            state = self._shorter[state]
            if node in self._next[state]:
                return self._next[state][node]
        return 0


def toured(path: Iterable[int], paths: PathIndex) -> set[int]:
    """The numbers, in the index, of the paths that a call's sequence of nodes contains unbroken.

    >>> toured([0, 1, 2], PathIndex([(0, 1), (1, 2), (0, 2)]))
    {0, 1}
    """
    return paths.ends(paths.states(path))


def du_paths_of(
    path: Sequence[int],
    defines: Sequence[frozenset[str]],
    uses: Sequence[frozenset[str]],
    longest: int = 10,
) -> set[tuple[str, Path]]:
    """The du-paths that a call's sequence of nodes exercises, each with its variable.

    A du-path starts at a node that defines the variable, ends at one that uses it, is simple, has
    at most `longest` edges (and at least one), and no node between its ends defines the variable.
    A node that uses and defines a variable uses it first: it ends a du-path and starts another.
    `defines` and `uses` are by node.

    >>> total = frozenset({"total"})
    >>> nothing = frozenset()
    >>> found = du_paths_of([0, 1, 1, 2], [total, total, nothing], [nothing, total, total])
    >>> sorted(found)
    [('total', (0, 1)), ('total', (1, 1)), ('total', (1, 2))]
    """
    found: set[tuple[str, Path]] = set()
    defined: dict[str, int] = {}
    last: dict[int, int] = {}
    simple_from = 0  # from there on, the nodes up to here differ
    for here, node in enumerate(path):
        before = last.get(node, -1)
        closes_loop = before >= simple_from
        simple_from = max(simple_from, before + 1)
        for variable in uses[node]:
            start = defined.get(variable, -1)
            simple = start >= simple_from or (closes_loop and start == before)
            if simple and here - start <= longest:
                found.add((variable, tuple(path[start : here + 1])))
        last[node] = here
        for variable in defines[node]:
            defined[variable] = here
    return found
