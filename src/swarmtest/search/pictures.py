"""Pictures of explored spaces as standalone SVG files, or as parts of a page."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from swarmtest.search.export import CollapsedSpace
from swarmtest.search.views import format_number, shoulders_of
from swarmtest.ui.svg import element, line, picture, text

_WIDTH, _HEIGHT = 820.0, 340.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 18.0, 52.0, 52.0
_COLOURS = ("#1f5fa8", "#c2451e", "#2c7d4f", "#7a4aa0", "#8a6d00", "#3a3a3a")
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 4", "1 2")
_LEGEND_ROW = 18.0
_ROOM = 6.5
"""The width of a letter."""

STYLE = (
    "text{font-family:sans-serif;font-size:12px;fill:#222}"
    ".title{font-size:14px;font-weight:bold}.tick{font-size:11px;fill:#444}"
    ".grid{stroke:#ddd}.axis{stroke:#444}.block{stroke:#999;stroke-dasharray:2 3}"
    ".band{fill:#eef2f8}.shoulder{fill:#f6d9a8}"
)


def collapsed_svg(space: CollapsedSpace, title: str, alone: bool = True) -> str:
    """Draw the paper's figure 4: all points along one line, by the most important dimension first.

    With `alone`, the picture has its own colours, for a file; else it uses those of its page.
    """
    vertical = _VerticalScale([value for value in space.values if math.isfinite(value)])
    horizontal = _HorizontalScale(len(space.values))
    parts = [_bands(space, horizontal), _frame(vertical, space.measure)]
    parts += _labels(space, horizontal)
    path = "".join(
        f"{'M' if number == 0 else 'L'}{horizontal.at(number + 0.5):.1f},{vertical.at(value):.1f}"
        for number, value in enumerate(space.values)
        if math.isfinite(value)
    )
    parts.append(_CurveStyle(0).drawn("path", d=path, fill="none", stroke_width=1))
    words = f"{len(space.values):,} points, ordered by {', then '.join(space.dimensions)}"
    parts.append(text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 10, words, anchor="middle"))
    return _page(title, parts, alone=alone)


def growth_svg(
    curves: Sequence[tuple[str, Sequence[int]]],
    title: str,
    found: str,
    shoulders: int = 0,
    alone: bool = True,
) -> str:
    """Draw how many targets some points reached, run by run (the paper's figures 2, 3 and 5).

    On the first curve, stretches of `shoulders` runs without anything new are marked. `alone` is
    as for `collapsed_svg`.
    """
    longest = max(len(counts) for _, counts in curves)
    vertical = _VerticalScale([0.0, *(float(counts[-1]) for _, counts in curves)])
    horizontal = _HorizontalScale(longest)
    parts = [_shoulders(curves[0][1], shoulders, horizontal)] if shoulders else []
    parts += [_frame(vertical, found), _run_axis(horizontal, longest)]
    for number, (name, counts) in enumerate(curves):
        path = f"M{horizontal.at(0):.1f},{vertical.at(0):.1f}" + "".join(
            f"V{vertical.at(count):.1f}H{horizontal.at(number_of_run + 1):.1f}"
            for number_of_run, count in enumerate(counts)
        )
        look = _CurveStyle(number % len(_COLOURS))
        parts.append(look.drawn("path", d=path, fill="none", stroke_width=1.6))
        y = _HEIGHT + 6 + _LEGEND_ROW * number
        ends = {"x1": _LEFT, "x2": _LEFT + 34, "y1": y - 4, "y2": y - 4}
        parts.append(look.drawn("line", stroke_width=1.6, **ends))
        parts.append(text(_LEFT + 42, y, name, "tick"))
    return _page(title, parts, _LEGEND_ROW * len(curves), alone)


@dataclass(frozen=True)
class _CurveStyle:
    """The colour and dash that distinguish a curve; a page's own style takes precedence."""

    style: int

    def drawn(self, tag: str, **attributes: object) -> str:
        colour, dash = _COLOURS[self.style], _DASHES[self.style] or None
        look = {"stroke": colour, "stroke_dasharray": dash, "cls": f"s{self.style}"}
        return element(tag, title="", **look, **attributes)


class _VerticalScale:
    """Maps values to heights, with room above, and chooses round tick marks."""

    def __init__(self, values: Sequence[float]) -> None:
        low, high = min(values, default=0.0), max(values, default=1.0)
        self.low = 0.0 if 0 <= low < high / 2 else low
        self.high = high if high > self.low else self.low + 1

    def at(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP) * 0.94

    def ticks(self) -> list[float]:
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / 4))
        step *= next(f for f in (1, 2, 5, 10) if (self.high - self.low) / (step * f) <= 6)
        first = math.ceil(self.low / step)
        return [k * step for k in range(first, math.floor(self.high / step) + 1)]


