"""Generate the mutants of C files: find the spots that can be changed, and their replacements.

Not mutated are preprocessor lines, attributes, assembler, code that the grammar cannot parse, and
lines with a comment ``pragma: no mutate``.

A spot is *switchable* if its value is decided while the program runs. Constants that the compiler
needs (labels of cases, sizes of arrays, initial values of static variables) are not.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from swarmtest.core.errors import UserError
from swarmtest.core.targets import content_hash
from swarmtest.languages.c.syntax_tree import CFile, c_file, parse_c
from swarmtest.mutate.mutant import Mutant
from swarmtest.mutate.operators import parse_operators

if TYPE_CHECKING:
    from tree_sitter import Node

Change = tuple[str, str]
"""The name of the operator, and the text that replaces the node."""


@dataclass(frozen=True)
class CMutant:
    """A mutant with the file and the spot that it changes."""

    mutant: Mutant
    file: CFile
    spot: CodeSpot

    @property
    def text(self) -> bytes:
        """The whole file, mutated; lines keep their numbers."""
        return self.file.changed(self.spot.start, self.spot.end, self.mutant.change)


def c_mutants_of(
    path: str | Path, operators: str | Collection[str] = "", lines: Collection[int] | None = None
) -> list[Mutant]:
    """Return the mutants of a C file, in the order of its text; with `lines`, only those on them.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".c") as file:
    ...     _ = file.write("int least(int a, int b) { return a < b ? a : b; }")
    ...     file.flush()
    ...     mutants = c_mutants_of(file.name, "negate,relational")
    >>> print(mutants[-1].after)
    int least(int a, int b) { return a != b ? a : b; }
    """
    return [c_mutant.mutant for c_mutant in mutants_in(c_file(path), operators, lines)]


def mutants_in(
    file: CFile, operators: str | Collection[str] = "", lines: Collection[int] | None = None
) -> list[CMutant]:
    """Return the mutants of a file with their spots."""
    chosen = parse_operators(operators if isinstance(operators, str) else ",".join(operators))
    wanted = None if lines is None else frozenset(lines)
    return [
        c_mutant
        for c_mutant in _all_mutants(file)
        if c_mutant.mutant.operator in chosen and (wanted is None or c_mutant.mutant.line in wanted)
    ]


def found_again(files: Sequence[CFile], mutants: Sequence[Mutant]) -> list[CMutant]:
    """Return mutants with their spots in the current files; raise if one no longer exists."""
    by_id: Mapping[tuple[str, str], CMutant] = {
        (c_mutant.mutant.path, c_mutant.mutant.id): c_mutant
        for file in files
        for c_mutant in _all_mutants(file)
    }
    for mutant in mutants:
        if (mutant.path, mutant.id) not in by_id:
            raise UserError(
                f"mutant {mutant.id} of {mutant.path}:{mutant.line} no longer exists: "
                "the file was changed since"
            )
    return [by_id[mutant.path, mutant.id] for mutant in mutants]


def _all_mutants(file: CFile) -> Iterator[CMutant]:
    ordinals: Counter[str] = Counter()
    for spot in spots_of(file):
        before, head, tail = _lines(file, spot)
        for operator, change in spot.changes:
            statement = content_hash(spot.statement)
            parts = (file.source.path, spot.function, statement, operator, before.strip(), change)
            identity = "\0".join(parts)
            # The same change may be possible twice in a statement, so occurrences are numbered.
            ordinals[identity] += 1
            digest = hashlib.blake2b(
                f"{identity}\0{ordinals[identity]}".encode(errors="surrogatepass"), digest_size=5
            )
            mutant = Mutant(
                digest.hexdigest(),
                file.source.path,
                spot.line,
                spot.function,
                operator,
                before,
                f"{head}{change.rstrip()}{tail}",
                (("start", spot.start), ("end", spot.end)),
                change,
                spot.statement,
            )
            yield CMutant(mutant, file, spot)


def _lines(file: CFile, spot: CodeSpot) -> tuple[str, str, str]:
    """Return the lines of a spot, and the text on them before and after it."""
    first = file.raw.rfind(b"\n", 0, spot.start) + 1
    last = file.raw.find(b"\n", spot.end)
    last = len(file.raw) if last < 0 else last
    before = file.text(first, last).replace("\r", "")
    return before, file.text(first, spot.start), file.text(spot.end, last).replace("\r", "")


# The spots of a file.

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
"""Nodes in which values must be known at compile time, or are not evaluated at all."""
_FIXED_FIELDS = {("case_statement", "value"), ("array_declarator", "size")}
_FIXED_STORAGE = frozenset({"static", "extern", "constexpr", "_Thread_local", "thread_local"})


@dataclass(frozen=True)
class CodeSpot:
    """A piece of a file that can be changed, and what it can be changed to."""

    kind: str
    """One of `EXPRESSION`, `DECISION` (of an if, while or ?:), `STATEMENT`."""
    start: int
    end: int
    line: int
    last_line: int
    function: str
    """The enclosing function; empty at file level."""
    body: int
    """The offset where that function's body begins, after its brace; -1 at file level."""
    statement: str
    """The text of the enclosing statement, without statements that are nested in it."""
    switchable: bool
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class _Around:
    """The context of a node; the fields are those of a `CodeSpot`."""

    function: str = ""
    body: int = -1
    statement: str = ""
    switchable: bool = False


