"""Figures as SVG: discovery curves, heat maps of configurations, interval plots and role shares.

The drawings use CSS classes, so their colours are those of the page around them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import groupby

from swarmtest.analysis.role_cells import FIXED, INSUFFICIENT, IRRELEVANT, SUPPRESSOR, TRIGGER
from swarmtest.core.formatting import duration, format_percent, p_value, percent_interval, plural
from swarmtest.roles.roles import FeatureRole
from swarmtest.ui.report.fault_bars import FaultBars, fault_bars_svg
from swarmtest.ui.report.figures import (
    DiscoveryPlot,
    Figure,
    HeatGroup,
    HeatMap,
    HeatRow,
    IntervalPlot,
    PlottedCurve,
    RoleShares,
)
from swarmtest.ui.report.file_heat import FileHeat, file_heat_svg
from swarmtest.ui.report.lifelines import Lifelines, lifelines_svg
from swarmtest.ui.report.strategy_plot import StrategyPlot, strategies_svg
from swarmtest.ui.svg import Scale, element, line, mark, picture, text
from swarmtest.ui.terminal.text import elided, spans

# Any figure.


_PHONE_WIDTH = 340.0
"""The width of a drawing for phones: scaled down to that, text would be too small to read."""


def figure_svg(figure: Figure, phone: bool = False) -> str:
    """Draw a figure; `phone` draws it for a narrow screen, with text of the same size."""
    width = _PHONE_WIDTH if phone else None
    if isinstance(figure, IntervalPlot):
        return intervals_svg(figure, width or _ROLE_WIDTH)
    if isinstance(figure, RoleShares):
        return shares_svg(figure, width or _SHARES_WIDTH)
    if isinstance(figure, DiscoveryPlot):
        return curves_svg(figure, width or _WIDTH)
    if isinstance(figure, HeatMap):
        return heat_map_svg(figure, width or _MAP_WIDTH)
    for kind, draw in _DRAWINGS.items():
        if isinstance(figure, kind):
            return draw(figure, width) if width else draw(figure)
    raise TypeError(f"no drawing for {type(figure).__name__}")


_DRAWINGS: dict[type, Callable[..., str]] = {
    FaultBars: fault_bars_svg,
    FileHeat: file_heat_svg,
    Lifelines: lifelines_svg,
    StrategyPlot: strategies_svg,
}

# Discovery curves: a colour, a dash pattern and a mark for each strategy.

_WIDTH, _HEIGHT = 470.0, 270.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 28.0, 10.0, 46.0
_LEGEND_ROW = 18.0
_LEGEND_LETTER_WIDTH = 6.0
_MARKS_PER_CURVE = 5
SHAPES = ("circle", "square", "up", "diamond", "down", "cross")
STYLES = len(SHAPES)


def curves_svg(curves: DiscoveryPlot, width: float = _WIDTH) -> str:
    """Draw discovery curves as staircases over a logarithmic axis, with a legend below."""
    aheads = [curve.ahead for curve in curves.curves if curve.ahead]
    ends = [*(curve.effort[-1] for curve in curves.curves), *(ahead.effort for ahead in aheads)]
    end = max([curves.start * 1.001, *ends])
    across = Scale(curves.start, end, _LEFT, width - _RIGHT, tenfolds=True)
    most_found = max((curve.found[-1] for curve in curves.curves), default=1)
    # With little data an interval can be very wide; it must not flatten the curves.
    top = max([most_found, 1, *(min(ahead.high, 1.6 * most_found) for ahead in aheads)])
    up = Scale(0, top * 1.05, _HEIGHT - _BOTTOM, _TOP)
    styles = {name: number % STYLES for number, name in enumerate(curves.strategies)}
    parts = [_axes(curves, across, up)]
    parts += [_curve(curve, curves, across, up, styles[curve.strategy]) for curve in curves.curves]
    rows = _legend(curves, styles, width)
    height = _HEIGHT + _LEGEND_ROW * len(styles)
    return picture(width, height, curves.title, *parts, *rows)


def _axes(curves: DiscoveryPlot, across: Scale, up: Scale) -> str:
    bottom = up.at(0)
    parts = []
    for tick in up.ticks():
        parts.append(line(_LEFT, up.at(tick), across.end, up.at(tick), "grid"))
        parts.append(text(_LEFT - 6, up.at(tick) + 4, f"{tick:,.0f}", "tick", "end"))
    for tick in across.ticks():
        shown = f"{tick:,.0f}" if curves.unit == "tests" else duration(tick)
        parts.append(line(across.at(tick), bottom, across.at(tick), bottom + 4, "axis"))
        parts.append(text(across.at(tick), bottom + 17, shown, "tick", "middle"))
    parts.append(line(_LEFT, bottom, across.end, bottom, "axis"))
    name = "tests" if curves.unit == "tests" else "CPU time of tests"
    parts.append(text((_LEFT + across.end) / 2, bottom + 35, name, "label", "middle"))
    middle = (up.at(0) + _TOP) / 2
    turned = f"rotate(-90 12 {middle:.0f})"
    words = f"distinct {curves.found}"
    parts.append(text(12, middle, words, "label", "middle", turn=turned))
    return element("g", *parts)


def _curve(curve: PlottedCurve, curves: DiscoveryPlot, across: Scale, up: Scale, style: int) -> str:
    points = [
        (across.at(effort), up.at(found))
        for effort, found in zip(curve.effort, curve.found, strict=True)
    ]
    path = f"M{across.start:.1f},{up.at(0):.1f}"
    path += "".join(f"H{x:.1f}V{y:.1f}" for x, y in points)
    cls = f"curve s{style}"
    marked = _marked_points(points)
    marks = [mark(SHAPES[style], *points[i], f"dot s{style}", 3.2) for i in marked]
    end = curve.effort[-1]
    effort = f"{end:,.0f} tests" if curves.unit == "tests" else duration(end)
    words = f"campaign {curve.campaign}, {curve.strategy}: {curve.found[-1]:,} in {effort}"
    ahead = [_ahead(curve, across, up, points[-1])] if curve.ahead else []
    return element("g", element("path", d=path, cls=cls), *ahead, *marks, title=words)


def _ahead(curve: PlottedCurve, across: Scale, up: Scale, start: tuple[float, float]) -> str:
    """Draw a wedge to where the curve is expected to go."""
    assert curve.ahead is not None
    ahead, x = curve.ahead, across.at(curve.ahead.effort)
    low, middle, high = (max(up.at(n), up.end) for n in (ahead.low, ahead.found, ahead.high))
    at = f"{start[0]:.1f},{start[1]:.1f}"
    wedge = f"M{at}L{x:.1f},{high:.1f}L{x:.1f},{low:.1f}z"
    words = (
        f"after {ahead.effort:,.0f} tests probably {ahead.found:,.1f} "
        f"({ahead.low:,.1f} to {ahead.high:,.1f})"
    )
    parts = [
        element("path", d=wedge, cls="wedge"),
        element("path", d=f"M{at}L{x:.1f},{middle:.1f}", cls="ahead"),
    ]
    return element("g", *parts, title=words)


def _marked_points(points: list[tuple[float, float]]) -> list[int]:
    """Return the indices of points for marks: spread over the width of the curve, and the last."""
    gap = (points[-1][0] - points[0][0]) / _MARKS_PER_CURVE
    chosen = [0]
    for i, (x, _) in enumerate(points[1:-1], 1):
        if x - points[chosen[-1]][0] >= gap:
            chosen.append(i)
    return sorted({*chosen, len(points) - 1})


def _legend(curves: DiscoveryPlot, styles: dict[str, int], width: float) -> list[str]:
    letters = int((width - _LEFT - 48) / _LEGEND_LETTER_WIDTH)
    rows = []
    for number, (strategy, style) in enumerate(styles.items()):
        y = _HEIGHT + _LEGEND_ROW * (number + 0.5) - 4
        numbers = [curve.campaign for curve in curves.curves if curve.strategy == strategy]
        which = "campaign" if len(numbers) == 1 else "campaigns"
        rows += [
            line(_LEFT, y, _LEFT + 40, y, f"curve s{style}"),
            mark(SHAPES[style], _LEFT + 20, y, f"dot s{style}", 3.2),
            text(
                _LEFT + 48,
                y + 4,
                elided(f"{elided(strategy, 40)} ({which} {spans(numbers)})", letters),
                "tick",
            ),
        ]
    return rows


# Heat maps of configurations: squares that grow and darken with the weight.

_MAP_WIDTH = 1050.0
_MAP_LEFT = 108.0
_CELL = 18.0
_MAP_NAME_LENGTH, _MAP_LETTER_WIDTH = 20, 6.3
_HEAD = 22.0
_BARS = 20.0
_SHADES = 5


def heat_map_svg(heat: HeatMap, width: float = _MAP_WIDTH) -> str:
    """Draw a block per group: its name, a bar per feature, and a row per configuration."""
    longest = max((min(len(name), _MAP_NAME_LENGTH) for name in heat.features), default=0)
    top = longest * _MAP_LETTER_WIDTH + 20
    block = _MAP_LEFT + _CELL * len(heat.features) + longest * _MAP_LETTER_WIDTH * 0.5 + 12
    columns = max(min(int(width // block), len(heat.groups)), 1)
    heights = [top] * columns
    parts: list[list[str]] = [[_column_names(heat, top)] for _ in range(columns)]
    for group in heat.groups:
        column = heights.index(min(heights))
        parts[column].append(_block(heat, group, heights[column]))
        heights[column] += _HEAD + _BARS + 4 + _CELL * len(group.rows) + 8
    blocks = [
        element("g", *contents, transform=f"translate({block * number:.0f} 0)")
        for number, contents in enumerate(parts)
    ]
    return picture(block * columns, max(heights), heat.title, *blocks)


def _block(heat: HeatMap, group: HeatGroup, y: float) -> str:
    parts = [text(4, y + 15, f"{group.label}: {plural(group.tests, 'test')}", "group")]
    parts.append(_bars(heat, group, y + _HEAD))
    y += _HEAD + _BARS + 4
    parts += [_row(heat, row, y + _CELL * number) for number, row in enumerate(group.rows)]
    return element("g", *parts)


def _column_names(heat: HeatMap, top: float) -> str:
    return element("g", *(_column_name(name, i, top) for i, name in enumerate(heat.features)))


def _column_name(name: str, column: int, top: float) -> str:
    x = _MAP_LEFT + _CELL * (column + 0.5) + 3
    turn = f"rotate(-60 {x:.1f} {top - 4:.1f})"
    words = text(x, top - 4, elided(name, _MAP_NAME_LENGTH), "name", turn=turn)
    return element("g", words, title=name)


def _bars(heat: HeatMap, group: HeatGroup, y: float) -> str:
    parts = [text(_MAP_LEFT - 6, y + _BARS - 3, "enabled in", "tick", "end")]
    parts.append(
        line(
            _MAP_LEFT,
            y + _BARS,
            _MAP_LEFT + _CELL * len(heat.features),
            y + _BARS,
            "axis",
        )
    )
    for i, (name, share) in enumerate(zip(heat.features, group.enabled, strict=True)):
        height = (_BARS - 2) * share
        x = _MAP_LEFT + _CELL * i + 3
        bar = element(
            "rect", x=x, y=y + _BARS - height, width=_CELL - 6, height=height, cls="share"
        )
        hover = element("rect", x=x - 3, y=y, width=_CELL, height=_BARS, cls="row")
        enabled = format_percent(share, 1)
        words = f"{name}: enabled in {enabled} of {plural(group.tests, 'test')} ({group.label})"
        parts.append(element("g", bar, hover, title=words))
    return element("g", *parts)


def _row(heat: HeatMap, row: HeatRow, y: float) -> str:
    right = _MAP_LEFT + _CELL * len(heat.features)
    parts = [element("rect", x=0, y=y, width=right, height=_CELL, cls="row")]
    times = f" ×{row.tests:,}" if row.tests > 1 else ""
    parts.append(text(_MAP_LEFT - 6, y + 13, row.label + times, "tick", "end"))
    parts += [
        element(
            "path", d="".join(squares), cls="cell", opacity=f"{0.3 + 0.7 * shade / _SHADES:.2f}"
        )
        for shade, squares in sorted(_squares(row.weights, y).items())
    ]
    dots = "".join(
        f"M{_MAP_LEFT + _CELL * (i + 0.5) - 1:.0f},{y + _CELL / 2 - 1:.0f}h2v2h-2z"
        for i, weight in enumerate(row.weights)
        if not weight
    )
    if dots:
        parts.append(element("path", d=dots, cls="off"))
    return element("g", *parts, title=f"{row.label}: {_words(heat.features, row.weights)}")


def _squares(weights: Sequence[float], y: float) -> dict[int, list[str]]:
    """Return the squares of a row by shade: one path per shade keeps the page small."""
    by_shade: dict[int, list[str]] = defaultdict(list)
    for i, weight in enumerate(weights):
        if weight:
            side = (_CELL - 3) * max(weight, 0.06) ** 0.5
            x, top = _MAP_LEFT + _CELL * (i + 0.5) - side / 2, y + (_CELL - side) / 2
            shade = min(_SHADES, int(weight * _SHADES + 0.999))
            by_shade[shade].append(f"M{x:.1f},{top:.1f}h{side:.1f}v{side:.1f}h-{side:.1f}z")
    return by_shade


def _words(features: Sequence[str], weights: Sequence[float]) -> str:
    on = [
        name if weight == 1 else f"{name}={weight:.2g}"
        for name, weight in zip(features, weights, strict=True)
        if weight
    ]
    return " ".join(on)


# Roles of features: interval plots, and bars of role shares.

_ROW = 22.0
_ROLE_TOP = 8.0
_ROLE_WIDTH, _SHARES_WIDTH = 600.0, 500.0
_BAR = 11.0
_ROLE_NAME_LENGTH, _PHONE_NAME_LENGTH, _ROLE_LETTER_WIDTH = 23, 14, 7.4
_VERDICT_LETTER_WIDTH = 6.2
_ROLE_MARKS = {
    TRIGGER: ("up", "trigger"),
    SUPPRESSOR: ("down", "suppressor"),
    f"{TRIGGER} before correction": ("up", "trigger hollow"),
    f"{SUPPRESSOR} before correction": ("down", "suppressor hollow"),
    IRRELEVANT: ("circle", "irrelevant"),
    INSUFFICIENT: ("diamond", "insufficient"),
    FIXED: ("cross", "fixed"),
}


def intervals_svg(plot: IntervalPlot, width: float = _ROLE_WIDTH) -> str:
    """Draw a row per feature: its interval, its mark, and the base rate as a dashed line."""
    letters = _name_length(width)
    names = [role.feature for role in plot.roles]
    verdict_width = (
        max(len(_verdict(plot, role)) for role in plot.roles) * _VERDICT_LETTER_WIDTH + 20
    )
    scale = Scale(0, 1, _label_width(names, letters) + 8, width - verdict_width)
    bottom = _ROLE_TOP + _ROW * len(plot.roles)
    ticks = [0, 0.5, 1.0] if width < _ROLE_WIDTH else [0, 0.25, 0.5, 0.75, 1.0]
    parts = [_percent_axis(scale, bottom, ticks)]
    parts += _base_lines(plot, scale)
    parts += [
        _interval(plot, role, scale, _ROLE_TOP + _ROW * (i + 0.5), width)
        for i, role in enumerate(plot.roles)
    ]
    middle = (scale.start + scale.end) / 2
    label = "tests with the feature, of those that show it"
    middle = min(middle, width - len(label) * _VERDICT_LETTER_WIDTH / 2)
    parts.append(text(middle, bottom + 34, label, "label", "middle"))
    return picture(width, bottom + 42, f"Intervals: {plot.title}", *parts)


def _name_length(width: float) -> int:
    """Return how many letters of a feature's name a figure of this width shows."""
    return _ROLE_NAME_LENGTH if width >= _SHARES_WIDTH else _PHONE_NAME_LENGTH


