"""Indentation, where a lexer makes tokens of it: in a tree they are marks, in a text spaces.

A grammar declares such tokens (`%declare _INDENT _DEDENT`, as Lark's `Indenter` wants it) and has
another one for the end of a line, with the spaces that start the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from swarmtest.errors import UserError
from swarmtest.subjects.grammar.token_texts import TokenTexts

INDENT, DEDENT = "\x0e", "\x0f"
_STEP = "    "


def mark_of(name: str) -> str:
    """What stands in trees for a declared token; empty if it is not one of indentation.

    >>> mark_of("_INDENT") == INDENT, mark_of("OTHER")
    (True, '')
    """
    return {"INDENT": INDENT, "DEDENT": DEDENT}.get(name.strip("_").upper(), "")


class Layout:
    """Puts tokens on indented lines."""

    def __init__(self, texts: Iterable[TokenTexts], path: str) -> None:
        self._ends = [t for t in texts if t.takes("\n") and t.takes(f"\n{_STEP}")]
        if not self._ends:
            raise UserError(
                f"{path}: it declares tokens for indentation, but has none for the end of a line "
                r"and the spaces after it, like _NEWLINE: /(\r?\n[\t ]*)+/"
            )

    def lines(self, tokens: Sequence[str]) -> Iterator[tuple[list[str], str]]:
        """The tokens of each line, and its end with the indentation of the next."""
        level = 0
        line: list[str] = []
        end = ""
        for token in tokens:
            if token in (INDENT, DEDENT):
                level += 1 if token == INDENT else -1
            elif any(texts.takes(token) for texts in self._ends):
                if end:  # a line end after another, perhaps with marks between
                    yield line, self._indented(end, level)
                    line = []
                end = token
            else:
                if end:
                    yield line, self._indented(end, level)
                    line, end = [], ""
                line.append(token)
        yield line, self._indented(end, level) if end else ""

    def _indented(self, end: str, level: int) -> str:
        before, found, _ = end.rpartition("\n")
        plain = f"\n{_STEP * level}"
        text = (before if found else end.rstrip(" \t")) + plain
        return text if any(texts.takes(text) for texts in self._ends) else plain
