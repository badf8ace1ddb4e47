"""The explanation of a race: what each thread did, in order, around the switches that matter."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from swarmtest.instrument.scope import shown_path
from swarmtest.subjects.threads.sharing import begins, shared_sites
from swarmtest.threads import SITES, TraceStep

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
