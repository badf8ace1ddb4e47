"""The dominators of a line: the lines that every execution passes before it reaches that line.

A line may stand for several nodes (two statements in one line, ``finally``), so the question is not
which node but which *line* is on every path. For each node, a set of bits has the lines that are on
all paths to it: the node's own line, and what all its predecessors have in common. Starting from
"all lines" everywhere, the sets only shrink, and end with the largest solution, which for such sets
is exactly "on every path". One bit per line makes that fast for functions with thousands of lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache

from swarmtest.languages.python.control_flow import flows_of


class Dominance:
    """The dominators of the lines of one graph.

    `lines` has each node's line, 0 for none; node 0 is the entry.

    >>> Dominance([1, 2, 3, 4], [[1, 2], [3], [3], []]).chain(4)
    [1]
    """

    def __init__(self, lines: Sequence[int], successors: Sequence[Sequence[int]]) -> None:
        self._lines = lines
        self._order = _reverse_postorder(successors)
        self._before: dict[int, list[int]] = {node: [] for node in self._order}
        for node in self._order:
            for end in successors[node]:
                self._before[end].append(node)

    @cached_property
    def lines(self) -> frozenset[int]:
        """Return the lines that can be reached."""
        return frozenset(self._lines[node] for node in self._order) - {0}

    def reaches(self, nodes: Iterable[int]) -> bool:
        """Return whether any of the nodes can be reached."""
        return any(node in self._before for node in nodes)

    def passed(self, node: int) -> set[int]:
        """Return the lines on all paths from the entry to a reachable node, its own included."""
        bits = self._passed[node]
        return {line for bit, line in enumerate(self._line_of_bit) if bits >> bit & 1}

    def chain(self, line: int) -> list[int]:
        """Return the dominators of a reachable line, nearest first."""
        nodes = [node for node in self._order if self._lines[node] == line]
        common = set.intersection(*map(self.passed, nodes)) - {line}
        return self._nearest_first(nodes, common)

    def _nearest_first(self, nodes: Sequence[int], wanted: set[int]) -> list[int]:
        """Return lines in the order in which they are met on the way back from nodes.

        A path back from a line to a far dominator passes all nearer ones, so the smallest number of
        dominators that are passed on the way puts them in order.
        """
        ordered: list[int] = []
        seen = set(nodes)
        frontier = list(nodes)
        while frontier:
            met: list[int] = []
            for node in frontier:  # grows during the loop
                for start in self._before[node]:
                    if start not in seen:
                        seen.add(start)
                        (met if self._lines[start] in wanted else frontier).append(start)
            ordered += sorted({self._lines[node] for node in met}, reverse=True)
            frontier = met
        return list(dict.fromkeys(ordered))

    @cached_property
    def _line_of_bit(self) -> list[int]:
        """Return the line of each bit."""
        return sorted(self.lines)

    @cached_property
    def _passed(self) -> dict[int, int]:
        """Return, for each node, the lines on all paths to it, as bits."""
        bit_of = {line: 1 << bit for bit, line in enumerate(self._line_of_bit)} | {0: 0}
        everything = (1 << len(self._line_of_bit)) - 1
        sets = dict.fromkeys(self._order, everything)
        sets[0] = bit_of[self._lines[0]]
        changed = True
        while changed:
            changed = False
            for node in self._order[1:]:
                shared = everything
                for start in self._before[node]:
                    shared &= sets[start]
                shared |= bit_of[self._lines[node]]
                if shared != sets[node]:
                    sets[node] = shared
                    changed = True
        return sets


def _reverse_postorder(successors: Sequence[Sequence[int]]) -> list[int]:
    """Return the reachable nodes, each before its successors as far as possible."""
    seen = {0}
    order: list[int] = []
    stack = [(0, iter(successors[0]))]
    while stack:
        node, following = stack[-1]
        fresh = next((end for end in following if end not in seen), None)
        if fresh is None:
            order.append(node)
            stack.pop()
        else:
            seen.add(fresh)
            stack.append((fresh, iter(successors[fresh])))
    return order[::-1]


@lru_cache(maxsize=256)
def _dominance(text: str) -> list[Dominance]:
    """Return the dominators for each graph of a file."""
    return [Dominance(graph.lines, graph.successors) for graph in flows_of(text).graphs]


def dominators_of(text: str, line: int) -> list[int]:
    """Return the lines that are executed before the statement at `line`, nearest first.

    They end with the first statement of its function. For a nested function, the line that defines
    it and the dominators of that line follow. The list is empty if the line is dead (see
    `why_unreachable`).

    >>> dominators_of("def f(x):\\n    a = x\\n    if a:\\n        b = 1\\n    return a\\n", 5)
    [3, 2]
    """
    inside, outside = dominators_by_function(text, line)
    return inside + outside


def dominators_by_function(text: str, line: int) -> tuple[list[int], list[int]]:
    """Return the dominators within the line's function, and those in the enclosing functions."""
    flows, dominance = flows_of(text), _dominance(text)
    line = flows.starts.get(line, line)
    numbers = [i for i, graph in enumerate(flows.graphs) if line in graph.lines]
    if not numbers or any(line not in dominance[i].lines for i in numbers):
        return [], []
    chains = [dominance[i].chain(line) for i in numbers]
    inside = [dominator for dominator in chains[0] if all(dominator in chain for chain in chains)]
    outside: list[int] = []
    graph = flows.graphs[numbers[-1]]
    while graph.around > 0:
        above = dominance[graph.around]
        if graph.defined_at in above.lines:
            outside += [graph.defined_at, *above.chain(graph.defined_at)]
        graph = flows.graphs[graph.around]
    return inside, outside


def why_unreachable(text: str, line: int) -> str:
    """Return, for people to read, why a line has no dominators; empty if it can be reached.

    >>> why_unreachable("def f():\\n    return 1\\n    print(2)\\n", 3)
    'line 3 is dead code: no way through f() leads to it'
    """
    flows = flows_of(text)
    begins = flows.starts.get(line, line)
    for graph, dominance in zip(flows.graphs, _dominance(text), strict=True):
        silent = [node for node, start in graph.silent if start == begins]
        dead = begins in graph.lines and begins not in dominance.lines
        if dead or (silent and not dominance.reaches(silent)):
            where = f"{graph.function}()" if graph.function else "the module"
            return f"line {line} is dead code: no way through {where} leads to it"
        if silent and begins not in graph.lines:
            return f"line {line} has no code of its own"
    return "" if flows.at(begins) else f"no statement begins on line {line}"
