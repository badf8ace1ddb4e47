"""The timeline of a race: what each thread did, in order, around the switches that matter.

`rows_of` turns the trace of a run into rows. An `Explanation` holds them with what else is known
about the fault, and `timeline_text` prints it.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from swarmtest.coverage.scope import shown_path
from swarmtest.race.coverage.trace import AWAITS, TraceStep
from swarmtest.race.weaving.accesses import FUNCTION, GENERATOR
from swarmtest.race.weaving.sites import LINE, SITES, Site

STUCK = ("deadlock", "pool exhaustion", "lost wake-up", "hang")
"""The kinds of faults in which threads wait forever."""
_MAX_ROWS = 24


@dataclass(frozen=True)
class TimelineRow:
    """A line of source that a thread executed, with what it did to shared variables there."""

    thread: str
    """Empty for a row that stands for omitted rows; `source` then says how many."""
    path: str
    """The file, as a person would name it."""
    line: int
    source: str
    does: tuple[str, ...] = ()
    """The actions: ``reads total: 0``, ``writes total: 0 -> 1``, ``lock.acquire``."""
    held: tuple[str, ...] = ()
    """The locks that the thread held."""
    stopped: bool = False
    """Whether the thread was stopped after this row and continued later."""


@dataclass(frozen=True)
class Explanation:
    """The explanation of a fault: its timeline, and what is known about it."""

    signature: str
    message: str
    """How the fault showed, such as the last line of a traceback."""
    rows: tuple[TimelineRow, ...]
    replays: tuple[int, int]
    """The number of replays that showed the fault, and of all replays."""
    truth: str
    """One line that says whether it can happen on this interpreter."""
    switches: tuple[str, ...] = ()
    """The places where threads were switched, one line each."""
    notes: tuple[str, ...] = ()

    @property
    def threads(self) -> tuple[str, ...]:
        """The threads that have a column, in the order in which they were started."""
        names = {row.thread for row in self.rows[: self.interleaved] if row.thread}
        return tuple(sorted(names, key=_start_order))

    @property
    def interleaved(self) -> int:
        """The number of rows before the closing rows.

        The closing rows belong to one thread that does nothing earlier, such as a main thread that
        checks the result after the others have ended. They need no column.
        """
        rows = self.rows
        last = len(rows)
        while last and rows[last - 1].thread == rows[-1].thread:
            last -= 1
        alone = last and all(row.thread != rows[-1].thread for row in rows[:last])
        return last if alone else len(rows)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that the rows are about."""
        return tuple(dict.fromkeys(row.path for row in self.rows if row.path))

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Explanation:
        """Return the explanation that `to_json` wrote."""
        rows = tuple(
            TimelineRow(**{**row, "does": tuple(row["does"]), "held": tuple(row["held"])})
            for row in data["rows"]
        )
        for row in rows:
            _start_order(row.thread)  # a name of another form is an error here, not when shown
        lists = {name: tuple(data[name]) for name in ("replays", "switches", "notes")}
        return cls(**{**data, **lists, "rows": rows})


def _start_order(thread: str) -> tuple[int, ...]:
    return tuple(int(part) for part in thread.split(".")[1:])


def rows_of(steps: Sequence[TraceStep], stuck: bool = False) -> tuple[TimelineRow, ...]:
    """Return the rows of a run: accesses to shared variables and synchronisation.

    Rows begin when the program has several threads. What a thread does in one line without being
    stopped is one row. With `stuck`, threads wait for each other, so starts and joins of threads
    are included too.
    """
    shared = shared_sites(steps)
    begin = next((i for i, step in enumerate(steps) if begins(step)), 0)
    near = _steps_at_changes(steps, begin)
    shown = [
        step
        for i, step in enumerate(steps)
        if i >= begin
        and (
            i in near
            or (step.site >= 0 and SITES[step.site] in shared)
            or (step.site < 0 and (stuck or not step.kind.startswith("thread.")))
        )
    ]
    if not shown:  # what the threads share is changed where there are no probes
        shown = [steps[i] for i in sorted(_around_changes(steps, begin))]
    rows: list[TimelineRow] = []
    for i, step in enumerate(shown):
        if i and _is_same_line(shown[i - 1], step):
            rows[-1] = _extended(rows[-1], step)
        else:
            rows.append(_row(step))
        if step.kind == AWAITS:
            continue  # the task waits: nobody has stopped it
        changes = i + 1 < len(shown) and shown[i + 1].thread != step.thread
        if changes and any(later.thread == step.thread for later in shown[i + 1 :]):
            rows[-1] = replace(rows[-1], stopped=True)
    return _shortened(rows)


