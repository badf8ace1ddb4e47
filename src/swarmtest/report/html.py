"""A report as one HTML file that needs nothing else: no network, no fonts, no libraries."""

from __future__ import annotations

import base64
import hashlib

from markupsafe import Markup

from swarmtest.report.page import Page
from swarmtest.report.page_coverage import script_data
from swarmtest.report.templating import asset, environment

_OPEN_LINES = 400
"""Sources of no more lines than this, together, are open at once."""


def report_html(page: Page) -> str:
    """The whole file."""
    script = Markup(asset("report.js"))  # our own, and no part of it comes from data
    lines = sum(len(one.lines) for one in page.coverage.listings)
    return (
        environment()
        .get_template("report.html")
        .render(
            page=page,
            style=Markup(asset("report.css")),
            script=script,
            script_hash=_hash(script),
            data=script_data(page.study, page.coverage),
            listings_open=lines <= _OPEN_LINES,
        )
    )


def _hash(script: str) -> str:
    """By which the browser knows our script, and runs no other."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
