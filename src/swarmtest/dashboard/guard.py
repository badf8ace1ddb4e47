"""Who may ask for what: every request passes here before anything else sees it.

- The name in the address has to be ours: a foreign name that was made to lead here (DNS rebinding)
  gets nothing.
- Where there is a token, a browser brings it once in the address and from then on in a cookie that
  scripts cannot read and other sites cannot send.
- What changes something is a POST with a secret that only our own pages know, from our own pages.
- Every answer carries a policy under which a browser runs no script but the ones in the package.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from urllib.parse import urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from swarmtest.dashboard.settings import Settings, is_loopback

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
