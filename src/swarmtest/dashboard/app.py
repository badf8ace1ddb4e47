"""The addresses of a dashboard, and what answers them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from importlib.resources import files

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from swarmtest.dashboard.actions import ABOUT, Actions
from swarmtest.dashboard.desk import Desk, StoreProblem
from swarmtest.dashboard.guard import Guard
from swarmtest.dashboard.pages import Pages
from swarmtest.dashboard.settings import Settings
from swarmtest.dashboard.system_pages import SystemPages
from swarmtest.errors import UserError
from swarmtest.report.templating import asset

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
    own = files("swarmtest.dashboard").joinpath("static")
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
