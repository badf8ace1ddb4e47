"""The plots of results in Python: the figures of the report, for a notebook or a file.

`plot` is what `swarmtest.core.display.Displayed.plot` calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from swarmtest.analysis.discovery import discovery
from swarmtest.campaign.campaign import Outcome
from swarmtest.campaign.fault_list import FaultList
from swarmtest.compare.comparison import Comparison
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.formatting import counted, words_for
from swarmtest.core.targets import Target
from swarmtest.growth.growth import Growth, KindGrowth
from swarmtest.roles.roles import RoleTable
from swarmtest.roles.study import Study
from swarmtest.ui.report.fault_bars import FaultBars
from swarmtest.ui.report.figures import (
    DiscoveryPlot,
    ExpectedPoint,
    Figure,
    PlottedCurve,
    discovery_curves,
    interval_plot,
    role_shares,
)
from swarmtest.ui.report.page import asset
from swarmtest.ui.report.strategy_plot import strategy_plots
from swarmtest.ui.report.svg_figures import figure_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

UNITS = ("tests", "cpu")


@dataclass(frozen=True)
class Plot:
    """A figure that a notebook shows and that can be written to a file.

    >>> from swarmtest.ui.report.figures import RoleShares
    >>> from swarmtest.roles.roles import FeatureShare
    >>> plot = Plot(RoleShares("roles", "Roles", (FeatureShare("push", 0.5, 0.0, 8),), 8))
    >>> plot.svg[:4], plot.figure.to_csv().splitlines()[1]
    ('<svg', 'push,0.5,0.0,8')
    """

    figure: Figure
    """Its data, with `to_csv` and a `caption`."""

    @property
    def svg(self) -> str:
        """The drawing, with its own style sheet, so that it can be used anywhere."""
        drawing = figure_svg(self.figure)
        start = drawing.index(">") + 1
        return f"{drawing[:start]}<style>{_style()}</style>{drawing[start:]}"

    def save(self, path: str | Path) -> Path:
        """Write the figure; the ending says how: .svg, .csv, or with matplotlib .pdf and .png."""
        path = Path(path)
        ending = path.suffix.lower()
        if ending not in (".svg", ".csv", ".pdf", ".png"):
            raise UserError(f"{path}: a plot can be saved as .svg, .csv, .pdf or .png")
        try:
            if ending in (".svg", ".csv"):
                text = self.svg if ending == ".svg" else self.figure.to_csv()
                path.write_text(text, encoding="utf-8", errors="backslashreplace")
            else:
                self.matplotlib().savefig(path, bbox_inches="tight")
        except OSError as error:
            raise UserError(f"{path}: cannot be written: {error.strerror}") from None
        return path

    def matplotlib(self) -> Drawing:
        """Return it as a figure of matplotlib, one column of a paper wide."""
        from swarmtest.ui.report.matplotlib_figures import drawing_of

        return drawing_of(self.figure)

    def __str__(self) -> str:
        return f"{self.figure.title}: {self.figure.caption}"

    def _repr_html_(self) -> str:
        return (
            f"<figure style='margin:0'><b>{escape(self.figure.title)}</b>{self.svg}"
            f"<figcaption><small>{escape(self.figure.caption)}</small></figcaption></figure>"
        )


def _style() -> str:
    """Return the rules of the report's style sheet that concern drawings, and its colours.

    They are limited to the drawing: in a notebook, a style sheet in a cell applies to the page.
    """
    style = asset("report.css")
    colours = style[style.index("{") : style.index("}") + 1]
    dark = style.split("prefers-color-scheme: dark) {", 1)[1]
    dark_colours = dark[dark.index("{") : dark.index("}") + 1]
    rules = [
        line.replace("svg ", "svg.swarmtest ", 1) if line.startswith("svg ") else ""
        for line in style.splitlines()
    ]
    ground = "svg.swarmtest{max-width:100%;height:auto;font-family:system-ui,sans-serif;"
    ground += "color:var(--ink);background:var(--paper)}"
    dark_rule = f"@media(prefers-color-scheme:dark){{svg.swarmtest{dark_colours}}}"
    return "".join([f"svg.swarmtest{colours}", dark_rule, ground, *rules])


@singledispatch
def plot(result: object, *about: Any, **options: Any) -> Plot:
    """Return the figure of a result."""
    raise TypeError(f"no plot for {type(result).__name__}")


@plot.register
def _outcome(result: Outcome, kind: str = "fault", by: str = "tests") -> Plot:
    """Draw how many targets of a kind a campaign found, `by` tests or CPU time."""
    with result.reading() as store:
        curves = discovery_curves([discovery(store, result.campaign)])
    _check("by", by, UNITS)
    unit = "tests" if by == "tests" else "CPU seconds"
    by_name = {each.found: each for each in curves if each.unit == unit}
    name = words_for(kind)[1]
    if name not in by_name:
        raise UserError(f"campaign {result.campaign} found no {name}{did_you_mean(name, by_name)}")
    return Plot(by_name[name])


@plot.register
def _faults(result: FaultList) -> Plot:
    """Draw how many tests show each fault."""
    return Plot(FaultBars.of(result))


@plot.register
def _study(result: Study, target: str | Target = "", kind: str = "fault") -> Plot:
    """Draw the intervals of a target's features, or the roles of features for all of a kind."""
    result.require_variation()
    if target:
        found = result.find(target) if isinstance(target, str) else target
        return Plot(interval_plot(result, found))
    if kind not in result.kinds():
        raise UserError(
            f"no test hit a target of kind {kind!r}{did_you_mean(kind, result.kinds())}"
        )
    return plot(result.table(kind))


