"""A dashboard from start to end: its socket, its address, its last words."""

from __future__ import annotations

import errno
import socket
import webbrowser
from collections.abc import Callable

import uvicorn

from swarmtest.dashboard.app import Dashboard
from swarmtest.dashboard.settings import Settings
from swarmtest.errors import UserError

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