def _steps_at_changes(steps: Sequence[TraceStep], begin: int) -> set[int]:
    """Return the steps around each change of threads that happens in code without probes.

    What that code reads and writes is not known, so that nothing else would be shown.
    """
    changes = [i for i in range(begin + 1, len(steps)) if steps[i].thread != steps[i - 1].thread]
    lines = {
        step
        for i in changes
        if LINE in (steps[i - 1].kind, steps[i].kind)
        for step in (i - 1, i)
        if not steps[step].kind.startswith("thread.")
    }
    return lines | {i for i in range(begin, len(steps)) if steps[i].kind == AWAITS}


def _around_changes(steps: Sequence[TraceStep], begin: int) -> set[int]:
    changes = [i for i in range(begin + 1, len(steps)) if steps[i].thread != steps[i - 1].thread]
    around = {step for i in changes for step in (i - 1, i)}
    return {i for i in around if not steps[i].kind.startswith("thread.")}


def _is_same_line(last: TraceStep, step: TraceStep) -> bool:
    return (last.thread, last.path, last.line) == (step.thread, step.path, step.line)


def _row(step: TraceStep) -> TimelineRow:
    path = shown_path(step.path) if step.path else ""
    source = linecache.getline(step.path, step.line).strip()
    return TimelineRow(step.thread, path, step.line, source, _actions(step), step.held)


def _extended(row: TimelineRow, step: TraceStep) -> TimelineRow:
    new = tuple(action for action in _actions(step) if action not in row.does)
    held = step.held if len(step.held) >= len(row.held) else row.held
    return replace(row, does=(*row.does, *new), held=held)


def _actions(step: TraceStep) -> tuple[str, ...]:
    name = step.variable
    if step.kind == AWAITS:
        return (AWAITS,)
    if step.kind == LINE:
        return (f"in {step.function}",)
    if step.kind == "read":
        return (f"reads {name}: {step.before}" if step.before else f"reads {name}",)
    if step.kind == "write":
        if not step.after:
            return (f"writes {name}",)
        before = f"{step.before} -> " if step.before else ""
        return (f"writes {name}: {before}{step.after}",)
    if step.site >= 0 and SITES[step.site].what == GENERATOR:
        return (f"runs the generator {name}",)
    if step.site >= 0 and SITES[step.site].what == FUNCTION:
        return ()  # it tells nothing that the line does not
    if step.kind == "call":
        changed = step.before != step.after
        value = f": {step.before} -> {step.after}" if changed else ""
        return (f"calls {name}{value}",)
    return (f"{step.kind} {name}".strip(),)


def _shortened(rows: list[TimelineRow]) -> tuple[TimelineRow, ...]:
    """Keep the rows near switches and at the end of a long run, and say how many are omitted."""
    if len(rows) <= _MAX_ROWS:
        return tuple(rows)
    switches = [i for i in range(1, len(rows)) if rows[i].thread != rows[i - 1].thread]
    ends = [*switches, len(rows)]
    distances = [min(min(abs(i - end), abs(i + 1 - end)) for end in ends) for i in range(len(rows))]
    reach = max(
        (n for n in range(20) if sum(distance <= n for distance in distances) <= _MAX_ROWS),
        default=0,
    )
    shown = [i for i in range(len(rows)) if distances[i] <= reach][-_MAX_ROWS:]
    return tuple(_with_gaps(rows, shown))


