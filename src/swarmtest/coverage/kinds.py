"""The kinds of coverage, and what each of them needs."""

from __future__ import annotations

import sys

from swarmtest.core.errors import UserError, did_you_mean

KINDS = {
    "line": "statements, by their first line",
    "block": "straight runs of statements: what is executed together",
    "branch": "where a decision (if, loop, case) went, as a pair of lines",
    "predicate": "the values of a function's conditions at each of its statements (PCT)",
    "path": "the way through a function from entry to exit",
    "prime": "prime paths of up to ten edges, within a function",
    "du": "from a definition of a variable to a use of it, up to ten edges",
}
"""The kinds that ``--coverage`` accepts, with a description of each."""

ON_PATHS = frozenset({"path", "prime", "du"})
"""Kinds that need the whole path through each function."""

WITH_PROBES = frozenset({"line", "block", "branch"})
"""Kinds that follow from which statements were begun. Their targets are known beforehand."""

DEFAULT_KINDS = ("line",)

CONCURRENT_KINDS = ("shared", "pair", "sync")
"""Kinds that describe how threads interact: see `swarmtest.race.coverage`."""


def parse_kinds(text: str) -> tuple[str, ...]:
    """Return the kinds in a comma-separated list, in the order of `KINDS`.

    >>> parse_kinds("branch,line")
    ('line', 'branch')
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in KINDS:
            raise UserError(f"no kind of coverage is called {name!r}{did_you_mean(name, KINDS)}")
    if not names:
        raise UserError(f"--coverage needs a kind: {', '.join(KINDS)}")
    return tuple(kind for kind in KINDS if kind in names)


def monitoring_is_possible(kinds: tuple[str, ...]) -> bool:
    """Return whether this Python's `sys.monitoring` can report what is asked for."""
    return hasattr(sys, "monitoring") and kinds == ("line",)
