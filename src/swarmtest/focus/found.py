"""What a user's words stand for: places in the code as it is now, and targets without a place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from swarmtest.errors import UserError


class NothingToAimAt(UserError):
    """What was asked for is in order, but no test can be aimed at any of it."""


@dataclass(frozen=True)
class Wanted:
    """A statement that is to be hit.

    >>> Wanted("/home/me/shop/cart.py", 12, "--line cart.py:12").line
    12
    """

    place: str
    """The file on this machine: absolute, without links."""
    line: int
    """Where the statement begins, as in the name of its target."""
    why: str
    """How the user said it: ``--line cart.py:120``, ``--diff main``."""
    function: str = ""
    """The qualified name of the function around it. Empty at module and class level, which runs at
    import and so in no test, and where it is not known."""


@dataclass(frozen=True)
class Found:
    """What was meant, and what of it cannot be used.

    >>> len((Found(names=("event:full",)) + Found(unusable=("README.md: not code",))).names)
    1
    """

    wanted: tuple[Wanted, ...] = ()
    unusable: tuple[str, ...] = ()
    """One line each: what it is, and why it is no target."""
    names: tuple[str, ...] = ()
    """Targets that are not places, as ``kind:name``: ``fault:ID``, ``event:NAME``."""

    def __add__(self, other: Found) -> Found:
        """Both together."""
        return united((self, other))


def united(parts: Iterable[Found]) -> Found:
    """All together, each place once: the words that named it first are kept."""
    places: dict[tuple[str, int], Wanted] = {}
    unusable: dict[str, None] = {}
    names: dict[str, None] = {}
    for part in parts:
        for one in part.wanted:
            places.setdefault((one.place, one.line), one)
        unusable |= dict.fromkeys(part.unusable)
        names |= dict.fromkeys(part.names)
    return Found(tuple(places.values()), tuple(unusable), tuple(names))
