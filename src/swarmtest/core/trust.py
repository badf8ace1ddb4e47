"""Whether the user trusts the store that is read: set once, by the option ``--trust``."""

from __future__ import annotations

_trusted = False


def trust(trusted: bool = True) -> None:
    """Say whether pickles in stores of earlier versions may be read in this process."""
    global _trusted
    _trusted = trusted


def is_trusted() -> bool:
    """Return whether pickles may be read.

    >>> is_trusted()
    False
    """
    return _trusted
