"""Configurations as SVG: squares that grow and darken with the weight."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from swarmtest.report.figures import HeatGroup, HeatMap, HeatRow
from swarmtest.report.printable import elided
from swarmtest.report.svg import element, line, picture, text

_WIDTH = 1050.0
_CELL = 18.0
_LEFT = 108.0
_LETTERS = 20
_LETTER = 6.3
_HEAD = 22.0
_BARS = 20.0
_LEVELS = 5


def heat_map_svg(heat: HeatMap) -> str:
    """A block per group: its name, a bar per feature, and a row per configuration."""
    longest = max((min(len(name), _LETTERS) for name in heat.features), default=0)
    top = longest * _LETTER + 20
    block = _LEFT + _CELL * len(heat.features) + longest * _LETTER * 0.5 + 12
    columns = max(min(int(_WIDTH // block), len(heat.groups)), 1)
    heights = [top] * columns
    parts: list[list[str]] = [[_column_names(heat, top)] for _ in range(columns)]
    for group in heat.groups:
        column = heights.index(min(heights))
        parts[column].append(_block(heat, group, heights[column]))
        heights[column] += _HEAD + _BARS + 4 + _CELL * len(group.rows) + 8
    placed = [
        element("g", *inside, transform=f"translate({block * number:.0f} 0)")
        for number, inside in enumerate(parts)
    ]
    return picture(block * columns, max(heights), heat.title, *placed)


def _block(heat: HeatMap, group: HeatGroup, y: float) -> str:
    parts = [text(4, y + 15, f"{group.label}: {group.tests:,} tests", "group")]
    parts.append(_bars(heat, group, y + _HEAD))
    y += _HEAD + _BARS + 4
    parts += [_row(heat, row, y + _CELL * number) for number, row in enumerate(group.rows)]
    return element("g", *parts)


def _column_names(heat: HeatMap, top: float) -> str:
    return element("g", *(_column_name(name, i, top) for i, name in enumerate(heat.features)))


def _column_name(name: str, place: int, top: float) -> str:
    x = _LEFT + _CELL * (place + 0.5) + 3
    turn = f"rotate(-60 {x:.1f} {top - 4:.1f})"
    words = text(x, top - 4, elided(name, _LETTERS), "name", turn=turn)
    return element("g", words, title=name)


def _bars(heat: HeatMap, group: HeatGroup, y: float) -> str:
    parts = [text(_LEFT - 6, y + _BARS - 3, "enabled in", "tick", "end")]
    parts.append(line(_LEFT, y + _BARS, _LEFT + _CELL * len(heat.features), y + _BARS, "axis"))
    for i, (name, share) in enumerate(zip(heat.features, group.enabled, strict=True)):
        height = (_BARS - 2) * share
        x = _LEFT + _CELL * i + 3
        bar = element(
            "rect", x=x, y=y + _BARS - height, width=_CELL - 6, height=height, cls="share"
        )
        hover = element("rect", x=x - 3, y=y, width=_CELL, height=_BARS, cls="row")
        words = f"{name}: enabled in {share:.1%} of {group.tests:,} tests ({group.label})"
        parts.append(element("g", bar, hover, title=words))
    return element("g", *parts)


def _row(heat: HeatMap, row: HeatRow, y: float) -> str:
    right = _LEFT + _CELL * len(heat.features)
    parts = [element("rect", x=0, y=y, width=right, height=_CELL, cls="row")]
    times = f" ×{row.tests:,}" if row.tests > 1 else ""
    parts.append(text(_LEFT - 6, y + 13, row.label + times, "tick", "end"))
    parts += [
        element(
            "path", d="".join(squares), cls="cell", opacity=f"{0.3 + 0.7 * level / _LEVELS:.2f}"
        )
        for level, squares in sorted(_squares(row.weights, y).items())
    ]
    dots = "".join(
        f"M{_LEFT + _CELL * (i + 0.5) - 1:.0f},{y + _CELL / 2 - 1:.0f}h2v2h-2z"
        for i, weight in enumerate(row.weights)
        if not weight
    )
    if dots:
        parts.append(element("path", d=dots, cls="off"))
    return element("g", *parts, title=f"{row.label}: {_words(heat.features, row.weights)}")


def _squares(weights: Sequence[float], y: float) -> dict[int, list[str]]:
    """By shade: the squares of a row. One path for each shade keeps the page small."""
    found: dict[int, list[str]] = defaultdict(list)
    for i, weight in enumerate(weights):
        if weight:
            side = (_CELL - 3) * max(weight, 0.06) ** 0.5
            x, top = _LEFT + _CELL * (i + 0.5) - side / 2, y + (_CELL - side) / 2
            level = min(_LEVELS, int(weight * _LEVELS + 0.999))
            found[level].append(f"M{x:.1f},{top:.1f}h{side:.1f}v{side:.1f}h-{side:.1f}z")
    return found


def _words(features: Sequence[str], weights: Sequence[float]) -> str:
    on = [
        name if weight == 1 else f"{name}={weight:.2g}"
        for name, weight in zip(features, weights, strict=True)
        if weight
    ]
    return " ".join(on)
