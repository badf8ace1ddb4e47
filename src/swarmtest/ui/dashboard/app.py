"""The dashboard as an ASGI application: its routes, and serving it from start to end."""

from __future__ import annotations

import contextlib
import errno
import functools
import socket
import tempfile
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import anyio.to_thread
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from swarmtest.core.errors import UserError
from swarmtest.ui.dashboard.context import (
    AccessGuard,
    DashboardContext,
    DashboardSettings,
    StoreProblem,
    leading_to,
)
from swarmtest.ui.dashboard.one_file import as_one_file
from swarmtest.ui.dashboard.pages import ABOUT, Actions, Pages, SystemPages
from swarmtest.ui.options import damage_in
from swarmtest.ui.report.page import asset

_SECONDS_BETWEEN_SAMPLES = 2.0


class Dashboard:
    """A dashboard: an ASGI application, and the context that its pages share."""

    def __init__(self, settings: DashboardSettings) -> None:
        self.context = DashboardContext(settings)
        # The guard wraps the application, whose actions in turn need the guard's secret.
        guard = AccessGuard(
            lambda scope, receive, send: application(scope, receive, send), settings
        )
        application = _application(self.context, guard)
        self.app = guard


def _application(context: DashboardContext, guard: AccessGuard) -> Starlette:
    pages, system, actions = Pages(context), SystemPages(context), Actions(context, guard)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        context.begin()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_sample, context)
                yield
                tasks.cancel_scope.cancel()
        finally:
            await anyio.to_thread.run_sync(context.close)

    async def events(request: Request) -> Response:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(context.live.stream(), 200, headers, "text/event-stream")

    campaign = "/campaigns/{campaign:int}"
    pages_by_path: dict[str, Callable[[Request], Response]] = {
        "/": pages.campaigns,
        campaign: pages.overview,
        f"{campaign}/faults": pages.faults,
        f"{campaign}/faults/{{fault}}": pages.fault,
        f"{campaign}/roles": pages.roles,
        f"{campaign}/source": pages.source,
        f"{campaign}/source/{{file}}": pages.source,
        f"{campaign}/configurations": pages.configurations,
        f"{campaign}/trials/{{trial:int}}": pages.trial,
        f"{campaign}/races": pages.races,
        f"{campaign}/search": pages.search,
        "/compare": pages.compare,
        "/resources": system.resources,
        "/commands": system.commands,
        "/commands/{job:int}": system.command,
    }
    actions_by_path = {
        "/start": actions.start,
        f"{campaign}/stop": actions.stop_campaign,
        "/commands/{job:int}/stop": actions.stop_job,
        **{f"{campaign}/{name}": actions.about(make) for name, make in ABOUT.items()},
    }
    routes = [
        Route(path, _explaining_damage(as_one_file(page), context), methods=["GET"])
        for path, page in pages_by_path.items()
    ]
    if not context.settings.read_only:
        routes += [Route(path, act, methods=["POST"]) for path, act in actions_by_path.items()]
    routes.append(Route("/events", events, methods=["GET"]))
    routes += _assets()

    def problem_page(request: Request, error: Exception) -> Response:
        status, reason = 500, str(error)
        if isinstance(error, HTTPException):
            status, reason = error.status_code, error.detail
        elif isinstance(error, PermissionError):
            status = 403
        elif isinstance(error, StoreProblem):
            status = 503
        elif isinstance(error, UserError):
            status = 404 if request.method == "GET" else 400
        return context.page(request, "problem.html", status, why=reason)

    return Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={
            UserError: problem_page,
            PermissionError: problem_page,
            HTTPException: problem_page,
        },
    )


def _explaining_damage(
    page: Callable[[Request], Response], context: DashboardContext
) -> Callable[[Request], Response]:
    """Return a page that says what is damaged in the store, if it cannot be shown because of that.

    Pages trust what they read, as commands do: checking it each time would take too long.
    """

    @functools.wraps(page)
    def show(request: Request) -> Response:
        try:
            return page(request)
        except (UserError, PermissionError, HTTPException):
            raise
        except Exception as error:
            damage = damage_in(context.settings.store)
            if not damage:
                raise  # a bug in swarmtest
            raise StoreProblem(damage) from error

    return show


async def _sample(context: DashboardContext) -> None:
    """Sample the load of the machine until cancelled."""
    while True:
        await anyio.to_thread.run_sync(context.machine.sample)
        if context.live.listeners:
            context.live.announce("machine")
        await anyio.sleep(_SECONDS_BETWEEN_SAMPLES)


