"""How many worker processes there are when nobody says it."""

from __future__ import annotations

import os

from swarmtest.errors import UserError

VARIABLE = "SWARMTEST_WORKERS"


def usual_workers() -> int:
    """As many as the environment says, or one for each core.

    >>> os.environ["SWARMTEST_WORKERS"] = "3"
    >>> usual_workers()
    3
    >>> del os.environ["SWARMTEST_WORKERS"]
    """
    told = os.environ.get(VARIABLE, "")
    if not told:
        return os.cpu_count() or 1
    if not told.isascii() or not told.isdigit():
        raise UserError(f"{VARIABLE} is a number of worker processes, like 2, not {told!r}")
    return int(told)
