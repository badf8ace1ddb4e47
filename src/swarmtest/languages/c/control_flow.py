"""The control flow of a C or C++ function, read from its syntax tree.

`swarmtest.languages.c.functions` finds the functions, and says what this reading cannot see.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from swarmtest.languages.flow_graph import Dominance, Graph

if TYPE_CHECKING:
    from tree_sitter import Node

_ENDLESS = re.compile(rb"for\s*\(\s*;\s*;\s*\)|while\s*\(\s*(?:1|true)\s*\)")
_CALL_IN_CAPITALS = re.compile(rb"\b([A-Z_][A-Z0-9_]+)\s*\(")
_GOTO_ANY = re.compile(rb"goto\s*\*")


@dataclass(frozen=True)
class FunctionFlow:
    """The control-flow graph of a function.

    `ends` has the last line of each statement that spans several.
    """

    lines: tuple[int, ...]
    successors: tuple[tuple[int, ...], ...]
    ends: dict[int, int]

    @cached_property
    def _dominance(self) -> Dominance:
        return Dominance(self.lines, self.successors)

    def before(self, line: int) -> list[list[int]]:
        """Return the statements that dominate a line, nearest first: the lines of each."""
        begins = self._statement_at(line)
        own = [list(range(begins, line))] if begins < line else []
        chain = self._dominance.chain(begins) if begins in self._dominance.lines else []
        return own + [self._span(dominator) for dominator in chain if dominator != line]

    def _statement_at(self, line: int) -> int:
        """Return where the statement on a line begins, or the next one if the line has none."""
        lines = self._dominance.lines
        if line in lines:
            return line
        around = [start for start in lines if start < line <= self.ends.get(start, start)]
        return max(around) if around else min([n for n in lines if n > line], default=line)

    def _span(self, line: int) -> list[int]:
        """Return the lines of a statement, without those on which another one begins."""
        end = self.ends.get(line, line)
        return [line, *(n for n in range(line + 1, end + 1) if n not in self._dominance.lines)]


def flow_of_function(
    raw: bytes, first: int, opening: int, nodes: Sequence[Node], last: int
) -> FunctionFlow:
    """Return the flow of a function in the file `raw`.

    `first` is the line of its name, `opening` that of its brace, `nodes` is what is in the braces,
    and `last` is the line of the closing brace, or 0 if there is none.
    """
    builder = _Builder(raw, first)
    builder.body(nodes, last)
    graph = builder.graph
    ends = {first: opening} | builder.ends
    return FunctionFlow(tuple(graph.lines), tuple(map(tuple, graph.successors)), ends)


@dataclass(frozen=True)
class _Exits:
    """The nodes where control goes when a statement is left early."""

    returned: int
    broken: int = -1
    continued: int = -1
    raised: int = -1
    switch: int = 0
    """The node from which hidden labels are reached: the ``switch``, or the entry."""


class _Builder:
    """A builder of the graph of one function.

    Methods take a statement and the node of the graph that control comes from; they return the
    node where control continues.
    """

    def __init__(self, raw: bytes, first: int) -> None:
        self._raw = raw
        self.graph = Graph(first)
        self.ends: dict[int, int] = {}
        self._labels: dict[str, int] = {}
        self._jumps: list[tuple[int, str]] = []
        """From which node to which label; an empty label means any."""
        self._after_jumps: set[int] = set()
        """The nodes after jumps."""
        self._defaults: set[int] = set()
        """The switches that have a ``default``."""
        self._bodies: list[Node] = []
        """The bodies that the parser did not see as such, of statements that are being added."""

    def body(self, nodes: Sequence[Node], last: int) -> None:
        """Add a whole function."""
        leave = self.graph.node()
        at = self._suite(nodes, 0, _Exits(leave))
        self.graph.edge(at, leave)
        if last:
            self.graph.node(last, leave)
        aimed = {label for _, label in self._jumps}
        for start, label in self._jumps:
            ends = [self._labels[label]] if label in self._labels else self._labels.values()
            for end in ends:
                self.graph.edge(start, end)
        for label, node in self._labels.items():
            if label not in aimed and "" not in aimed:
                self.graph.edge(0, node)

    def _line(self, begin: Node, end: Node, after: int, exits: _Exits) -> int:
        """Add a node for the code from one node of the tree to another."""
        line, last = begin.start_point[0] + 1, _last_line(end)
        if last > line:
            self.ends[line] = max(last, self.ends.get(line, 0))
        node = self.graph.node(line, after)
        if exits.raised >= 0:
            self.graph.edge(node, exits.raised)
        if self._has_macro(begin, end):
            self._jumps.append((node, ""))
        return node

    def _has_macro(self, begin: Node, end: Node) -> bool:
        """Return whether there is a call of something in capitals, which may hide a jump."""
        names = _CALL_IN_CAPITALS.findall(self._raw, begin.start_byte, end.end_byte)
        return any(name.isupper() for name in names)

    def _suite(self, nodes: Iterable[Node], node: int, exits: _Exits) -> int:
        statements = [node for node in _statements_in(nodes) if not _is_empty(node)]
        at = 0
        while at < len(statements):
            statement = statements[at]
            following = statements[at + 1].type if at + 1 < len(statements) else ""
            at += 1
            if node in self._after_jumps and statement.type not in _LABELS:
                # Nothing visible leads here, so a macro hides a label.
                self.graph.edge(exits.switch, node)
            if following == "compound_statement" and is_call_before_block(statement):
                node = self._macro_with_block(statement, statements[at], node, exits)
                at += 1
            elif following in _CONDITIONAL and _lacks_body(statement):
                self._bodies.append(statements[at])
                node = self._statement(statement, node, exits)
                at += 1
            else:
                node = self._statement(statement, node, exits)
        return node

    def _statement(self, statement: Node | None, node: int, exits: _Exits) -> int:
        if statement is None:
            return node
        if self._bodies and _is_absent(statement):
            statement = self._bodies.pop()
        match statement.type:
            case "compound_statement":
                return self._block(statement, node, exits)
            case "if_statement":
                return self._if(statement, node, exits)
            case "while_statement" | "for_statement" | "for_range_loop":
                return self._loop(statement, node, exits)
            case "do_statement":
                return self._do(statement, node, exits)
            case "switch_statement":
                return self._switch(statement, node, exits)
            case "case_statement":
                return self._case(statement, node, exits)
            case "labeled_statement":
                return self._label(statement, node, exits)
            case "return_statement" | "break_statement" | "continue_statement" | "goto_statement":
                return self._jump(statement, node, exits)
            case "throw_statement" | "co_return_statement":
                return self._jump(statement, node, exits)
            case "try_statement":
                return self._try(statement, node, exits)
            case "else_clause" | "attributed_statement":
                return self._suite(statement.named_children, node, exits)
            case "function_definition":
                return self._macro_with_block(
                    statement, statement.child_by_field_name("body"), node, exits
                )
        if statement.type in _CONDITIONAL:
            return self._alternatives(statement, node, exits)
        if statement.type in _NOT_CODE or _is_empty(statement):
            return node
        return self._line(statement, statement, node, exits)

    def _block(self, block: Node, node: int, exits: _Exits) -> int:
        node = self._suite(block.children, node, exits)
        close = block.children[-1] if block.children else block
        if close.type == "}" and not close.is_missing:
            node = self.graph.node(close.start_point[0] + 1, node)
        return node

    def _header(self, statement: Node, node: int, exits: _Exits) -> int:
        """Add a keyword with the parentheses after it."""
        return self._line(statement.children[0], _end_of_header(statement), node, exits)

    def _if(self, statement: Node, node: int, exits: _Exits) -> int:
        after = self.graph.node()
        while True:
            test = self._header(statement, node, exits)
            then = self._statement(_field(statement, "consequence"), test, exits)
            self.graph.edge(then, after)
            other = _field(statement, "alternative")
            if other is not None and other.type == "else_clause":
                other = next(_statements_in(other.children), None)
            if other is None:
                self.graph.edge(test, after)
                return after
            if other.type != "if_statement":
                self.graph.edge(self._statement(other, test, exits), after)
                return after
            statement, node = other, test

    def _loop(self, statement: Node, node: int, exits: _Exits) -> int:
        body = _field(statement, "body")
        if not _ENDLESS.match(self._raw, statement.start_byte):
            return self._repeated(body, self._header(statement, node, exits), exits)
        # An endless loop has no code of its own: its line stands only for the jump back.
        top = self.graph.node(after=node)
        after = self.graph.node()
        inner = replace(exits, broken=after, continued=top)
        self.graph.edge(self._statement(body, top, inner), top)
        hidden = body is not None and self._has_macro(body, body)
        if hidden or after not in self.graph.reached({after}):
            self.graph.edge(top, after)
        return after

    def _repeated(self, body: Node | None, test: int, exits: _Exits) -> int:
        after = self.graph.node(after=test)
        inner = replace(exits, broken=after, continued=test)
        self.graph.edge(self._statement(body, test, inner), test)
        return after

    def _do(self, statement: Node, node: int, exits: _Exits) -> int:
        top, tested, after = self.graph.node(after=node), self.graph.node(), self.graph.node()
        inner = replace(exits, broken=after, continued=tested)
        last = self._statement(_field(statement, "body"), top, inner)
        self.graph.edge(last, tested)
        condition = _field(statement, "condition")
        if condition is not None:
            keyword = next(child for child in statement.children if child.type == "while")
            tested = self._line(keyword, condition, tested, exits)
        self.graph.edge(tested, top)
        self.graph.edge(tested, after)
        return after

    def _switch(self, statement: Node, node: int, exits: _Exits) -> int:
        chosen = self._header(statement, node, exits)
        after = self.graph.node()
        inner = replace(exits, broken=after, switch=chosen)
        # What comes before the first visible case can only be reached through a hidden one.
        start = self.graph.node(after=chosen)
        self.graph.edge(self._statement(_field(statement, "body"), start, inner), after)
        if chosen not in self._defaults:
            self.graph.edge(chosen, after)
        return after

    def _case(self, statement: Node, node: int, exits: _Exits) -> int:
        if statement.children[0].type == "default":
            self._defaults.add(exits.switch)
        label = self.graph.node(statement.start_point[0] + 1, after=node)
        self.graph.edge(exits.switch, label)
        value = _field(statement, "value")
        inside = [child for child in statement.children if child != value]
        return self._suite(inside, label, exits)

    def _label(self, statement: Node, node: int, exits: _Exits) -> int:
        name = _text(_field(statement, "label"))
        if name not in self._labels:
            self._labels[name] = self.graph.node()
        self.graph.edge(node, self._labels[name])
        return self._suite(statement.named_children[1:], self._labels[name], exits)

    def _jump(self, statement: Node, node: int, exits: _Exits) -> int:
        node = self._line(statement, statement, node, exits)
        match statement.type:
            case "goto_statement":
                anywhere = _GOTO_ANY.match(self._raw, statement.start_byte)
                self._jumps.append((node, "" if anywhere else _text(_field(statement, "label"))))
            case "break_statement" if exits.broken >= 0:
                self.graph.edge(node, exits.broken)
            case "continue_statement" if exits.continued >= 0:
                self.graph.edge(node, exits.continued)
            case "throw_statement":
                pass
            case _:
                self.graph.edge(node, exits.returned)
        after = self.graph.node()
        self._after_jumps.add(after)
        return after

    def _try(self, statement: Node, node: int, exits: _Exits) -> int:
        raised, after = self.graph.node(), self.graph.node()
        last = self._statement(_field(statement, "body"), node, replace(exits, raised=raised))
        self.graph.edge(last, after)
        for clause in statement.named_children:
            if clause.type == "catch_clause":
                caught = self._header(clause, raised, exits)
                self.graph.edge(self._statement(_field(clause, "body"), caught, exits), after)
        if exits.raised >= 0:
            self.graph.edge(raised, exits.raised)
        return after

    def _alternatives(self, statement: Node, node: int, exits: _Exits) -> int:
        """Add the branches of an ``#if``."""
        after = self.graph.node()
        branch: Node | None = statement
        complete = False
        while branch is not None:
            condition, other = _field(branch, "condition"), _field(branch, "alternative")
            inside = [child for child in branch.children if child not in (condition, other)]
            self.graph.edge(self._suite(inside, node, exits), after)
            complete |= branch.type == "preproc_else"
            branch = other
        if not complete:
            self.graph.edge(node, after)
        return after

    def _macro_with_block(self, head: Node, block: Node | None, node: int, exits: _Exits) -> int:
        """Add a macro with a block after it, as a loop, a ``switch`` and a ``case``."""
        test = self._line(head, _end_of_header(head), node, exits)
        if exits.switch:
            self.graph.edge(exits.switch, test)
        return self._repeated(block, test, replace(exits, switch=test))


