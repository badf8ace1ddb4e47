"""A report as one HTML file that needs nothing else: no network, no fonts, no libraries."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from swarmtest.analysis.verdict import words_for
from swarmtest.report.figures import Curves, Figure, HeatMap, IntervalPlot, RoleShares
from swarmtest.report.page import Page
from swarmtest.report.page_coverage import script_data
from swarmtest.report.page_tables import percent
from swarmtest.report.printable import printable, spans
from swarmtest.report.svg_curves import curves_svg
from swarmtest.report.svg_heat_map import heat_map_svg
from swarmtest.report.svg_roles import intervals_svg, shares_svg

_OPEN_LINES = 400
"""Sources of no more lines than this, together, are open at once."""


def report_html(page: Page) -> str:
    """The whole file."""
    script = Markup(_asset("report.js"))  # our own, and no part of it comes from data
    lines = sum(len(one.lines) for one in page.coverage.listings)
    return (
        _environment()
        .get_template("report.html")
        .render(
            page=page,
            style=Markup(_asset("report.css")),
            script=script,
            script_hash=_hash(script),
            data=script_data(page.study, page.coverage),
            listings_open=lines <= _OPEN_LINES,
        )
    )


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


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("swarmtest.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.filters["svg"] = lambda figure: Markup(figure_svg(figure))
    environment.filters["percent"] = percent
    environment.filters["spans"] = spans
    environment.filters["kind_name"] = lambda kind: words_for(kind)[1]
    return environment


def _shown(value: Any) -> Any:
    """Every text on its way into the page; what is markup already was made by us."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _asset(name: str) -> str:
    return files("swarmtest.report").joinpath("templates", name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """By which the browser knows our script, and runs no other."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
