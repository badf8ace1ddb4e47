"""What is kept: campaigns, their trials, faults and tests, and the targets they reached."""

from __future__ import annotations

import os
import re

from swarmtest.errors import UserError
from swarmtest.store.export import FORMATS, export_campaign
from swarmtest.store.records import (
    CampaignRecord,
    FaultRecord,
    ReductionRecord,
    TestRecord,
    TrialRecord,
    pack_counts,
    pack_floats,
    unpack_counts,
    unpack_floats,
)
from swarmtest.store.sqlite import SqliteStore
from swarmtest.store.sqlite_file import MEMORY, no_store
from swarmtest.store.store import Store

__all__ = [
    "DEFAULT_PATH",
    "FORMATS",
    "CampaignRecord",
    "FaultRecord",
    "ReductionRecord",
    "SqliteStore",
    "Store",
    "TestRecord",
    "TrialRecord",
    "export_campaign",
    "open_store",
    "pack_counts",
    "pack_floats",
    "unpack_counts",
    "unpack_floats",
]

DEFAULT_PATH = os.path.join(".swarmtest", "swarmtest.db")
"""Where campaigns are kept when nothing else is said, from the current directory."""


def open_store(
    url: str | os.PathLike[str] | None = None,
    *,
    must_exist: bool = False,
    read_only: bool = False,
    timeout: float = 30.0,
) -> Store:
    """The store that a person named: a path, ``sqlite:///path`` or nothing for the usual place.

    `must_exist` refuses to make a new one; `read_only` does that too and never writes; `timeout`
    is how many seconds to wait for another process that is writing.

    >>> with open_store(":memory:") as store:
    ...     store.campaigns()
    []
    >>> open_store("nowhere.db", must_exist=True)
    Traceback (most recent call last):
    ...
    swarmtest.errors.UserError: no store at nowhere.db: run `swarmtest run` first or pass --store
    """
    path = _path(DEFAULT_PATH if url is None else os.fspath(url))
    if must_exist and path != MEMORY and not os.path.exists(path):
        raise UserError(no_store(path))
    return SqliteStore(path, read_only, timeout=timeout)


def _path(url: str) -> str:
    scheme = re.match(r"([a-z][a-z0-9+]*)://", url)
    if scheme is None:
        if not url:
            raise UserError(f"--store is empty: name a file, like {DEFAULT_PATH}")
        return url
    if scheme[1] in ("postgresql", "postgres"):
        raise UserError(
            f"store {scheme[0]}...: PostgreSQL is not available in this version of swarmtest: "
            f"name a file, like {DEFAULT_PATH}"
        )
    if scheme[1] != "sqlite" or not url.startswith("sqlite:///") or url == "sqlite:///":
        raise UserError(
            f"a store is named by a path like {DEFAULT_PATH} or by sqlite:///PATH, not {url!r}"
        )
    return url.removeprefix("sqlite:///")