def _with_gaps(rows: Sequence[TimelineRow], shown: Iterable[int]) -> Iterable[TimelineRow]:
    last = -1
    for i in shown:
        if i > last + 1:
            omitted = i - last - 1
            yield TimelineRow("", "", 0, f"... {omitted} more line{'s' * (omitted != 1)} ...")
        yield rows[i]
        last = i


# The timeline as text, with a column for each thread.

_MIN_COLUMN = 22
_MAX_COLUMN = 46
_STOPPED = "~ ~ ~ stopped ~ ~ ~"


def timeline_text(explanation: Explanation, width: int = 100) -> str:
    """Return what each thread did, in the order of the run, as columns that fit a width.

    >>> rows = (
    ...     TimelineRow("main.1", "a.py", 9, "left = self.left", ("reads self.left: 1",), (), True),
    ...     TimelineRow("main.2", "a.py", 9, "left = self.left", ("reads self.left: 1",)),
    ...     TimelineRow("main.1", "a.py", 10, "self.left = left - 1", ("writes self.left: 0",)),
    ... )
    >>> print(timeline_text(Explanation("", "AssertionError", rows, (10, 10), ""), 62))
    main.1 (a.py)                   main.2
    ------------------------------  ------------------------------
      9 left = self.left
          reads self.left: 1
    ~ ~ ~ stopped ~ ~ ~
                                      9 left = self.left
                                          reads self.left: 1
     10 self.left = left - 1
          writes self.left: 0
    AssertionError
    """
    threads = explanation.threads
    if not threads:
        return "(no shared variable and no synchronisation was seen)"
    room = (width - 2 * (len(threads) - 1)) // len(threads)
    room = max(_MIN_COLUMN, min(_MAX_COLUMN, room))
    total_width = len(threads) * (room + 2) - 2
    only = explanation.paths[0] if len(explanation.paths) == 1 else ""
    headings = [f"{threads[0]} ({only})" if only else threads[0], *threads[1:]]
    lines = [_columns(headings, room), _columns(["-" * room] * len(threads), room)]
    for row in explanation.rows[: explanation.interleaved]:
        if not row.thread:
            lines.append(row.source.center(total_width).rstrip())
            continue
        indent = " " * threads.index(row.thread) * (room + 2)
        lines += [indent + line for line in cell(row, room, only)]
    lines += _closing_lines(explanation, total_width, only)
    return "\n".join(lines + explanation.message.splitlines())


def cell(row: TimelineRow, room: int, only: str = "") -> list[str]:
    """Return the lines of a row in its thread's column; the file `only` need not be named."""
    location = f"{row.line:>3}" if row.path == only else f"{row.path}:{row.line}"
    lines = [f"{location} {row.source}" if row.line else row.source]
    lines += [f"      {action}" for action in row.does]
    if row.held:
        lines.append(f"      holds {', '.join(row.held)}")
    if row.stopped:
        lines.append(_STOPPED)
    return [line if len(line) <= room else line[: room - 1] + "…" for line in lines]


def _closing_lines(explanation: Explanation, total_width: int, only: str) -> list[str]:
    rows = explanation.rows[explanation.interleaved :]
    if not rows:
        return []
    lines = [f"then {rows[0].thread}:"]
    for row in rows:
        lines += cell(row, total_width, only)
    return lines


def _columns(cells: list[str], room: int) -> str:
    return "  ".join(cell.ljust(room) for cell in cells).rstrip()


# Shared variables of a trace.


def shared_sites(steps: Iterable[TraceStep]) -> frozenset[Site]:
    """Return the accesses to variables that two threads touch and one of them changes.

    What the main thread does before it starts others does not count: it builds the objects then.
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
    """Return whether the main thread is no longer the only one."""
    return step.thread != "main" or step.kind == "thread.start"


def variable_of(site: Site) -> tuple[str, str]:
    """Return the key of a variable; attributes of the same name on two objects share one key."""
    return site.what, site.name or site.variable
