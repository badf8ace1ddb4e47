"""Which targets follow from a probe: facts about a program that imply each other.

Not every statement has a probe. In a suite (the statements under one header), the statements that
were begun are always the first few. So "the last one was begun" implies that all were, and "the
first one was begun" implies that its header was. A `ProbePlan` holds these implications for one
file: a *fact* is a number, with the fact that it implies directly and the targets that it hits.
Probes, raised exceptions and paths each stand for facts; the rest follows. `TargetNames` gives
facts their targets: lines, blocks and branches.

A plan is plain data, because it is cached on disk together with the code that it belongs to.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from swarmtest.core.targets import Source, Target, content_hash
from swarmtest.coverage.weaving.arcs import UNKNOWN, Arcs, arc_content, arc_name
from swarmtest.coverage.weaving.syntax import (
    executable_lines,
    first_line,
    header_end,
    is_compound,
    logical_lines,
)


@dataclass
class ProbedFunction:
    """What is known about a function with probes; function 0 is the module."""

    name: str
    """Qualified; empty for the module."""
    line: int
    """Where its code object begins: the first decorator."""
    spans: list[tuple[int, int, int]] = field(default_factory=list)
    """(first line, last line, fact) of each statement or header in it, in order."""
    predicates: list[str] = field(default_factory=list)
    """The source of its conditions, in the order of the vector of their values."""
    outline: Any = None
    """Its statements as nested plain data (`swarmtest.coverage.weaving.blocks`), for paths."""
    first_way: int = 0
    """The position of its first way in the file's list of ways; 0 if they are not numbered."""

    def fact_at(self, line: int) -> int:
        """Return the fact of the first statement at a line; -1 if there is none.

        A statement that shares a line with the one before it has its own probe.
        """
        return next((fact for first, last, fact in self.spans if first <= line <= last), -1)


@dataclass
class ProbePlan:
    """The facts of one file."""

    implies: list[int] = field(default_factory=list)
    """For each fact the one that it implies directly; -1 for none."""
    targets: list[tuple[str, str, int, int, str]] = field(default_factory=list)
    """(kind, name after the file, line, function, content hash)."""
    hits: list[tuple[int, ...]] = field(default_factory=list)
    """For each fact the targets that it hits directly."""
    probes: list[int] = field(default_factory=list)
    """For each probe its fact."""
    functions: list[ProbedFunction] = field(default_factory=list)
    kinds: tuple[str, ...] = ()
    ways: int = 1
    """Length of the list of ways; index 0 is for ways that an exception ended."""
    _target_numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    _masks: dict[int, int] = field(default_factory=dict)

    def fact(self, implied: int = -1) -> int:
        """Add a fact, with the fact that it implies, and return it."""
        self.implies.append(implied)
        self.hits.append(())
        return len(self.implies) - 1

    def probe(self, fact: int) -> int:
        """Add a probe that stands for a fact, and return its number."""
        self.probes.append(fact)
        return len(self.probes) - 1

    def target(self, fact: int, target: tuple[str, str, int, int, str]) -> None:
        """Record that a fact hits a target, which other facts may hit as well."""
        number = self._target_numbers.setdefault(target[:2], len(self.targets))
        if number == len(self.targets):
            self.targets.append(target)
        self.hits[fact] += (number,)

    def mask(self, fact: int) -> int:
        """Return the targets that a fact hits, directly or by implication, as a bit for each."""
        chain = []
        while fact >= 0 and fact not in self._masks:
            chain.append(fact)
            fact = self.implies[fact]
        mask = self._masks[fact] if fact >= 0 else 0
        for implying in reversed(chain):
            for target in self.hits[implying]:
                mask |= 1 << target
            self._masks[implying] = mask
        return mask

    def targets_in(self, source: Source) -> list[Target]:
        """Return the targets of the file that the plan was made for."""
        return [
            source.target(kind, name, line, self.functions[function].name, content)
            for kind, name, line, function, content in self.targets
        ]

    def to_plain(self) -> Any:
        """Return the plan as data that `marshal` can write."""
        functions = [
            (f.name, f.line, f.spans, f.predicates, f.outline, f.first_way) for f in self.functions
        ]
        targets = (self.implies, self.targets, self.hits, self.probes)
        return (*targets, functions, self.kinds, self.ways)

    @classmethod
    def from_plain(cls, data: Any) -> ProbePlan:
        """Return the plan that `to_plain` described."""
        implies, targets, hits, probes, functions, kinds, ways = data
        return cls(
            implies, targets, hits, probes, [ProbedFunction(*f) for f in functions], kinds, ways
        )


Placed = ast.stmt | ast.pattern | ast.ExceptHandler


class TargetNames:
    """Gives facts their targets, and functions the spans of their statements.

    `tree` is the module before weaving and `plain` its compiled code: a line is a target if the
    compiler generated code for it.
    """

    def __init__(self, plan: ProbePlan, text: str, tree: ast.Module, plain: CodeType) -> None:
        self._plan = plan
        self._lines = text.split("\n")
        self._starts = logical_lines(text)
        self._executable = executable_lines(plain, self._starts)
        self.arcs = Arcs(tree, self._executable, self._starts)

    def statement(
        self, fact: int, run: list[ast.stmt], function: int, spanned: bool, leader: bool
    ) -> None:
        """Add the targets of a statement; `run` is it and the statements after it in its suite.

        `spanned` says that the line of an exception may have to be traced back to it, `leader` that
        it begins a block.
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
        """Add the targets of a clause (``except``, ``case``)."""
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
        """Add the branch targets of a decision, if its branches lead to different lines.

        `ways` are the branches, as (fact, line) pairs.
        """
        line = self.arcs.line(place)
        destinations = {to for _, to in ways}
        distinct = len(destinations) > 1 and not destinations & {line, UNKNOWN}
        if "branch" not in self._plan.kinds or not distinct or line not in self._executable:
            return
        for fact, to in ways:
            content = arc_content(self._lines, line, to)
            self._plan.target(fact, ("branch", arc_name(line, to), line, function, content))

    def into(self, place: Placed, suite: list[ast.stmt]) -> int:
        """Return the line to which control goes from a header into its suite."""
        return self.arcs.into(suite, self.arcs.line(place))
