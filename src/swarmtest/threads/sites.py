"""Sites: the places in a program where threads may meet, by small numbers.

A probe passes its site's number. Numbers are those of this process; what is kept (schedules,
signatures) names sites by their text.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Site:
    """One access in the source.

    >>> str(Site("shop.py", 12, 8, "Shop.sell", "write", "attribute", "self.seats", "seats"))
    'shop.py:12 Shop.sell: write self.seats'
    """

    path: str
    """The file as a person would name it."""
    line: int
    column: int
    function: str
    """The function's qualified name; empty for the module itself."""
    kind: str
    """``read``, ``write``, or ``call``: a method of the object is called, which may do either."""
    what: str
    """``attribute``, ``subscript``, ``global`` or ``closure``."""
    variable: str
    """The variable as the source has it: ``self.seats``, ``seats[]``, ``total``."""
    name: str
    """The bare name of the attribute or variable; empty for a subscript."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.function or '<module>'}: {self.kind} {self.variable}"

    @property
    def text(self) -> str:
        """What names the site in a schedule: it survives edits above it."""
        return f"{self.path} {self.function or '<module>'} {self.kind} {self.variable}"


class Sites:
    """All sites that were woven in this process; the same file woven again has the same ones."""

    def __init__(self) -> None:
        self._sites: list[Site] = []
        self._numbers: dict[Site, int] = {}

    def number(self, site: Site) -> int:
        """The number of a site.

        >>> sites = Sites()
        >>> sites.number(Site("a.py", 1, 0, "f", "read", "global", "x", "x"))
        0
        """
        found = self._numbers.get(site)
        if found is None:
            found = self._numbers[site] = len(self._sites)
            self._sites.append(site)
        return found

    def __getitem__(self, number: int) -> Site:
        return self._sites[number]

    def __len__(self) -> int:
        return len(self._sites)


SITES = Sites()
