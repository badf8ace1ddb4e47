"""What is changed in C: the operators of Andrews et al. (the dissertation, 3.5.1.2).

An operator answers texts that may stand in a node's place. They have the precedence that the node
had, whatever they hold, and the type: a constant keeps its suffix, so that a mutant is the same
whether it is compiled alone or chosen among others at run time (`schemata`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

    from swarmtest.mutation.native.c_file import CFile

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
"""Around these, a minus needs parentheses."""
_INT_MAX = 2**31 - 1

Change = tuple[str, str]
"""The operator's name, and the text that stands in the node's place."""


def changes_of(node: Node, file: CFile) -> Iterator[Change]:
    """Everything that could stand in an expression's place."""
    make = _BY_TYPE.get(node.type)
    if make is not None:
        yield from make(node, file)


def negated(node: Node, file: CFile) -> str:
    """A decision the other way round; that of a statement is in parentheses, and stays so."""
    text = file.text(node.start_byte, node.end_byte)
    return f"(!{text})" if node.type == "parenthesized_expression" else f"!({text})"


def _integer(node: Node, file: CFile) -> Iterator[Change]:
    literal = file.text(node.start_byte, node.end_byte)
    found = _INTEGER.fullmatch(literal)
    if found is None:
        return  # a float
    value, suffix = integer_value(literal), found[3]
    if not suffix and found[2].startswith("0") and abs(value) > _INT_MAX:
        suffix = "u"
    before = file.raw[node.start_byte - 1 : node.start_byte]
    gap = " " if before.isalnum() or before == b"_" else ""
    signed = node.parent is not None and node.parent.type in _SIGNED
    for other in dict.fromkeys((0, 1, -1, value + 1, value - 1)):
        if other != value:
            text = f"{other}{suffix}"
            yield "integers", gap + (f"({text})" if other < 0 and signed else text)


def integer_value(literal: str) -> int:
    """What an integer constant of C is.

    >>> [integer_value(text) for text in ("10", "010", "0x10UL", "-1", "0b11", "1'000")]
    [10, 8, 16, -1, 3, 1000]
    """
    found = _INTEGER.fullmatch(literal)
    assert found is not None, literal
    digits = found[2].replace("'", "")
    octal = len(digits) > 1 and digits[0] == "0" and digits[1] in "01234567"
    value = int(digits, 8) if octal else int(digits, 0) if digits.strip("0") else 0
    return -value if found[1] else value


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
            text = f"{_in(first, left, other)}{before}{other}{after}{_in(last, right, other, 1)}"
            outer = _strength(node.parent)
            yield name, f"({text})" if outer >= _STRENGTH.get(other, outer + 1) else text


def _strength(node: Node | None) -> int:
    """How tightly a binary operator binds; -1 for what is none."""
    operator = node.child_by_field_name("operator") if node is not None else None
    if node is None or operator is None or node.type != "binary_expression":
        return -1
    return _STRENGTH[operator.type]


def _in(text: str, operand: Node, operator: str, least: int = 0) -> str:
    """An operand with the parentheses that another operator needs around it."""
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
