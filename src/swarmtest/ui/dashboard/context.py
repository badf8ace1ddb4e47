"""The context of a dashboard: its settings, what its pages share, and the guard in front of them.

Every request passes the guard (`AccessGuard`) before any page sees it:

- The host name in the request must be one of this dashboard's names. That stops DNS rebinding,
  where a foreign name is made to resolve to this machine.
- If the dashboard has a token, a browser sends it once in the address, and from then on in a cookie
  that scripts cannot read and other sites cannot send.
- A request that changes something must be a POST that comes from one of our own pages and carries a
  secret that only those pages contain.
- Every response carries a content security policy under which a browser runs only the scripts of
  this package.
"""

from __future__ import annotations

import datetime
import hmac
import html
import ipaddress
import secrets
import shlex
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode, urlsplit

from jinja2 import Environment
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from swarmtest.core.errors import UserError
from swarmtest.core.formatting import duration, rough_duration
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.ui.dashboard.commands import DashboardJobs
from swarmtest.ui.dashboard.one_file import embedded_assets, link_to_file, wants_file
from swarmtest.ui.dashboard.queries import QueryPool
from swarmtest.ui.dashboard.store_watch import EventBroadcaster, StoreWatch
from swarmtest.ui.dashboard.system import MachineMonitor
from swarmtest.ui.report.page import environment
from swarmtest.ui.terminal.tables import command_text

# Settings.

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class DashboardSettings:
    """Settings of a dashboard.

    >>> DashboardSettings(store=None, host="0.0.0.0").is_local
    False
    """

    store: str | None
    """A store as `swarmtest.store.open_store` accepts it; None is the default store."""
    host: str = LOOPBACK
    port: int = 8321
    read_only: bool = False
    token: str = ""
    """The token that a browser must send; empty means that anyone who can connect may ask."""
    seconds: float = 1.0
    """The time between two polls of the store."""

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the dashboard."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Return whether a host name or address always means this machine.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("10.0.0.5")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# What all pages share.

_THEMES = ("light", "dark")


class StoreProblem(UserError):
    """The store cannot be read at the moment; a later attempt may succeed."""


class DashboardContext:
    """The shared context of the pages: settings, store, background threads, jobs and templates."""

    def __init__(self, settings: DashboardSettings) -> None:
        self.settings = settings
        self.live = EventBroadcaster()
        self.watch = StoreWatch(self.store, self.live, settings.seconds)
        self.computing = QueryPool(self.store, self.live)
        self.machine = MachineMonitor()
        self.jobs = DashboardJobs(self.live, self._named_store)

    def store(self) -> Store:
        """Open the store for one request.

        A store belongs to one thread, so requests cannot share one.
        """
        try:
            return open_store(self.settings.store, must_exist=True, read_only=True)
        except UserError as error:
            raise StoreProblem(str(error)) from error

    @cached_property
    def store_name(self) -> str:
        """The address of the store without its password, as it may be shown."""
        with self.store() as store:
            return store.url

    def _named_store(self) -> tuple[str, str]:
        return self.settings.store or self.store_name, self.store_name

    def begin(self) -> None:
        """Start the background threads; call this from the event loop of the server."""
        self.live.begin()
        self.watch.begin()

    def close(self) -> None:
        """Stop everything that `begin` and the pages started."""
        self.live.close()
        self.watch.close()
        self.jobs.close()
        self.computing.close()

    def page(
        self, request: Request, template: str, status: int = 200, /, **values: Any
    ) -> HTMLResponse:
        """Render a template with its own values and those that every template needs."""
        theme = request.cookies.get("swarmtest_theme", "")
        alone = embedded_assets() if wants_file(request) and link_to_file(request) else None
        text = self._templates.get_template(template).render(
            **values,
            path=request.url.path,
            csrf=request.state.csrf,
            theme=theme if theme in _THEMES and alone is None else "",
            read_only=self.settings.read_only or alone is not None,
            alone=alone,
            file_link=link_to_file(request) if status == 200 else "",
            store_name=self.store_name,
            jobs_running=sum(job.is_running for job in self.jobs.all()),
        )
        return HTMLResponse(text, status)

    @cached_property
    def _templates(self) -> Environment:
        templates = environment("swarmtest.ui.dashboard")
        templates.filters |= _FILTERS
        templates.filters["shell"] = lambda words: command_text(words, self.store_name)
        return templates


def when(seconds: float) -> str:
    """Format a time stamp as local date and time."""
    return datetime.datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


def ago(seconds: float) -> str:
    """Say how long ago a time stamp was.

    >>> ago(time.time() - 150)
    '2 min ago'
    """
    return f"{rough_duration(max(time.time() - seconds, 0))} ago"


