"""The lines of a text file in any language."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence


def lines_of(text: str) -> list[str]:
    """Return the lines of a text as compilers count them, without line endings.

    >>> lines_of("a\\r\\nb\\f\\n")
    ['a', 'b\\x0c']
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def next_or_last(own: Sequence[int], line: int) -> int | None:
    """Return the first of some lines after a line, or the last of them; None if there are none.

    >>> next_or_last([3, 7], 3), next_or_last([3, 7], 8)
    (7, 7)
    """
    return own[min(bisect_right(own, line), len(own) - 1)] if own else None


_ENDS = (";", "{", "}", ":")


def continued_statement(texts: Sequence[str], line: int, known: Iterable[int]) -> int:
    """Return the known line whose statement goes on at a line of C; 0 if there is none.

    >>> texts = ["f(a,", "  b);", "int c;"]
    >>> continued_statement(texts, 2, {1}), continued_statement(texts, 3, {1})
    (1, 0)
    """
    lines = set(known)
    for before in range(line - 1, 0, -1):
        code = texts[before - 1].partition("//")[0].rstrip()
        if code.endswith("*/") or not code or code.lstrip().startswith("#"):
            continue
        if code.endswith(_ENDS):
            return 0
        if before in lines:
            return before
    return 0


class AnyStatements:
    """A file in a language that is not parsed: every line that is not blank may be a statement."""

    def __init__(self, text: str) -> None:
        self.texts = lines_of(text)

    def at(self, line: int) -> int | None:
        """Return the line where the statement at a line begins; None if there is none."""
        return line if self.texts[line - 1].strip() else None

    def function_at(self, line: int) -> str:
        """Return an empty name, because functions are not known."""
        return ""

    def within(self, lines: Iterable[int]) -> list[int]:
        """Return the statements that lines belong to, in order."""
        return sorted({start for line in lines if (start := self.at(line)) is not None})

    def after(self, line: int, function: str = "") -> int | None:
        """Return the first statement below a line."""
        below = range(line + 1, len(self.texts) + 1)
        return next((start for start in below if self.within([start])), None)

    @property
    def functions(self) -> list[str]:
        """Return an empty list, because functions are not known."""
        return []

    def of_function(self, name: str) -> list[int]:
        """Return an empty list, because functions are not known."""
        return []

    def what_is(self, line: int) -> str:
        """Describe a line that is not a statement."""
        return "blank"

    @property
    def lines(self) -> list[int]:
        """Return all lines that may be statements."""
        return self.within(range(1, len(self.texts) + 1))
