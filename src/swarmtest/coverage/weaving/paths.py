"""Paths of a function: prime paths and du-paths of its control-flow graph, and the path of a call.

Nodes are numbered from 0; a graph is the list of each node's successors. A path is a sequence of
nodes that follow each other. Its length is its number of edges, and it is *simple* if no node
occurs twice, except that the first may also be the last. These are the notions of Ammann and Offutt
(*Introduction to Software Testing*), with a bound on the length as in the paper on swarm testing.
Nothing is left out silently (`TooManyPaths` is raised if the work would be too much), and following
a call takes time in proportion to its length, however often its loops ran.

`blocks_of` reads a string of symbols that probes wrote (see `blocks`) back as the blocks of one
call. Every region that an exception leaves adds the line of the exception to the string: the body
of a ``try`` or ``with`` (and the other suites of a ``try`` that has a ``finally``), and the
function. The reader continues until it is in the block with that line, and leaves from there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from swarmtest.coverage.weaving.snippets import RAISED_MARK

# Paths of a graph.

Path = tuple[int, ...]

MOST = 250_000
"""How many simple paths `prime_paths` walks by default: less than a second of work."""


class TooManyPaths(Exception):
    """A graph has more simple paths than the limit; a smaller `longest` gives fewer.

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
    """Return the prime paths of a graph, of bounded length, sorted.

    A path is prime if it is simple and not part of another simple path. With the bound, both are
    taken among the paths of at most `longest` edges. That gives every prime path of at most that
    length, and for a longer one all its parts of exactly `longest` edges: a set of tests that tours
    all of them has toured every simple path of at most `longest` edges.

    >>> prime_paths([[1], [1, 2], []])
    [(0, 1, 2), (1, 1)]
    >>> prime_paths([[1], [2], [3], []], longest=2)
    [(0, 1, 2), (1, 2, 3)]

    All simple paths of at most `longest` edges are walked. If there are more than `most`, that is
    an error, because an incomplete list would be wrong.

    >>> prime_paths([[1], [1, 2], []], most=3)
    Traceback (most recent call last):
    ...
    swarmtest.coverage.weaving.paths.TooManyPaths: more than 3 simple paths of at most 10 edges
    """
    if longest < 1:
        raise ValueError(f"paths of at most {longest} edges: at least 1 is needed")
    predecessors: list[list[int]] = [[] for _ in successors]
    for node, following in enumerate(successors):
        for after in following:
            predecessors[after].append(node)
    primes: list[Path] = []
    to_walk: list[Path] = [(node,) for node in range(len(successors))]
    seen = len(to_walk)
    while to_walk:
        path = to_walk.pop()
        nodes = _extensions(path, successors, longest)
        seen += len(nodes)
        if seen > most:
            raise TooManyPaths(f"more than {most} simple paths of at most {longest} edges")
        to_walk += [(*path, node) for node in nodes]
        if not nodes and not _extensions(path[::-1], predecessors, longest):
            primes.append(path)
    return sorted(primes)


def _extensions(path: Path, successors: Sequence[Sequence[int]], longest: int) -> set[int]:
    """Return the nodes that can be appended to a simple path so that it stays simple and short."""
    edges = len(path) - 1
    if edges == longest or (edges and path[0] == path[-1]):
        return set()
    return set(successors[path[-1]]).difference(path[1:])


class PathIndex:
    """Paths to look for in the calls of a function, as an Aho-Corasick automaton.

    A state is the longest suffix of the nodes seen so far that is a prefix of some path.

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
        self._failure = [0] * len(self._next)
        self._link()

    def states(self, path: Iterable[int]) -> set[int]:
        """Return the states that a path passes through."""
        state = 0
        passed = {0}
        for node in path:
            transitions = self._next[state]
            if node not in transitions:
                transitions[node] = self._fall_back(state, node)
            state = transitions[node]
            passed.add(state)
        return passed

    def ends(self, states: Iterable[int]) -> set[int]:
        """Return the numbers of the paths that end in one of the states."""
        return set().union(*(self._ends[state] for state in states))

    def _grow(self, state: int, node: int) -> int:
        """Return the state after a node, which is added if it does not exist."""
        transitions = self._next[state]
        if node not in transitions:
            transitions[node] = len(self._next)
            self._next.append({})
            self._ends.append(set())
        return transitions[node]

    def _link(self) -> None:
        """Find for each state the next shorter suffix that is a prefix of some path."""
        queue = deque(self._next[0].values())
        while queue:
            state = queue.popleft()
            self._ends[state] |= self._ends[self._failure[state]]
            for node, after in self._next[state].items():
                self._failure[after] = self._fall_back(state, node)
                queue.append(after)

    def _fall_back(self, state: int, node: int) -> int:
        """Return the state after a node that no path has after `state`."""
        while state:
            state = self._failure[state]
            if node in self._next[state]:
                return self._next[state][node]
        return 0


def toured(path: Iterable[int], paths: PathIndex) -> set[int]:
    """Return the numbers of the indexed paths that a call's sequence of nodes contains unbroken.

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
    """Return the du-paths that a call's sequence of nodes exercises, each with its variable.

    A du-path starts at a node that defines the variable, ends at one that uses it, is simple, has
    at most `longest` edges (and at least one), and no node between its ends defines the variable.
    A node that uses and defines a variable uses it first: it ends a du-path and starts another.
    `defines` and `uses` hold the variables of each node.

    >>> total = frozenset({"total"})
    >>> nothing = frozenset()
    >>> found = du_paths_of([0, 1, 1, 2], [total, total, nothing], [nothing, total, total])
    >>> sorted(found)
    [('total', (0, 1)), ('total', (1, 1)), ('total', (1, 2))]
    """
    du_paths: set[tuple[str, Path]] = set()
    defined: dict[str, int] = {}
    last: dict[int, int] = {}
    simple_from = 0  # the nodes from there up to the current one are all different
    for here, node in enumerate(path):
        before = last.get(node, -1)
        closes_loop = before >= simple_from
        simple_from = max(simple_from, before + 1)
        for variable in uses[node]:
            start = defined.get(variable, -1)
            simple = start >= simple_from or (closes_loop and start == before)
            if simple and here - start <= longest:
                du_paths.add((variable, tuple(path[start : here + 1])))
        last[node] = here
        for variable in defines[node]:
            defined[variable] = here
    return du_paths


