"""Where a C file can be changed: every place with what could stand there.

Left alone are preprocessor lines, attributes, assembler, whatever the grammar does not understand,
and lines with a comment ``pragma: no mutate``.

A spot is *switchable* if what stands there is decided while the program runs. Constants that the
compiler needs (labels of cases, sizes of arrays, initial values of static variables) are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from swarmtest.mutation.native.c_file import CFile
from swarmtest.mutation.native.operators import Change, changes_of, negated
from swarmtest.mutation.native.parsing import parsed

if TYPE_CHECKING:
    from tree_sitter import Node

EXPRESSION, DECISION, STATEMENT = "expression", "decision", "statement"

_PRAGMA = re.compile(rb"(?://|/\*).*pragma:\s*no\s*mutate\b")
_LEFT_ALONE = frozenset(
    {
        "ERROR",
        "attribute_declaration",
        "attribute_specifier",
        "char_literal",
        "comment",
        "gnu_asm_expression",
        "ms_declspec_modifier",
        "preproc_call",
        "preproc_def",
        "preproc_function_def",
        "preproc_include",
        "string_literal",
        "type_descriptor",
    }
)
_DELETED = frozenset(
    {
        "break_statement",
        "continue_statement",
        "do_statement",
        "expression_statement",
        "for_statement",
        "goto_statement",
        "if_statement",
        "return_statement",
        "switch_statement",
        "while_statement",
    }
)
_FIXED = frozenset(
    {
        "alignas_qualifier",
        "alignof_expression",
        "bitfield_clause",
        "enumerator",
        "field_declaration",
        "generic_expression",
        "offsetof_expression",
        "parameter_list",
        "sizeof_expression",
        "subscript_designator",
    }
)
"""Nodes in which the compiler needs to know values, or evaluates nothing."""
_FIXED_FIELDS = {("case_statement", "value"), ("array_declarator", "size")}
_FIXED_STORAGE = frozenset({"static", "extern", "constexpr", "_Thread_local", "thread_local"})


@dataclass(frozen=True)
class Spot:
    """A place that can be changed."""

    kind: str
    """One of `EXPRESSION`, `DECISION` (of an if, while or ?:), `STATEMENT`."""
    start: int
    end: int
    line: int
    last_line: int
    function: str
    """The function around it; empty at file level."""
    body: int
    """Where that function's body begins, behind its brace; -1 at file level."""
    statement: str
    """The text of the statement around it, without what is nested in it."""
    switchable: bool
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class _Around:
    function: str = ""
    body: int = -1
    statement: str = ""
    switchable: bool = False


def spots_of(file: CFile) -> Iterator[Spot]:
    """All places of a file, in the order of its text; an outer one comes before what is in it."""
    marked = {i for i, line in enumerate(file.raw.splitlines(), 1) if _PRAGMA.search(line)}
    left = [(parsed(file.raw), _Around())]
    while left:
        node, around = left.pop()
        inside = _inside(node, around, file)
        if node.start_point[0] + 1 not in marked:
            yield from _spots_at(node, inside, file)
        below = []
        for i, child in enumerate(node.children):
            name = node.field_name_for_child(i) or ""
            if child.type in _LEFT_ALONE or child.is_missing or _is_condition(node, name):
                continue
            fixed = (node.type, name) in _FIXED_FIELDS
            below.append((child, _replaced(inside, switchable=False) if fixed else inside))
        left += reversed(below)


def _is_condition(node: Node, name: str) -> bool:
    """Whether a child is the condition of an ``#if``."""
    return name == "condition" and node.type.startswith("preproc_")


def _replaced(around: _Around, **fields: object) -> _Around:
    return _Around(**{**around.__dict__, **fields})


def _inside(node: Node, around: _Around, file: CFile) -> _Around:
    """What is around that which a node holds."""
    if node.type == "function_definition":
        body = node.child_by_field_name("body")
        begins = body.start_byte + 1 if body is not None else -1
        return _Around(_function_name(node, file), begins, "", begins >= 0)
    if node.type in _FIXED:
        return _replaced(around, switchable=False)
    if node.type == "declaration":
        storage = {
            word.text.decode()
            for child in node.children
            if child.type == "storage_class_specifier"
            for word in child.children
            if word.text is not None
        }
        fixed = not around.switchable or bool(storage & _FIXED_STORAGE)
        return _replaced(around, statement=_header(node, file), switchable=not fixed)
    if node.type in _DELETED or node.type in ("enumerator", "field_declaration"):
        return _replaced(around, statement=_header(node, file))
    return around


def _function_name(node: Node, file: CFile) -> str:
    below: Node | None = node
    while below is not None and below.type != "identifier":
        below = below.child_by_field_name("declarator")
    return file.text(below.start_byte, below.end_byte) if below is not None else ""


def _header(node: Node, file: CFile) -> str:
    """A statement's text up to the statements that it holds."""
    end = node.end_byte
    for child in node.children:
        if child.type in _DELETED or child.type == "compound_statement":
            end = child.start_byte
            break
    return file.text(node.start_byte, end).strip()


def _spots_at(node: Node, around: _Around, file: CFile) -> Iterator[Spot]:
    changes = tuple(changes_of(node, file))
    if changes:
        directive = re.search(rb"^\s*#", file.raw[node.start_byte : node.end_byte], re.MULTILINE)
        yield _spot(EXPRESSION, node, around, changes, not directive)
    decision = node.child_by_field_name("condition")
    asks = ("if_statement", "while_statement", "do_statement", "conditional_expression")
    if decision is not None and node.type in asks and not decision.has_error:
        yield _spot(DECISION, decision, around, (("negate", negated(decision, file)),))
    counts = node.named_child_count + (node.type != "expression_statement")
    # The end of main is a return of 0; the end of any other function gives no value.
    needed = around.function != "main" and _gives_the_value(node)
    if node.type in _DELETED and counts and not needed:
        nothing = ";" + "\n" * file.raw.count(b"\n", node.start_byte, node.end_byte)
        if not node.has_error and around.body >= 0:
            yield _spot(STATEMENT, node, around, (("delete", nothing),))


def _spot(
    kind: str, node: Node, around: _Around, changes: tuple[Change, ...], switchable: bool = True
) -> Spot:
    return Spot(
        kind,
        node.start_byte,
        node.end_byte,
        node.start_point[0] + 1,
        node.end_point[0] + 1,
        around.function,
        around.body,
        around.statement,
        around.switchable and switchable,
        changes,
    )


def _gives_the_value(node: Node) -> bool:
    """Whether a function would end without its value if this were deleted: undefined behaviour.

    What such a mutant does differs from build to build, so that no test can be blamed for it.
    """
    if not _returns_something(node):
        return False
    while node.parent is not None and node.parent.type != "function_definition":
        outer = node.parent
        if outer.type == "compound_statement":
            inside = [child for child in outer.named_children if child.type != "comment"]
            if inside[-1] != node:
                return False
        elif outer.type not in ("if_statement", "else_clause", "labeled_statement"):
            return False
        node = outer
    return True


def _returns_something(node: Node) -> bool:
    if node.type == "return_statement":
        return bool(node.named_child_count)
    return any(_returns_something(child) for child in node.named_children)
