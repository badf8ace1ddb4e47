"""Stores for the tests. What any store must do runs once per entry of `KINDS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from postgres_server import Server, running_server

from swarmtest.store import open_store
from swarmtest.store.interface import Store

KINDS = ["sqlite", "postgres"]


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A real PostgreSQL server."""
    with running_server() as server:
        yield server


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The name of a store that is empty or not there yet."""
    if request.param == "postgres":
        server: Server = request.getfixturevalue("server")
        return server.emptied_url()
    return str(tmp_path / str(request.param) / "swarmtest.db")


@pytest.fixture(params=KINDS)
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The name of a store that is not there yet."""
    if request.param == "postgres":
        server: Server = request.getfixturevalue("server")
        return server.new_url()
    return str(tmp_path / str(request.param) / "swarmtest.db")


@pytest.fixture
def open_url() -> Iterator[Callable[..., Store]]:
    """Open stores that close themselves when the test ends."""
    with ExitStack() as stack:
        yield lambda url, **options: stack.enter_context(open_store(url, **options))


@pytest.fixture
def store(url: str, open_url: Callable[..., Store]) -> Store:
    return open_url(url)