def _label_width(names: list[str], letters: int) -> float:
    return max((min(len(name), letters) for name in names), default=0) * _ROLE_LETTER_WIDTH + 6


def _percent_axis(scale: Scale, bottom: float, shares: list[float]) -> str:
    parts = []
    for share in shares:
        x = scale.at(share)
        parts.append(line(x, _ROLE_TOP, x, bottom + 4, "grid"))
        parts.append(text(x, bottom + 17, format_percent(abs(share), 0), "tick", "middle"))
    return element("g", *parts)


def _base_lines(plot: IntervalPlot, scale: Scale) -> list[str]:
    """Draw one dashed line through neighbouring rows that have the same base rate."""
    bases = [(i, round(role.base, 3)) for i, role in enumerate(plot.roles) if role.role != FIXED]
    parts = []
    for base, rows in groupby(bases, key=lambda pair: pair[1]):
        numbers = [i for i, _ in rows]
        x = scale.at(base)
        ends = _ROLE_TOP + _ROW * numbers[0], _ROLE_TOP + _ROW * (numbers[-1] + 1)
        parts.append(line(x, ends[0], x, ends[1], "base"))
    return parts


def _interval(plot: IntervalPlot, role: FeatureRole, scale: Scale, y: float, width: float) -> str:
    shape, cls = _ROLE_MARKS[plot.mark(role)]
    parts = [element("rect", x=0, y=y - _ROW / 2, width=width, height=_ROW, cls="row")]
    name = elided(role.feature, _name_length(width))
    parts.append(text(scale.start - 8, y + 4, name, "name", "end"))
    if role.role == FIXED:
        parts.append(text(scale.at(0.5), y + 4, "in no test left to chance", "label", "middle"))
    else:
        whisker = "whisker dashed" if role.role == INSUFFICIENT else "whisker"
        low, high = scale.at(role.low), scale.at(role.high)
        parts += [line(low, y, high, y, f"{whisker} {cls}")]
        parts += [line(x, y - 4, x, y + 4, f"whisker {cls}") for x in (low, high)]
        parts.append(mark(shape, scale.at(role.share), y, f"mark {cls}"))
    parts.append(text(scale.end + 12, y + 4, _verdict(plot, role), f"verdict {cls}"))
    return element("g", *parts, title=f"{role.feature}: {plot.verdict(role)}{_numbers(role)}")