def spots_of(file: CFile) -> Iterator[CodeSpot]:
    """Yield all spots of a file in the order of its text, outer spots before inner ones."""
    marked = {i for i, line in enumerate(file.raw.splitlines(), 1) if _PRAGMA.search(line)}
    left = [(parse_c(file.raw), _Around())]
    while left:
        node, around = left.pop()
        inside = _inside(node, around, file)
        if node.start_point[0] + 1 not in marked:
            yield from _spots_at(node, inside, file)
        below = []
        for i, child in enumerate(node.children):
            name = node.field_name_for_child(i) or ""
            if child.type in _LEFT_ALONE or child.is_missing or _is_directive_condition(node, name):
                continue
            fixed = (node.type, name) in _FIXED_FIELDS
            below.append((child, _replaced(inside, switchable=False) if fixed else inside))
        left += reversed(below)


def _is_directive_condition(node: Node, name: str) -> bool:
    """Return whether a child is the condition of an ``#if``."""
    return name == "condition" and node.type.startswith("preproc_")


def _replaced(around: _Around, **fields: object) -> _Around:
    return _Around(**{**around.__dict__, **fields})


def _inside(node: Node, around: _Around, file: CFile) -> _Around:
    """Return the context of the children of a node."""
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
    """Return the text of a statement up to the first statement in it."""
    end = node.end_byte
    for child in node.children:
        if child.type in _DELETED or child.type == "compound_statement":
            end = child.start_byte
            break
    return file.text(node.start_byte, end).strip()


def _spots_at(node: Node, around: _Around, file: CFile) -> Iterator[CodeSpot]:
    changes = tuple(changes_of(node, file))
    if changes:
        directive = re.search(rb"^\s*#", file.raw[node.start_byte : node.end_byte], re.MULTILINE)
        yield _spot(EXPRESSION, node, around, changes, not directive)
    decision = node.child_by_field_name("condition")
    deciding = ("if_statement", "while_statement", "do_statement", "conditional_expression")
    if decision is not None and node.type in deciding and not decision.has_error:
        yield _spot(DECISION, decision, around, (("negate", negated(decision, file)),))
    is_empty = node.type == "expression_statement" and not node.named_child_count
    # Reaching the end of main returns 0; reaching the end of another function returns no value.
    needed = around.function != "main" and _returns_the_value(node)
    if node.type in _DELETED and not is_empty and not needed:
        nothing = ";" + "\n" * file.raw.count(b"\n", node.start_byte, node.end_byte)
        if not node.has_error and around.body >= 0:
            yield _spot(STATEMENT, node, around, (("delete", nothing),))