# The path of a call.


def blocks_of(outline: Any, symbols: str) -> list[int]:
    """Return the blocks that a call passed, from its entry on."""
    reader = _PathReader(outline[0], symbols)
    reader.suite(outline[1])
    return reader.passed


class _PathReader:
    """Follows a call through an outline and collects the blocks that it passed.

    There is a method for each kind of item in an outline, which returns how the item was left.
    """

    def __init__(self, blocks: Sequence[Any], symbols: str) -> None:
        self._blocks = blocks
        self._symbols = symbols
        self._at = 0
        self.passed = [0]

    def _took(self, symbol: str) -> bool:
        if self._comes(symbol):
            self._at += 1
            return True
        return False

    def _comes(self, symbol: str) -> bool:
        return self._symbols.startswith(symbol, self._at)

    def _raised_line(self) -> int:
        """Return the line of the exception that comes next; 0 if something else comes next."""
        if not self._symbols.startswith(RAISED_MARK, self._at):
            return 0
        return int(self._symbols[self._at + 1 : self._symbols.index(RAISED_MARK, self._at + 1)])

    def _raises_in(self, block: int) -> bool:
        line = self._raised_line()
        first, last, _, _, clauses = self._blocks[block]
        return bool(line) and any(a <= line <= b for a, b in ((first, last), *clauses))

    def _pass(self, block: int) -> bool:
        """Pass a block, and return whether an exception left it."""
        self.passed.append(block)
        return self._raises_in(block)

    def suite(self, items: Sequence[Any]) -> str:
        """Return how a suite was left: ``next``, ``return``, ``raise``, ``break``, ``continue``."""
        for item in items:
            how = getattr(self, f"_{item[0]}")(*item[1:])
            if how != "next":
                return str(how)
        return "next"

    def _region(self, items: Sequence[Any]) -> tuple[str, int]:
        """Read a suite that records the exceptions which leave it; return how, and the line."""
        how = self.suite(items)
        return how, self._skip_raised(how)

    def _skip_raised(self, how: str) -> int:
        """Skip the record of an exception that leaves a region, and return its line."""
        line = self._raised_line() if how == "raise" else 0
        if line:
            self._at = self._symbols.index(RAISED_MARK, self._at + 1) + 1
        return line

    def _run(self, block: int) -> str:
        return "raise" if self._pass(block) else "next"

    def _jump(self, block: int, how: str) -> str:
        return "raise" if self._pass(block) else how

    def _if(self, block: int, then: str, body: Any, other: str, orelse: Any) -> str:
        if self._pass(block):
            return "raise"
        if self._took(then):
            return self.suite(body)
        if other:
            self._took(other)
        return self.suite(orelse)

    def _loop(self, block: int, again: str, body: Any, orelse: Any, ends: str) -> str:
        while True:
            if self._pass(block):
                return "raise"
            if not (self._took(again) if again else self._enters(body[0])):
                return "raise" if ends else self.suite(orelse)
            how = self.suite(body)
            if how == "break":
                return "next"
            if how not in ("next", "continue"):
                return how

    def _enters(self, item: Any) -> bool:
        """Return whether a body that begins with an ``if`` was entered: a branch comes next."""
        _, block, then, _, other, orelse = item
        if self._raises_in(block) or self._comes(then):
            return True
        return self._comes(other) if other else self._enters(orelse[0])

    def _match(self, block: int, cases: Any, _always: str) -> str:
        if self._pass(block):
            return "raise"
        for symbol, body in cases:
            if self._took(symbol):
                return self.suite(body)
        return "next"

    def _with(self, block: int, entered: str, body: Any) -> str:
        self.passed.append(block)
        if not self._took(entered):
            return "raise"
        how, line = self._region(body)
        if how != "raise":
            return "raise" if self._raises_in(block) else how
        # An exception that continues is recorded again further out; a swallowed one is not.
        return "raise" if self._raised_line() == line else "next"

    def _try(self, body: Any, handlers: Any, orelse: Any, final: Any, group: str) -> str:
        how, _ = self._region(body)
        if how == "next":
            how = self.suite(orelse)
        elif how == "raise":
            for symbol, handler in handlers:
                if self._took(symbol):
                    how = self.suite(handler)
                    if not group:
                        break
        if final and handlers:
            self._skip_raised(how)
        ending = self.suite(final)
        return how if ending == "next" else ending