@plot.register
def _roles(result: RoleTable) -> Plot:
    """Draw for which share of the targets each feature is a trigger or a suppressor."""
    kinds = sorted({target.kind for target in result.targets})
    return Plot(role_shares(kinds[0] if len(kinds) == 1 else "target", result))


@plot.register
def _comparison(result: Comparison, by: str = "tests") -> Plot:
    """Draw what the runs of each strategy found with equal effort."""
    _check("by", by, UNITS)
    plots = strategy_plots(result)
    if not plots:
        raise UserError("no run found anything, so there is nothing to draw")
    return Plot(plots[0 if by == "tests" else -1])


@plot.register
def _growth(result: Growth, kind: str = "") -> Plot:
    """Draw what was found of a kind, and what as many tests again would probably add."""
    kinds = {each.kind: each for each in result.kinds}
    # Most can be seen in the kind of which most was found, and faults are few.
    chosen = kind or max(kinds, key=lambda name: (kinds[name].seen.found, name))
    if chosen not in kinds:
        raise UserError(f"nothing is known about kind {chosen!r}{did_you_mean(chosen, kinds)}")
    return Plot(_growth_curve(result, kinds[chosen]))


def _growth_curve(growth: Growth, kind: KindGrowth) -> DiscoveryPlot:
    steps = np.flatnonzero(np.diff(kind.curve, prepend=0)).tolist()
    indices = sorted({*steps, len(kind.curve) - 1})
    so_far, new = kind.seen.found, kind.new
    ahead = ExpectedPoint(
        2.0 * kind.seen.tests, so_far + new.value, so_far + new.low, so_far + new.high
    )
    curve = PlottedCurve(
        growth.campaigns[0],
        growth.strategy,
        tuple(index + 1.0 for index in indices),
        tuple(int(kind.curve[index]) for index in indices),
        ahead,
    )
    words = words_for(kind.kind)[1]
    title = f"{words.capitalize()} by tests, and after {counted(2 * kind.seen.tests, 'test')}"
    return DiscoveryPlot(f"growth-{kind.kind}", title, "tests", words, (curve,))


def _check(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UserError(f"{name}={value!r}{did_you_mean(value, known)}")
