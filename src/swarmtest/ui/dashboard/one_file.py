"""A page of the dashboard as one HTML file, which can be handed to somebody without the dashboard.

`?file=1` after the address of a page gives it. The styles and the script are in the file, forms are
left out, links to other pages are only text, and what is still being computed is waited for.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from swarmtest.core.errors import UserError
from swarmtest.ui.report.page import asset, hash_of_script

_WAIT_SECONDS = 120.0
_POLL_SECONDS = 0.2
_COMPUTING = 'class="computing"'
_OWN_LINK = re.compile(r'<a(?: [^>]*)? href="[/?][^"]*"[^>]*>(.*?)</a>', re.DOTALL)
"""A link to another page of the dashboard, which the reader of the file does not have."""
Page = Callable[[Request], Response]


@dataclass(frozen=True)
class EmbeddedAssets:
    """The styles and the script of a page that stands alone."""

    style: Markup
    script: Markup

    @property
    def script_hash(self) -> str:
        """The hash by which the policy of the file allows this script and no other."""
        return hash_of_script(self.script)


@functools.cache
def embedded_assets() -> EmbeddedAssets:
    """Return the styles and the script; safe, because they are files of this package."""
    static = files("swarmtest.ui.dashboard").joinpath("static")
    style = asset("report.css") + static.joinpath("dashboard.css").read_text("utf-8")
    return EmbeddedAssets(Markup(style), Markup(asset("report.js")))


def wants_file(request: Request) -> bool:
    """Return whether a page is asked for as one file."""
    return "file" in request.query_params


def link_to_file(request: Request) -> str:
    """Return the address of a page as one file; empty for pages about this machine."""
    if not request.url.path.startswith(("/campaigns/", "/compare")):
        return ""
    query = [pair for pair in request.query_params.multi_items() if pair[0] != "file"]
    return "?" + urlencode([*query, ("file", "1")])


def as_one_file(page: Page) -> Page:
    """Return a page that answers with one file if it is asked to."""

    @functools.wraps(page)
    def show(request: Request) -> Response:
        if not wants_file(request) or not link_to_file(request):
            return page(request)
        end = time.monotonic() + _WAIT_SECONDS
        while True:
            response = page(request)
            text = bytes(response.body).decode()
            if _COMPUTING not in text:
                break
            if time.monotonic() > end:
                raise UserError("this page is still being computed: try again later")
            time.sleep(_POLL_SECONDS)
        name = "-".join(filter(None, ["swarmtest", *request.url.path.split("/")]))
        name = re.sub(r"[^\w.-]", "_", name)[:100]
        headers = {"Content-Disposition": f'attachment; filename="{name}.html"'}
        return HTMLResponse(_OWN_LINK.sub(r"<span>\1</span>", text), headers=headers)

    return show
