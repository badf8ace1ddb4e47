"""Arcs: the lines to which control goes from a decision, which name a branch target.

The destinations are those that coverage.py reports: the line of the next statement for which the
compiler generates code, or the header of a loop at the end of its body; the exit of a code object
is its first line, negated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from swarmtest.core.targets import Target, content_hash
from swarmtest.coverage.weaving.syntax import first_line

UNKNOWN = 0
"""A destination without a line: where an exception goes that passes through ``finally``."""


_ARC = re.compile(r":(\d+)->(?:(\d+)|exit\((\d+)\))$")


def arc_name(line: int, way: int) -> str:
    """Return the lines of a branch in the form in which its target's name ends.

    >>> arc_name(3, 7), arc_name(3, -1)
    ('3->7', '3->exit(1)')
    """
    return f"{line}->{way}" if way > 0 else f"{line}->exit({-way})"


def arc_of(target: Target) -> tuple[int, int]:
    """Return the lines of a branch target, with an exit as coverage.py writes it.

    >>> arc_of(Target("branch", "a.py:3->7")), arc_of(Target("branch", "a.py:3->exit(1)"))
    ((3, 7), (3, -1))
    """
    match = _ARC.search(target.name)
    if match is None:
        raise ValueError(f"not a branch: {target.name}")
    line, to, exited = match.groups()
    return int(line), int(to) if to else -int(exited)


def arc_content(lines: Sequence[str], line: int, way: int) -> str:
    """Return the hash of a branch: of the line that it leaves and the line that it goes to."""

    def at(number: int) -> str:
        return lines[number - 1] if 0 < number <= len(lines) else ""

    return content_hash(f"{at(line)}\n{at(way) if way > 0 else 'exit'}")


@dataclass(frozen=True)
class _Context:
    """Where jumps from a statement go."""

    leave: int
    """The exit of the code object."""
    raised: int
    """Where an exception goes."""
    loop: ast.stmt | None = None
    top: int = 0
    """Where ``continue`` goes."""


class Arcs:
    """The destinations in one module."""

    def __init__(self, tree: ast.Module, executable: set[int], starts: dict[int, int]) -> None:
        self._executable = executable
        self._starts = starts
        self._after: dict[int, int] = {}
        self._contexts: dict[int, _Context] = {}
        self._suite(tree.body, -1, _Context(-1, -1))

    def after(self, node: ast.stmt) -> int:
        """Return where control goes when a statement has ended normally."""
        return self._after[id(node)]

    def into(self, suite: list[ast.stmt], line: int = 0) -> int:
        """Return where control goes on entering a suite.

        If the header is on the same `line`, that is where control goes after the suite.
        """
        way = self._entry(suite[0], self.after(suite[0]))
        return self._beyond(suite[-1]) if way == line else way

    def _beyond(self, node: ast.stmt) -> int:
        context = self._contexts[id(node)]
        match node:
            case ast.Return():
                return context.leave
            case ast.Raise():
                return context.raised
            case ast.Break() if context.loop is not None:
                return self.after(context.loop)
            case ast.Continue():
                return context.top
        return self.after(node)

    def line(self, node: ast.stmt | ast.pattern | ast.ExceptHandler) -> int:
        """Return the logical line on which a statement or clause begins."""
        return self._starts.get(node.lineno, node.lineno)

    def _entry(self, node: ast.stmt, after: int) -> int:
        first = first_line(node)
        line = self._starts.get(first, first)
        if line in self._executable:
            return line
        if isinstance(node, ast.If) and isinstance(node.test, ast.Constant):
            arm = node.body if node.test.value else node.orelse
            return self.into(arm) if arm else after
        return after

    def _suite(self, suite: list[ast.stmt], after: int, context: _Context) -> int:
        """Record what follows each statement; return the line on which the suite is entered."""
        for node in reversed(suite):
            self._after[id(node)] = after
            self._contexts[id(node)] = context
            self._below(node, after, context)
            after = self._entry(node, after)
        return after

    def _below(self, node: ast.stmt, after: int, context: _Context) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            exit_line = -first_line(node)
            self._suite(node.body, exit_line, _Context(exit_line, exit_line))
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            top = self.line(node)
            if top not in self._executable:
                top = self._starts.get(node.body[0].lineno, node.body[0].lineno)
            self._suite(node.body, top, replace(context, loop=node, top=top))
            self._suite(node.orelse, after, context)
        elif isinstance(node, ast.Try | ast.TryStar):
            leaving = self._suite(node.finalbody, after, context)
            in_finally = replace(context, raised=UNKNOWN) if node.finalbody else context
            caught = self.line(node.handlers[0]) if node.handlers else UNKNOWN
            for handler in node.handlers:
                self._suite(handler.body, leaving, in_finally)
            completed = self._suite(node.orelse, leaving, in_finally)
            self._suite(node.body, completed, replace(context, raised=caught))
        elif isinstance(node, ast.Match):
            for case in node.cases:
                self._suite(case.body, after, context)
        elif isinstance(node, ast.If):
            self._suite(node.body, after, context)
            self._suite(node.orelse, after, context)
        elif isinstance(node, ast.With | ast.AsyncWith):
            self._suite(node.body, after, context)
