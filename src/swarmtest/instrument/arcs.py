"""Where control goes from a decision, as lines: what a branch target names.

The destinations are those that coverage.py reports: the line of the next statement for which the
compiler made code; the header of a loop at the end of its body; leaving a code object is its first
line, negated.
"""

from __future__ import annotations

import ast

from swarmtest.instrument.syntax import first_line

_Around = tuple[int, ast.stmt | None, int]
"""Leaving the code object, the loop around a statement, and where ``continue`` goes."""


class Arcs:
    """The destinations within one module."""

    def __init__(self, tree: ast.Module, executable: set[int], starts: dict[int, int]) -> None:
        self._executable = executable
        self._starts = starts
        self._after: dict[int, int] = {}
        self._around: dict[int, _Around] = {}
        self._suite(tree.body, -1, (-1, None, 0))

    def after(self, node: ast.stmt) -> int:
        """Where control goes when a statement has ended normally."""
        return self._after[id(node)]

    def into(self, suite: list[ast.stmt], line: int = 0) -> int:
        """Where control goes on entering a suite.

        From a header on the same `line` it goes where the suite goes.
        """
        way = self._entry(suite[0], self.after(suite[0]))
        return self._beyond(suite[-1]) if way == line else way

    def _beyond(self, node: ast.stmt) -> int:
        code, loop, top = self._around[id(node)]
        match node:
            case ast.Return() | ast.Raise():
                return code
            case ast.Break() if loop is not None:
                return self.after(loop)
            case ast.Continue():
                return top
        return self.after(node)

    def line(self, node: ast.AST) -> int:
        """The logical line on which a node begins."""
        line: int = node.lineno  # type: ignore[attr-defined]
        return self._starts.get(line, line)

    def _entry(self, node: ast.stmt, after: int) -> int:
        first = first_line(node)
        line = self._starts.get(first, first)
        if line in self._executable:
            return line
        if isinstance(node, ast.If) and isinstance(node.test, ast.Constant):
            arm = node.body if node.test.value else node.orelse
            return self.into(arm) if arm else after
        return after

    def _suite(self, suite: list[ast.stmt], after: int, around: _Around) -> int:
        """Note what follows each statement; answers where the suite is entered."""
        for node in reversed(suite):
            self._after[id(node)] = after
            self._around[id(node)] = around
            self._below(node, after, around)
            after = self._entry(node, after)
        return after

    def _below(self, node: ast.stmt, after: int, around: _Around) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            exit_line = -first_line(node)
            self._suite(node.body, exit_line, (exit_line, None, 0))
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            top = self.line(node)
            if top not in self._executable:
                top = self._starts.get(node.body[0].lineno, node.body[0].lineno)
            self._suite(node.body, top, (around[0], node, top))
            self._suite(node.orelse, after, around)
        elif isinstance(node, ast.Try | ast.TryStar):
            leaving = self._suite(node.finalbody, after, around)
            for handler in node.handlers:
                self._suite(handler.body, leaving, around)
            completed = self._suite(node.orelse, leaving, around)
            self._suite(node.body, completed, around)
        elif isinstance(node, ast.Match):
            for case in node.cases:
                self._suite(case.body, after, around)
        elif isinstance(node, ast.If):
            self._suite(node.body, after, around)
            self._suite(node.orelse, after, around)
        elif isinstance(node, ast.With | ast.AsyncWith):
            self._suite(node.body, after, around)
