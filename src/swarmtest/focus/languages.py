"""What a search for stand-ins asks of a language: Python by its syntax tree, C by a light scan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Protocol

from swarmtest.focus import c_functions, callers
from swarmtest.focus.callers import CallSite
from swarmtest.focus.control_flow import flows_of
from swarmtest.focus.dominators import dominators_by_function, why_unreachable
from swarmtest.focus.same_block import lines_after

C_SUFFIXES = frozenset({".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".inc"})


class Language(Protocol):
    """Questions about the text of a file."""

    def why_unreachable(self, text: str, line: int) -> str:
        """Why no execution comes to a line; empty if one may."""

    def dominating(self, text: str, line: int) -> Sequence[Sequence[int]]:
        """The statements of the same function that come before a line, nearest first: their
        lines."""

    def following(self, text: str, line: int) -> Sequence[int]:
        """The statements after a line that are executed whenever it is, nearest first."""

    def function_at(self, text: str, line: int) -> str:
        """The qualified name of the function around a line; empty if there is none."""

    def definitions(self, text: str, line: int) -> Sequence[int]:
        """For a nested function the lines that lead to its definition, nearest first."""

    def call_sites(
        self, function: str, sources: Mapping[str, str], place: str, harness: str
    ) -> list[CallSite]:
        """Where a function is called."""


class _Python:
    def why_unreachable(self, text: str, line: int) -> str:
        try:
            return why_unreachable(text, line)
        except SyntaxError as error:
            return f"the file is not Python: {error.msg} on line {error.lineno}"

    def dominating(self, text: str, line: int) -> list[list[int]]:
        try:
            return [[one] for one in dominators_by_function(text, line)[0]]
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


class _C:
    def why_unreachable(self, text: str, line: int) -> str:
        return "" if c_functions.function_at(text, line) else f"line {line} is in no function"

    def dominating(self, text: str, line: int) -> list[list[int]]:
        return c_functions.lines_before(text, line)

    def following(self, text: str, line: int) -> list[int]:
        return []  # a block is one target: compilers tell where blocks begin

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
    """Whether a file is C or C++, by its name.

    >>> is_c("src/parse.c"), is_c("parse.py")
    (True, False)
    """
    return PurePath(place).suffix.lower() in C_SUFFIXES


def language_of(place: str) -> Language:
    """The language of a file."""
    return _C() if is_c(place) else _Python()