def _spot(
    kind: str, node: Node, around: _Around, changes: tuple[Change, ...], switchable: bool = True
) -> CodeSpot:
    return CodeSpot(
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


def _returns_the_value(node: Node) -> bool:
    """Return whether a function could end without its return value if this were deleted.

    That is undefined behaviour: what such a mutant does differs from build to build, so tests
    cannot be expected to kill it.
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


# The operators of Andrews et al. (dissertation, 3.5.1.2).
#
# An operator yields texts that may replace a node. A replacement has the precedence and the type of
# the node: a constant keeps its suffix, so that a mutant is the same whether it is compiled alone
# or selected among others at run time (`schemata`).

_CLASSES = (
    ("arithmetic", ("+", "-", "*", "/", "%")),
    ("relational", ("<", "<=", ">", ">=", "==", "!=")),
    ("logical", ("&&", "||")),
    ("bitwise", ("&", "|", "^")),
    ("bitwise", ("<<", ">>")),
    ("augmented", ("+=", "-=", "*=", "/=", "%=")),
    ("augmented", ("&=", "|=", "^=")),
    ("augmented", ("<<=", ">>=")),
    ("increments", ("++", "--")),
)
_CLASS_OF = {word: (name, words) for name, words in _CLASSES for word in words}
_INTEGER = re.compile(r"(-?)(0[xX][\da-fA-F']+|0[bB][01']+|\d[\d']*)([uUlLzZ]*)")
_STRENGTH = {
    word: strength
    for strength, words in enumerate(
        ("||", "&&", "|", "^", "&", "== !=", "< <= > >=", "<< >>", "+ -", "* / %")
    )
    for word in words.split()
}
_SIGNED = ("binary_expression", "unary_expression", "cast_expression", "pointer_expression")
"""The nodes in which a negative number needs parentheses."""
_INT_MAX = 2**31 - 1


def changes_of(node: Node, file: CFile) -> Iterator[Change]:
    """Yield everything that could replace an expression."""
    make = _BY_TYPE.get(node.type)
    if make is not None:
        yield from make(node, file)


def negated(node: Node, file: CFile) -> str:
    """Return a decision negated; that of a statement keeps its parentheses."""
    text = file.text(node.start_byte, node.end_byte)
    return f"(!{text})" if node.type == "parenthesized_expression" else f"!({text})"


def _integer(node: Node, file: CFile) -> Iterator[Change]:
    literal = file.text(node.start_byte, node.end_byte)
    match = _INTEGER.fullmatch(literal)
    if match is None:
        return  # a float
    value, suffix = integer_value(literal), match[3]
    if not suffix and match[2].startswith("0") and abs(value) > _INT_MAX:
        suffix = "u"  # such an octal or hexadecimal constant is unsigned
    before = file.raw[node.start_byte - 1 : node.start_byte]
    gap = " " if before.isalnum() or before == b"_" else ""
    signed = node.parent is not None and node.parent.type in _SIGNED
    for other in dict.fromkeys((0, 1, -1, value + 1, value - 1)):
        if other != value:
            text = f"{other}{suffix}"
            yield "integers", gap + (f"({text})" if other < 0 and signed else text)


def integer_value(literal: str) -> int:
    """Return the value of an integer constant of C.

    >>> [integer_value(text) for text in ("10", "010", "0x10UL", "-1", "0b11", "1'000")]
    [10, 8, 16, -1, 3, 1000]
    """
    match = _INTEGER.fullmatch(literal)
    assert match is not None, literal
    digits = match[2].replace("'", "")
    octal = len(digits) > 1 and digits[0] == "0" and digits[1] in "01234567"
    value = int(digits, 8) if octal else int(digits, 0) if digits.strip("0") else 0
    return -value if match[1] else value


def _binary(node: Node, file: CFile) -> Iterator[Change]:
    operator = node.child_by_field_name("operator")
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if operator is None or left is None or right is None:
        return
    name, words = _CLASS_OF.get(operator.type, ("", ()))
    before = file.text(left.end_byte, operator.start_byte)
    after = file.text(operator.end_byte, right.start_byte)
    first = file.text(left.start_byte, left.end_byte)
    last = file.text(right.start_byte, right.end_byte)
    for other in words:
        if other != operator.type:
            new_left = _parenthesised(first, left, other)
            new_right = _parenthesised(last, right, other, 1)
            text = f"{new_left}{before}{other}{after}{new_right}"
            outer = _strength(node.parent)
            yield name, f"({text})" if outer >= _STRENGTH.get(other, outer + 1) else text


def _strength(node: Node | None) -> int:
    """Return how tightly a binary operator binds; -1 if the node is not one."""
    operator = node.child_by_field_name("operator") if node is not None else None
    if node is None or operator is None or node.type != "binary_expression":
        return -1
    return _STRENGTH[operator.type]


def _parenthesised(text: str, operand: Node, operator: str, least: int = 0) -> str:
    """Return an operand, in parentheses if another operator needs them around it."""
    strength = _strength(operand)
    loose = 0 <= strength < _STRENGTH.get(operator, 0) + least
    return f"({text})" if loose else text


def _update(node: Node, file: CFile) -> Iterator[Change]:
    operator = node.child_by_field_name("operator")
    if operator is not None:
        other = "--" if operator.type == "++" else "++"
        before = file.text(node.start_byte, operator.start_byte)
        yield "increments", f"{before}{other}{file.text(operator.end_byte, node.end_byte)}"


_BY_TYPE: dict[str, Callable[[Node, CFile], Iterator[Change]]] = {
    "number_literal": _integer,
    "binary_expression": _binary,
    "assignment_expression": _binary,
    "update_expression": _update,
}
