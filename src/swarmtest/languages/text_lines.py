"""The lines of a text file in any language."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence


def lines_of(text: str) -> list[str]:
    """The lines of a text as compilers count them, without their ends.

    >>> lines_of("a\\r\\nb\\f\\n")
    ['a', 'b\\x0c']
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def next_or_last(own: Sequence[int], line: int) -> int | None:
    """The first of some lines that comes after a line, or the last of them; None if none is there.

    >>> next_or_last([3, 7], 3), next_or_last([3, 7], 8)
    (7, 7)
    """
    return own[min(bisect_right(own, line), len(own) - 1)] if own else None


class AnyStatements:
    """A file in a language that is not read here: only blank lines are known to be none."""

    def __init__(self, text: str) -> None:
        self.texts = lines_of(text)

    def at(self, line: int) -> int | None:
        """The line where the statement at a line begins; None if there is none."""
        return line if self.texts[line - 1].strip() else None

    def function_at(self, line: int) -> str:
        """Not known."""
        return ""

    def within(self, lines: Iterable[int]) -> list[int]:
        """The statements that lines belong to, in order."""
        return sorted({start for line in lines if (start := self.at(line)) is not None})

    def after(self, line: int, function: str = "") -> int | None:
        """The first statement below a line."""
        below = range(line + 1, len(self.texts) + 1)
        return next((one for one in below if self.within([one])), None)

    @property
    def functions(self) -> list[str]:
        """Not known."""
        return []

    def of_function(self, name: str) -> list[int]:
        """Not known."""
        return []

    def what_is(self, line: int) -> str:
        """What a line is that is no statement."""
        return "blank"

    @property
    def lines(self) -> list[int]:
        """All lines that may be statements."""
        return self.within(range(1, len(self.texts) + 1))
