"""Interval plots, and how often features are triggers and suppressors, as SVG."""

from __future__ import annotations

from itertools import groupby

from swarmtest.analysis.roles import (
    FIXED,
    INSUFFICIENT,
    IRRELEVANT,
    SUPPRESSOR,
    TRIGGER,
    FeatureRole,
)
from swarmtest.report.figures import IntervalPlot, RoleShares
from swarmtest.report.printable import elided
from swarmtest.report.quantities import p_value
from swarmtest.report.svg import Scale, element, line, mark, picture, text

_ROW = 22.0
_TOP = 8.0
_WIDTH, _NARROW = 600.0, 500.0
_BAR = 11.0
_LETTERS, _LETTER, _SMALL = 23, 7.4, 6.2
"""Letters of a name; how wide they are, and those of a verdict."""
_SHAPES = {
    TRIGGER: ("up", "trigger"),
    SUPPRESSOR: ("down", "suppressor"),
    f"{TRIGGER} before correction": ("up", "trigger hollow"),
    f"{SUPPRESSOR} before correction": ("down", "suppressor hollow"),
    IRRELEVANT: ("circle", "irrelevant"),
    INSUFFICIENT: ("diamond", "insufficient"),
    FIXED: ("cross", "fixed"),
}


def intervals_svg(plot: IntervalPlot) -> str:
    """A row per feature: its interval, its mark, and the base rate as a dashed line."""
    names = [role.feature for role in plot.roles]
    words = max(len(_verdict(plot, role)) for role in plot.roles) * _SMALL + 20
    scale = Scale(0, 1, _label_width(names) + 8, _WIDTH - words)
    bottom = _TOP + _ROW * len(plot.roles)
    parts = [_percent_axis(scale, bottom, [0, 0.25, 0.5, 0.75, 1.0])]
    parts += _base_lines(plot, scale)
    parts += [
        _interval(plot, role, scale, _TOP + _ROW * (i + 0.5)) for i, role in enumerate(plot.roles)
    ]
    middle = (scale.start + scale.end) / 2
    told = "tests with the feature, of those that show it"
    parts.append(text(middle, bottom + 34, told, "label", "middle"))
    return picture(_WIDTH, bottom + 42, f"Intervals: {plot.title}", *parts)


def _label_width(names: list[str]) -> float:
    return max((min(len(name), _LETTERS) for name in names), default=0) * _LETTER + 6


def _percent_axis(scale: Scale, bottom: float, shares: list[float]) -> str:
    parts = []
    for share in shares:
        x = scale.at(share)
        parts.append(line(x, _TOP, x, bottom + 4, "grid"))
        parts.append(text(x, bottom + 17, f"{abs(share):.0%}", "tick", "middle"))
    return element("g", *parts)


def _base_lines(plot: IntervalPlot, scale: Scale) -> list[str]:
    """One dashed line through all neighbours that have the same base rate."""
    told = [(i, round(role.base, 3)) for i, role in enumerate(plot.roles) if role.role != FIXED]
    parts = []
    for base, rows in groupby(told, key=lambda pair: pair[1]):
        numbers = [i for i, _ in rows]
        x = scale.at(base)
        ends = _TOP + _ROW * numbers[0], _TOP + _ROW * (numbers[-1] + 1)
        parts.append(line(x, ends[0], x, ends[1], "base"))
    return parts


def _interval(plot: IntervalPlot, role: FeatureRole, scale: Scale, y: float) -> str:
    shape, cls = _SHAPES[plot.mark(role)]
    parts = [element("rect", x=0, y=y - _ROW / 2, width=_WIDTH, height=_ROW, cls="row")]
    parts.append(text(scale.start - 8, y + 4, elided(role.feature, _LETTERS), "name", "end"))
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
    """A verdict as short as it can be; hovering tells all of it."""
    if role.role == INSUFFICIENT:
        return f"{role.hits:g} of {role.needed} hits"
    return plot.verdict(role).replace(" before correction", "?")


def _numbers(role: FeatureRole) -> str:
    if role.role == FIXED:
        return ""
    return (
        f"; in {role.share:.1%} of {role.hits:g} hits ({role.low:.1%} to {role.high:.1%}), "
        f"by chance {role.base:.1%}; p {p_value(role.p_value)}, corrected {p_value(role.adjusted)}"
    )


def shares_svg(shares: RoleShares) -> str:
    """Bars to the right for triggers, hollow bars to the left for suppressors."""
    most = max((max(s.trigger, s.suppressor) for s in shares.shares), default=0.0)
    reach = next(limit for limit in (0.1, 0.25, 0.5, 1.0) if most <= limit)
    start = _label_width([share.feature for share in shares.shares])
    scale = Scale(-reach, reach, start + 42, _NARROW - 40)
    bottom = _TOP + _ROW * len(shares.shares)
    parts = [_percent_axis(scale, bottom, [-reach, -reach / 2, 0, reach / 2, reach])]
    for i, share in enumerate(shares.shares):
        y = _TOP + _ROW * (i + 0.5)
        bars = [
            _bar(scale, y, share.trigger, "bar trigger"),
            _bar(scale, y, -share.suppressor, "bar suppressor hollow"),
        ]
        words = (
            f"{share.feature}: trigger of {share.trigger:.1%}, suppressor of "
            f"{share.suppressor:.1%} of {share.targets:,} targets"
        )
        row = element("rect", x=0, y=y - _ROW / 2, width=_NARROW, height=_ROW, cls="row")
        name = text(start, y + 4, elided(share.feature, _LETTERS), "name", "end")
        parts.append(element("g", row, name, *bars, title=words))
    parts.append(line(scale.at(0), _TOP, scale.at(0), bottom, "axis"))
    left, right = (scale.at(side * reach / 2) for side in (-1, 1))
    parts.append(text(left, bottom + 34, "▼ suppressor of", "verdict suppressor", "middle"))
    parts.append(text(right, bottom + 34, "▲ trigger of", "verdict trigger", "middle"))
    return picture(_NARROW, bottom + 42, shares.title, *parts)


def _bar(scale: Scale, y: float, share: float, cls: str) -> str:
    if not share:
        return ""
    ends = sorted((scale.at(0), scale.at(share)))
    label = text(
        ends[1] + 4 if share > 0 else ends[0] - 4,
        y + 4,
        f"{abs(share):.0%}" if abs(share) >= 0.005 else "<1%",
        "tick",
        "start" if share > 0 else "end",
    )
    box = element("rect", x=ends[0], y=y - _BAR / 2, width=ends[1] - ends[0], height=_BAR, cls=cls)
    return box + label
