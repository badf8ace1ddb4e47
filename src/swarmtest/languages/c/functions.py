"""The functions of a C or C++ file: where they are, their control flow, and what they mention.

The syntax tree is that of the text, before preprocessing. What it does not show is taken as
possible: a macro in capitals may jump to any label of the function, a label that nothing visible
jumps to may be reached from anywhere, and so may the code after a jump without a label (a macro may
hide a ``case``). So no line is dead here, and what dominates in this graph is executed before; a
macro that hides half of an ``if`` is the exception.

`CStatements` has the lines that may be executed: neither blank lines nor comments nor directives.
Any other line may be one that the compiler reports. Where the user names a range, lines with
nothing but braces are left out.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from swarmtest.languages.c.control_flow import FunctionFlow, flow_of_function, is_call_before_block
from swarmtest.languages.c.preprocessor import code_lines, parseable
from swarmtest.languages.c.syntax_tree import parse_c_or_cpp
from swarmtest.languages.python.callers import TOO_MANY, CallSite
from swarmtest.languages.text_lines import AnyStatements, next_or_last

if TYPE_CHECKING:
    from tree_sitter import Node

_CLASSES = {"class_specifier", "struct_specifier", "union_specifier"}
_CONTAINERS = _CLASSES | {
    *("ERROR", "declaration", "declaration_list", "field_declaration_list", "friend_declaration"),
    *("linkage_specification", "namespace_definition", "preproc_if", "preproc_elif"),
    *("preproc_else", "template_declaration", "type_definition"),
}
"""The nodes in which functions are defined."""
_DECLARATORS = {
    *(
        "array_declarator",
        "attributed_declarator",
        "function_declarator",
        "parenthesized_declarator",
    ),
    *("pointer_declarator", "reference_declarator"),
}
_TOP_LEVEL_STATEMENTS = {"compound_statement", "expression_statement"}
"""Macros without and with a block."""
_NOT_CALLED = {"if", "for", "while", "switch", "return", "sizeof", "defined", "catch"}
_NAME_IN_BODY = re.compile(rb"(\.|->)?\s*(?<![\w.])([A-Za-z_]\w*)\s*(\()?")


class Mention(NamedTuple):
    """A name in the body of a function, and its line."""

    name: str
    line: int


@dataclass(frozen=True)
class CFunction:
    """A function with a body."""

    name: str
    """The name as written, with the classes before it: ``Cart::total``."""
    first: int
    last: int
    static: bool
    flow: FunctionFlow
    mentions: tuple[Mention, ...]
    """The names in its body that may be functions."""


@lru_cache(maxsize=4096)
def functions_of(text: str) -> tuple[CFunction, ...]:
    """Return the functions of a file, in order.

    >>> [f.name for f in functions_of("static int f(int x) { return x; }\\nint y;")]
    ['f']
    """
    functions = [
        _function(definition, raw)
        for raw, nodes in _parts(parseable(text).encode(errors="replace"))
        for definition in _definitions_in(nodes, "")
    ]
    return tuple(sorted(functions, key=lambda function: function.first))


def function_at(text: str, line: int) -> CFunction | None:
    """Return the function around a line."""
    return next(
        (function for function in functions_of(text) if function.first <= line <= function.last),
        None,
    )


def lines_before(text: str, line: int) -> list[list[int]]:
    """Return the statements of the function that are executed before a line, nearest first.

    Each is a list of its lines, because the text does not show which of them the compiler reports.

    >>> lines_before("int f(int x) {\\n  x++;\\n  if (x)\\n    x--;\\n  return x;\\n}\\n", 4)
    [[3], [2], [1]]
    """
    function = function_at(text, line)
    return function.flow.before(line) if function else []


def call_sites(function: str, sources: Mapping[str, str], place: str = "") -> list[CallSite]:
    """Return where a C or C++ function is mentioned; nothing if that is nearly everywhere.

    >>> text = "int f(int x) { return x; }\\nint g(void) {\\n  return f(1);\\n}\\n"
    >>> call_sites("f", {"a.c": text})
    [CallSite(place='a.c', line=3, caller='g', feature='')]
    """
    name = function.partition("(")[0].rpartition("::")[2].strip()
    own = functions_of(sources[place]) if place in sources else ()
    static = any(definition.static for definition in own if definition.name == function)
    searched = {place: sources[place]} if static else sources
    mentions = [
        CallSite(where, mention.line, caller.name)
        for where, text in searched.items()
        for caller in functions_of(text)
        for mention in caller.mentions
        if mention.name == name
    ]
    sites = list(dict.fromkeys(mentions))
    return sites if len(sites) <= TOO_MANY else []


# Definitions in syntax trees.


@dataclass(frozen=True)
class _Definition:
    """A function in a syntax tree."""

    head: Node
    """The node in which the definition begins, before the function's name."""
    name: Node
    opening: Node
    body: Sequence[Node]
    close: Node | None
    prefix: str
    """The classes around it, with ``::`` after each."""


