"""Control-flow graphs, and the dominators of a line: the lines on every path from the entry to it.

A line may stand for several nodes (two statements in one line, ``finally``), so the question is not
which node but which *line* is on every path. For each node, a set of bits has the lines that are on
all paths to it: the node's own line, and what all its predecessors have in common. Starting from
"all lines" everywhere, the sets only shrink, and end with the largest solution, which for such sets
is exactly "on every path". One bit per line makes that fast for functions with thousands of lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property


class Graph:
    """A graph whose node 0 is the entry. A node with line 0 only joins paths.

    >>> graph = Graph()
    >>> graph.node(3, after=0)
    1
    >>> graph.lines, graph.successors
    ([0, 3], [[1], []])
    """

    def __init__(self, entry: int = 0) -> None:
        """Create the entry node with the line `entry`."""
        self.lines = [entry]
        self.successors: list[list[int]] = [[]]

    def node(self, line: int = 0, after: int = -1) -> int:
        """Add a node, with an edge from `after` unless that is negative, and return its number."""
        self.lines.append(line)
        self.successors.append([])
        new = len(self.lines) - 1
        if after >= 0:
            self.edge(after, new)
        return new

    def edge(self, start: int, end: int) -> None:
        """Add an edge: control may go from one node to another."""
        self.successors[start].append(end)

    def reached(self, nodes: set[int]) -> set[int]:
        """Return those of the nodes that an edge leads to."""
        return {end for ends in self.successors for end in ends if end in nodes}


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