class _HorizontalScale:
    """Maps positions in a row to positions on the page."""

    def __init__(self, count: int) -> None:
        self._step = (_WIDTH - _LEFT - _RIGHT) / max(count, 1)

    def at(self, place: float) -> float:
        return _LEFT + place * self._step


def _frame(vertical: _VerticalScale, name: str) -> str:
    bottom = _HEIGHT - _BOTTOM
    parts = []
    for tick in vertical.ticks():
        parts.append(line(_LEFT, vertical.at(tick), _WIDTH - _RIGHT, vertical.at(tick), "grid"))
        parts.append(text(_LEFT - 6, vertical.at(tick) + 4, format_number(tick), "tick", "end"))
    parts.append(line(_LEFT, bottom, _WIDTH - _RIGHT, bottom, "axis"))
    middle = (_TOP + bottom) / 2
    parts.append(text(14, middle, name, "", "middle", turn=f"rotate(-90 14 {middle:.0f})"))
    return element("g", *parts)


def _run_axis(horizontal: _HorizontalScale, longest: int) -> str:
    bottom, parts = _HEIGHT - _BOTTOM, []
    step = 10 ** max(0, math.floor(math.log10(max(longest, 1) / 3)))
    step *= next(f for f in (1, 2, 5, 10) if longest / (step * f) <= 10)
    for tick in range(0, longest + 1, step):
        parts.append(line(horizontal.at(tick), bottom, horizontal.at(tick), bottom + 4, "axis"))
        parts.append(text(horizontal.at(tick), bottom + 17, f"{tick:,}", "tick", "middle"))
    parts.append(text((_LEFT + _WIDTH - _RIGHT) / 2, bottom + 38, "runs", anchor="middle"))
    return element("g", *parts)


def _column(horizontal: _HorizontalScale, start: int, end: int, cls: str, **attributes: str) -> str:
    """Draw a rectangle over the whole height, from one position to another."""
    return element(
        "rect",
        x=horizontal.at(start),
        y=_TOP,
        width=horizontal.at(end) - horizontal.at(start),
        height=_HEIGHT - _BOTTOM - _TOP,
        cls=cls,
        **attributes,
    )


def _bands(space: CollapsedSpace, horizontal: _HorizontalScale) -> str:
    """Draw a darker background for every other block of the first dimension."""
    starts = [start_of_block for start_of_block, _ in space.blocks()] + [len(space.values)]
    bands = [
        _column(horizontal, start, end, "band")
        for start, end in list(itertools.pairwise(starts))[::2]
    ]
    return element("g", *bands)


def _labels(space: CollapsedSpace, horizontal: _HorizontalScale) -> list[str]:
    """Draw the values of the first two dimensions, as far as there is room."""
    parts = []
    for depth, y in ((1, _TOP - 6), (2, _HEIGHT - _BOTTOM + 15)):
        if depth > len(space.dimensions):
            continue
        blocks = space.blocks(depth)
        ends = [number for number, _ in blocks[1:]] + [len(space.values)]
        taken = 0.0
        for (start, label), end in zip(blocks, ends, strict=True):
            words = _word(label[-1])
            if depth == 1:
                words = f"{space.dimensions[0]} = {words}"
            room = horizontal.at(end) - horizontal.at(start)
            if depth == 2:
                parts.append(
                    line(horizontal.at(start), _TOP, horizontal.at(start), y - 11, "block")
                )
            if len(words) * _ROOM > room:
                words = _word(label[-1])
            middle, half = horizontal.at((start + end) / 2), len(words) * _ROOM / 2
            if middle - half > taken:
                parts.append(text(middle, y, words, "tick", "middle"))
                taken = middle + half + _ROOM
    return parts


def _word(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _shoulders(counts: Sequence[int], least: int, horizontal: _HorizontalScale) -> str:
    marks = [
        _column(horizontal, start, end, "shoulder", title=f"a shoulder of {end - start} runs")
        for start, end in shoulders_of(counts, least)
    ]
    return element("g", *marks)


def _page(title: str, parts: Sequence[str], more: float = 0.0, alone: bool = True) -> str:
    height = _HEIGHT + more
    if not alone:
        return picture(_WIDTH, height, title, *parts)
    back = element("rect", width=_WIDTH, height=height, fill="#fff")
    head = text(_LEFT, 22, title, "title")
    return element(
        "svg",
        element("style", STYLE),
        back,
        head,
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH:.0f} {height:.0f}",
        width=_WIDTH,
        height=height,
        role="img",
        aria_label=title,
    )
