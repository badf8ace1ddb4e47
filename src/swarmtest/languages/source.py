"""What the rest of swarmtest asks about source code, for each language.

`statements_of` returns the lines of a file that are statements which coverage can watch, without
running anything. In Python these are exactly the line targets; in C and C++, the lines with code on
them; in other languages, any line that is not blank.

`language_of` returns a `Language`, which answers what the search for proxies of a target needs to
know: Python by its own parser, C and C++ by tree-sitter (the extra ``c``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Protocol

from swarmtest.coverage.scope import shown_path, text_of
from swarmtest.languages.c import functions as c_functions
from swarmtest.languages.c.functions import CStatements
from swarmtest.languages.python import callers
from swarmtest.languages.python.callers import CallSite
from swarmtest.languages.python.control_flow import (
    dominators_by_function,
    flows_of,
    why_unreachable,
)
from swarmtest.languages.python.statements import PythonStatements, lines_after
from swarmtest.languages.text_lines import AnyStatements

C_SUFFIXES = frozenset({".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".inc"})
Statements = AnyStatements | PythonStatements
_PYTHON_SUFFIXES = (".py", ".pyw")
_CODE_SUFFIXES = (
    *(".c", ".h", ".cc", ".cpp", ".cxx", ".c++", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".ipp"),
    *(".tcc", ".tpp", ".y", ".l", ".yy", ".ll", ".re", ".rl", ".s", ".asm", ".m", ".mm", ".f"),
    *(".for", ".f90", ".f95", ".f03", ".d", ".rs", ".go", ".zig", ".nim", ".v", ".swift", ".adb"),
    *(".ads", ".pas", ".pp", ".pyx", ".pxd", ".pxi", ".ml", ".hs", ".cr", ".cs", ".fs", ".java"),
    *(".kt", ".scala", ".clj", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".rb", ".lua", ".php"),
    *(".pl", ".pm", ".r", ".jl", ".dart", ".ex", ".exs", ".erl", ".tcl", ".sh", ".bash"),
)
"""Suffixes of files whose lines some tool may report as covered."""


def is_python_file(place: Path) -> bool:
    """Return whether a file is Python, by its suffix, or by its first line if it has none."""
    if place.suffix.lower() in _PYTHON_SUFFIXES:
        return True
    if place.suffix:
        return False
    try:
        with place.open("rb") as file:
            first = file.readline(200)
    except OSError:
        return False
    return first.startswith(b"#!") and b"python" in first


def is_code_file(place: Path) -> bool:
    """Return whether coverage may report a file, by its name."""
    return place.suffix.lower() in _CODE_SUFFIXES or is_python_file(place)


def statements_of(place: Path) -> Statements:
    """Return the statements of a file on disk."""
    text = text_of(place, place.name)
    if is_python_file(place):
        return PythonStatements(text, shown_path(str(place)))
    return CStatements(text) if is_c(place.name) else AnyStatements(text)


class Language(Protocol):
    """Questions about the text of a file."""

    def why_unreachable(self, text: str, line: int) -> str:
        """Return why no execution reaches a line; empty if one may."""

    def dominating(self, text: str, line: int) -> Sequence[Sequence[int]]:
        """Return the statements of the function that are executed before a line, nearest first.

        Each is a list of its lines.
        """

    def following(self, text: str, line: int) -> Sequence[int]:
        """Return the lines after a line that are executed whenever it is, nearest first."""

    def function_at(self, text: str, line: int) -> str:
        """Return the qualified name of the function around a line; empty if there is none."""

    def definitions(self, text: str, line: int) -> Sequence[int]:
        """Return the lines that lead to the definition of a nested function, nearest first."""

    def call_sites(
        self, function: str, sources: Mapping[str, str], place: str, harness: str
    ) -> list[CallSite]:
        """Return where a function is called."""


class _PythonLanguage:
    def why_unreachable(self, text: str, line: int) -> str:
        try:
            return why_unreachable(text, line)
        except SyntaxError as error:
            return f"the file is not Python: {error.msg} on line {error.lineno}"

    def dominating(self, text: str, line: int) -> list[list[int]]:
        try:
            return [[dominator] for dominator in dominators_by_function(text, line)[0]]
        except SyntaxError:
            return []

    def following(self, text: str, line: int) -> list[int]:
        try:
            return lines_after(text, line)
        except (SyntaxError, ValueError):
            return []

    def function_at(self, text: str, line: int) -> str:
        graphs = flows_of(text).at(line)
        return graphs[-1].function if graphs else ""

    def definitions(self, text: str, line: int) -> list[int]:
        return dominators_by_function(text, line)[1]

    def call_sites(
        self, function: str, sources: Mapping[str, str], place: str, harness: str
    ) -> list[CallSite]:
        python = {name: text for name, text in sources.items() if not is_c(name)}
        return callers.call_sites(function, python, place, harness)


class _CLanguage:
    def why_unreachable(self, text: str, line: int) -> str:
        return "" if c_functions.function_at(text, line) else f"line {line} is in no function"

    def dominating(self, text: str, line: int) -> list[list[int]]:
        return c_functions.lines_before(text, line)

    def following(self, text: str, line: int) -> list[int]:
        return []  # a block is one target in C: compilers report where blocks begin

    def function_at(self, text: str, line: int) -> str:
        function = c_functions.function_at(text, line)
        return function.name if function else ""

    def definitions(self, text: str, line: int) -> list[int]:
        return []

    def call_sites(
        self, function: str, sources: Mapping[str, str], place: str, harness: str
    ) -> list[CallSite]:
        c = {name: text for name, text in sources.items() if is_c(name)}
        return c_functions.call_sites(function, c, place)


def is_c(place: str) -> bool:
    """Return whether a file is C or C++, by its name.

    >>> is_c("src/parse.c"), is_c("parse.py")
    (True, False)
    """
    return PurePath(place).suffix.lower() in C_SUFFIXES


def language_of(place: str) -> Language:
    """Return the language of a file."""
    return _CLanguage() if is_c(place) else _PythonLanguage()
