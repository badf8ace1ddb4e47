"""The targets that a user asks for, and how they are found in the current code."""

from __future__ import annotations

import os
from dataclasses import dataclass

from swarmtest.core.errors import UserError
from swarmtest.focus.listed_targets import from_file
from swarmtest.languages.changes import from_diff
from swarmtest.languages.places import ResolvedTargets, Wanted, from_function, from_line, from_lines

__all__ = [
    "ResolvedTargets",
    "Wanted",
    "from_diff",
    "from_file",
    "from_function",
    "from_line",
    "from_lines",
]


@dataclass(frozen=True)
class FocusRequest:
    """What to aim at: any number of targets of any kind.

    >>> FocusRequest(line=("shop/cart.py:120",), fault=("4ee18053",)).names
    ('fault:4ee18053',)
    """

    line: tuple[str, ...] = ()
    """Lines, as ``FILE:120``."""
    lines: tuple[str, ...] = ()
    """Ranges of lines, as ``FILE:100-140``."""
    function: tuple[str, ...] = ()
    """Functions, as ``pkg.mod:Class.method`` or ``FILE:Class.method``."""
    diff: str = ""
    """A git revision: aim at what has changed since it, committed or not."""
    fault: tuple[str, ...] = ()
    """The ids of faults, or the beginnings of ids."""
    mutant: tuple[str, ...] = ()
    """The ids of mutants."""
    target: tuple[str, ...] = ()
    """Other targets, as ``kind:name``."""
    rare: bool = False
    """Whether to aim at lines that are hit rarely, but often enough for statistics."""
    targets_from: tuple[str, ...] = ()
    """Files with one target per line, or with a static analyser's SARIF."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the targets that have a name but no place in the code."""
        faults = tuple(f"fault:{id.removeprefix('fault:')}" for id in self.fault)
        mutants = tuple(f"mutant:{id.removeprefix('mutant:')}" for id in self.mutant)
        return (*faults, *mutants, *self.target)

    def resolve(self) -> ResolvedTargets:
        """Return the places and names that are meant, in the current code."""
        if self == FocusRequest():
            raise UserError(
                "name what to aim at: --line FILE:LINE, --lines FILE:FIRST-LAST, --function "
                "MODULE:NAME, --diff REV, --fault ID, --rare or --targets-from FILE"
            )
        found = ResolvedTargets(names=self.names)
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
