"""The error that users see as one clear line, with exit code 2, and the version of swarmtest.

Anything else that leaves swarmtest as a traceback is a bug in swarmtest.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """An error that the user can fix: what is wrong, where, and what would be right.

    >>> raise UserError("the space has no feature 'psuh'; did you mean 'push'?")
    Traceback (most recent call last):
    ...
    swarmtest.UserError: the space has no feature 'psuh'; did you mean 'push'?
    """

    # Tracebacks show the public name.
    __module__ = "swarmtest"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message that suggests the nearest known name.

    >>> did_you_mean("psuh", ["push", "pop"])
    "; did you mean 'push'?"
    >>> did_you_mean("xyz", ["push", "pop"])
    '; known: pop, push'
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known: {', '.join(names)}" if names else ""


def version() -> str:
    """Return the version of this swarmtest.

    It is looked up only when needed: the lookup takes half as long as importing numpy, and would do
    so in every worker.

    >>> version()[0].isdigit()
    True
    """
    from importlib import metadata

    try:
        return metadata.version("swarmtest")
    except metadata.PackageNotFoundError:  # a source tree that was never installed
        return "0+unknown"
