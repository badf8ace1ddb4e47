"""What the facts of a module are called: its lines, blocks and branches as targets."""

from __future__ import annotations

import ast
from types import CodeType

from swarmtest.instrument.arcs import UNKNOWN, Arcs, arc_content, arc_name
from swarmtest.instrument.facts import Plan
from swarmtest.instrument.syntax import (
    executable_lines,
    first_line,
    header_end,
    is_compound,
    logical_lines,
)
from swarmtest.targets import content_hash

Placed = ast.stmt | ast.pattern | ast.ExceptHandler


class Names:
    """Gives facts their targets, and functions the spans of their statements.

    `tree` is the module before weaving, `plain` its code: a line is a target if the compiler made
    code for it.
    """

    def __init__(self, plan: Plan, text: str, tree: ast.Module, plain: CodeType) -> None:
        self._plan = plan
        self._lines = text.split("\n")
        self._starts = logical_lines(text)
        self._executable = executable_lines(plain, self._starts)
        self.arcs = Arcs(tree, self._executable, self._starts)

    def statement(
        self, fact: int, run: list[ast.stmt], function: int, spanned: bool, leader: bool
    ) -> None:
        """The targets of a statement: `run` is it and what follows in its suite.

        `spanned`: an exception's line may have to be traced back to it. `leader`: a block begins.
        """
        node = run[0]
        first = first_line(node)
        if spanned:
            self._plan.functions[function].spans.append((first, header_end(node), fact))
        if "line" in self._plan.kinds:
            lines = {first, node.lineno}
            lines.update(decorator.lineno for decorator in getattr(node, "decorator_list", ()))
            for line in sorted({self._starts.get(line, line) for line in lines}):
                self._line(fact, line, function)
        if "block" in self._plan.kinds and leader:
            self._block(fact, run, function)

    def clause(
        self,
        fact: int,
        node: ast.pattern | ast.ExceptHandler,
        function: int,
        spanned: bool,
        guard: ast.expr | None = None,
    ) -> None:
        """The targets of a clause (``except``, ``case``)."""
        if spanned:
            end = node.type if isinstance(node, ast.ExceptHandler) else guard or node
            last = end.end_lineno if end is not None else node.lineno
            self._plan.functions[function].spans.append((node.lineno, last or node.lineno, fact))
        if "line" in self._plan.kinds:
            self._line(fact, self.arcs.line(node), function)

    def _line(self, fact: int, line: int, function: int) -> None:
        if line in self._executable:
            content = content_hash(self._lines[line - 1])
            self._plan.target(fact, ("line", f"{line}", line, function, content))

    def _block(self, fact: int, run: list[ast.stmt], function: int) -> None:
        last = next((node for node in run if is_compound(node)), run[-1])
        first, end = first_line(run[0]), header_end(last)
        if any(self._starts.get(line, line) in self._executable for line in range(first, end + 1)):
            content = content_hash("\n".join(self._lines[first - 1 : end]))
            self._plan.target(fact, ("block", f"{first}-{end}", first, function, content))

    def decision(self, place: Placed, function: int, ways: list[tuple[int, int]]) -> None:
        """The branch targets of a decision, if its ways (fact, line) lead to different lines."""
        line = self.arcs.line(place)
        lines = {way for _, way in ways}
        told_apart = len(lines) > 1 and not lines & {line, UNKNOWN}
        if "branch" not in self._plan.kinds or not told_apart or line not in self._executable:
            return
        for fact, way in ways:
            content = arc_content(self._lines, line, way)
            self._plan.target(fact, ("branch", arc_name(line, way), line, function, content))

    def into(self, place: Placed, suite: list[ast.stmt]) -> int:
        """Where control goes from a header into its suite."""
        return self.arcs.into(suite, self.arcs.line(place))
