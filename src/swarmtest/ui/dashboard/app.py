"""The addresses of a dashboard, and what answers them."""

from __future__ import annotations

import contextlib
import errno
import socket
import webbrowser
from collections.abc import AsyncIterator, Callable
from importlib.resources import files

import anyio.to_thread
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from swarmtest.core.errors import UserError
from swarmtest.ui.dashboard.actions import ABOUT, Actions
from swarmtest.ui.dashboard.context import Desk, Guard, Settings, StoreProblem
from swarmtest.ui.dashboard.pages import Pages, SystemPages
from swarmtest.ui.report.page import asset

_SECONDS_BETWEEN_SAMPLES = 2.0


class Dashboard:
    """A dashboard as an ASGI application, and what runs beside it."""

    def __init__(self, settings: Settings) -> None:
        self.desk = Desk(settings)
        # The guard is outside of everything, and the actions ask it for its secret.
        guard = Guard(lambda scope, receive, send: inside(scope, receive, send), settings)
        inside = _application(self.desk, guard)
        self.app = guard


def _application(desk: Desk, guard: Guard) -> Starlette:
    pages, system, actions = Pages(desk), SystemPages(desk), Actions(desk, guard)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        desk.begin()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_sample, desk)
                yield
                tasks.cancel_scope.cancel()
        finally:
            await anyio.to_thread.run_sync(desk.close)

    async def events(request: Request) -> Response:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(desk.live.stream(), 200, headers, "text/event-stream")

    one = "/campaigns/{campaign:int}"
    shown: dict[str, Callable[[Request], Response]] = {
        "/": pages.campaigns,
        one: pages.overview,
        f"{one}/faults": pages.faults,
        f"{one}/faults/{{fault}}": pages.fault,
        f"{one}/roles": pages.roles,
        f"{one}/source": pages.source,
        f"{one}/source/{{file}}": pages.source,
        f"{one}/configurations": pages.configurations,
        f"{one}/trials/{{trial:int}}": pages.trial,
        f"{one}/races": pages.races,
        f"{one}/search": pages.search,
        "/compare": pages.compare,
        "/resources": system.resources,
        "/commands": system.commands,
        "/commands/{job:int}": system.command,
    }
    done = {
        "/start": actions.start,
        f"{one}/stop": actions.stop_campaign,
        "/commands/{job:int}/stop": actions.stop_job,
        **{f"{one}/{name}": actions.about(make) for name, make in ABOUT.items()},
    }
    routes = [Route(path, page, methods=["GET"]) for path, page in shown.items()]
    routes += [Route(path, act, methods=["POST"]) for path, act in done.items()]
    routes.append(Route("/events", events, methods=["GET"]))
    routes += _assets()

    def problem(request: Request, error: Exception) -> Response:
        status, why = 500, str(error)
        if isinstance(error, HTTPException):
            status, why = error.status_code, error.detail
        elif isinstance(error, PermissionError):
            status = 403
        elif isinstance(error, StoreProblem):
            status = 503
        elif isinstance(error, UserError):
            status = 404 if request.method == "GET" else 400
        return desk.page(request, "problem.html", status, why=why)

    return Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={
            UserError: problem,
            PermissionError: problem,
            HTTPException: problem,
        },
    )


async def _sample(desk: Desk) -> None:
    """The load of the machine, again and again."""
    while True:
        await anyio.to_thread.run_sync(desk.machine.sample)
        if desk.live.listeners:
            desk.live.announce("machine")
        await anyio.sleep(_SECONDS_BETWEEN_SAMPLES)


def _assets() -> list[Route]:
    """The files of the package, by their names: no path is ever taken from a request."""
    own = files("swarmtest.ui.dashboard").joinpath("static")
    known = {
        "report.css": (asset("report.css"), "text/css"),
        "report.js": (asset("report.js"), "text/javascript"),
        "dashboard.css": (own.joinpath("dashboard.css").read_text("utf-8"), "text/css"),
        "dashboard.js": (own.joinpath("dashboard.js").read_text("utf-8"), "text/javascript"),
        "icon.svg": (own.joinpath("icon.svg").read_text("utf-8"), "image/svg+xml"),
    }

    def answer(text: str, kind: str) -> Callable[[Request], Response]:
        headers = {"Cache-Control": "no-cache"}
        return lambda request: Response(text, 200, headers, f"{kind}; charset=utf-8")

    return [
        Route(f"/static/{name}", answer(text, kind), methods=["GET"])
        for name, (text, kind) in known.items()
    ]


# -------------------------------------------------------------------------------------------------
# A dashboard from start to end: its socket, its address, its last words.

_WAITING = 128
"""Connections that may wait to be taken."""


def serve(settings: Settings, say: Callable[[str], None], open_browser: bool = False) -> None:
    """Serve until Ctrl-C."""
    with _bound(settings) as listening:
        dashboard = Dashboard(settings)
        dashboard.desk.store().close()  # a store that cannot be read is told before all else
        address = _address(settings, listening)
        say(f"dashboard of {dashboard.desk.store_name}: {address}")
        if settings.token:
            say("the address has the token: who has it can see everything" + _and_do(settings))
        say("Ctrl-C ends it")
        config = uvicorn.Config(
            dashboard.app,
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="on",
            timeout_graceful_shutdown=3,
        )
        server = _Server(config, dashboard)
        if open_browser:
            webbrowser.open(address)
        try:
            server.run(sockets=[listening])
        except KeyboardInterrupt:
            say("ended")


class _Server(uvicorn.Server):
    """Ends the streams of events first, for it waits until all answers are given."""

    def __init__(self, config: uvicorn.Config, dashboard: Dashboard) -> None:
        super().__init__(config)
        self._dashboard = dashboard

    def handle_exit(self, sig: int, frame: object) -> None:
        """A signal to end has come."""
        self._dashboard.desk.live.close()
        super().handle_exit(sig, frame)  # type: ignore[arg-type]


def _and_do(settings: Settings) -> str:
    return "" if settings.read_only else " and run commands as you"


def _bound(settings: Settings) -> socket.socket:
    """A socket that listens; every way in which that can fail is one line."""
    place = f"{settings.host}:{settings.port}"
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM
        )[0]
        listening = socket.socket(family, kind)
    except socket.gaierror as error:
        raise UserError(f"--host {settings.host}: no such address ({error.strerror})") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_WAITING)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise UserError(
                f"port {settings.port} is in use: pass another --port, or --port 0 for any"
            ) from None
        raise UserError(
            f"cannot listen on {place}: {error.strerror}: pass another --host or --port"
        ) from None
    return listening


def _address(settings: Settings, listening: socket.socket) -> str:
    port = listening.getsockname()[1]
    host = settings.host
    if host in ("0.0.0.0", "::", ""):
        host = socket.gethostname()
    elif ":" in host:
        host = f"[{host}]"
    token = f"?token={settings.token}" if settings.token else ""
    return f"http://{host}:{port}/{token}"
