"""Syntax highlighting for pages: source files by their names, tests and tracebacks by their text.

Pygments does the work, which is installed with rich. The elements are as short as HTML allows,
because a listing has many thousands of tokens: ``u`` is a string, ``i`` a comment, or with a class
of one letter something else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from swarmtest.ui.terminal.text import printable

if TYPE_CHECKING:
    from pygments.lexer import Lexer  # type: ignore[import-untyped]

_MAX_LETTERS = 2_000_000
"""Longer texts are shown without colours: reading them would take many seconds."""


def highlighted_code(text: str) -> Markup:
    """Return a test as HTML: coloured if it is Python, otherwise plain.

    >>> highlighted_code("x = 'a'")
    Markup('x = <u>&#x27;a&#x27;</u>')
    """
    return Markup("\n").join(highlighted_lines(text, "test.py" if _is_python(text) else ""))


def highlighted_traceback(text: str) -> Markup:
    """Return what a test printed as HTML: coloured if it is a traceback of Python."""
    is_traceback = "Traceback (most recent call last)" in text
    if not is_traceback:
        return Markup("\n").join(highlighted_lines(text, ""))
    # Pygments sees the last line, which has the error, only if the line ends.
    return Markup("\n").join(highlighted_lines(text.rstrip("\n") + "\n", "traceback")[:-1])


@lru_cache(maxsize=64)
def highlighted_lines(text: str, path: str) -> tuple[Markup, ...]:
    """Return the lines of a text as HTML; the name of the file says in which language it is."""
    plain = text.split("\n")
    lexer = _lexer(path) if path and len(text) <= _MAX_LETTERS else None
    lines = tuple(_lines(lexer.get_tokens(text))) if lexer is not None else ()
    # Pygments takes a lone carriage return for the end of a line; our line numbers do not.
    return lines if len(lines) == len(plain) else tuple(_escaped("", line) for line in plain)


def _lines(tokens: Iterable[tuple[Any, str]]) -> Iterator[Markup]:
    """Return a text line by line; neighbouring tokens of one class are joined."""
    line: list[Markup] = []
    last, words = "", ""
    for token, value in tokens:
        start = _element_of(token)
        for number, part in enumerate(value.split("\n")):
            if number:
                yield Markup("").join([*line, _escaped(last, words)])
                line, last, words = [], "", ""
            if part and start == last:
                words += part
            elif part:
                line.append(_escaped(last, words))
                last, words = start, part
    yield Markup("").join([*line, _escaped(last, words)])


def _escaped(start: str, words: str) -> Markup:
    text = escape(printable(words))
    # safe: it was escaped just now, and the element is one of ours
    return Markup(f"<{start}>{text}</{start[0]}>" if start and text.strip() else text)


_ELEMENTS = (
    ("Comment", "i"),
    ("String", "u"),
    ("Number", "i class=n"),
    ("Keyword", "i class=k"),
    ("Operator.Word", "i class=k"),
    ("Name.Function", "i class=d"),
    ("Name.Class", "i class=d"),
    ("Name.Decorator", "i class=d"),
    ("Generic.Error", "i class=e"),
)


@lru_cache(maxsize=256)
def _element_of(token: Any) -> str:
    name = str(token).removeprefix("Token.").removeprefix("Literal.")
    return next((element for prefix, element in _ELEMENTS if name.startswith(prefix)), "")


@lru_cache(maxsize=32)
def _lexer(path: str) -> Lexer | None:
    from pygments.lexers import get_lexer_for_filename  # type: ignore[import-untyped]
    from pygments.lexers.python import PythonTracebackLexer  # type: ignore[import-untyped]
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]

    # Line numbers must stay right: nothing may be stripped.
    if path == "traceback":
        return PythonTracebackLexer(stripnl=False, ensurenl=False)
    try:
        lexer: Lexer = get_lexer_for_filename(path, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    return lexer


def _is_python(text: str) -> bool:
    """Return whether a test is a program in Python and not, for example, a word or a number."""
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return any(
        isinstance(each, ast.Import | ast.ImportFrom | ast.Assign) for each in statements
    ) or any(isinstance(each, ast.Expr) and isinstance(each.value, ast.Call) for each in statements)
