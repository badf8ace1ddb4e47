"""Drawing figures with matplotlib.

matplotlib is optional, so this module is imported only when something is drawn.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, NullFormatter, PercentFormatter

from swarmtest.analysis.role_cells import FIXED, INSUFFICIENT, IRRELEVANT, SUPPRESSOR, TRIGGER
from swarmtest.core.formatting import format_percent
from swarmtest.ui.report.figures import DiscoveryPlot, HeatGroup, HeatMap, IntervalPlot, RoleShares
from swarmtest.ui.terminal.text import elided, printable

COLUMN = 3.33
"""The width of a column of the usual two-column page, in inches."""
_BLUE, _VERMILLION, _GREY = "#0072B2", "#D55E00", "#666666"
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), ":", "-.", (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "x")
_MAX_LABEL_LENGTH = 24
_CELL = 0.115
"""The size of a configuration's square, in inches."""
_LOOKS = {
    TRIGGER: ("^", _BLUE, True),
    SUPPRESSOR: ("v", _VERMILLION, True),
    f"{TRIGGER} before correction": ("^", _BLUE, False),
    f"{SUPPRESSOR} before correction": ("v", _VERMILLION, False),
    IRRELEVANT: ("o", _GREY, False),
    INSUFFICIENT: ("D", _GREY, False),
}
"""Marker, colour, and whether it is filled."""


@singledispatch
def draw(figure: object) -> Drawing:
    """Draw a figure, one column wide."""
    raise TypeError(f"no drawing for {type(figure).__name__}")


def _axes(height: float, width: float = COLUMN) -> tuple[Drawing, Axes]:
    drawing = Drawing(figsize=(width, height), layout="constrained")
    return drawing, drawing.add_subplot()


def _label(text: str) -> str:
    return elided(printable(text), _MAX_LABEL_LENGTH)


@draw.register
def _intervals(plot: IntervalPlot) -> Drawing:
    drawing, axes = _axes(0.55 + 0.16 * len(plot.roles))
    for row, role in enumerate(plot.roles):
        if role.role == FIXED:
            axes.text(0.5, row, "no variation", ha="center", va="center", color=_GREY, size=7)
            continue
        marker, colour, filled = _LOOKS[plot.mark(role)]
        dashes = ":" if role.role == INSUFFICIENT else "-"
        axes.plot([role.low, role.high], [row, row], color=colour, lw=1, ls=dashes)
        axes.plot([role.low, role.high], [row, row], "|", color=colour, ms=4, mew=0.9)
        axes.plot(
            role.share,
            row,
            marker,
            ms=4.2,
            mew=0.9,
            mec=colour,
            mfc=colour if filled else "white",
            zorder=3,
        )
        ends = [row - 0.5, row + 0.5]
        axes.plot([role.base, role.base], ends, color="black", lw=0.7, ls=(0, (3, 2)), zorder=1)
    _name_rows(axes, [role.feature for role in plot.roles])
    axes.set_xlim(-0.02, 1.02)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel(f"tests with the feature, of {plot.hits} that show it")
    return drawing


def _name_rows(axes: Axes, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), [_label(name) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


@draw.register
def _shares(shares: RoleShares) -> Drawing:
    drawing, axes = _axes(0.55 + 0.16 * len(shares.shares))
    for row, share in enumerate(shares.shares):
        axes.barh(row, share.trigger, 0.55, color=_BLUE)
        axes.barh(
            row, -share.suppressor, 0.55, facecolor="white", edgecolor=_VERMILLION, linewidth=0.9
        )
    axes.axvline(0, color="black", lw=0.6)
    _name_rows(axes, [share.feature for share in shares.shares])
    reach = max([0.05, *(max(s.trigger, s.suppressor) for s in shares.shares)]) * 1.05
    axes.set_xlim(-reach, reach)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(lambda value, _: format_percent(abs(value), 1))
    axes.set_xlabel(f"suppressor  |  trigger, of {shares.targets:,} targets")
    return drawing


@draw.register
def _curves(curves: DiscoveryPlot) -> Drawing:
    styles = {name: number % len(_COLOURS) for number, name in enumerate(curves.strategies)}
    drawing, axes = _axes(2.1 + 0.13 * len(styles))
    named: set[str] = set()
    for curve in curves.curves:
        style = styles[curve.strategy]
        axes.step(
            [curves.start, *(max(effort, curves.start) for effort in curve.effort)],
            [0, *curve.found],
            where="post",
            color=_COLOURS[style],
            ls=_DASHES[style],
            lw=1.0,
            marker=_MARKERS[style],
            markevery=0.2,
            ms=3,
            mfc="white",
            mew=0.8,
            label=None if curve.strategy in named else _label(curve.strategy),
        )
        named.add(curve.strategy)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_xlabel("tests" if curves.unit == "tests" else "CPU time of tests (s)")
    axes.set_ylabel(f"distinct {curves.found}")
    axes.legend(frameon=False, loc="best", handlelength=3.2)
    return drawing


@draw.register
def _heat_map(heat: HeatMap) -> Drawing:
    rows = sum(len(group.rows) + 1 for group in heat.groups)
    # The size is that of the squares alone; saving adds the space that the labels around them need.
    drawing = Drawing(figsize=(_CELL * len(heat.features), _CELL * rows))
    axes = drawing.add_axes((0, 0, 1, 1))
    labels: list[str] = []
    for group in heat.groups:
        _draw_group(axes, group, labels)
    axes.set_xlim(-0.5, len(heat.features) - 0.5)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_yticks(range(rows), labels)
    axes.set_xticks(
        range(len(heat.features)), [_label(n) for n in heat.features], rotation=60, ha="left"
    )
    axes.tick_params(length=0, labelsize=6, top=False, labeltop=True, labelbottom=False)
    axes.tick_params(axis="x", labelrotation=60, pad=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return drawing


def _draw_group(axes: Axes, group: HeatGroup, labels: list[str]) -> None:
    first_row = len(labels)
    labels.append(f"{_label(group.label)}: {group.tests:,} tests")
    axes.axhline(first_row - 0.5, color=_GREY, lw=0.4)
    squares = [
        Rectangle((column - 0.4, first_row + 0.4 - 0.8 * share), 0.8, 0.8 * share, color=_GREY)
        for column, share in enumerate(group.enabled)
    ]
    for row in group.rows:
        squares += [_square(i, len(labels), weight) for i, weight in enumerate(row.weights)]
        labels.append(row.label + (f" ×{row.tests:,}" if row.tests > 1 else ""))
    axes.add_collection(PatchCollection(squares, match_original=True))


def _square(x: float, y: float, weight: float) -> Rectangle:
    """Return a square that is larger and darker for a larger weight; a dot for weight 0."""
    side = 0.84 * max(weight, 0.05) ** 0.5 if weight else 0.1
    colour = str(0.75 - 0.75 * weight) if weight else "0.7"
    return Rectangle((x - side / 2, y - side / 2), side, side, color=colour, lw=0)
