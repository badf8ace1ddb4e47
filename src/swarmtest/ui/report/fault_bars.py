"""A plot of faults: how many tests show each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from swarmtest.store.records import FaultRecord
from swarmtest.ui.report.figures import csv_text
from swarmtest.ui.svg import Scale, element, line, picture, text
from swarmtest.ui.terminal.text import elided

_MOST = 30


@dataclass(frozen=True)
class FaultBars:
    """How many tests show each fault, the most frequent first."""

    name: str
    title: str
    faults: tuple[tuple[str, str, int], ...]
    """The id, the message and the number of tests of each fault."""
    left_out: int = 0

    @classmethod
    def of(cls, faults: Iterable[FaultRecord]) -> FaultBars:
        """Return the bars of some faults."""
        by_count = sorted(faults, key=lambda fault: (-fault.count, fault.first_trial))
        bars = tuple((each.id, each.signature, each.count) for each in by_count[:_MOST])
        return cls("faults", "Faults by the tests that show them", bars, len(by_count) - len(bars))

    @property
    def caption(self) -> str:
        """What the bars mean."""
        rest = f" The {self.left_out:,} rarest are not drawn." if self.left_out else ""
        return f"The number of tests that show each fault, on a logarithmic scale.{rest}"

    def to_csv(self) -> str:
        """Return a row per fault."""
        return csv_text(("fault", "signature", "tests"), self.faults)


_WIDTH, _ROW = 700.0, 22.0
_LETTER, _MOST_LETTERS, _PHONE_LETTERS = 6.4, 52, 22


def fault_bars_svg(bars: FaultBars, width: float = _WIDTH) -> str:
    """Draw a bar per fault."""
    letters = _MOST_LETTERS if width >= _WIDTH else _PHONE_LETTERS
    left = max((min(len(each[1]), letters) for each in bars.faults), default=0) * _LETTER + 16
    most = max((count for _, _, count in bars.faults), default=1)
    scale = Scale(0.5, max(most, 1), left, width - 60, tenfolds=True)
    parts = []
    for number, (_, message, count) in enumerate(bars.faults):
        y = _ROW * (number + 0.5) + 4
        end = scale.at(count)
        row = element("rect", x=0, y=y - _ROW / 2, width=width, height=_ROW, cls="row")
        name = text(left - 8, y + 4, elided(message, letters), "tick", "end")
        bar = element("rect", x=left, y=y - 6, width=end - left, height=12.0, cls="cell")
        shown = text(end + 5, y + 4, f"{count:,}", "tick")
        parts.append(element("g", row, name, bar, shown, title=f"{message}: {count:,} tests"))
    bottom = _ROW * len(bars.faults) + 8
    parts.append(line(left, 4, left, bottom, "axis"))
    return picture(width, bottom, bars.title, *parts)
