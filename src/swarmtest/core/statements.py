"""The statement that a frame of a traceback was executing, and the message that it contains.

A statement's text identifies a place in a program better than its line number: an edit above it
does not change it. Source files are read and parsed once, and only after a failure.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

_MAX_CACHED = 512
_MAX_TEXT = 120
"""Characters of a statement; the rest of a longer one becomes a hash."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_PLACEHOLDERS = re.compile(r"%[-#0 +]*\d*(?:\.\d+)?[a-zA-Z]|%\(\w+\)[a-zA-Z]|\{[^{}]*\}")
_COMPREHENSION = re.compile(r"(?:\.<locals>)?\.<(?:list|set|dict)comp>$|\.<locals>\.<genexpr>$")


@dataclass(frozen=True)
class Statement:
    """A statement of a program.

    >>> Statement("raise Full('the stack is full')", "raise", "the stack is full").message
    'the stack is full'
    """

    text: str
    """The statement in one line, without its body, comments and layout."""
    kind: str = ""
    """``assert``, ``raise``, or empty for any other one."""
    message: str = ""
    """The literal part of the message of an ``assert`` or ``raise``, with … for what varies."""
    condition: str = ""
    """The condition of an ``assert``."""
    line: int = 0


_statements: dict[tuple[CodeType, int], Statement | None] = {}
"""Statements by code and instruction: a campaign fails in the same place thousands of times."""
_trees: dict[str, tuple[list[str], list[ast.stmt]]] = {}


def statement_at(code: CodeType, instruction: int, line: int) -> Statement | None:
    """Return the statement of an instruction; None if its source is not known.

    >>> typed = compile("assert total >= 0", "<typed>", "exec")
    >>> statement_at(typed, 0, 1) is None  # its source is not in a file
    True
    """
    key = (code, instruction)
    if key not in _statements:
        if len(_statements) >= _MAX_CACHED:
            _statements.clear()
        _statements[key] = _found(code, instruction, line)
    return _statements[key]


def place_of(code: CodeType) -> str:
    """Return the qualified name of a function; that of the function around a comprehension.

    In newer versions of Python, a comprehension has no frame of its own.
    """
    name = code.co_qualname
    while (shorter := _COMPREHENSION.sub("", name)) != name:
        name = shorter
    return name


def _found(code: CodeType, instruction: int, line: int) -> Statement | None:
    column = _column(code, instruction, line)
    best: ast.stmt | None = None
    for node in _parsed(code.co_filename):
        if node.lineno <= line <= (node.end_lineno or node.lineno) and (
            best is None or _is_inside(node, best, column)
        ):
            best = node
    return None if best is None else _described(best)


def _is_inside(node: ast.stmt, best: ast.stmt, column: int | None) -> bool:
    """Return whether a statement is a better match than one that was found before it."""
    if best.lineno == node.lineno == best.end_lineno == node.end_lineno and column is not None:
        return node.col_offset <= column  # several statements in one line
    return node.lineno >= best.lineno and (node.end_lineno or 0) <= (best.end_lineno or 0)


def _column(code: CodeType, instruction: int, line: int) -> int | None:
    for index, (start, _, column, _) in enumerate(code.co_positions()):
        if index == instruction // 2:
            return column if start == line else None
    return None


def _parsed(file: str) -> list[ast.stmt]:
    """Return the statements of a file, outer ones first."""
    lines = linecache.getlines(file)
    known = _trees.get(file)
    if known is None or known[0] is not lines:  # linecache returns the same list until it is reset
        if len(_trees) >= _MAX_CACHED:
            _trees.clear()
        try:
            tree = ast.parse("".join(lines))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            tree = ast.Module([], [])
        known = _trees[file] = lines, list(_statements_in(tree))
    return known[1]


def _statements_in(tree: ast.AST) -> Iterator[ast.stmt]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt):
            yield node
        yield from _statements_in(node)


def _described(node: ast.stmt) -> Statement:
    text = _short(_header(node))
    if isinstance(node, ast.Assert):
        condition = _short(ast.unparse(ast.Assert(node.test)))
        return Statement(text, "assert", _literal(node.msg), condition, node.lineno)
    if isinstance(node, ast.Raise):
        return Statement(text, "raise", _literal_of_raise(node.exc), line=node.lineno)
    return Statement(text, line=node.lineno)


def _header(node: ast.stmt) -> str:
    """Return a statement without its body, in one line."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return f"{'class' if isinstance(node, ast.ClassDef) else 'def'} {node.name}"
    return ast.unparse(node).split("\n", 1)[0]


def _short(text: str) -> str:
    if len(text) <= _MAX_TEXT:
        return text
    rest = hashlib.blake2b(text.encode(errors="replace"), digest_size=3).hexdigest()
    return f"{text[: _MAX_TEXT - 8]}… {rest}"


def _literal(message: ast.expr | None) -> str:
    """Return the literal text in the message of an assert or in a raised exception.

    It is empty if there is none with a word in it: then only the value itself says something.
    """
    text = "" if message is None else _template(message)
    line = next((each for each in text.splitlines() if _WORD.search(each)), "")
    return " ".join(line.split())


def _literal_of_raise(exception: ast.expr | None) -> str:
    """Return the literal text among the arguments of a raised exception."""
    if not isinstance(exception, ast.Call):
        return ""
    arguments = [*exception.args, *(each.value for each in exception.keywords)]
    return next(filter(None, map(_literal, arguments)), "")


def _template(part: ast.expr) -> str:
    """Return the text of an expression, with … for what is computed."""
    if isinstance(part, ast.Constant):
        return part.value if isinstance(part.value, str) else "…"
    if isinstance(part, ast.JoinedStr):
        return "".join(_template(each) for each in part.values)
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod):
        return _PLACEHOLDERS.sub("…", _template(part.left))
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add):
        return _template(part.left) + _template(part.right)
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
        # Methods that change or fill a text: "...".format(), dedent(), strip().
        return _PLACEHOLDERS.sub("…", _template(part.func.value))
    return "…"