def _assets() -> list[Route]:
    """Return a route for each static file; no file path is ever taken from a request."""
    static = files("swarmtest.ui.dashboard").joinpath("static")
    assets = {
        "report.css": (asset("report.css"), "text/css"),
        "report.js": (asset("report.js"), "text/javascript"),
        "dashboard.css": (static.joinpath("dashboard.css").read_text("utf-8"), "text/css"),
        "dashboard.js": (static.joinpath("dashboard.js").read_text("utf-8"), "text/javascript"),
        "icon.svg": (static.joinpath("icon.svg").read_text("utf-8"), "image/svg+xml"),
    }

    def answer(text: str, kind: str) -> Callable[[Request], Response]:
        headers = {"Cache-Control": "no-cache"}
        return lambda request: Response(text, 200, headers, f"{kind}; charset=utf-8")

    return [
        Route(f"/static/{name}", answer(text, kind), methods=["GET"])
        for name, (text, kind) in assets.items()
    ]


# Serving.

_BACKLOG = 128
"""Connections that may wait to be accepted."""


def serve(
    settings: DashboardSettings,
    say: Callable[[str], None],
    open_browser: bool = False,
    on_terminal: bool = False,
) -> None:
    """Serve a dashboard until Ctrl-C.

    The address with the token is said only `on_terminal`, because other output ends up in logs. It
    is also in a file that only the user can read; a browser is started with the file, because
    everybody can see the arguments of a process.
    """
    with _listen(settings) as listening, _private_directory() as directory:
        settings = replace(settings, port=listening.getsockname()[1])
        dashboard = Dashboard(settings)
        dashboard.context.store().close()  # fail now if the store cannot be read
        address = _address(settings)
        entry = Path(directory, "dashboard.html")
        entry.touch(0o600)
        entry.write_text(leading_to(f"{address}{_query(settings)}"))
        shown = f"{address}{_query(settings)}" if on_terminal else address
        say(f"dashboard of {dashboard.context.store_name}: {shown}")
        for line in _about_token(settings, entry, on_terminal):
            say(line)
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
            webbrowser.open(entry.as_uri())
        try:
            server.run(sockets=[listening])
        except KeyboardInterrupt:
            say("ended")


class _Server(uvicorn.Server):
    """A server that ends the event streams first, because it waits for all responses to end."""

    def __init__(self, config: uvicorn.Config, dashboard: Dashboard) -> None:
        super().__init__(config)
        self._dashboard = dashboard

    def handle_exit(self, sig: int, frame: object) -> None:
        """End the event streams, then shut down as usual."""
        self._dashboard.context.live.close()
        super().handle_exit(sig, frame)  # type: ignore[arg-type]


def _private_directory() -> tempfile.TemporaryDirectory[str]:
    """Return a new directory that only the user can enter, removed at the end."""
    return tempfile.TemporaryDirectory(prefix="swarmtest-dashboard-", ignore_cleanup_errors=True)


def _about_token(settings: DashboardSettings, entry: Path, on_terminal: bool) -> Iterator[str]:
    may = f"can see everything{_also_commands(settings)}"
    if not settings.token:
        yield f"there is no token: anyone who can connect {may}"
    elif on_terminal:
        yield f"the address contains the token: anyone who has it {may}"
    else:
        yield f"it asks for a token; open this file, which only you can read: {entry}"


def _also_commands(settings: DashboardSettings) -> str:
    return "" if settings.read_only else " and run commands as you"


def _listen(settings: DashboardSettings) -> socket.socket:
    """Return a socket that listens; raise `UserError` if that fails in any way."""
    address_text = f"{settings.host}:{settings.port}"
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
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise UserError(
                f"port {settings.port} is in use: pass another --port, or --port 0 for any"
            ) from None
        raise UserError(
            f"cannot listen on {address_text}: {error.strerror}: pass another --host or --port"
        ) from None
    return listening


def _address(settings: DashboardSettings) -> str:
    host = settings.host
    if host in ("0.0.0.0", "::", ""):
        host = socket.gethostname()
    elif ":" in host:
        host = f"[{host}]"
    return f"http://{host}:{settings.port}/"


def _query(settings: DashboardSettings) -> str:
    return f"?token={settings.token}" if settings.token else ""
