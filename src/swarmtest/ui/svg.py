"""The elements of SVG that figures need.

Elements have classes instead of colours, so a drawing takes its colours from the page around it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

from swarmtest.ui.terminal.text import printable


def element(tag: str, *inside: str, title: str = "", **attributes: object) -> str:
    """Return an element; `cls` is its class, and attributes that are None are left out.

    >>> element("line", x1=0, x2=2.5, cls="axis")
    '<line x1="0" x2="2.5" class="axis"/>'
    """
    words = [tag]
    for name, value in attributes.items():
        if value is not None:
            name = "class" if name == "cls" else name.replace("_", "-")
            words.append(f'{name}="{escape(_attribute_text(value))}"')
    content = (f"<title>{escape(printable(title))}</title>" if title else "") + "".join(inside)
    return f"<{' '.join(words)}>{content}</{tag}>" if content else f"<{' '.join(words)}/>"


def text(
    x: float,
    y: float,
    words: str,
    cls: str = "",
    anchor: str = "start",
    turn: str | None = None,
) -> str:
    """Return a text; `anchor` is ``start``, ``middle`` or ``end``."""
    text_anchor = None if anchor == "start" else anchor
    escaped = escape(printable(words))
    return element(
        "text", escaped, x=x, y=y, cls=cls or None, text_anchor=text_anchor, transform=turn
    )


def line(x1: float, y1: float, x2: float, y2: float, cls: str) -> str:
    """Return a straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, cls=cls)


def mark(shape: str, x: float, y: float, cls: str, size: float = 5.0) -> str:
    """Return a mark around a point: circle, square, diamond, up, down or cross."""
    if shape == "circle":
        return element("circle", cx=x, cy=y, r=size, cls=cls)
    corners = " ".join(
        f"{_attribute_text(x + a * size)},{_attribute_text(y + b * size)}"
        for a, b in _CORNERS[shape]
    )
    if shape == "cross":
        a, b, c, d = corners.split()
        return element("path", d=f"M{a}L{b}M{c}L{d}", cls=cls)
    return element("polygon", points=corners, cls=cls)


_CORNERS = {
    "up": ((-1.1, 0.9), (1.1, 0.9), (0, -1.1)),
    "down": ((-1.1, -0.9), (1.1, -0.9), (0, 1.1)),
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "diamond": ((-1.25, 0), (0, -1.25), (1.25, 0), (0, 1.25)),
    "cross": ((-1, -1), (1, 1), (-1, 1), (1, -1)),
}


def picture(width: float, height: float, label: str, *parts: str) -> str:
    """Return a whole figure, which scales down to narrow screens but never up."""
    return element(
        "svg",
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_attribute_text(width)} {_attribute_text(height)}",
        width=width,
        height=height,
        role="img",
        cls=f"swarmtest {'wide' if width > _PHONE_WIDTH else 'fit'}",
        aria_label=label,
    )


_PHONE_WIDTH = 700.0
"""A figure that is not wider can still be read on a phone, where it is scaled down."""


def _attribute_text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return printable(str(value))


@dataclass(frozen=True)
class Scale:
    """A mapping from values to positions, linear or logarithmic (`tenfolds`).

    >>> Scale(0, 1, 100, 300).at(0.5)
    200.0
    """

    low: float
    high: float
    start: float
    end: float
    tenfolds: bool = False

    def at(self, value: float) -> float:
        """Return the position of a value."""
        low, high = self.low, self.high
        if self.tenfolds:
            low, high, value = math.log10(low), math.log10(high), math.log10(max(value, low))
        share = (value - low) / (high - low) if high > low else 1.0
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 5) -> list[float]:
        """Return round values for ticks."""
        if self.tenfolds:
            return _tenfolds(self.low, self.high)
        return _even_ticks(self.low, self.high, most)


def _tenfolds(low: float, high: float) -> list[float]:
    powers = range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)
    ticks = [10.0**power for power in powers]
    if len(ticks) > 1:
        return ticks
    finer = [
        digit * 10.0**p for p in range(powers.start - 1, powers.stop + 1) for digit in (1, 2, 5)
    ]
    return [tick for tick in finer if low <= tick <= high] or [low]


def _even_ticks(low: float, high: float, most: int) -> list[float]:
    """Return whole numbers at even distances, at most about `most` of them."""
    step = 1.0
    factors = (2.0, 2.5, 2.0)
    count = 0
    while (high - low) / step > most:
        step *= factors[count % 3]
        count += 1
    first = math.ceil(low / step)
    return [k * step for k in range(first, math.floor(high / step) + 1)]
