"""Coverage as values, which every reader returns and every writer accepts; names of formats.

Lines and arcs are coverage.py's. A line stands for the statement that starts there. An arc
`(line, to)` goes from a line to the next line that runs; a negative `to` leaves the function,
class or module whose first line (its first decorator's, if it has one; 1 for a module) is `-to`.
If the body of a decision is on the same line, the arc goes where the body goes: in line 3 of a
function that starts in line 1, ``if done: return`` has the arc `(3, -1)`.

Some formats number the branches of a line without saying where they go. Such a branch has an
`unnamed` destination, which is below every real one.

Invariants: the lines at both ends of an arc that was taken are lines that were hit, and the line
where any arc starts is executable.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from swarmtest.core.errors import UserError

Arc = tuple[int, int]
"""From a line to a line; a negative destination leaves the code that starts there."""

UNNAMED = -(10**9)
"""Destinations at or below this are numbers of branches, not lines."""


def unnamed(number: int) -> int:
    """Return the destination of a branch of which only its number on the line is known, from 0.

    >>> number_of(unnamed(3))
    3
    """
    return UNNAMED - number


def number_of(destination: int) -> int | None:
    """Return the number of an unnamed branch; None for a branch whose destination is known.

    >>> number_of(12) is None and number_of(-1) is None
    True
    """
    return UNNAMED - destination if destination <= UNNAMED else None


@dataclass(frozen=True)
class FileCoverage:
    """How many tests reached each part of a file.

    >>> cart = FileCoverage("cart.py", {1: 9, 2: 4, 3: 0}, {(1, 2): 4, (1, 3): 0}, {"add": (1, 9)})
    >>> [line for line, tests in cart.lines.items() if not tests]
    [3]
    """

    path: str
    lines: Mapping[int, int]
    """Executable line -> how many tests hit it."""
    branches: Mapping[Arc, int]
    """Arc out of a decision -> how many tests took it."""
    functions: Mapping[str, tuple[int, int]]
    """Qualified name -> its first line, and how many tests called it."""


@dataclass(frozen=True)
class TestCoverage:
    """What one test hit; coverage.py calls it a context.

    >>> test = TestCoverage("trial 7", {"cart.py": (frozenset({1, 2}), frozenset({(1, 2)}))})
    >>> lines, arcs = test.files["cart.py"]
    """

    __test__: ClassVar[bool] = False  # pytest: not a test class

    name: str
    files: Mapping[str, tuple[frozenset[int], frozenset[Arc]]]
    """Path -> the lines hit and the arcs taken."""


def in_order(branches: Mapping[Arc, int]) -> Iterator[tuple[Arc, int]]:
    """Yield branches by line: those that go to a line, then those that leave, then the unnamed.

    >>> [arc for arc, _ in in_order({(3, -1): 1, (3, 4): 0, (2, 9): 1})]
    [(2, 9), (3, 4), (3, -1)]
    """
    yield from sorted(
        branches.items(), key=lambda item: (item[0][0], item[0][1] < 0, abs(item[0][1]))
    )


def one_line(text: str) -> str:
    """Return text with `?` for line ends and control characters, which a format cannot hold.

    >>> one_line("a\\nb")
    'a?b'
    """
    return "".join(letter if letter.isprintable() else "?" for letter in text)


# Formats and paths of files.

Format = Literal["json", "lcov", "cobertura", "coverage.py"]

_FORMATS_BY_SUFFIX: dict[str, Format] = {
    ".json": "json",
    ".lcov": "lcov",
    ".info": "lcov",
    ".xml": "cobertura",
    ".coverage": "coverage.py",
}
_PYTHON_SUFFIXES = ("", ".py", ".pyw")


def format_of(file: str) -> Format:
    """Return the format of a file to write, by its name.

    >>> format_of("out.LCOV"), format_of(".coverage"), format_of(".coverage.host.17")
    ('lcov', 'coverage.py', 'coverage.py')
    >>> format_of("out.txt")
    Traceback (most recent call last):
    ...
    swarmtest.UserError: out.txt: coverage is written as .json, .lcov (.info), .xml \
(Cobertura) or coverage.py's .coverage
    """
    name = Path(file).name.lower()
    ending = Path(name).suffix
    if ending in _FORMATS_BY_SUFFIX:
        return _FORMATS_BY_SUFFIX[ending]
    if name.startswith(".coverage.") or (not ending and name not in ("", "-")):
        return "coverage.py"
    raise UserError(
        f"{file}: coverage is written as .json, .lcov (.info), .xml (Cobertura) or coverage.py's "
        ".coverage"
    )


def is_python(path: str) -> bool:
    """Return whether a file holds Python, by its name; scripts often have no suffix.

    >>> is_python("shop/cart.py"), is_python("calc.c")
    (True, False)
    """
    return Path(path).suffix.lower() in _PYTHON_SUFFIXES


def seen_from_here(place: str) -> str:
    """Return a path for other tools: relative if below the current directory, else absolute."""
    real, here = Path(os.path.realpath(place)), Path.cwd()
    return real.relative_to(here).as_posix() if real.is_relative_to(here) else str(real)
