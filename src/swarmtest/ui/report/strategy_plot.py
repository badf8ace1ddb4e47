"""A plot of strategies compared: what each run found after equal effort, and the mean."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from swarmtest.compare.comparison import Comparison
from swarmtest.compare.equal_effort import Cut, FoundTargets
from swarmtest.core.formatting import amount, with_interval, words_for
from swarmtest.ui.report.figures import csv_text
from swarmtest.ui.svg import Scale, element, line, mark, picture, text
from swarmtest.ui.terminal.text import elided


@dataclass(frozen=True)
class StrategyPlot:
    """What the runs of each strategy found with equal effort, by kind of target."""

    name: str
    title: str
    reaches: tuple[FoundTargets, ...]
    """The strategies of each kind of target, next to each other."""

    @property
    def caption(self) -> str:
        """How to read a row."""
        return (
            "A row per strategy: a ring for each run, and a bar with the mean of the runs and its "
            "interval. Each kind of target has its own scale, which begins at 0."
        )

    def to_csv(self) -> str:
        """Return a row per kind and strategy."""
        head = ("kind", "strategy", "mean", "low", "high", "runs")
        rows = [
            (
                *(each.kind, each.strategy, each.per_run.value, each.per_run.low),
                *(each.per_run.high, " ".join(map(str, each.counts))),
            )
            for each in self.reaches
        ]
        return csv_text(head, rows)


def strategy_plots(comparison: Comparison) -> list[StrategyPlot]:
    """Return a plot for equal tests and one for equal CPU time."""
    cuts = (("tests", comparison.equal_tests), ("CPU time", comparison.equal_cpu))
    return [_plot(unit, cut) for unit, cut in cuts if any(each.counts for each in cut.reaches)]


def _plot(unit: str, cut: Cut) -> StrategyPlot:
    found = {kind for each in cut.reaches for kind in [each.kind] if max(each.counts, default=0)}
    return StrategyPlot(
        f"strategies-by-{unit.lower().replace(' ', '-')}",
        f"Found at equal {unit}: the first {amount(cut.limit, cut.unit)} of each run",
        tuple(each for each in cut.reaches if each.kind in found),
    )


_WIDTH = 600.0
_ROW, _HEAD = 24.0, 26.0
_LETTER = 7.4
_MOST_LETTERS, _PHONE_LETTERS = 22, 12
_FIGURES_WIDTH = 100.0


def strategies_svg(plot: StrategyPlot, width: float = _WIDTH) -> str:
    """Draw a block per kind of target, with a row per strategy."""
    strategies = list(dict.fromkeys(each.strategy for each in plot.reaches))
    letters = _MOST_LETTERS if width >= _WIDTH else _PHONE_LETTERS
    left = max(min(len(name), letters) for name in strategies) * _LETTER + 14
    y, parts = 0.0, []
    for kind, reaches in groupby(plot.reaches, key=lambda each: each.kind):
        rows = list(reaches)
        most = max(max(each.counts, default=0) for each in rows)
        scale = Scale(0, max(most, 1), left, width - _FIGURES_WIDTH)
        words = f"{words_for(kind)[1].capitalize()}, up to {most:,}"
        bottom = y + _HEAD + _ROW * len(rows)
        parts.append(text(4, y + 17, words, "group"))
        parts += [line(x, y + _HEAD - 2, x, bottom, "grid") for x in (scale.start, scale.end)]
        for position, each in enumerate(rows):
            style = strategies.index(each.strategy) % 6
            middle = y + _HEAD + _ROW * (position + 0.5)
            parts.append(_row(each, scale, middle, style, letters, width))
        y = bottom + 4
    return picture(width, y + 4, plot.title, *parts)


def _row(each: FoundTargets, scale: Scale, y: float, style: int, letters: int, width: float) -> str:
    mean = each.per_run
    low, middle, high = (
        scale.at(mean.value if value is None else value)
        for value in (mean.low, mean.value, mean.high)
    )
    runs = "".join(
        mark("circle", scale.at(count), y, f"dot s{style}", 3.4) for count in each.counts
    )
    shown = with_interval(mean)
    parts = [
        element("rect", x=0, y=y - _ROW / 2, width=width, height=_ROW, cls="row"),
        text(scale.start - 8, y + 4, elided(each.strategy, letters), "name", "end"),
        line(low, y, high, y, f"curve solid s{style}"),
        runs,
        line(middle, y - 8, middle, y + 8, f"curve solid s{style}"),
        text(scale.end + 10, y + 4, elided(shown, 16), "tick"),
    ]
    counts = ", ".join(f"{count:,}" for count in each.counts[:30])
    return element("g", *parts, title=f"{each.strategy}: {each.kind} {shown} per run; {counts}")
