"""Draws how many planted roles are found, and how many wrong ones claimed, as tests grow.

Strategies differ in colour, in the dash of their line and in the shape of their marks, so that the
picture can be read without colours (the colours are Okabe and Ito's).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

WIDTH, HEIGHT, LEFT, TOP, GAP = 250, 190, 52, 52, 62
LOOKS = (
    *(("#0072B2", "", "circle"), ("#D55E00", "7 3", "square"), ("#000000", "2 3", "triangle")),
    ("#009E73", "9 3 2 3", "diamond"),
)
PANELS = (
    ("trigger", "triggers found", 1.0),
    ("suppressor", "suppressors found", 1.0),
    ("pair", "pairs found", 1.0),
    ("wrong_raw", "wrong roles, uncorrected", 0.1),
    ("wrong", "wrong roles, corrected", 0.1),
    ("wrong_pair", "targets with a wrong pair", 0.1),
)


def draw(steps: Sequence[int], curves: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """The whole picture as SVG."""
    width = LEFT + 3 * (WIDTH + GAP) - 40
    height = TOP + 2 * (HEIGHT + GAP) - 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="12">',
        "<title>Planted roles found, and wrong ones claimed, as the number of tests grows</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *_legend(list(curves)),
    ]
    for number, (measure, title, top) in enumerate(PANELS):
        x = LEFT + number % 3 * (WIDTH + GAP)
        y = TOP + number // 3 * (HEIGHT + GAP)
        lines = [of[measure] for of in curves.values()]
        parts += [f'<g transform="translate({x} {y})">', *_panel(title, top, steps, lines), "</g>"]
    return "\n".join([*parts, "</svg>\n"])


def _legend(names: Sequence[str]) -> list[str]:
    parts = []
    for number, name in enumerate(names):
        x = LEFT + 130 * number
        parts += [
            _line([(x, 18), (x + 36, 18)], number),
            _mark(x + 18, 18, number),
            f'<text x="{x + 44}" y="22">{name}</text>',
        ]
    return parts


def _panel(
    title: str, top: float, steps: Sequence[int], lines: Sequence[Sequence[float]]
) -> list[str]:
    def across(tests: float) -> float:
        first, last = math.log(steps[0]), math.log(steps[-1])
        return WIDTH * (math.log(tests) - first) / (last - first)

    def up(share: float) -> float:
        return HEIGHT * (1 - min(share, top) / top)

    parts = [f'<text x="0" y="-8" font-weight="bold">{title}</text>']
    for tick in range(5):
        share = top * tick / 4
        parts.append(
            f'<line x1="0" x2="{WIDTH}" y1="{up(share):.1f}" y2="{up(share):.1f}" stroke="#ddd"/>'
            f'<text x="-6" y="{up(share) + 4:.1f}" text-anchor="end">{share * 100:g}%</text>'
        )
    for tests in steps:
        label = f"{tests // 1000}k" if tests >= 1000 else str(tests)
        parts.append(
            f'<text x="{across(tests):.1f}" y="{HEIGHT + 16}" text-anchor="middle">{label}</text>'
        )
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT + 32}" text-anchor="middle">tests</text>')
    if top < 1:
        parts.append(
            f'<line x1="0" x2="{WIDTH}" y1="{up(0.05):.1f}" y2="{up(0.05):.1f}" stroke="#777"/>'
        )
    for number, values in enumerate(lines):
        points = [(across(t), up(v)) for t, v in zip(steps, values, strict=True)]
        parts += [_line(points, number), *(_mark(x, y, number) for x, y in points)]
    return parts


def _line(points: Sequence[tuple[float, float]], number: int) -> str:
    colour, dash, _ = LOOKS[number]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8" '
        f'stroke-dasharray="{dash or "none"}"/>'
    )


def _mark(x: float, y: float, number: int) -> str:
    colour, _, shape = LOOKS[number]
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
    if shape == "square":
        return f'<rect x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7" fill="{colour}"/>'
    if shape == "diamond":
        corners = f"{x:.1f},{y - 5:.1f} {x + 5:.1f},{y:.1f} {x:.1f},{y + 5:.1f} {x - 5:.1f},{y:.1f}"
        return f'<polygon points="{corners}" fill="{colour}"/>'
    corners = f"{x:.1f},{y - 4.5:.1f} {x + 4.5:.1f},{y + 3.5:.1f} {x - 4.5:.1f},{y + 3.5:.1f}"
    return f'<polygon points="{corners}" fill="white" stroke="{colour}" stroke-width="1.5"/>'