def _verdict(plot: IntervalPlot, role: FeatureRole) -> str:
    """Return a short verdict; hovering shows all of it."""
    if role.role == INSUFFICIENT:
        return f"{role.hits:g} of {role.needed} hits"
    return plot.verdict(role).replace(" before correction", "?")


def _numbers(role: FeatureRole) -> str:
    if role.role == FIXED:
        return ""
    return (
        f"; in {format_percent(role.share, 1)} of {role.hits:g} hits "
        f"({percent_interval(role.low, role.high, 1)}), "
        f"by chance {format_percent(role.base, 1)}; p {p_value(role.p_value)}, "
        f"corrected {p_value(role.adjusted)}"
    )


def shares_svg(shares: RoleShares, width: float = _SHARES_WIDTH) -> str:
    """Draw bars to the right for triggers, and hollow bars to the left for suppressors."""
    most = max((max(s.trigger, s.suppressor) for s in shares.shares), default=0.0)
    reach = next(limit for limit in (0.1, 0.25, 0.5, 1.0) if most <= limit)
    start = _label_width([share.feature for share in shares.shares], _name_length(width))
    scale = Scale(-reach, reach, start + 42, width - 40)
    bottom = _ROLE_TOP + _ROW * len(shares.shares)
    parts = [_percent_axis(scale, bottom, [-reach, -reach / 2, 0, reach / 2, reach])]
    for i, share in enumerate(shares.shares):
        y = _ROLE_TOP + _ROW * (i + 0.5)
        bars = [
            _bar(scale, y, share.trigger, "bar trigger"),
            _bar(scale, y, -share.suppressor, "bar suppressor hollow"),
        ]
        words = (
            f"{share.feature}: trigger of {format_percent(share.trigger, 1)}, suppressor of "
            f"{format_percent(share.suppressor, 1)} of {share.targets:,} targets"
        )
        row = element("rect", x=0, y=y - _ROW / 2, width=width, height=_ROW, cls="row")
        name = text(start, y + 4, elided(share.feature, _name_length(width)), "name", "end")
        parts.append(element("g", row, name, *bars, title=words))
    parts.append(line(scale.at(0), _ROLE_TOP, scale.at(0), bottom, "axis"))
    left, right = (scale.at(side * reach / 2) for side in (-1, 1))
    parts.append(text(left, bottom + 34, "▼ suppressor of", "verdict suppressor", "middle"))
    parts.append(text(right, bottom + 34, "▲ trigger of", "verdict trigger", "middle"))
    return picture(width, bottom + 42, shares.title, *parts)


def _bar(scale: Scale, y: float, share: float, cls: str) -> str:
    if not share:
        return ""
    ends = sorted((scale.at(0), scale.at(share)))
    label = text(
        ends[1] + 4 if share > 0 else ends[0] - 4,
        y + 4,
        format_percent(abs(share), 0),
        "tick",
        "start" if share > 0 else "end",
    )
    box = element("rect", x=ends[0], y=y - _BAR / 2, width=ends[1] - ends[0], height=_BAR, cls=cls)
    return box + label
