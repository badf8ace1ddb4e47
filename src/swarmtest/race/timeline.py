"""The explanation of a race: what each thread did, in order, around the switches that matter."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from swarmtest.coverage.scope import shown_path
from swarmtest.race.coverage.trace import TraceStep
from swarmtest.race.weaving.sites import SITES, Site

# -------------------------------------------------------------------------------------------------
# Which accesses are to variables that several threads share, from what runs did.


def shared_sites(steps: Iterable[TraceStep]) -> frozenset[Site]:
    """The accesses to what two threads touch and one of them changes.

    What the thread that starts the others does before them is no sharing: it builds.
    """
    variables: dict[tuple[str, str], tuple[set[str], set[str], set[Site]]] = {}
    alone = True
    for step in steps:
        alone = alone and not begins(step)
        if step.site < 0:
            continue
        site = SITES[step.site]
        threads, kinds, sites = variables.setdefault(variable_of(site), (set(), set(), set()))
        sites.add(site)
        if not alone:
            threads.add(step.thread)
            kinds.add(site.kind)
    return frozenset(
        site
        for threads, kinds, sites in variables.values()
        if len(threads) > 1 and kinds != {"read"}
        for site in sites
    )


def begins(step: TraceStep) -> bool:
    """Whether main is not alone any more."""
    return step.thread != "main" or step.kind == "thread.start"


def variable_of(site: Site) -> tuple[str, str]:
    """What tells variables apart; two objects' attributes of the same name are not."""
    return site.what, site.name or site.variable


# -------------------------------------------------------------------------------------------------

STUCK = ("deadlock", "lost wake-up")
"""Kinds of faults in which threads wait for ever."""
_MOST_ROWS = 24


@dataclass(frozen=True)
class Row:
    """A line of source that a thread executed, and what it did to shared variables there."""

    thread: str
    """Empty: rows that were left out, as `source` says."""
    path: str
    """The file, as a person would name it."""
    line: int
    source: str
    does: tuple[str, ...] = ()
    """``reads total: 0``, ``writes total: 0 -> 1``, ``lock.acquire``."""
    held: tuple[str, ...] = ()
    """The locks that it held."""
    stopped: bool = False
    """Whether the thread was stopped after this, and went on later."""


@dataclass(frozen=True)
class Explanation:
    """What a person is told of a fault: the picture, and what is known about it."""

    signature: str
    message: str
    """How the fault showed: the last line of a traceback."""
    rows: tuple[Row, ...]
    replays: tuple[int, int]
    """In how many of how many replays it showed."""
    truth: str
    """Whether it can happen on this interpreter, in a line."""
    switches: tuple[str, ...] = ()
    """Where threads were switched, a line each."""
    notes: tuple[str, ...] = ()

    @property
    def threads(self) -> tuple[str, ...]:
        """The threads that have a column, in the order in which they were started."""
        names = {row.thread for row in self.rows[: self.interleaved] if row.thread}
        return tuple(sorted(names, key=_order))

    @property
    def interleaved(self) -> int:
        """How many rows there are until one thread, that did nothing before, has the last word."""
        rows = self.rows
        last = len(rows)
        while last and rows[last - 1].thread == rows[-1].thread:
            last -= 1
        alone = last and all(row.thread != rows[-1].thread for row in rows[:last])
        return last if alone else len(rows)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it is about."""
        return tuple(dict.fromkeys(row.path for row in self.rows if row.path))

    def to_json(self) -> dict[str, Any]:
        """The explanation as JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Explanation:
        """The explanation that `to_json` wrote."""
        rows = tuple(
            Row(**{**row, "does": tuple(row["does"]), "held": tuple(row["held"])})
            for row in data["rows"]
        )
        lists = {name: tuple(data[name]) for name in ("replays", "switches", "notes")}
        return cls(**{**data, **lists, "rows": rows})


def _order(thread: str) -> tuple[int, ...]:
    return tuple(int(part) for part in thread.split(".")[1:])


def rows_of(steps: Sequence[TraceStep], stuck: bool = False) -> tuple[Row, ...]:
    """The picture of a run: accesses to shared variables and synchronisation, once threads run.

    What a thread does in a line without being stopped is one row. `stuck`: threads wait for each
    other, so who waits for the end of whom matters, too.
    """
    shared = shared_sites(steps)
    begun = next((i for i, step in enumerate(steps) if begins(step)), 0)
    told = [
        step
        for step in steps[begun:]
        if (step.site >= 0 and SITES[step.site] in shared)
        or (step.site < 0 and (stuck or not step.kind.startswith("thread.")))
    ]
    rows: list[Row] = []
    for i, step in enumerate(told):
        if i and _same_line(told[i - 1], step):
            rows[-1] = _more(rows[-1], step)
        else:
            rows.append(_row(step))
        changes = i + 1 < len(told) and told[i + 1].thread != step.thread
        if changes and any(later.thread == step.thread for later in told[i + 1 :]):
            rows[-1] = replace(rows[-1], stopped=True)
    return _few(rows)


def _same_line(last: TraceStep, step: TraceStep) -> bool:
    return (last.thread, last.path, last.line) == (step.thread, step.path, step.line)


def _row(step: TraceStep) -> Row:
    path = shown_path(step.path) if step.path else ""
    source = linecache.getline(step.path, step.line).strip()
    return Row(step.thread, path, step.line, source, _does(step), step.held)


def _more(row: Row, step: TraceStep) -> Row:
    more = tuple(one for one in _does(step) if one not in row.does)
    held = step.held if len(step.held) >= len(row.held) else row.held
    return replace(row, does=(*row.does, *more), held=held)


def _does(step: TraceStep) -> tuple[str, ...]:
    name = step.variable
    if step.kind == "read":
        return (f"reads {name}: {step.before}" if step.before else f"reads {name}",)
    if step.kind == "write":
        if not step.after:
            return (f"writes {name}",)
        before = f"{step.before} -> " if step.before else ""
        return (f"writes {name}: {before}{step.after}",)
    if step.kind == "call":
        changed = step.before != step.after
        value = f": {step.before} -> {step.after}" if changed else ""
        return (f"calls {name}{value}",)
    return (f"{step.kind} {name}".strip(),)


def _few(rows: list[Row]) -> tuple[Row, ...]:
    """Of a long run, what is around the switches, and the end; how much is left out is said."""
    if len(rows) <= _MOST_ROWS:
        return tuple(rows)
    turns = [i for i in range(1, len(rows)) if rows[i].thread != rows[i - 1].thread]
    ends = [*turns, len(rows)]
    near = [min(min(abs(i - end), abs(i + 1 - end)) for end in ends) for i in range(len(rows))]
    reach = max((n for n in range(20) if sum(one <= n for one in near) <= _MOST_ROWS), default=0)
    kept = [i for i in range(len(rows)) if near[i] <= reach][-_MOST_ROWS:]
    return tuple(_with_gaps(rows, kept))


def _with_gaps(rows: Sequence[Row], kept: Iterable[int]) -> Iterable[Row]:
    before = -1
    for i in kept:
        if i > before + 1:
            gone = i - before - 1
            yield Row("", "", 0, f"... {gone} more line{'s' * (gone != 1)} ...")
        yield rows[i]
        before = i


# -------------------------------------------------------------------------------------------------
# The timeline of a race as text: a column for each thread.

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
