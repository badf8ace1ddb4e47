"""A time limit in shared memory: a process sets it for a part of its work, its parent enforces it.

A process that runs several tests, one after the other, cannot end one that loops for ever: the test
may handle or ignore all signals. Its parent can, but does not know when each test begins.
"""

from __future__ import annotations

import mmap
import time

_SECONDS, _UNTIL = 0, 1


class SharedLimit:
    """How long the present work of a process may take, and until when; at first, without limit.

    >>> limit = SharedLimit()
    >>> limit.set(5.0)
    >>> limit.seconds, limit.has_passed()
    (5.0, False)
    """

    def __init__(self) -> None:
        self._cell = memoryview(mmap.mmap(-1, 16)).cast("d")

    @property
    def seconds(self) -> float:
        """How long the present work may take; 0: without limit."""
        return self._cell[_SECONDS]

    def has_passed(self) -> bool:
        """Return whether the present work has taken too long."""
        until = self._cell[_UNTIL]
        return until > 0 and time.monotonic() >= until

    def set(self, seconds: float) -> None:
        """Begin work that may take so long."""
        self._cell[_SECONDS] = seconds
        self._cell[_UNTIL] = time.monotonic() + seconds

    def clear(self) -> None:
        """Go on without limit."""
        self._cell[_UNTIL] = 0.0
        self._cell[_SECONDS] = 0.0


_used: SharedLimit | None = None


def use_limit(limit: SharedLimit | None) -> None:
    """Let `LimitedWork` set this limit from now on, or, with None, nothing."""
    global _used
    _used = limit


class LimitedWork:
    """Work whose time is limited, if a parent of this process enforces that.

    It is no generator: those look at exceptions, and those of a test may be hostile.

    >>> limit = SharedLimit()
    >>> use_limit(limit)
    >>> with LimitedWork(0.0):
    ...     limit.has_passed()
    True
    >>> limit.has_passed()
    False
    >>> use_limit(None)
    """

    def __init__(self, seconds: float) -> None:
        self._limit, self._seconds = _used, seconds

    def __enter__(self) -> None:
        if self._limit is not None:
            self._limit.set(self._seconds)

    def __exit__(self, *exception: object) -> None:
        if self._limit is not None:
            self._limit.clear()