_LABELS = {"case_statement", "labeled_statement"}
_CONDITIONAL = {"preproc_if", "preproc_ifdef"}
_NOT_CODE = {"comment", "preproc_call", "preproc_def", "preproc_function_def", "preproc_include"}
_PARTS_AT_THE_END = ("alternative", "body", "consequence")


def _statements_in(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield the statements among nodes; an error stands for what could be parsed in it."""
    left = list(nodes)[::-1]
    while left:
        node = left.pop()
        if node.type == "ERROR":
            left += reversed(node.children)
        elif node.is_named:
            yield node


def _field(node: Node, name: str) -> Node | None:
    return node.child_by_field_name(name)


def _text(node: Node | None) -> str:
    return (node.text or b"").decode(errors="replace") if node is not None else ""


def _end_of_header(statement: Node) -> Node:
    """Return the last node of a statement before the statements in it."""
    end = statement.children[0] if statement.children else statement
    for i, child in enumerate(statement.children):
        if statement.field_name_for_child(i) in ("body", "consequence"):
            return end
        end = child
    return statement


def _last_line(node: Node) -> int:
    """Return the line where a node ends, without a missing token, which has no place of its own."""
    while node.children and node.children[-1].is_missing and len(node.children) > 1:
        node = node.children[-2]
    return node.end_point[0] + 1


def _is_empty(statement: Node) -> bool:
    return statement.type == "expression_statement" and not statement.named_child_count


def _is_absent(statement: Node) -> bool:
    """Return whether the parser assumed a statement where the text has none."""
    return _is_empty(statement) and all(child.is_missing for child in statement.children)


def _lacks_body(statement: Node) -> bool:
    """Return whether a statement ends where its body, or a part of it, should begin."""
    last: Node | None = statement
    while last is not None and last.has_error:
        if _is_absent(last):
            return True
        if last.type == "else_clause":
            last = last.named_children[-1] if last.named_children else None
        else:
            parts = (_field(last, name) for name in _PARTS_AT_THE_END)
            last = next((part for part in parts if part is not None), None)
    return False


def is_call_before_block(statement: Node) -> bool:
    """Return whether a statement is a call without a semicolon: before a block, of a macro."""
    if statement.type == "expression_statement" and statement.children[-1].is_missing:
        statement = statement.children[0]
    return statement.type == "call_expression"
