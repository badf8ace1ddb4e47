"""Who may ask for what: every request passes here before anything else sees it.

- The name in the address has to be ours: a foreign name that was made to lead here (DNS rebinding)
  gets nothing.
- Where there is a token, a browser brings it once in the address and from then on in a cookie that
  scripts cannot read and other sites cannot send.
- What changes something is a POST with a secret that only our own pages know, from our own pages.
- Every answer carries a policy under which a browser runs no script but the ones in the package.
"""

from __future__ import annotations

import datetime
import hmac
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
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.ui.dashboard.commands import Jobs
from swarmtest.ui.dashboard.queries import Computing
from swarmtest.ui.dashboard.store_watch import Live, Watch
from swarmtest.ui.dashboard.system import Machine
from swarmtest.ui.report.page import environment
from swarmtest.ui.terminal.tables import command_text
from swarmtest.ui.terminal.text import duration

# -------------------------------------------------------------------------------------------------
# What a dashboard was asked to be.

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Settings:
    """How one dashboard is served.

    >>> Settings(store=None).is_local, Settings(store=None, host="0.0.0.0").is_local
    (True, False)
    """

    store: str | None
    """As `swarmtest.store.open_store` takes it; None: the usual place."""
    host: str = LOOPBACK
    port: int = 8321
    read_only: bool = False
    token: str = ""
    """What a browser has to bring; empty: nothing, which is for loopback only."""
    seconds: float = 1.0
    """Between two looks at the store."""

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether a name or address is this machine and no other.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("10.0.0.5")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# -------------------------------------------------------------------------------------------------
# Everything that the pages of one dashboard share.

_THEMES = ("light", "dark")


class StoreProblem(UserError):
    """The store cannot be read now; perhaps later."""


class Desk:
    """The store, those who watch and compute, and the templates."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.live = Live()
        self.watch = Watch(self.store, self.live, settings.seconds)
        self.computing = Computing(self.store, self.live)
        self.machine = Machine()
        self.jobs = Jobs(self.live, self._named_store)

    def store(self) -> Store:
        """A store for one request, for a store belongs to one thread."""
        try:
            return open_store(self.settings.store, must_exist=True, read_only=True)
        except UserError as error:
            raise StoreProblem(str(error)) from error

    @cached_property
    def store_name(self) -> str:
        """The store as a person may see it: without a password."""
        with self.store() as store:
            return store.url

    def _named_store(self) -> tuple[str, str]:
        return self.settings.store or self.store_name, self.store_name

    def begin(self) -> None:
        """From the loop that serves."""
        self.live.begin()
        self.watch.begin()

    def close(self) -> None:
        """End all that was begun."""
        self.live.close()
        self.watch.close()
        self.jobs.close()
        self.computing.close()

    def page(
        self, request: Request, template: str, status: int = 200, /, **values: Any
    ) -> HTMLResponse:
        """A template with what all of them need."""
        chosen = request.cookies.get("swarmtest_theme", "")
        html = self._templates.get_template(template).render(
            **values,
            path=request.url.path,
            csrf=request.state.csrf,
            theme=chosen if chosen in _THEMES else "",
            read_only=self.settings.read_only,
            store_name=self.store_name,
            jobs_running=sum(job.is_running for job in self.jobs.all()),
        )
        return HTMLResponse(html, status)

    @cached_property
    def _templates(self) -> Environment:
        made = environment("swarmtest.ui.dashboard")
        made.filters |= _FILTERS
        made.filters["shell"] = lambda words: command_text(words, self.store_name)
        return made


def when(seconds: float) -> str:
    """A moment, by the clock of this machine."""
    return datetime.datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


def ago(seconds: float) -> str:
    """How long ago a moment was.

    >>> ago(time.time() - 150)
    '2 min ago'
    """
    return f"{span(max(time.time() - seconds, 0))} ago"


def span(seconds: float) -> str:
    """A duration in words, roughly.

    >>> span(0.2), span(59), span(150), span(7300), span(200_000)
    ('0 s', '59 s', '2 min', '2 h', '2 days')
    """
    for size, word in ((86400, " days"), (3600, " h"), (60, " min")):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f}{word}"
    return f"{seconds:.0f} s"


def size(count: float) -> str:
    """Bytes.

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
    "span": span,
    "size": size,
    "duration": duration,
    "count": lambda value: f"{value:,}",
    "quote": shlex.quote,
}


