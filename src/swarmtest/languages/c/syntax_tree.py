"""Syntax trees of C and C++, and the C files that are mutated.

Tree-sitter parses C with a real grammar, and needs neither headers nor compiler flags. What it
cannot parse is a node of type ``ERROR``, beside the nodes that it could read.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Source
from swarmtest.coverage.scope import shown_path

if TYPE_CHECKING:
    from tree_sitter import Node, Parser


_CPLUSPLUS = re.compile(rb"::|\b(?:catch|class|namespace|operator|template|try|using|virtual)\b")


@functools.cache
def _parser(language: str) -> Parser:
    try:
        import tree_sitter

        grammar = importlib.import_module(f"tree_sitter_{language}")
    except ImportError:
        raise UserError("reading C and C++ needs tree-sitter: pip install 'swarmtest[c]'") from None
    return tree_sitter.Parser(tree_sitter.Language(grammar.language()))


def parse_c(raw: bytes) -> Node:
    """Return the root of a C file's tree."""
    return _parser("c").parse(raw).root_node


def parse_c_or_cpp(raw: bytes) -> Node:
    """Return the root of the tree of a C or C++ file.

    C that is not C++ exists, and headers do not say which they are: so C++ is tried if the text has
    words of it and C cannot read it all, and the tree with fewer errors is the one.
    """
    root = parse_c(raw)
    if root.has_error and _CPLUSPLUS.search(raw):
        other = _parser("cpp").parse(raw).root_node
        if _error_size(other) < _error_size(root):
            return other
    return root


def _error_size(root: Node) -> int:
    """Return how many bytes of a tree could not be parsed; a missing token counts as one."""
    size = 0
    left = [root]
    while left:
        node = left.pop()
        if node.type == "ERROR" or node.is_missing:
            size += max(node.end_byte - node.start_byte, 1)
        elif node.has_error:
            left += node.children
    return size


@dataclass(frozen=True)
class CFile:
    """A C file; positions of mutants are offsets into its bytes."""

    source: Source
    raw: bytes
    encoding: str

    def text(self, start: int, end: int) -> str:
        """Return the text between two offsets."""
        return self.raw[start:end].decode(self.encoding, errors="replace")

    def changed(self, start: int, end: int, text: str) -> bytes:
        """Return the file's bytes with another text between two offsets."""
        return self.raw[:start] + text.encode(self.encoding, "replace") + self.raw[end:]


def c_file(path: str | Path) -> CFile:
    """Return a C file by its path.

    >>> c_file("nowhere.c")
    Traceback (most recent call last):
    ...
    swarmtest.UserError: nowhere.c: there is no such file to mutate
    """
    path = Path(path)
    if path.suffix != ".c":
        raise UserError(f"{path}: mutants of C programs are made of C files (.c)")
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file to mutate") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    encoding = "utf-8"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        encoding = "latin-1"
        text = raw.decode(encoding)
    place = str(path.resolve())
    return CFile(Source(shown_path(place), text, place), raw, encoding)


def named_c_files(paths: Iterable[str | Source]) -> list[CFile]:
    """Return C files by their paths; a directory stands for all C files in it."""
    files: dict[str, CFile] = {}
    for name in paths:
        path = Path(name.place if isinstance(name, Source) else name)
        paths_inside = sorted(path.rglob("*.c")) if path.is_dir() else [path]
        if not paths_inside:
            raise UserError(f"{path}: this directory has no C files to mutate")
        files |= {file.source.place: file for file in map(c_file, paths_inside)}
    return list(files.values())
