"""The timeline of a race as text: a column for each thread."""

from __future__ import annotations

from swarmtest.subjects.threads.timeline import Explanation, Row

_NARROWEST = 22
_WIDEST = 46
_STOPPED = "~ ~ ~ stopped ~ ~ ~"


def timeline_text(explanation: Explanation, width: int = 100) -> str:
    """What each thread did, in the order of the run, as columns that fit a width.

    >>> rows = (
    ...     Row("main.1", "shop.py", 9, "left = self.left", ("reads self.left: 1",), (), True),
    ...     Row("main.2", "shop.py", 9, "left = self.left", ("reads self.left: 1",)),
    ...     Row("main.1", "shop.py", 10, "self.left = left - 1", ("writes self.left: 1 -> 0",)),
    ... )
    >>> print(timeline_text(Explanation("", "AssertionError", rows, (10, 10), ""), 62))
    main.1 (shop.py)                main.2
    ------------------------------  ------------------------------
      9 left = self.left
          reads self.left: 1
    ~ ~ ~ stopped ~ ~ ~
                                      9 left = self.left
                                          reads self.left: 1
     10 self.left = left - 1
          writes self.left: 1 -> 0
    AssertionError
    """
    threads = explanation.threads
    if not threads:
        return "(no shared variable and no synchronisation was seen)"
    room = (width - 2 * (len(threads) - 1)) // len(threads)
    room = max(_NARROWEST, min(_WIDEST, room))
    whole = len(threads) * (room + 2) - 2
    only = explanation.paths[0] if len(explanation.paths) == 1 else ""
    head = [f"{threads[0]} ({only})" if only else threads[0], *threads[1:]]
    lines = [_columns(head, room), _columns(["-" * room] * len(threads), room)]
    for row in explanation.rows[: explanation.interleaved]:
        if not row.thread:
            lines.append(row.source.center(whole).rstrip())
            continue
        indent = " " * threads.index(row.thread) * (room + 2)
        lines += [indent + line for line in cell(row, room, only)]
    lines += _last_word(explanation, whole, only)
    return "\n".join(lines + explanation.message.splitlines())


def cell(row: Row, room: int, only: str = "") -> list[str]:
    """What a row says in its thread's column; `only`: the one file, which need not be named."""
    place = f"{row.line:>3}" if row.path == only else f"{row.path}:{row.line}"
    lines = [f"{place} {row.source}" if row.line else row.source]
    lines += [f"      {one}" for one in row.does]
    if row.held:
        lines.append(f"      holds {', '.join(row.held)}")
    if row.stopped:
        lines.append(_STOPPED)
    return [line if len(line) <= room else line[: room - 1] + "…" for line in lines]


def _last_word(explanation: Explanation, whole: int, only: str) -> list[str]:
    rows = explanation.rows[explanation.interleaved :]
    if not rows:
        return []
    lines = [f"then {rows[0].thread}:"]
    for row in rows:
        lines += cell(row, whole, only)
    return lines


def _columns(cells: list[str], room: int) -> str:
    return "  ".join(cell.ljust(room) for cell in cells).rstrip()
