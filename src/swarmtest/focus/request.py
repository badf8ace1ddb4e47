"""What a user wants tests to hit, as they said it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from swarmtest.core.errors import UserError
from swarmtest.focus.listed_targets import from_file
from swarmtest.languages.changes import from_diff
from swarmtest.languages.places import Found, Wanted, from_function, from_line, from_lines

# -------------------------------------------------------------------------------------------------
# What a user wants tests to reach, said in any of the ways there are.

__all__ = [
    "Found",
    "Wanted",
    "from_diff",
    "from_file",
    "from_function",
    "from_line",
    "from_lines",
]


# -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FocusRequest:
    """Where to point. Any number of wishes of any kind; all of them are targets.

    >>> FocusRequest(line=("shop/cart.py:120",), fault=("4ee18053",)).names
    ('fault:4ee18053',)
    """

    line: tuple[str, ...] = ()
    """``FILE:120``."""
    lines: tuple[str, ...] = ()
    """``FILE:100-140``."""
    function: tuple[str, ...] = ()
    """``pkg.mod:Class.method`` or ``FILE:Class.method``."""
    diff: str = ""
    """A git revision: what has changed since it, committed or not."""
    fault: tuple[str, ...] = ()
    """The ids of faults, or how they begin."""
    mutant: tuple[str, ...] = ()
    """The ids of mutants."""
    target: tuple[str, ...] = ()
    """Any other target, as ``kind:name``."""
    rare: bool = False
    """Lines that are hit rarely, but often enough for statistics."""
    targets_from: tuple[str, ...] = ()
    """Files with one target per line, or with SARIF of a static analyser."""

    @property
    def names(self) -> tuple[str, ...]:
        """The targets that are named and have no place."""
        faults = tuple(f"fault:{id.removeprefix('fault:')}" for id in self.fault)
        mutants = tuple(f"mutant:{id.removeprefix('mutant:')}" for id in self.mutant)
        return (*faults, *mutants, *self.target)

    def found(self) -> Found:
        """The places and names that are meant, in the code as it is now."""
        if self == FocusRequest():
            raise UserError(
                "say where to point: --line FILE:LINE, --lines FILE:FIRST-LAST, --function "
                "MODULE:NAME, --diff REV, --fault ID, --rare or --targets-from FILE"
            )
        found = Found(names=self.names)
        for text in self.line:
            found += from_line(text)
        for text in self.lines:
            found += from_lines(text)
        for text in self.function:
            found += from_function(text)
        for text in self.targets_from:
            found += from_file(text)
        if self.diff:
            found += from_diff(self.diff, os.getcwd())
        return found
