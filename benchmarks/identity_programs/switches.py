"""Switches for planted bugs: which of them are in the program now."""

from __future__ import annotations

ON: set[str] = set()


def bug(name: str) -> bool:
    """Whether a planted bug is switched on."""
    return name in ON