# -------------------------------------------------------------------------------------------------

COOKIE = "swarmtest_token"
_MOST_BYTES = 64 << 10
"""Of what is posted: a form of ours is far smaller."""
_LONGEST_PATH = 2000
"""Of an address: Python reads no number of more than 4,300 digits."""
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


class Guard:
    """Refuses what is not allowed, and marks every answer with the policy."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._names = {settings.host, socket.gethostname(), socket.getfqdn()}
        self.secret = secrets.token_urlsafe(24)
        """What our own forms send along."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the start and the end of the server."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        scope.setdefault("state", {})["csrf"] = self.secret
        answer = self._answer(Request(scope))
        await (answer or self._app)(scope, receive, marked)

    def _answer(self, request: Request) -> Response | None:
        """What is answered here and now; None: the request may go on."""
        if len(request.scope["path"]) > _LONGEST_PATH:
            return _refusal(414, f"no address here has more than {_LONGEST_PATH:,} characters")
        if not self._is_our_name(request.headers):
            return _refusal(421, "this address is not one of this dashboard's names")
        if self._settings.token:
            given = request.query_params.get("token")
            if given is not None and request.method == "GET":
                return self._admit(request, given)
            if not _same(request.cookies.get(COOKIE, ""), self._settings.token):
                return _refusal(
                    403, "a token is needed: open the address that `swarmtest dashboard` printed"
                )
        if request.method in ("GET", "HEAD"):
            return None
        if request.method != "POST":
            return _refusal(405, "only GET and POST are understood")
        return self._refuse_post(request.headers)

    def _admit(self, request: Request, given: str) -> Response:
        """The first visit: the token goes into a cookie and out of the address."""
        if not _same(given, self._settings.token):
            return _refusal(403, "this token is not the one that `swarmtest dashboard` printed")
        rest = [(k, v) for k, v in request.query_params.multi_items() if k != "token"]
        # Twice a slash would be the name of another site.
        path = "/" + request.url.path.lstrip("/\\")
        answer = RedirectResponse(path + ("?" + urlencode(rest) if rest else ""), 303)
        answer.set_cookie(COOKIE, given, httponly=True, samesite="strict", path="/")
        return answer

    def _refuse_post(self, headers: Headers) -> Response | None:
        if self._settings.read_only:
            return _refusal(403, "this dashboard is read-only")
        length = headers.get("content-length", "")
        if not length.isdigit() or int(length) > _MOST_BYTES:
            return _refusal(413, f"a form of at most {_MOST_BYTES:,} bytes is expected")
        # Without a referrer, browsers say "null" for a form of the very same page.
        origin = headers.get("origin", "null")
        foreign = origin != "null" and origin.partition("://")[2] != headers.get("host")
        if foreign or headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return _refusal(403, "this came from another site")
        return None

    def is_from_us(self, secret: str) -> bool:
        """Whether a form has what only our own pages know."""
        return _same(secret, self.secret)

    def _is_our_name(self, headers: Headers) -> bool:
        # The port may be another: that of a tunnel.
        try:
            name = urlsplit("//" + headers.get("host", "")).hostname or ""
        except ValueError:
            return False
        if self._settings.is_local:
            return is_loopback(name)
        return name in self._names or is_loopback(name) or _is_address(name)


def _is_address(name: str) -> bool:
    """Whether it is a number: no one can make a number lead elsewhere."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _refusal(status: int, why: str) -> Response:
    return PlainTextResponse(f"swarmtest: {why}\n", status)
