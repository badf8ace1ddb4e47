"""Sentences and tables made to fit the width of a screen."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from swarmtest.report.printable import elided
from swarmtest.report.quantities import can_show
from swarmtest.report.terminal import table

_NARROWEST = 8
"""Columns below which a name is not cut."""


def wrapped(text: str, width: int = 0, indent: str = "") -> str:
    """A sentence in lines of at most `width` columns; 0: no limit.

    >>> print(wrapped("coin against default: more faults", 20, indent="  "))
    coin against
      default: more
      faults
    """
    if not width:
        return text
    return textwrap.fill(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def lines_of(text: str, width: int) -> list[str]:
    """The lines of `wrapped`, those after the first indented; one if there is no room."""
    return wrapped(text, width if width > _NARROWEST else 0, indent="  ").split("\n")


def fitted(
    head: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    right: str = "",
    width: int = 0,
    cut: Sequence[int] = (),
) -> str:
    """A table of at most `width` columns: heads take several lines, then columns in `cut` are cut.

    >>> print(fitted(("name", "tests per run"), [("push", "12")], right=" r", width=12))
          tests
            per
    name    run
    ----  -----
    push     12
    """
    whole = table(head, rows, right)
    if not width or widest(whole) <= width:
        return whole
    lines = _head_lines(head, rows)
    body = list(rows)
    for column in cut:
        over = widest(_with_head(lines, body, right)) - width
        longest = max((len(row[column]) for row in body), default=0)
        if over > 0 and longest > _NARROWEST:
            room = max(longest - over, _NARROWEST)
            body = [(*r[:column], _shortened(r[column], room), *r[column + 1 :]) for r in body]
    return _with_head(lines, body, right)


def widest(text: str) -> int:
    """The length of the longest line."""
    return max(map(len, text.splitlines()), default=0)


def _head_lines(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    wraps = []
    for column, name in enumerate(head):
        cells = [len(row[column]) for row in rows]
        room = max([*cells, *map(len, name.split()), 1])
        wraps.append(textwrap.wrap(name, room, break_on_hyphens=False))
    height = max(map(len, wraps))
    return [*zip(*([""] * (height - len(wrap)) + wrap for wrap in wraps), strict=True)]


def _with_head(head: Sequence[tuple[str, ...]], rows: Sequence[tuple[str, ...]], right: str) -> str:
    first, rule, *rest = table(head[0], [*head[1:], *rows], right).splitlines()
    above = len(head) - 1
    return "\n".join([first, *rest[:above], rule, *rest[above:]])


def _shortened(text: str, room: int) -> str:
    short = elided(text, room)
    return short if can_show("…") else short.replace("…", "~")
