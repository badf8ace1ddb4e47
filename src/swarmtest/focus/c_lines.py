"""Which lines of a C or C++ file may be executed, as far as the text tells.

Not blank lines, comments and directives. Any other line may be one that the compiler names; where
whole ranges are meant, those that hold nothing but braces are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from swarmtest.focus.c_functions import function_at, functions_of
from swarmtest.focus.text_lines import AnyStatements, lines_of, next_or_last

_COMMENT = re.compile(r"//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_KEPT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_EITHER = re.compile(f"(?P<kept>{_KEPT.pattern})|(?P<comment>{_COMMENT.pattern})", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
_ONLY_BRACES = re.compile(r"[\s{}();,]*(else|do)?[\s{}();,]*")


class CStatements(AnyStatements):
    """A C or C++ file.

    >>> file = CStatements("int f(int x)\\n{\\n  // up\\n  return x + 1;\\n}\\n")
    >>> file.within(range(1, 6)), file.function_at(4), file.at(3)
    ([1, 4], 'f', None)
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._text = "\n".join(self.texts)
        without_comments = _EITHER.sub(_emptied_comment, self._text)
        self._code = lines_of(_DIRECTIVE.sub(_emptied, without_comments) + "\n")

    def at(self, line: int) -> int | None:
        """The line itself, if it has code on it."""
        return line if self._code[line - 1].strip() else None

    def within(self, lines: Iterable[int]) -> list[int]:
        """The lines with more than braces on them, in order."""
        return sorted({line for line in lines if not _ONLY_BRACES.fullmatch(self._code[line - 1])})

    def function_at(self, line: int) -> str:
        """The name of the function that a line is in."""
        function = function_at(self._text, line)
        return function.name if function else ""

    def what_is(self, line: int) -> str:
        """What a line is that has no code on it."""
        text = self.texts[line - 1].strip()
        if not text:
            return "blank"
        return "a directive" if text.startswith("#") else "a comment or directive"

    def after(self, line: int, function: str = "") -> int | None:
        """The statement that follows a line in a function, or the last one before it."""
        return next_or_last(self.of_function(function), line) or super().after(line)

    @property
    def functions(self) -> list[str]:
        """The names of its functions, with the classes that they are in."""
        return [one.name for one in functions_of(self._text)]

    def of_function(self, name: str) -> list[int]:
        """Where the statements of a function's body begin."""
        found: set[int] = set()
        for one in functions_of(self._text):
            if one.name in (name, name.replace(".", "::")):
                body = {line for line in one.flow.lines if one.first < line <= one.last}
                found |= body or {one.first}
        return self.within(found)


def _emptied_comment(found: re.Match[str]) -> str:
    return found["kept"] or _emptied(found)


def _emptied(found: re.Match[str]) -> str:
    """As many lines, with nothing on them."""
    return "\n" * found[0].count("\n")
