"""A control-flow graph that is being built: nodes with lines, and edges."""

from __future__ import annotations


class Graph:
    """Node 0 is the entry. A node with line 0 only joins ways.

    >>> graph = Graph()
    >>> graph.node(3, after=0)
    1
    >>> graph.lines, graph.successors
    ([0, 3], [[1], []])
    """

    def __init__(self, entry: int = 0) -> None:
        """`entry` is the line of the entry."""
        self.lines = [entry]
        self.successors: list[list[int]] = [[]]

    def node(self, line: int = 0, after: int = -1) -> int:
        """A new node, and an edge to it from another unless that is negative."""
        self.lines.append(line)
        self.successors.append([])
        new = len(self.lines) - 1
        if after >= 0:
            self.edge(after, new)
        return new

    def edge(self, start: int, end: int) -> None:
        """Control may go from one node to another."""
        self.successors[start].append(end)

    def reached(self, nodes: set[int]) -> set[int]:
        """Those of the nodes to which an edge leads."""
        return {end for ends in self.successors for end in ends if end in nodes}
