"""Which format a file is in, by its name, and how other tools find the files that it tells of."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from swarmtest.errors import UserError

Format = Literal["json", "lcov", "cobertura", "coverage.py"]

_ENDINGS: dict[str, Format] = {
    ".json": "json",
    ".lcov": "lcov",
    ".info": "lcov",
    ".xml": "cobertura",
    ".coverage": "coverage.py",
}
_PYTHON = ("", ".py", ".pyw")


def format_of(file: str) -> Format:
    """The format of a file that is to be written.

    >>> format_of("out.LCOV"), format_of(".coverage"), format_of(".coverage.host.17")
    ('lcov', 'coverage.py', 'coverage.py')
    >>> format_of("out.txt")
    Traceback (most recent call last):
    ...
    swarmtest.errors.UserError: out.txt: coverage is written as .json, .lcov (.info), .xml \
(Cobertura) or coverage.py's .coverage
    """
    name = Path(file).name.lower()
    ending = Path(name).suffix
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    if name.startswith(".coverage.") or (not ending and name not in ("", "-")):
        return "coverage.py"
    raise UserError(
        f"{file}: coverage is written as .json, .lcov (.info), .xml (Cobertura) or coverage.py's "
        ".coverage"
    )


def is_python(path: str) -> bool:
    """Whether a file holds Python, by its name; scripts often have no ending.

    >>> is_python("shop/cart.py"), is_python("calc.c")
    (True, False)
    """
    return Path(path).suffix.lower() in _PYTHON


def seen_from_here(place: str) -> str:
    """A file as others find it: relative to the current directory if it is below, else whole."""
    real, here = Path(os.path.realpath(place)), Path.cwd()
    return real.relative_to(here).as_posix() if real.is_relative_to(here) else str(real)