def _parts(raw: bytes) -> Iterator[tuple[bytes, Sequence[Node]]]:
    """Yield the nodes at the top of a file, with the text that they are in.

    An error can hide what comes after it. So what is around an error is parsed again, in pieces
    that end where functions usually do: at a brace in the first column.
    """
    root = parse_c_or_cpp(raw)
    lines = raw.split(b"\n")
    ends = [row for row, line in enumerate(lines) if line.startswith(b"}")]
    broken = {
        piece
        for node in root.children
        if root.has_error and _is_broken(node, ends)
        for piece in _pieces_of(node, ends)
    }
    # A node that is in part of a piece goes with it, so that nothing is read twice.
    while more := {
        piece
        for node in root.children
        if not broken.isdisjoint(pieces := _pieces_of(node, ends))
        for piece in pieces
        if piece not in broken
    }:
        broken |= more
    yield raw, [node for node in root.children if broken.isdisjoint(_pieces_of(node, ends))]
    for piece in sorted(broken):
        start = ends[piece - 1] + 1 if piece else 0
        end = ends[piece] + 1 if piece < len(ends) else len(lines)
        part = b"\n" * start + b"\n".join(lines[start:end])
        yield part, parse_c_or_cpp(part).children


def _pieces_of(node: Node, ends: Sequence[int]) -> range:
    """Return the numbers of the pieces that a node is in."""
    first = bisect_left(ends, node.start_point[0])
    return range(first, bisect_left(ends, node.end_point[0]) + 1)


def _is_broken(node: Node, ends: Sequence[int]) -> bool:
    """Return whether a node at the top of a file is part of a function, or more than one."""
    if node.type == "ERROR" or (
        node.type.endswith("_statement") and node.type not in _TOP_LEVEL_STATEMENTS
    ):
        return True
    if not node.has_error or len(_pieces_of(node, ends)) == 1:
        return False
    body = node.child_by_field_name("body")
    if node.type != "function_definition" or body is None or not body.children:
        return True
    return (
        body.children[-1].is_missing
        or any(child.has_error for child in node.children if child != body)
        or any(child.type == "function_definition" for child in body.children)
    )


def _function(definition: _Definition, raw: bytes) -> CFunction:
    name = definition.name
    first, opening = _line(name), _line(definition.opening)
    close = definition.close
    if close is not None and not close.is_missing:
        last, end = _line(close), close.start_byte
        flow = flow_of_function(raw, first, opening, definition.body, last)
    else:
        end = len(raw)
        last = raw.count(b"\n", 0, end) + 1
        flow = flow_of_function(raw, first, opening, definition.body, 0)
    words = raw[definition.head.start_byte : name.start_byte].split()
    mentions = _mentions(raw, definition.opening.end_byte, end, opening)
    full = definition.prefix + _spelled(name)
    return CFunction(full, first, last, b"static" in words, flow, mentions)


def _mentions(raw: bytes, start: int, end: int, line: int) -> tuple[Mention, ...]:
    """Return the names between two offsets, the first of which is on a line."""
    mentions = []
    for match in _NAME_IN_BODY.finditer(raw, start, end):
        line += raw.count(b"\n", start, match.start(2))
        start = match.start(2)
        name = match[2].decode(errors="replace")
        if name not in _NOT_CALLED and (match[3] or not match[1]):
            mentions.append(Mention(name, line))
    return tuple(mentions)


