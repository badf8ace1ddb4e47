"""A real PostgreSQL server for the tests of one process: started once, ended with the session."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_SETTINGS = """
fsync = off
full_page_writes = off
"""
"""For speed: what happens to the disk when the power fails is PostgreSQL's to test."""

_LOGINS = "local all with_password scram-sha-256\n"
"""Roles with this name are asked for a password; all others are trusted."""


_EMPTY = """
SET search_path TO shared;
DELETE FROM campaigns; DELETE FROM blocks; DELETE FROM block_faults; DELETE FROM block_targets;
DELETE FROM block_hits; DELETE FROM faults;
DELETE FROM tests; DELETE FROM targets; DELETE FROM sources; DELETE FROM campaign_sources;
DELETE FROM reductions; DELETE FROM workers; DELETE FROM fault_decisions; DELETE FROM fault_events;
ALTER TABLE campaigns ALTER COLUMN id RESTART;
ALTER TABLE targets ALTER COLUMN id RESTART;
"""


class Server:
    """A running server, and the names of stores on it that are not there yet."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._numbers = itertools.count(1)
        self.directory = Path(handle.pgdata)

    def new_url(self, user: str = "postgres", password: str = "") -> str:
        """A store of its own, in a schema that nobody has used."""
        return self.url(f"store_{next(self._numbers)}", user, password)

    def emptied_url(self) -> str:
        """A store that many tests share, empty: much faster than one of its own for each."""
        import psycopg

        from swarmtest.store import open_store

        url = self.url("shared")
        open_store(url).close()
        with psycopg.connect(url.partition("&")[0], autocommit=True) as connection:
            connection.execute(_EMPTY)
        return url

    def url(self, schema: str, user: str = "postgres", password: str = "") -> str:
        """The store in a schema, for a user."""
        login = f"{user}:{password}" if password else user
        return f"postgresql://{login}@/postgres?host={self.directory}&schema={schema}"

    def execute(self, *commands: str) -> list[tuple[Any, ...]]:
        """What an administrator would do; the rows of the last command."""
        import psycopg

        place = f"postgresql://postgres@/postgres?host={self.directory}"
        with psycopg.connect(place, autocommit=True) as connection:
            done = [connection.execute(command) for command in commands]
            return done[-1].fetchall() if done[-1].description else []

    def let_in(self, password: str) -> None:
        """The role `with_password`, an administrator, whom the server asks for this password."""
        if not self.execute("SELECT 1 FROM pg_roles WHERE rolname = 'with_password'"):
            self.execute("CREATE ROLE with_password LOGIN SUPERUSER")
        self.execute(f"ALTER ROLE with_password PASSWORD '{password}'")

    def stop(self) -> None:
        """End the server at once, as if its machine had died."""
        if (self.directory / "postmaster.pid").exists():
            self._pg_ctl("stop", "-m", "immediate")

    def start(self) -> None:
        """Start it again."""
        log = str(self.directory / "log")
        self._pg_ctl("start", "-l", log, "-o", f'-h "" -k {self.directory}')

    def reload(self) -> None:
        """Let it read its settings again."""
        self._pg_ctl("reload")

    def _pg_ctl(self, *words: str) -> None:
        from pgserver import _commands

        _commands.pg_ctl(["-w", *words], pgdata=self.directory, user=self._handle.system_user)


@contextlib.contextmanager
def running_server() -> Iterator[Server]:
    """A server, or the test is skipped where none can be started."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import psycopg  # noqa: F401
            from pgserver import postgres_server
    except ImportError as error:
        pytest.skip(
            f"needs a PostgreSQL server ({error}): pip install pgserver 'psycopg[binary]' "
            "(pgserver has wheels for Python 3.12 and older)"
        )
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    directory = Path(tempfile.mkdtemp(prefix="pg", dir=memory))
    directory.chmod(0o755)
    try:
        handle = postgres_server.get_server(directory / "data", cleanup_mode=None)
    except Exception as error:
        shutil.rmtree(directory, ignore_errors=True)
        pytest.skip(f"no PostgreSQL server could be started ({error}): try `pip install pgserver`")
    server = Server(handle)
    try:
        with (server.directory / "postgresql.conf").open("a") as file:
            file.write(_SETTINGS)
        logins = server.directory / "pg_hba.conf"
        logins.write_text(_LOGINS + logins.read_text())
        server.reload()
        yield server
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)
