"""The store: campaigns, their trials, faults and tests, and the targets they reached."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from swarmtest.core.errors import UserError
from swarmtest.store.export import FORMATS, export_campaign
from swarmtest.store.interface import Store, is_postgres, redacted
from swarmtest.store.records import (
    CampaignRecord,
    FaultEvent,
    FaultRecord,
    ProgressPoint,
    ReductionRecord,
    TestRecord,
    TrialRecord,
    WorkerRecord,
    pack_counts,
    pack_floats,
    unpack_counts,
    unpack_floats,
)
from swarmtest.store.sqlite.file import MEMORY, no_store
from swarmtest.store.sqlite.store import SqliteStore

__all__ = [
    "DEFAULT_PATH",
    "FORMATS",
    "CampaignRecord",
    "FaultEvent",
    "FaultRecord",
    "ProgressPoint",
    "ReductionRecord",
    "SqliteStore",
    "Store",
    "TestRecord",
    "TrialRecord",
    "WorkerRecord",
    "export_campaign",
    "is_postgres",
    "open_store",
    "pack_counts",
    "pack_floats",
    "redacted",
    "unpack_counts",
    "unpack_floats",
]

DEFAULT_PATH = os.path.join(".swarmtest", "swarmtest.db")
"""Where campaigns are stored by default, relative to the current directory."""


def open_store(
    url: str | os.PathLike[str] | None = None,
    *,
    must_exist: bool = False,
    read_only: bool = False,
    timeout: float = 30.0,
) -> Store:
    """Open the store with this name: a path, ``sqlite:///path`` or ``postgresql://...``.

    A name with another scheme is opened by the class that an installed package offers for the
    scheme, as an entry point in the group ``swarmtest.stores``.

    Without a name, open the store at `DEFAULT_PATH`. With `must_exist`, refuse to create a new
    store; with `read_only`, do that too and never write. `timeout` is how many seconds to wait for
    another process that is writing, and for a lost database connection to come back.

    >>> with open_store(":memory:") as store:
    ...     store.campaigns()
    []
    >>> open_store("nowhere.db", must_exist=True)
    Traceback (most recent call last):
    ...
    swarmtest.UserError: no store at nowhere.db: run `swarmtest run` first or pass --store
    """
    name = DEFAULT_PATH if url is None else os.fspath(url)
    if is_postgres(name):
        return _open_postgres(name, must_exist, read_only, timeout)
    scheme = re.match(r"([a-z][a-z0-9+.-]*)://", name)
    store_class = _installed_class(scheme[1]) if scheme and scheme[1] != "sqlite" else None
    if store_class is not None:
        return store_class(name, read_only, must_exist=must_exist, timeout=timeout)
    path = _path(name)
    if must_exist and path != MEMORY and not os.path.exists(path):
        raise UserError(no_store(path))
    return SqliteStore(path, read_only, timeout=timeout)


def _open_postgres(url: str, must_exist: bool, read_only: bool, timeout: float) -> Store:
    needs = (
        f"store {redacted(url)}: PostgreSQL stores need an extra package: "
        "pip install 'swarmtest[postgres]'"
    )
    try:
        from swarmtest.store.postgres.store import PostgresStore
    except ImportError as error:  # psycopg, or the library under it
        raise UserError(needs) from error
    return PostgresStore(url, read_only, must_exist=must_exist, timeout=timeout)


def _installed_class(scheme: str) -> Callable[..., Store] | None:
    """Return the class that an installed package offers for a scheme; None if there is none."""
    from importlib import metadata

    for entry_point in metadata.entry_points(group="swarmtest.stores", name=scheme):
        try:
            store_class = entry_point.load()
        except Exception as error:
            raise UserError(
                f"cannot load stores with names like {scheme}://... (entry point "
                f"{entry_point.value} in group swarmtest.stores): {type(error).__name__}: {error}"
            ) from None
        if not (isinstance(store_class, type) and issubclass(store_class, Store)):
            raise UserError(
                f"entry point {entry_point.value} in group swarmtest.stores is not a store: "
                "name a class that derives from swarmtest.store.Store"
            )
        return store_class
    return None


def _path(url: str) -> str:
    scheme = re.match(r"([a-z][a-z0-9+]*)://|(?:postgres(?:ql)?|sqlite):", url)
    if scheme is None:
        if not url:
            raise UserError(f"--store is empty: name a file, like {DEFAULT_PATH}")
        return url
    if scheme[1] != "sqlite" or not url.startswith("sqlite:///") or url == "sqlite:///":
        # Without "://", it is not known which part may be a password.
        shown = redacted(url) if "://" in url else f"{url.partition(':')[0]}:..."
        raise UserError(
            f"a store is named by a path like {DEFAULT_PATH}, by sqlite:///PATH or by "
            f"postgresql://USER@HOST/DATABASE, not {shown!r}"
        )
    return url.removeprefix("sqlite:///")
