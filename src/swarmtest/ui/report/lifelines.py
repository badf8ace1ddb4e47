"""The lives of faults over versions or campaigns: when each was seen, and when it was fixed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from swarmtest.store.fault_lives import FIXED, KNOWN, OPEN, PASSED, FaultLife
from swarmtest.store.records import FaultEvent
from swarmtest.ui.report.figures import csv_text
from swarmtest.ui.svg import element, line, mark, picture, text
from swarmtest.ui.terminal.fault_lives import date_text
from swarmtest.ui.terminal.text import elided

MOST_LIVES = 25
_MOST_COLUMNS = 40
"""Of more versions or campaigns, the latest are drawn."""


@dataclass(frozen=True)
class DrawnLife:
    """A fault, its message, and what happened to it."""

    fault: str
    message: str
    state: str
    events: tuple[tuple[int, str], ...]
    """The column and the kind of each event, in the order of time."""


@dataclass(frozen=True)
class Lifelines:
    """Faults by versions, or by campaigns if the versions are not known."""

    name: str
    title: str
    columns: tuple[str, ...]
    lives: tuple[DrawnLife, ...]

    @property
    def caption(self) -> str:
        """What the marks mean."""
        return (
            "In the order of time: ● seen; ■ its test passed, or it was marked as fixed; ◇ marked "
            "as known or open. A line as long as the fault is there, dotted after it was fixed."
        )

    def to_csv(self) -> str:
        """Return a row per event."""
        rows = [
            (life.fault, life.message, self.columns[column], event)
            for life in self.lives
            for column, event in life.events
        ]
        return csv_text(("fault", "signature", "version", "event"), rows)


def lifelines(lives: Iterable[tuple[str, FaultLife]]) -> Lifelines | None:
    """Return the lives of faults, each with its message; None if all of it happened at once."""
    drawn = [(message, life) for message, life in lives if life.events][:MOST_LIVES]
    events = sorted((event for _, life in drawn for event in life.events), key=lambda e: e.time)
    by_version = len({event.version for event in events if event.version}) > 1
    columns = list(dict.fromkeys(_column(event, by_version) for event in events))
    if len(columns) < 2:
        return None
    shown = columns[-_MOST_COLUMNS:]
    position = {column: number for number, column in enumerate(shown)}
    return Lifelines(
        "lifelines",
        f"Faults over {'versions' if by_version else 'campaigns'}",
        tuple(shown),
        tuple(
            DrawnLife(
                life.fault,
                message,
                life.state,
                tuple(
                    (position[column], event.event)
                    for event in life.events
                    if (column := _column(event, by_version)) in position
                ),
            )
            for message, life in drawn
        ),
    )


def _column(event: FaultEvent, by_version: bool) -> str:
    if by_version and event.version:
        return event.version
    return f"campaign {event.campaign}" if event.campaign else date_text(event.time)


_WIDTH = 1000.0
_ROW, _FOOT = 22.0, 92.0
_LETTER = 6.4
_MOST_LETTERS, _PHONE_LETTERS = 60, 20
_LABEL_LETTERS = 14
_LABEL_STEP = 16.0


def lifelines_svg(plot: Lifelines, width: float = _WIDTH) -> str:
    """Draw a row per fault, with the versions below."""
    letters = _MOST_LETTERS if width >= _WIDTH else _PHONE_LETTERS
    left = max(min(len(life.message), letters) for life in plot.lives) * _LETTER + 20
    step = (width - left - 20) / max(len(plot.columns) - 1, 1)
    xs = [left + step * number for number in range(len(plot.columns))]
    bottom = _ROW * len(plot.lives) + 4
    every = max(int(_LABEL_STEP / step + 0.999), 1)
    parts = [line(x, 0, x, bottom, "grid") for x in xs[::every]]
    for number, life in enumerate(plot.lives):
        parts.append(_life(life, plot, xs, _ROW * (number + 0.5) + 2, letters, width))
    for x, column in list(zip(xs, plot.columns, strict=True))[::every]:
        label, y = elided(column, _LABEL_LETTERS), bottom + 8
        parts.append(text(x + 4, y, label, "tick", "end", turn=f"rotate(-60 {x + 4:.1f} {y:.1f})"))
    return picture(width, bottom + _FOOT, plot.title, *parts)


def _life(
    life: DrawnLife, plot: Lifelines, xs: list[float], y: float, letters: int, width: float
) -> str:
    parts = [
        element("rect", x=0, y=y - _ROW / 2, width=width, height=_ROW, cls="row"),
        text(4, y + 4, elided(life.message, letters), "tick"),
    ]
    is_fixed, last = False, None
    for column, event in life.events:
        if last is not None and xs[column] > last:
            cls = "whisker suppressor dashed" if is_fixed else "whisker suppressor"
            parts.append(line(last, y, xs[column], y, cls))
        is_fixed, last = event in (PASSED, FIXED), xs[column]
    if last is not None and not is_fixed and life.state != FIXED:
        parts.append(line(last, y, xs[-1] + 8, y, "whisker suppressor"))
    marks = dict(life.events)
    parts += [_event(event, xs[column], y) for column, event in marks.items()]
    what = "; ".join(f"{event} in {plot.columns[column]}" for column, event in marks.items())
    return element("g", *parts, title=f"{life.message}: {life.state}; {what}")


def _event(event: str, x: float, y: float) -> str:
    if event in (PASSED, FIXED):
        return mark("square", x, y, "mark trigger", 4.6)
    if event in (KNOWN, OPEN):
        return mark("diamond", x, y, "mark", 4.6)
    return mark("circle", x, y, "mark suppressor", 4.2)
