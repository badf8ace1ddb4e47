"""Compile a program with the line numbers of the statements that are executed.

Python 3.11 gives some code of its own the line of a statement that may not have run. A trace, and
coverage.py with it, then tells a line that was not executed. That is so for the code which an
exception runs when it leaves a ``finally`` suite, and before 3.11.4 also for the jump behind a
``case`` block and for the code behind the last ``except*`` clause (CPython issues 103971, 101517)::

    match x:
        case 0:
            if y:
                raise ValueError  # traced if y is false

A test that compares with what ran needs code without this error.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from itertools import groupby
from types import CodeType

_Position = tuple[int | None, int | None, int | None, int | None]
_LONGEST_ENTRY = 8
_LONG_FORM, _NO_LOCATION = 14, 15
"""Kinds of entries in a table of locations, as CPython's `locations.md` numbers them."""


def compile_program(text: str, filename: str) -> CodeType:
    """Compile a module; a trace of it tells lines that are executed, on every Python."""
    if sys.version_info >= (3, 12):
        return compile(text, filename, "exec", dont_inherit=True)
    return compile_without_stray_lines(text, filename)


def compile_without_stray_lines(text: str, filename: str) -> CodeType:
    """Compile a module; the code behind the suites of `_suites_with_code_behind` has no line.

    A ``pass`` at the end of each such suite, on a line beyond the text, gives its line to that
    code. All locations beyond the text are then removed.
    """
    tree = ast.parse(text, filename)
    beyond = text.count("\n") + 2
    for node in ast.walk(tree):
        for suite in _suites_with_code_behind(node):
            suite.append(ast.Pass(lineno=beyond, col_offset=0, end_lineno=beyond, end_col_offset=0))
    return _without_lines_from(compile(tree, filename, "exec", dont_inherit=True), beyond)


def _suites_with_code_behind(node: ast.AST) -> list[list[ast.stmt]]:
    """The suites below a statement whose last line Python 3.11 gives to code of its own."""
    if isinstance(node, ast.Match):
        return [case.body for case in node.cases]
    if isinstance(node, ast.Try | ast.TryStar):
        clauses = node.handlers if isinstance(node, ast.TryStar) else []
        return [*(clause.body for clause in clauses), *filter(None, [node.finalbody])]
    return []


def _without_lines_from(code: CodeType, beyond: int) -> CodeType:
    constants = tuple(
        _without_lines_from(constant, beyond) if isinstance(constant, CodeType) else constant
        for constant in code.co_consts
    )
    positions = [
        (None, None, None, None) if position[0] is not None and position[0] >= beyond else position
        for position in code.co_positions()
    ]
    table = bytes(_location_table(positions, code.co_firstlineno))
    return code.replace(co_consts=constants, co_linetable=table)


def _location_table(positions: list[_Position], line: int) -> Iterator[int]:
    """Encode the positions of code units; `line` is the first line of the code object."""
    for (first, last, start, end), units in groupby(positions):
        left = len(list(units))
        while left:
            length = min(left, _LONGEST_ENTRY)
            left -= length
            kind = _NO_LOCATION if first is None else _LONG_FORM
            yield 0x80 | kind << 3 | length - 1
            if first is not None:
                yield from _signed(first - line)
                yield from _unsigned((last or first) - first)
                yield from _unsigned(0 if start is None else start + 1)
                yield from _unsigned(0 if end is None else end + 1)
                line = first


def _signed(value: int) -> Iterator[int]:
    return _unsigned(-value << 1 | 1 if value < 0 else value << 1)


def _unsigned(value: int) -> Iterator[int]:
    """Encode a number in groups of six bits, the lowest first."""
    while value >= 64:
        yield value & 63 | 64
        value >>= 6
    yield value