def _definitions_in(nodes: Sequence[Node], prefix: str) -> Iterator[_Definition]:
    """Yield the functions among nodes, and those in the classes and namespaces among them."""
    declared: Node | None = None
    for i, node in enumerate(nodes):
        following = nodes[i + 1] if i + 1 < len(nodes) else None
        if node.type == "compound_statement" and declared is not None:
            # The parameters are declared before the body, as before ANSI C.
            yield from _definition(declared, prefix, node)
        if node.type != "declaration":
            declared = None
        elif _name_of(node) is not None:
            declared = node
        if node.type == "function_definition":
            yield from _definition(node, prefix, node.child_by_field_name("body"))
        elif node.type == "function_declarator" and following and following.type == "{":
            # The body is not closed, or the parser did not recognise it.
            name = node.child_by_field_name("declarator") or node
            yield _Definition(node, name, following, nodes[i + 2 :], None, prefix)
            return
        elif following and following.type == "compound_statement" and is_call_before_block(node):
            # The function is defined by a macro, which gives it a name.
            call = node if node.type == "call_expression" else node.named_children[0]
            name = call.child_by_field_name("function") or call
            inside = following.children
            yield _Definition(node, name, inside[0], inside, inside[-1], prefix)
        elif node.type in _CONTAINERS:
            yield from _definitions_in(node.children, prefix + _class_prefix(node))


def _class_prefix(node: Node) -> str:
    """Return what the names of functions in a node begin with: its name, if it is a class."""
    name = node.child_by_field_name("name") if node.type in _CLASSES else None
    return f"{_spelled(name)}::" if name is not None else ""


def _definition(node: Node, prefix: str, body: Node | None) -> Iterator[_Definition]:
    name = _name_of(node)
    if body is not None and name is not None and body.children:
        yield _Definition(node, name, body.children[0], body.children, body.children[-1], prefix)


def _name_of(definition: Node) -> Node | None:
    """Return the node with the name of a function, with the classes before it."""
    node: Node | None = definition.child_by_field_name("declarator")
    is_function = False
    while node is not None and node.type in _DECLARATORS:
        is_function |= node.type == "function_declarator"
        inner = node.child_by_field_name("declarator")
        if inner is None:
            inner = next((c for c in node.named_children if c.type in _DECLARATORS), None)
        if inner is None and node.type == "parenthesized_declarator":
            # A macro with one argument, which looks like a type: MODULE(name) { ... }
            return definition.child_by_field_name("type")
        node = inner
    return node if is_function else None


def _spelled(name: Node) -> str:
    return "".join((name.text or b"").decode(errors="replace").split())


def _line(node: Node) -> int:
    return node.start_point[0] + 1


# Lines that may be executed.

_ONLY_BRACES = re.compile(r"[\s{}();,]*(else|do)?[\s{}();,]*")


class CStatements(AnyStatements):
    """The statements of a C or C++ file.

    >>> file = CStatements("int f(int x)\\n{\\n  // up\\n  return x + 1;\\n}\\n")
    >>> file.within(range(1, 6)), file.function_at(4), file.at(3)
    ([1, 4], 'f', None)
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._text = text
        self._code = code_lines(text)

    def at(self, line: int) -> int | None:
        """Return the line itself if it has code on it, or None."""
        return line if self._code[line - 1].strip() else None

    def within(self, lines: Iterable[int]) -> list[int]:
        """Return the lines with more than braces on them, in order."""
        return sorted({line for line in lines if not _ONLY_BRACES.fullmatch(self._code[line - 1])})

    def function_at(self, line: int) -> str:
        """Return the name of the function that contains a line."""
        function = function_at(self._text, line)
        return function.name if function else ""

    def what_is(self, line: int) -> str:
        """Describe a line that has no code on it."""
        text = self.texts[line - 1].strip()
        if not text:
            return "blank"
        return "a directive" if text.startswith("#") else "a comment or directive"

    def after(self, line: int, function: str = "") -> int | None:
        """Return the statement that follows a line in a function, or the last one before it."""
        return next_or_last(self.of_function(function), line) or super().after(line)

    @property
    def functions(self) -> list[str]:
        """Return the names of its functions, with the classes that contain them."""
        return [function.name for function in functions_of(self._text)]

    def of_function(self, name: str) -> list[int]:
        """Return where the statements of a function's body begin."""
        lines: set[int] = set()
        for function in functions_of(self._text):
            if function.name in (name, name.replace(".", "::")):
                body = {
                    line for line in function.flow.lines if function.first < line <= function.last
                }
                lines |= body or {function.first}
        return self.within(lines)
