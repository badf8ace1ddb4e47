"""Discovery curves as SVG: a colour, a dash and a mark for each strategy."""

from __future__ import annotations

from swarmtest.report.figures import Curve, Curves
from swarmtest.report.printable import elided, spans
from swarmtest.report.quantities import duration
from swarmtest.report.svg import Scale, element, line, mark, picture, text

_WIDTH, _HEIGHT = 470.0, 270.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 28.0, 10.0, 46.0
_LEGEND_ROW = 18.0
_MARKS_PER_CURVE = 5
SHAPES = ("circle", "square", "up", "diamond", "down", "cross")
STYLES = len(SHAPES)


def curves_svg(curves: Curves) -> str:
    """Staircases over an axis of tenfolds, with a legend under it."""
    aheads = [curve.ahead for curve in curves.curves if curve.ahead]
    ends = [*(curve.effort[-1] for curve in curves.curves), *(ahead.effort for ahead in aheads)]
    end = max([curves.start * 1.001, *ends])
    across = Scale(curves.start, end, _LEFT, _WIDTH - _RIGHT, tenfolds=True)
    most = max((curve.found[-1] for curve in curves.curves), default=1)
    # An interval may be very wide while little is known: it does not flatten the curve.
    top = max([most, 1, *(min(ahead.high, 1.6 * most) for ahead in aheads)])
    up = Scale(0, top * 1.05, _HEIGHT - _BOTTOM, _TOP)
    styles = {name: number % STYLES for number, name in enumerate(curves.strategies)}
    parts = [_axes(curves, across, up)]
    parts += [_drawn(curve, curves, across, up, styles[curve.strategy]) for curve in curves.curves]
    rows = _legend(curves, styles)
    height = _HEIGHT + _LEGEND_ROW * len(styles)
    return picture(_WIDTH, height, curves.title, *parts, *rows)


def _axes(curves: Curves, across: Scale, up: Scale) -> str:
    bottom = up.at(0)
    parts = []
    for tick in up.ticks():
        parts.append(line(_LEFT, up.at(tick), _WIDTH - _RIGHT, up.at(tick), "grid"))
        parts.append(text(_LEFT - 6, up.at(tick) + 4, f"{tick:,.0f}", "tick", "end"))
    for tick in across.ticks():
        shown = f"{tick:,.0f}" if curves.unit == "tests" else duration(tick)
        parts.append(line(across.at(tick), bottom, across.at(tick), bottom + 4, "axis"))
        parts.append(text(across.at(tick), bottom + 17, shown, "tick", "middle"))
    parts.append(line(_LEFT, bottom, _WIDTH - _RIGHT, bottom, "axis"))
    name = "tests" if curves.unit == "tests" else "CPU time of tests"
    parts.append(text((_LEFT + _WIDTH - _RIGHT) / 2, bottom + 35, name, "label", "middle"))
    middle = (up.at(0) + _TOP) / 2
    turned = f"rotate(-90 12 {middle:.0f})"
    words = f"distinct {curves.found}"
    parts.append(text(12, middle, words, "label", "middle", turn=turned))
    return element("g", *parts)


def _drawn(curve: Curve, curves: Curves, across: Scale, up: Scale, style: int) -> str:
    points = [
        (across.at(effort), up.at(found))
        for effort, found in zip(curve.effort, curve.found, strict=True)
    ]
    path = f"M{across.start:.1f},{up.at(0):.1f}"
    path += "".join(f"H{x:.1f}V{y:.1f}" for x, y in points)
    cls = f"curve s{style}"
    chosen = _spread(points)
    marks = [mark(SHAPES[style], *points[i], f"dot s{style}", 3.2) for i in chosen]
    end = curve.effort[-1]
    effort = f"{end:,.0f} tests" if curves.unit == "tests" else duration(end)
    words = f"campaign {curve.campaign}, {curve.strategy}: {curve.found[-1]:,} in {effort}"
    ahead = [_ahead(curve, across, up, points[-1])] if curve.ahead else []
    return element("g", element("path", d=path, cls=cls), *ahead, *marks, title=words)


def _ahead(curve: Curve, across: Scale, up: Scale, start: tuple[float, float]) -> str:
    """A wedge to where it is going, as far as can be told."""
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


def _spread(points: list[tuple[float, float]]) -> list[int]:
    """Some points along a curve, at least a fifth of its width apart; and the end."""
    gap = (points[-1][0] - points[0][0]) / _MARKS_PER_CURVE
    chosen = [0]
    for i, (x, _) in enumerate(points[1:-1], 1):
        if x - points[chosen[-1]][0] >= gap:
            chosen.append(i)
    return sorted({*chosen, len(points) - 1})


def _legend(curves: Curves, styles: dict[str, int]) -> list[str]:
    rows = []
    for number, (strategy, style) in enumerate(styles.items()):
        y = _HEIGHT + _LEGEND_ROW * (number + 0.5) - 4
        numbers = [curve.campaign for curve in curves.curves if curve.strategy == strategy]
        which = "campaign" if len(numbers) == 1 else "campaigns"
        rows += [
            line(_LEFT, y, _LEFT + 40, y, f"curve s{style}"),
            mark(SHAPES[style], _LEFT + 20, y, f"dot s{style}", 3.2),
            text(_LEFT + 48, y + 4, f"{elided(strategy, 40)} ({which} {spans(numbers)})", "tick"),
        ]
    return rows
