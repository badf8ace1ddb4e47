"""Small curves of what happens now: a rate, a load."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from swarmtest.report.svg import Scale, element, line, picture, text

_WIDTH, _HEIGHT = 300.0, 64.0
_TOP, _BOTTOM, _RIGHT = 6.0, 14.0, 56.0


def sparkline(
    points: Sequence[tuple[float, float]], label: str, shown: str, high: float = 0.0
) -> Markup:
    """A curve over time with its last value beside it; `high`: the top of its axis, if known."""
    if len(points) < 2:
        return Markup("")
    top = high or max(value for _, value in points) or 1.0
    across = Scale(points[0][0], points[-1][0], 2, _WIDTH - _RIGHT)
    up = Scale(0, top * 1.02, _HEIGHT - _BOTTOM, _TOP)
    path = "M" + "L".join(f"{across.at(at):.1f},{up.at(value):.1f}" for at, value in points)
    floor = up.at(0)
    area = f"{path}L{across.end:.1f},{floor:.1f}L{across.start:.1f},{floor:.1f}z"
    seconds = points[-1][0] - points[0][0]
    parts = [
        element("path", d=area, cls="area"),
        line(2, floor, _WIDTH - _RIGHT, floor, "axis"),
        element("path", d=path, cls="curve s0"),
        element("circle", cx=across.end, cy=up.at(points[-1][1]), r=2.5, cls="now"),
        text(_WIDTH - _RIGHT + 8, up.at(points[-1][1]) + 4, shown, "now-text"),
        text(2, _HEIGHT - 2, f"{seconds:.0f} s ago", "tick"),
        text(_WIDTH - _RIGHT, _HEIGHT - 2, "now", "tick", "end"),
    ]
    return Markup(picture(_WIDTH, _HEIGHT, f"{label}: {shown}", *parts))
