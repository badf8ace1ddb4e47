"""Where control goes from a decision, as lines: what a branch target names.

The destinations are those that coverage.py reports: the line of the next statement for which the
compiler made code; the header of a loop at the end of its body; leaving a code object is its first
line, negated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from swarmtest.core.targets import Target, content_hash
from swarmtest.coverage.weaving import snippets
from swarmtest.coverage.weaving.blocks import Outline
from swarmtest.coverage.weaving.syntax import first_line

# -------------------------------------------------------------------------------------------------
# The code object that statements are in, as far as weaving cares.


@dataclass
class CodeScope:
    """A module, class or function, and how what happens in it is noted."""

    function: int
    direct: bool
    """Every statement has a probe: module and class bodies."""
    name: str = ""
    """What qualified names of what is defined here begin with."""
    outline: Outline | None = None
    added: dict[str, int] | None = None
    """What symbols add to the number of a way, if ways are counted and not spelt out."""
    predicate: bool = False
    """Whether the states of predicates are noted."""
    unproven: bool = False
    """Whether an exception in the current region would leave a statement without proof."""

    def within(self, name: str) -> str:
        """The qualified name of something defined here."""
        return f"{self.name}.{name}" if self.name else name

    def symbol(self, node: ast.stmt, way: int) -> str:
        """What stands for a way out of a decision in paths; empty when no paths are noted."""
        return self.outline.symbols.get((id(node), way), "") if self.outline else ""

    def step(self, symbol: str) -> ast.stmt:
        """What notes that a way was taken."""
        if self.added is None:
            return snippets.step_path(symbol)
        return snippets.step_way(self.added[symbol])


# -------------------------------------------------------------------------------------------------

UNKNOWN = 0
"""Stands for a destination that no line tells: where an exception goes that ``finally`` sees."""


_ARC = re.compile(r":(\d+)->(?:(\d+)|exit\((\d+)\))$")


def arc_name(line: int, way: int) -> str:
    """The lines of a branch as its target's name ends in them.

    >>> arc_name(3, 7), arc_name(3, -1)
    ('3->7', '3->exit(1)')
    """
    return f"{line}->{way}" if way > 0 else f"{line}->exit({-way})"


def arc_of(target: Target) -> tuple[int, int]:
    """The lines of a branch target, with leaving a code object as coverage.py writes it.

    >>> arc_of(Target("branch", "a.py:3->7")), arc_of(Target("branch", "a.py:3->exit(1)"))
    ((3, 7), (3, -1))
    """
    found = _ARC.search(target.name)
    if found is None:
        raise ValueError(f"not a branch: {target.name}")
    line, to, left = found.groups()
    return int(line), int(to) if to else -int(left)


def arc_content(lines: Sequence[str], line: int, way: int) -> str:
    """The hash of a branch: of the line it leaves and the line it goes to."""

    def at(number: int) -> str:
        return lines[number - 1] if 0 < number <= len(lines) else ""

    return content_hash(f"{at(line)}\n{at(way) if way > 0 else 'exit'}")


@dataclass(frozen=True)
class _Around:
    """What is around a statement, as far as jumps care."""

    leave: int
    """Leaving the code object."""
    raised: int
    """Where an exception goes."""
    loop: ast.stmt | None = None
    top: int = 0
    """Where ``continue`` goes."""


class Arcs:
    """The destinations within one module."""

    def __init__(self, tree: ast.Module, executable: set[int], starts: dict[int, int]) -> None:
        self._executable = executable
        self._starts = starts
        self._after: dict[int, int] = {}
        self._around: dict[int, _Around] = {}
        self._suite(tree.body, -1, _Around(-1, -1))

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
        around = self._around[id(node)]
        match node:
            case ast.Return():
                return around.leave
            case ast.Raise():
                return around.raised
            case ast.Break() if around.loop is not None:
                return self.after(around.loop)
            case ast.Continue():
                return around.top
        return self.after(node)

    def line(self, node: ast.stmt | ast.pattern | ast.ExceptHandler) -> int:
        """The logical line on which a statement or clause begins."""
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
            self._suite(node.body, exit_line, _Around(exit_line, exit_line))
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            top = self.line(node)
            if top not in self._executable:
                top = self._starts.get(node.body[0].lineno, node.body[0].lineno)
            self._suite(node.body, top, replace(around, loop=node, top=top))
            self._suite(node.orelse, after, around)
        elif isinstance(node, ast.Try | ast.TryStar):
            leaving = self._suite(node.finalbody, after, around)
            guarded = replace(around, raised=UNKNOWN) if node.finalbody else around
            caught = self.line(node.handlers[0]) if node.handlers else UNKNOWN
            for handler in node.handlers:
                self._suite(handler.body, leaving, guarded)
            completed = self._suite(node.orelse, leaving, guarded)
            self._suite(node.body, completed, replace(around, raised=caught))
        elif isinstance(node, ast.Match):
            for case in node.cases:
                self._suite(case.body, after, around)
        elif isinstance(node, ast.If):
            self._suite(node.body, after, around)
            self._suite(node.orelse, after, around)
        elif isinstance(node, ast.With | ast.AsyncWith):
            self._suite(node.body, after, around)
