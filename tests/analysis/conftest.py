"""Simulated campaigns live in memory, many to a test: those that a test is done with are closed."""

from __future__ import annotations

import contextlib
import sqlite3
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from swarmtest.store.sqlite.file import SqliteFile


def _close(connection: sqlite3.Connection) -> None:
    # Garbage may be collected in another thread, which may not close it.
    with contextlib.suppress(sqlite3.ProgrammingError):
        connection.close()


@pytest.fixture(scope="package", autouse=True)
def _forgotten_stores_are_closed() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        opened = SqliteFile.__init__

        def open_and_remember(self: SqliteFile, *arguments: Any, **options: Any) -> None:
            opened(self, *arguments, **options)
            weakref.finalize(self, _close, self._connection)

        patch.setattr(SqliteFile, "__init__", open_and_remember)
        yield
