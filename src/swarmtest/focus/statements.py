"""Which lines of a file are statements that coverage can watch, without running anything.

Python: exactly those that are targets. C and C++: those with code on them. Other languages: any
line that is not blank may be one.
"""

from __future__ import annotations

from pathlib import Path

from swarmtest.focus.c_lines import CStatements
from swarmtest.focus.languages import is_c
from swarmtest.focus.python_lines import PythonStatements
from swarmtest.focus.text_lines import AnyStatements
from swarmtest.instrument.scope import shown_path
from swarmtest.instrument.versions import text_of

Statements = AnyStatements | PythonStatements
_PYTHON = (".py", ".pyw")
_CODE = (
    *(".c", ".h", ".cc", ".cpp", ".cxx", ".c++", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".ipp"),
    *(".tcc", ".tpp", ".y", ".l", ".yy", ".ll", ".re", ".rl", ".s", ".asm", ".m", ".mm", ".f"),
    *(".for", ".f90", ".f95", ".f03", ".d", ".rs", ".go", ".zig", ".nim", ".v", ".swift", ".adb"),
    *(".ads", ".pas", ".pp", ".pyx", ".pxd", ".pxi", ".ml", ".hs", ".cr", ".cs", ".fs", ".java"),
    *(".kt", ".scala", ".clj", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".rb", ".lua", ".php"),
    *(".pl", ".pm", ".r", ".jl", ".dart", ".ex", ".exs", ".erl", ".tcl", ".sh", ".bash"),
)
"""Endings of files whose lines some tool may report as covered."""


def is_python_file(place: Path) -> bool:
    """Whether a file holds Python: by its ending, or by its first line if it has none."""
    if place.suffix.lower() in _PYTHON:
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
    """Whether coverage may tell of a file, by its name."""
    return place.suffix.lower() in _CODE or is_python_file(place)


def statements_of(place: Path) -> Statements:
    """The statements of a file on disk."""
    text = text_of(place, place.name)
    if is_python_file(place):
        return PythonStatements(text, shown_path(str(place)))
    return CStatements(text) if is_c(place.name) else AnyStatements(text)
