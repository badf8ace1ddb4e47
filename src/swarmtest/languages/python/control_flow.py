"""The control-flow graphs of Python code, one for each function and one for the module.

Nodes are the line targets: lines where a statement, a decorator or a clause (``except``, ``case``)
begins and for which the compiler generated code. A node with line 0 only joins paths. Class bodies
run where they are, so they belong to the enclosing graph; a nested function has a graph of its own.

Invariant: every path that an execution can take is a path in the graph (there may be more), so what
is on all paths of the graph is on all paths of the program. Any statement may raise; an exception
raised in a ``with`` may be swallowed; and ``finally`` is in the graph once for each way to enter
it, as in the compiler's code, because where it continues depends on that.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from swarmtest.coverage.weaving.syntax import (
    FunctionNode,
    cannot_raise,
    catches_all,
    enters_its_body,
    executable_lines,
    first_line,
    is_irrefutable,
    logical_lines,
)
from swarmtest.languages.flow_graph import Dominance, Graph


@dataclass(frozen=True)
class Flow:
    """The graph of one function, or of a module. Node 0 is its entry."""

    function: str
    """Its qualified name; empty for the module."""
    lines: tuple[int, ...]
    """The line of each node; 0 if it has none."""
    successors: tuple[tuple[int, ...], ...]
    defined_at: int = 0
    """The line of its ``def``; 0 for the module."""
    around: int = -1
    """The number of the graph in which it is defined."""
    silent: tuple[tuple[int, int], ...] = ()
    """Nodes of statements without code (dead ones, docstrings), each with the statement's line."""


@dataclass(frozen=True)
class Flows:
    """The graphs of one file; the first one is the module's."""

    graphs: tuple[Flow, ...]
    starts: dict[int, int]
    """Physical line -> the line where its statement begins, where the two differ."""

    def at(self, line: int) -> list[Flow]:
        """Return the graphs with a node at a line: several for a function in one line."""
        line = self.starts.get(line, line)
        return [graph for graph in self.graphs if line in graph.lines]


