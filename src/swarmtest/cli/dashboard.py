"""``swarmtest dashboard``: a live page of what runs and what was found."""

from __future__ import annotations

import importlib.util
import secrets

import click

from swarmtest.cli.options import existing_store, store_option
from swarmtest.errors import UserError

_NEEDED = ("starlette", "uvicorn")


@click.command()
@store_option
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Where to listen. Anything but this machine needs the token that is printed.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8321,
    show_default=True,
    metavar="N",
    help="0: any that is free.",
)
@click.option("--read-only", is_flag=True, help="Only look: no page starts or stops anything.")
@click.option(
    "--token",
    "wants_token",
    is_flag=True,
    help="A token on this machine, too: others have accounts on it.",
)
@click.option("--open", "open_browser", is_flag=True, help="Open a browser.")
def dashboard(
    store: str | None,
    host: str,
    port: int,
    read_only: bool,
    wants_token: bool,
    open_browser: bool,
) -> None:
    """Watch campaigns live in a browser: progress, faults, roles, source, and what is left.

    \b
    swarmtest dashboard                     on http://127.0.0.1:8321/
    swarmtest dashboard --read-only         nothing can be started from it
    swarmtest dashboard --host 0.0.0.0      for other machines, with a token
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(
            f"the dashboard needs {' and '.join(missing)}: pip install 'swarmtest[dashboard]'"
        )
    existing_store(store).close()
    from swarmtest.dashboard.serving import serve
    from swarmtest.dashboard.settings import Settings, is_loopback

    token = secrets.token_urlsafe(24) if wants_token or not is_loopback(host) else ""
    serve(Settings(store, host, port, read_only, token), click.echo, open_browser)