def entered_lines(outline: Any) -> dict[str, str]:
    """Return for each symbol the line of the block that its branch leads to, and a space."""
    blocks, body = outline
    table: dict[str, str] = {}

    def walk(part: Any) -> None:
        if isinstance(part, str | int):
            return
        # A branch is a symbol followed by a suite, in every kind of item.
        for symbol, suite in pairwise(part):
            if isinstance(symbol, str) and len(symbol) == 1 and isinstance(suite, list):
                table[symbol] = f"{blocks[min(_blocks_in(suite))][0]} "
        for inner in part:
            walk(inner)

    walk(body)
    return table


# The control-flow graph of a function.

EXIT = -1
"""The successor of a block that leaves the function."""


def successors(outline: Any) -> list[list[int]]:
    """Return a function's control-flow graph: for each block those that may follow, or `EXIT`."""
    blocks, body = outline
    graph = _Graph(len(blocks))
    graph.suite(body, {0}, {})
    return [sorted(following) for following in graph.following]


class _Graph:
    """A control-flow graph that is built suite by suite.

    There is a method for each kind of item in an outline. `before` are the blocks from which the
    item is reached; `jumps` collects the blocks that end in ``break`` and ``continue``, for the
    loop around them. The methods return the blocks from which the next item is reached.
    """

    def __init__(self, blocks: int) -> None:
        self.following: list[set[int]] = [set() for _ in range(blocks)]

    def suite(self, items: Sequence[Any], before: set[int], jumps: dict[str, set[int]]) -> set[int]:
        for item in items:
            before = getattr(self, f"_{item[0]}")(before, jumps, *item[1:])
        return before

    def _enter(self, before: set[int], block: int) -> set[int]:
        for previous in before:
            self.following[previous].add(block)
        return {block}

    def _run(self, before: set[int], _jumps: Any, block: int) -> set[int]:
        return self._enter(before, block)

    def _jump(self, before: set[int], jumps: dict[str, set[int]], block: int, how: str) -> set[int]:
        self._enter(before, block)
        if how in jumps:
            jumps[how].add(block)
        else:
            self.following[block].add(EXIT)
        return set()

    def _if(
        self, before: set[int], jumps: Any, block: int, _then: str, body: Any, *rest: Any
    ) -> set[int]:
        _other, orelse = rest
        here = self._enter(before, block)
        return self.suite(body, here, jumps) | self.suite(orelse, here, jumps)

    def _loop(
        self, before: set[int], jumps: Any, block: int, _again: str, body: Any, *rest: Any
    ) -> set[int]:
        orelse, ends = rest
        here = self._enter(before, block)
        own: dict[str, set[int]] = {**jumps, "break": set(), "continue": set()}
        again = self.suite(body, here, own) | own["continue"]
        self._enter(again, block)
        out = set() if ends else self.suite(orelse, here, jumps)
        return out | own["break"]

    def _match(self, before: set[int], jumps: Any, block: int, cases: Any, always: str) -> set[int]:
        here = self._enter(before, block)
        out = set() if always else set(here)
        for _, body in cases:
            out |= self.suite(body, here, jumps)
        return out

    def _with(self, before: set[int], jumps: Any, block: int, _entered: str, body: Any) -> set[int]:
        return self.suite(body, self._enter(before, block), jumps)

    def _try(self, before: set[int], jumps: Any, body: Any, handlers: Any, *rest: Any) -> set[int]:
        orelse, final, group = rest
        out = self.suite(body, before, jumps)
        raising = set(_blocks_in(body))
        out = self.suite(orelse, out, jumps)
        for _, suite in handlers:
            handled = self.suite(suite, raising, jumps)
            out |= handled
            if group:  # the next clause gets the exceptions that this one left
                raising |= handled
        return self.suite(final, out | (raising if final else set()), jumps)


def _blocks_in(part: Any) -> Iterator[int]:
    """Yield all blocks of a suite or of a part of one: every number in it is a block."""
    if isinstance(part, int):
        yield part
    elif not isinstance(part, str):
        for inner in part:
            yield from _blocks_in(inner)
