"""Errors that are the user's to mend: one clear line, exit code 2.

Anything else that escapes swarmtest as a traceback is a bug in swarmtest.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something a user can mend: what is wrong, where, and what would be right.

    >>> raise UserError("the space has no feature 'psuh'; did you mean 'push'?")
    Traceback (most recent call last):
    ...
    swarmtest.UserError: the space has no feature 'psuh'; did you mean 'push'?
    """

    # Tracebacks show the public name.
    __module__ = "swarmtest"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The tail of an error message that names the nearest known names.

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


# -------------------------------------------------------------------------------------------------
# The version of this swarmtest.


def version() -> str:
    """Looked up when it is asked for: that takes as long as half of numpy, in every worker.

    >>> version()[0].isdigit()
    True
    """
    from importlib import metadata

    try:
        return metadata.version("swarmtest")
    except metadata.PackageNotFoundError:  # a source tree that was never installed
        return "0+unknown"
