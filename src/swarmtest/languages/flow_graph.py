"""A control-flow graph under construction: nodes with lines, and edges."""

from __future__ import annotations


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