def size(count: float) -> str:
    """Format a number of bytes.

    >>> size(3_400_000)
    '3.4 MB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


_FILTERS: Mapping[str, Any] = {
    "when": when,
    "ago": ago,
    "span": rough_duration,
    "size": size,
    "duration": duration,
    "count": lambda value: f"{value:,}",
    "quote": shlex.quote,
}


# The guard.

COOKIE = "swarmtest_token"
"""The name of the cookie, before the port: browsers send cookies to all ports of a host."""
_MAX_POST_BYTES = 64 << 10
"""The largest body of a POST that is accepted; our own forms are far smaller."""
_MAX_PATH_LENGTH = 2000
"""The longest path that is accepted: Python refuses to parse integers of over 4,300 digits."""
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class AccessGuard:
    """ASGI middleware that refuses what is not allowed, and adds the policy to every response."""

    def __init__(self, app: ASGIApp, settings: DashboardSettings) -> None:
        self._app = app
        self._settings = settings
        self._names = {settings.host, socket.gethostname(), socket.getfqdn()}
        self._cookie = f"{COOKIE}_{settings.port}"
        self.secret = secrets.token_urlsafe(24)
        """The secret that our own forms send, against cross-site request forgery."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or pass on the start and the end of the server."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        scope.setdefault("state", {})["csrf"] = self.secret
        refusal = self._answer(Request(scope))
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _answer(self, request: Request) -> Response | None:
        """Return a response that ends the request here; None if the request may go on."""
        if len(request.scope["path"]) > _MAX_PATH_LENGTH:
            return _refusal(414, f"an address has at most {_MAX_PATH_LENGTH:,} characters")
        if not self._is_our_name(request.headers):
            return _refusal(421, "this dashboard does not answer to this host name")
        if self._settings.token:
            token = request.query_params.get("token")
            if token is not None and request.method == "GET":
                return self._admit(request, token)
            if not _same(request.cookies.get(self._cookie, ""), self._settings.token):
                return _refusal(
                    403, "a token is needed: open the address that `swarmtest dashboard` printed"
                )
        if request.method in ("GET", "HEAD"):
            return None
        if request.method != "POST":
            return _refusal(405, "only GET and POST are understood")
        return self._refuse_post(request.headers)

    def _admit(self, request: Request, token: str) -> Response:
        """Move the token of a first visit from the address into a cookie."""
        if not _same(token, self._settings.token):
            return _refusal(403, "this token is not the one that `swarmtest dashboard` printed")
        other_parameters = [(k, v) for k, v in request.query_params.multi_items() if k != "token"]
        # A path with two leading slashes would redirect to another site.
        path = "/" + request.url.path.lstrip("/\\")
        place = path + ("?" + urlencode(other_parameters) if other_parameters else "")
        response: Response = RedirectResponse(place, 303)
        if request.headers.get("sec-fetch-site") == "cross-site":
            # A browser that another page (or our own file) sent here keeps strict cookies to itself
            # also when it follows a redirect. A page that leads on counts as ours.
            response = HTMLResponse(leading_to(place))
        response.set_cookie(self._cookie, token, httponly=True, samesite="strict", path="/")
        return response

    def _refuse_post(self, headers: Headers) -> Response | None:
        if self._settings.read_only:
            return _refusal(403, "this dashboard is read-only")
        length = headers.get("content-length", "")
        if not length.isdigit() or int(length) > _MAX_POST_BYTES:
            return _refusal(413, f"a form has at most {_MAX_POST_BYTES:,} bytes")
        # Our policy sends no referrer, so browsers send "null" even for a form of our own page.
        origin = headers.get("origin", "null")
        is_foreign = origin != "null" and origin.partition("://")[2] != headers.get("host")
        if is_foreign or headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return _refusal(403, "this request came from another site")
        return None

    def is_from_us(self, secret: str) -> bool:
        """Return whether a form carries the secret that only our own pages contain."""
        return _same(secret, self.secret)

    def _is_our_name(self, headers: Headers) -> bool:
        # The port is not compared: behind a tunnel it is another one.
        try:
            name = urlsplit("//" + headers.get("host", "")).hostname or ""
        except ValueError:
            return False
        if self._settings.is_local:
            return is_loopback(name)
        return name in self._names or is_loopback(name) or _is_address(name)


def leading_to(address: str) -> str:
    """Return a page that leads on to an address.

    >>> '0; url=/campaigns/1' in leading_to("/campaigns/1")
    True
    """
    shown = html.escape(address)
    return (
        '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0; url={shown}"><title>swarmtest</title>'
        '<link rel="icon" href="data:,">'  # otherwise a browser asks for one
        f'<a href="{shown}">The dashboard</a>\n'
    )


def _is_address(name: str) -> bool:
    """Return whether a host name is a numeric address, which DNS rebinding cannot redirect."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _same(left: str, right: str) -> bool:
    return hmac.compare_digest(left.encode(), right.encode())


def _refusal(status: int, reason: str) -> Response:
    return PlainTextResponse(f"swarmtest: {reason}\n", status)
