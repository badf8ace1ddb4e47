"""Pictures of explored spaces as SVG files that stand alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from swarmtest.search.export import Collapsed
from swarmtest.search.views import shoulders_of, signed
from swarmtest.ui.svg import element, line, picture, text

_WIDTH, _HEIGHT = 820.0, 340.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 18.0, 52.0, 52.0
_COLOURS = ("#1f5fa8", "#c2451e", "#2c7d4f", "#7a4aa0", "#8a6d00", "#3a3a3a")
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 4", "1 2")
_LEGEND_ROW = 18.0
_ROOM = 6.5
"""Columns that a letter takes."""

STYLE = (
    "text{font-family:sans-serif;font-size:12px;fill:#222}"
    ".title{font-size:14px;font-weight:bold}.tick{font-size:11px;fill:#444}"
    ".grid{stroke:#ddd}.axis{stroke:#444}.block{stroke:#999;stroke-dasharray:2 3}"
    ".band{fill:#eef2f8}.shoulder{fill:#f6d9a8}"
)


def collapsed_svg(space: Collapsed, title: str, alone: bool = True) -> str:
    """The figure 4 of the paper: all points along one line, the most important dimension first.

    `alone`: with colours of its own, for a file; else with those of the page around it.
    """
    up = _Up([value for value in space.values if math.isfinite(value)])
    across = _Across(len(space.values))
    parts = [_bands(space, across), _frame(up, space.measure)]
    parts += _labels(space, across)
    path = "".join(
        f"{'M' if at == 0 else 'L'}{across.at(at + 0.5):.1f},{up.at(value):.1f}"
        for at, value in enumerate(space.values)
        if math.isfinite(value)
    )
    parts.append(_Look(0).drawn("path", d=path, fill="none", stroke_width=1))
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
    """How many targets some points reached, run by run (the paper's figures 2, 3 and 5).

    `shoulders`: stretches of so many runs without anything new are marked on the first curve.
    `alone`: as for `collapsed_svg`.
    """
    longest = max(len(counts) for _, counts in curves)
    up = _Up([0.0, *(float(counts[-1]) for _, counts in curves)])
    across = _Across(longest)
    parts = [_shoulders(curves[0][1], shoulders, across)] if shoulders else []
    parts += [_frame(up, found), _run_axis(across, longest)]
    for number, (name, counts) in enumerate(curves):
        path = f"M{across.at(0):.1f},{up.at(0):.1f}" + "".join(
            f"V{up.at(count):.1f}H{across.at(at + 1):.1f}" for at, count in enumerate(counts)
        )
        look = _Look(number % len(_COLOURS))
        parts.append(look.drawn("path", d=path, fill="none", stroke_width=1.6))
        y = _HEIGHT + 6 + _LEGEND_ROW * number
        ends = {"x1": _LEFT, "x2": _LEFT + 34, "y1": y - 4, "y2": y - 4}
        parts.append(look.drawn("line", stroke_width=1.6, **ends))
        parts.append(text(_LEFT + 42, y, name, "tick"))
    return _page(title, parts, _LEGEND_ROW * len(curves), alone)


@dataclass(frozen=True)
class _Look:
    """How a curve is told from others: a colour and a dash; a page's own go before ours."""

    style: int

    def drawn(self, tag: str, **attributes: object) -> str:
        colour, dash = _COLOURS[self.style], _DASHES[self.style] or None
        look = {"stroke": colour, "stroke_dasharray": dash, "cls": f"s{self.style}"}
        return element(tag, title="", **look, **attributes)


class _Up:
    """From a value to its height, with room above and round numbers beside it."""

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


class _Across:
    """From a place in a row to its place on the page."""

    def __init__(self, count: int) -> None:
        self._step = (_WIDTH - _LEFT - _RIGHT) / max(count, 1)

    def at(self, place: float) -> float:
        return _LEFT + place * self._step


def _frame(up: _Up, name: str) -> str:
    bottom = _HEIGHT - _BOTTOM
    parts = []
    for tick in up.ticks():
        parts.append(line(_LEFT, up.at(tick), _WIDTH - _RIGHT, up.at(tick), "grid"))
        parts.append(text(_LEFT - 6, up.at(tick) + 4, signed(tick), "tick", "end"))
    parts.append(line(_LEFT, bottom, _WIDTH - _RIGHT, bottom, "axis"))
    middle = (_TOP + bottom) / 2
    parts.append(text(14, middle, name, "", "middle", turn=f"rotate(-90 14 {middle:.0f})"))
    return element("g", *parts)


def _run_axis(across: _Across, longest: int) -> str:
    bottom, parts = _HEIGHT - _BOTTOM, []
    step = 10 ** max(0, math.floor(math.log10(max(longest, 1) / 3)))
    step *= next(f for f in (1, 2, 5, 10) if longest / (step * f) <= 10)
    for tick in range(0, longest + 1, step):
        parts.append(line(across.at(tick), bottom, across.at(tick), bottom + 4, "axis"))
        parts.append(text(across.at(tick), bottom + 17, f"{tick:,}", "tick", "middle"))
    parts.append(text((_LEFT + _WIDTH - _RIGHT) / 2, bottom + 38, "runs", anchor="middle"))
    return element("g", *parts)


def _bands(space: Collapsed, across: _Across) -> str:
    """Every other block of the first dimension has a darker ground."""
    starts = [at for at, _ in space.blocks()] + [len(space.values)]
    bands = [
        element(
            "rect",
            x=across.at(start),
            y=_TOP,
            width=across.at(end) - across.at(start),
            height=_HEIGHT - _BOTTOM - _TOP,
            cls="band",
        )
        for start, end in list(itertools.pairwise(starts))[::2]
    ]
    return element("g", *bands)


def _labels(space: Collapsed, across: _Across) -> list[str]:
    """What the first two dimensions are where, as far as there is room."""
    found = []
    for depth, y in ((1, _TOP - 6), (2, _HEIGHT - _BOTTOM + 15)):
        if depth > len(space.dimensions):
            continue
        blocks = space.blocks(depth)
        ends = [at for at, _ in blocks[1:]] + [len(space.values)]
        taken = 0.0
        for (start, label), end in zip(blocks, ends, strict=True):
            words = _word(label[-1])
            if depth == 1:
                words = f"{space.dimensions[0]} = {words}"
            room = across.at(end) - across.at(start)
            if depth == 2:
                found.append(line(across.at(start), _TOP, across.at(start), y - 11, "block"))
            if len(words) * _ROOM > room:
                words = _word(label[-1])
            middle, half = across.at((start + end) / 2), len(words) * _ROOM / 2
            if middle - half > taken:
                found.append(text(middle, y, words, "tick", "middle"))
                taken = middle + half + _ROOM
    return found


def _word(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _shoulders(counts: Sequence[int], least: int, across: _Across) -> str:
    marks = [
        element(
            "rect",
            x=across.at(start),
            y=_TOP,
            width=across.at(end) - across.at(start),
            height=_HEIGHT - _BOTTOM - _TOP,
            cls="shoulder",
            title=f"a shoulder of {end - start} runs",
        )
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