@lru_cache(maxsize=256)
def flows_of(text: str) -> Flows:
    """Return the graphs of a file; raise SyntaxError if it is not Python.

    >>> graph = flows_of("if x:\\n    y = 1\\nz = 2\\n").graphs[0]
    >>> sorted(set(graph.lines))
    [0, 1, 2, 3]
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
        code = compile(tree, "<flow>", "exec", dont_inherit=True)
    starts = logical_lines(text)
    walk = _Functions(starts, executable_lines(code, starts))
    walk.module(tree)
    return Flows(tuple(flow for flow in walk.graphs if flow is not None), starts)


class _Functions:
    """A builder of one graph for each function that it meets."""

    def __init__(self, starts: dict[int, int], executable: set[int]) -> None:
        self.starts = starts
        self.executable = executable
        self.graphs: list[Flow | None] = []

    def module(self, tree: ast.Module) -> None:
        """Add the graph of a module, then those of all functions in it."""
        self._graph(tree.body, "", "", 0, -1)

    def function(self, node: FunctionNode, prefix: str, around: int) -> None:
        """Add the graphs of a function and of those in it."""
        name = prefix + node.name
        line = self.starts.get(node.lineno, node.lineno)
        self._graph(node.body, name, f"{name}.<locals>.", line, around)

    def _graph(
        self, body: list[ast.stmt], name: str, prefix: str, defined_at: int, around: int
    ) -> None:
        number = len(self.graphs)
        self.graphs.append(None)
        builder = _Builder(self, prefix, number)
        leave = builder.node()
        builder.suite(body, 0, _Exits(leave, leave))
        lines, successors = builder.graph.lines, map(tuple, builder.graph.successors)
        silent = tuple(builder.silent)
        self.graphs[number] = Flow(
            name, tuple(lines), tuple(successors), defined_at, around, silent
        )


@dataclass(frozen=True)
class _Exits:
    """The nodes where control goes when a suite is left early."""

    raised: int
    returned: int
    broken: int = -1
    continued: int = -1
    guarded: bool = False
    """Whether leaving runs code that may raise even if nothing else can, as in a ``with``."""


class _Builder:
    """A builder of nodes and edges.

    Methods take the node that control comes from, and return the one where it continues; after a
    jump that is a node that nothing leads to.
    """

    def __init__(self, functions: _Functions, prefix: str, number: int) -> None:
        self._functions = functions
        self._prefix = prefix
        self._number = number
        self.graph = Graph()
        self.silent: list[tuple[int, int]] = []
        self._edge = self.graph.edge

    def node(self, line: int = 0, after: int = -1) -> int:
        """Add a node, with an edge to it."""
        line = self._functions.starts.get(line, line)
        if line in self._functions.executable or not line:
            return self.graph.node(line, after)
        node = self.graph.node(after=after)
        self.silent.append((node, line))
        return node

    def suite(self, body: Sequence[ast.stmt], at: int, exits: _Exits) -> int:
        """Add the statements under one header."""
        for node in body:
            at = self._statement(node, at, exits)
        return at

    def _statement(self, node: ast.stmt, at: int, exits: _Exits) -> int:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return self._definition(node, at, exits)
        at = self.node(first_line(node), at)
        if exits.guarded or not cannot_raise(node):
            self._edge(at, exits.raised)
        match node:
            case ast.Return():
                return self._jump(at, exits.returned)
            case ast.Raise():
                return self._jump(at, exits.raised)
            case ast.Break():
                return self._jump(at, exits.broken)
            case ast.Continue():
                return self._jump(at, exits.continued)
            case ast.If():
                return self._if(node, at, exits)
            case ast.While() | ast.For() | ast.AsyncFor():
                return self._loop(node, at, exits)
            case ast.With() | ast.AsyncWith():
                return self._with(node, at, exits)
            case ast.Try() | ast.TryStar():
                return self._try(node, at, exits)
            case ast.Match():
                return self._match(node, at, exits)
        return at

    def _jump(self, at: int, to: int) -> int:
        self._edge(at, to)
        return self.node()

    def _definition(self, node: FunctionNode | ast.ClassDef, at: int, exits: _Exits) -> int:
        starts = self._functions.starts
        lines = [node.lineno, *(decorator.lineno for decorator in node.decorator_list)]
        for line in sorted({starts.get(line, line) for line in lines}):
            at = self.node(line, at)
            self._edge(at, exits.raised)
        if not isinstance(node, ast.ClassDef):
            self._functions.function(node, self._prefix, self._number)
            return at
        outer, self._prefix = self._prefix, f"{self._prefix}{node.name}."
        at = self.suite(node.body, at, exits)
        self._prefix = outer
        return at

    def _if(self, node: ast.If, at: int, exits: _Exits) -> int:
        """Add a whole chain of ``elif`` in a loop.

        The chain may be longer than Python's recursion limit.
        """
        after = self.node()
        while True:
            then, other = self._arms(node.test, at)
            self._edge(self.suite(node.body, then, exits), after)
            if len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
                self._edge(self.suite(node.orelse, other, exits), after)
                return after
            node = node.orelse[0]
            at = self.node(node.lineno, other)
            self._edge(at, exits.raised)

    def _arms(self, test: ast.expr, at: int) -> tuple[int, int]:
        """Return the nodes where control continues if a test holds, and if it does not."""
        truth = _truth(test)
        then = self.node(after=-1 if truth is False else at)
        return then, self.node(after=-1 if truth is True else at)

    def _loop(self, node: ast.While | ast.For | ast.AsyncFor, at: int, exits: _Exits) -> int:
        if isinstance(node, ast.While):
            again, done = self._arms(node.test, at)
        else:
            again, done = self.node(after=at), self.node(after=at)
        after = self.node()
        inner = replace(exits, broken=after, continued=at)
        self._edge(self.suite(node.body, again, inner), at)
        self._edge(self.suite(node.orelse, done, exits), after)
        return after

    def _with(self, node: ast.With | ast.AsyncWith, at: int, exits: _Exits) -> int:
        after = self.node()
        raised = self.node()
        self._edge(raised, after)
        self._edge(raised, exits.raised)
        if isinstance(node, ast.AsyncWith) or not enters_its_body(node):
            self._edge(at, raised)
        end = self.suite(node.body, at, replace(exits, raised=raised, guarded=True))
        self._edge(end, after)
        self._edge(end, exits.raised)
        return after

    def _try(self, node: ast.Try | ast.TryStar, at: int, exits: _Exits) -> int:
        if not node.finalbody:
            return self._handled(node, at, exits)
        ends = (exits.raised, exits.returned, exits.broken, exits.continued)
        raised, returned, broken, continued = (self.node() for _ in ends)
        inner = _Exits(raised, returned, broken, continued, exits.guarded)
        after = self.suite(node.finalbody, self._handled(node, at, inner), exits)
        pairs = dict(zip((raised, returned, broken, continued), ends, strict=True))
        reached = self.graph.reached(set(pairs))
        for begin, end in pairs.items():
            if begin in reached and end >= 0:
                self._edge(self.suite(node.finalbody, begin, exits), end)
        return after

    def _handled(self, node: ast.Try | ast.TryStar, at: int, exits: _Exits) -> int:
        """Add a ``try`` without its ``finally``."""
        if not node.handlers:
            return self.suite(node.orelse, self.suite(node.body, at, exits), exits)
        after = self.node()
        tested = self.node()
        end = self.suite(node.body, at, replace(exits, raised=tested))
        self._edge(self.suite(node.orelse, end, exits), after)
        for handler in node.handlers:
            clause = self.node(handler.lineno, tested)
            self._edge(clause, exits.raised)
            tested = self.node(after=clause)
            if isinstance(node, ast.Try):
                self._edge(self.suite(handler.body, clause, exits), after)
            else:  # the rest of the exception group goes to the next clause in any case
                inner = replace(exits, raised=tested)
                self._edge(self.suite(handler.body, clause, inner), tested)
        if isinstance(node, ast.TryStar):
            self._edge(tested, after)
        if isinstance(node, ast.TryStar) or not catches_all(node.handlers[-1]):
            self._edge(tested, exits.raised)
        return after

    def _match(self, node: ast.Match, at: int, exits: _Exits) -> int:
        after = self.node()
        for case in node.cases:
            clause = self.node(case.pattern.lineno, at)
            self._edge(clause, exits.raised)
            self._edge(self.suite(case.body, clause, exits), after)
            at = self.node(after=-1 if is_irrefutable(case) else clause)
        self._edge(at, after)
        return after


def _truth(test: ast.expr) -> bool | None:
    """Return the value of a test if the compiler knows it."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        truth = _truth(test.operand)
        return None if truth is None else not truth
    return bool(test.value) if isinstance(test, ast.Constant) else None


# What comes before a line.


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
