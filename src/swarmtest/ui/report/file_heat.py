"""A file at a glance: how many tests reach each line, and which features make them do so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from swarmtest.core.formatting import plural
from swarmtest.roles.views import RoleGroups
from swarmtest.ui.report.coverage import CoverageSection, SourceListing
from swarmtest.ui.report.figures import csv_text
from swarmtest.ui.svg import element, line, picture, text
from swarmtest.ui.terminal.text import elided

_MOST_FEATURES = 16
_FEWEST_LINES = 8
"""A file with fewer lines to reach is read faster than drawn."""
NEVER = -1


@dataclass(frozen=True)
class FileHeat:
    """A file from its first line to its last: hits, and the roles of features."""

    name: str
    title: str
    numbers: tuple[int, ...]
    """The lines that can be reached, in their order."""
    shares: tuple[float, ...]
    """The share of tests that reached each line; `NEVER` if none did."""
    features: tuple[str, ...]
    """The features with a role for some line, those with most lines first."""
    roles: tuple[tuple[int, ...], ...]
    """For each feature and line: 1 for a trigger, -1 for a suppressor, 0 for neither."""

    @property
    def caption(self) -> str:
        """How to read the rows."""
        return (
            "From the first line to the last: the darker, the more tests reach the line; crossed "
            "out: no test does. Below, for each feature: high and blue where it is a trigger of "
            "the line, low and orange where it is a suppressor."
        )

    def to_csv(self) -> str:
        """Return a row per line."""
        columns = zip(*self.roles, strict=True) if self.roles else [()] * len(self.numbers)
        rows = [
            (number, max(share, 0.0), *signs)
            for number, share, signs in zip(self.numbers, self.shares, columns, strict=True)
        ]
        return csv_text(("line", "share", *self.features), rows)


def file_heat(
    listing: SourceListing, groups: RoleGroups, features: Sequence[str]
) -> FileHeat | None:
    """Return a file at a glance; None if it has too few lines to reach."""
    lines = [each for each in listing.lines if each.state in ("hit", "missed")]
    if len(lines) < _FEWEST_LINES:
        return None
    signs: dict[int, dict[int, int]] = {}
    for column, each in enumerate(lines):
        if each.group is None:
            continue
        for feature, sign, *_ in groups.entries[each.group][1]:
            signs.setdefault(feature, {})[column] = sign
    by_lines = sorted(signs, key=lambda feature: (-len(signs[feature]), features[feature]))
    chosen = by_lines[:_MOST_FEATURES]
    return FileHeat(
        f"heat-{listing.id}",
        f"{listing.path}: hits and roles",
        tuple(each.number for each in lines),
        tuple(each.share if each.state == "hit" else NEVER for each in lines),
        tuple(features[feature] for feature in chosen),
        tuple(
            tuple(signs[feature].get(column, 0) for column in range(len(lines)))
            for feature in chosen
        ),
    )


def file_heats(coverage: CoverageSection, features: Sequence[str]) -> dict[str, FileHeat]:
    """Return the files at a glance, by the ids of their listings."""
    heats = {each.id: file_heat(each, coverage.groups, features) for each in coverage.listings}
    return {id: heat for id, heat in heats.items() if heat is not None}


# The drawing.

_WIDTH = 1000.0
_TALL, _ROW, _GAP = 26.0, 18.0, 4.0
_LETTER = 7.4
_MOST_LETTERS, _PHONE_LETTERS = 22, 11
_SHADES = 5
_TICKS = 8


def file_heat_svg(heat: FileHeat, width: float = _WIDTH) -> str:
    """Draw a row with hits and a row per feature; neighbouring equal lines are one shape."""
    letters = _MOST_LETTERS if width >= _WIDTH else _PHONE_LETTERS
    longest = max([len("tests"), *(min(len(name), letters) for name in heat.features)])
    left = longest * _LETTER + 10
    step = (width - left - 4) / len(heat.numbers)
    parts = [_hits(heat, left, step)]
    for position, (feature, signs) in enumerate(zip(heat.features, heat.roles, strict=True)):
        y = _TALL + _GAP + _ROW * position
        parts.append(_feature(elided(feature, letters), feature, signs, left, step, y, width))
    bottom = _TALL + _GAP + _ROW * len(heat.features)
    parts.append(line(left, bottom, left + step * len(heat.numbers), bottom, "axis"))
    every = max(len(heat.numbers) // (_TICKS if width >= _WIDTH else _TICKS // 2), 1)
    parts += [
        text(left + step * column, bottom + 14, str(number), "tick")
        for column, number in enumerate(heat.numbers)
        if column % every == 0 and step * (len(heat.numbers) - column) > 24
    ]
    return picture(width, bottom + 20, heat.title, *parts)


def _hits(heat: FileHeat, left: float, step: float) -> str:
    shades = [NEVER if share < 0 else int(share * _SHADES + 0.999) for share in heat.shares]
    boxes: dict[int, list[str]] = {}
    for shade, columns in _runs(shades):
        x, end = left + step * columns.start, left + step * columns.stop
        box = f"M{x:.1f},0H{end:.1f}V{_TALL:.0f}H{x:.1f}z"
        if shade == NEVER:
            box = f"M{x:.1f},{_TALL:.0f}L{end:.1f},0M{x:.1f},0L{end:.1f},{_TALL:.0f}"
        boxes.setdefault(shade, []).append(box)
    parts = [
        element("path", d="".join(each), cls="whisker suppressor")
        if shade == NEVER
        else element(
            "path",
            d="".join(each),
            cls="cell",
            opacity=f"{0.12 + 0.88 * shade / _SHADES:.2f}",
        )
        for shade, each in sorted(boxes.items())
    ]
    never = shades.count(NEVER)
    words = f"{plural(len(shades) - never, 'line')} reached by tests, {never:,} by none"
    name = text(left - 8, _TALL / 2 + 4, "tests", "name", "end")
    return element("g", name, *parts, title=words)


def _feature(
    name: str,
    feature: str,
    signs: tuple[int, ...],
    left: float,
    step: float,
    y: float,
    width: float,
) -> str:
    middle, half = y + _ROW / 2, _ROW / 2 - 2
    boxes: dict[int, list[str]] = {}
    for sign, columns in _runs(signs):
        if sign:
            x, end = left + step * columns.start, left + step * columns.stop
            top = middle - half if sign > 0 else middle
            boxes.setdefault(sign, []).append(f"M{x:.1f},{top:.0f}H{end:.1f}v{half:.0f}H{x:.1f}z")
    shapes = [
        element(
            "path",
            d="".join(each),
            cls="block-trigger" if sign > 0 else "block-suppressor",
        )
        for sign, each in boxes.items()
    ]
    triggers, suppressors = signs.count(1), signs.count(-1)
    words = f"{feature}: trigger of {plural(triggers, 'line')}, suppressor of {suppressors}"
    return element(
        "g",
        element("rect", x=0, y=y, width=width, height=_ROW, cls="row"),
        text(left - 8, middle + 4, name, "name", "end"),
        line(left, middle, left + step * len(signs), middle, "grid"),
        *shapes,
        title=words,
    )


def _runs(values: Iterable[int]) -> list[tuple[int, range]]:
    """Return the runs of equal values, with their positions.

    >>> _runs([5, 5, 0])
    [(5, range(0, 2)), (0, range(2, 3))]
    """
    runs, start = [], 0
    for value, equal in groupby(values):
        stop = start + len(list(equal))
        runs.append((value, range(start, stop)))
        start = stop
    return runs
