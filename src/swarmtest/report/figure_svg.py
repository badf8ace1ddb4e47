"""Any figure as SVG, whose colours are those of the page around it."""

from __future__ import annotations

from swarmtest.report.figures import Curves, Figure, HeatMap, IntervalPlot, RoleShares
from swarmtest.report.svg_curves import curves_svg
from swarmtest.report.svg_heat_map import heat_map_svg
from swarmtest.report.svg_roles import intervals_svg, shares_svg


def figure_svg(figure: Figure) -> str:
    """A figure as SVG, whose colours are those of the page around it."""
    if isinstance(figure, IntervalPlot):
        return intervals_svg(figure)
    if isinstance(figure, RoleShares):
        return shares_svg(figure)
    if isinstance(figure, Curves):
        return curves_svg(figure)
    if isinstance(figure, HeatMap):
        return heat_map_svg(figure)
    raise TypeError(f"no drawing for {type(figure).__name__}")
