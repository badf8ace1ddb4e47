"""Templates of pages: what is text is escaped, and what cannot be seen is shown as a code."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from swarmtest.analysis.verdict import words_for
from swarmtest.report.figure_svg import figure_svg
from swarmtest.report.page_tables import percent
from swarmtest.report.printable import printable, spans


def environment(*packages: str) -> Environment:
    """Templates of the report, and those of other packages, which may use them."""
    made = Environment(
        loader=ChoiceLoader(
            [PackageLoader(package, "templates") for package in (*packages, "swarmtest.report")]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    made.filters["svg"] = lambda figure: Markup(figure_svg(figure))
    made.filters["percent"] = percent
    made.filters["spans"] = spans
    made.filters["kind_name"] = lambda kind: words_for(kind)[1]
    return made


def _shown(value: Any) -> Any:
    """Every text on its way into the page; what is markup already was made by us."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def asset(name: str) -> str:
    """A style sheet or a script of the report."""
    return files("swarmtest.report").joinpath("templates", name).read_text(encoding="utf-8")
