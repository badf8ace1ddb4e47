"""Simulated campaigns live in memory, many to a test: those that a test is done with are closed."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from swarmtest.store.sqlite.file import SqliteFile


@pytest.fixture(scope="session", autouse=True)
def _forgotten_stores_are_closed() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        opened = SqliteFile.__init__

        def open_and_remember(self: SqliteFile, *arguments: Any, **options: Any) -> None:
            opened(self, *arguments, **options)
            weakref.finalize(self, self._connection.close)

        patch.setattr(SqliteFile, "__init__", open_and_remember)
        yield
