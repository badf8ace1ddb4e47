"""Open an SQLite file as a store, and explain in one line why it cannot be used.

Invariants: a file that is not ours is never changed; every `sqlite3` error that the user can fix
goes through `translated`.
"""

from __future__ import annotations

import datetime
import functools
import gc
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from swarmtest.core.errors import UserError
from swarmtest.core.errors import version as own_version
from swarmtest.core.private_files import keep_private
from swarmtest.store.schema import BLOCKS, SQLITE, VERSION, statements
from swarmtest.store.sql import storable

T = TypeVar("T")
APPLICATION_ID = 0x5357524D
"""``SWRM`` in ASCII, stored in ``PRAGMA application_id``: marks a file as ours."""
PAGE_SIZE = 8192
"""The last page of each large value is half empty on average: with 16 KB, blocks with coverage take
5% more space; with 4 KB, reading them takes twice as many calls of the operating system."""
_SQLITE_WAIT = 0.1
"""Seconds for which SQLite itself waits for a lock; meanwhile Ctrl-C has no effect."""
MEMORY = ":memory:"
"""The path of a store that exists only in this process; for tests."""


class DamagedFile(UserError):
    """A file is damaged, or is not a store."""


class SqliteFile:
    """An open store file, with queries and transactions whose errors a user can understand."""

    def __init__(self, path: str, *, read_only: bool = False, timeout: float = 30.0) -> None:
        """Open a file; create a store if it does not exist."""
        self._path = path
        self._timeout = timeout
        if path != MEMORY and not os.path.exists(path):
            _created.add(os.path.abspath(path))
        self._connection = connect(path, read_only=read_only, timeout=timeout)
        self._identity = None if path == MEMORY else _file_identity(path)

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return all rows of a query.

        >>> file = SqliteFile(":memory:")
        >>> file.rows("SELECT count(*) FROM blocks")
        [(0,)]
        >>> file.close()
        """
        with translated(self._path, self._timeout):
            try:
                return _retry_while_locked(
                    lambda: self._connection.execute(query, values).fetchall(), self._timeout
                )
            except OverflowError:  # the user asked for a number above 63 bits: no row has it
                return []

    @contextmanager
    def transaction(self, *, resumable: bool = True) -> Iterator[sqlite3.Connection]:
        """Write everything in the ``with`` block or, after an error, nothing.

        `resumable` says whether a campaign is stored that can be resumed after an error.
        """
        self._must_be_in_place()
        with translated(self._path, self._timeout, resumable=resumable):
            _retry_while_locked(lambda: self._connection.execute("BEGIN IMMEDIATE"), self._timeout)
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # SQLite may have rolled back by itself
                    self._connection.execute("ROLLBACK")
                raise

    def _must_be_in_place(self) -> None:
        """Raise `UserError` if the file was deleted: SQLite would write on, for nobody."""
        if self._path != MEMORY and _file_identity(self._path) != self._identity:
            done = "replaced by another file" if os.path.exists(self._path) else "deleted or moved"
            raise UserError(
                f"store {self._path} was {done} while it was in use: what was not in a copy of it "
                "is lost; start again with a store that stays where it is"
            )

    def shrink(self) -> None:
        """Return unused pages to the file system."""
        with translated(self._path, self._timeout):
            # `execute` would stop after the first page.
            self._connection.executescript(
                "PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)"
            )

    def close(self) -> None:
        """Close the file."""
        with translated(self._path, self._timeout):
            self._connection.close()

    def __del__(self) -> None:
        """Close a file that nobody has closed: Python would warn of the connection (from 3.13)."""
        if "_connection" in vars(self):
            with suppress(sqlite3.Error):
                self._connection.close()


_created: set[str] = set()
"""The paths of stores that this process has created."""


def remove_empty_stores() -> None:
    """Delete the stores that this process has created and has put nothing into.

    A store that is still in use is left, and so is one that another process has open.
    """
    gc.collect()  # a connection that is garbage would seem to be that of another process
    for path in _created:
        with suppress(sqlite3.Error, OSError):
            with closing(_connect(path, "rw")) as connection:
                (campaigns,) = connection.execute("SELECT count(*) FROM campaigns").fetchone()
            # The last process that closes a store deletes the log beside it.
            if not campaigns and not os.path.exists(path + "-wal"):
                os.unlink(path)
                _remove_own_directory(os.path.dirname(path))


def _remove_own_directory(directory: str) -> None:
    """Delete the directory of stores, if nothing but what we wrote ourselves is left there."""
    if os.path.basename(directory) == ".swarmtest" and os.listdir(directory) == [".gitignore"]:
        os.unlink(os.path.join(directory, ".gitignore"))
        os.rmdir(directory)


def executing(
    connection: sqlite3.Connection,
) -> Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]:
    """Return a function that runs a statement and returns its rows."""

    def execute(query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return connection.execute(query, list(map(_bindable, values))).fetchall()

    return execute


def _bindable(value: Any) -> Any:
    """Return a value as SQLite can hold it; sums may have more than 63 bits."""
    if isinstance(value, str):
        return storable(value)
    return float(value) if isinstance(value, int) and abs(value) >= 2**63 else value


def connect(path: str, *, read_only: bool, timeout: float) -> sqlite3.Connection:
    """Return a connection to the store in a file; create the store if it does not exist."""
    if path != MEMORY:
        _prepare_directory(Path(path), read_only)
    with translated(path, timeout, resumable=False):
        connection = _connect(path, "ro" if read_only else "rwc")
        try:
            if read_only:
                opened = connection
                connection = _retry_while_locked(lambda: _readable(opened, path), timeout)
            _adopt(connection, path, read_only, timeout)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def translated(path: str, timeout: float, *, resumable: bool = True) -> Iterator[None]:
    """Turn SQLite's errors into a `UserError`, except misuse of `sqlite3`, which is a bug."""
    try:
        yield
    except (sqlite3.ProgrammingError, sqlite3.InterfaceError):
        raise
    except sqlite3.Error as error:
        if _is_damage(error):
            raise DamagedFile(_damaged_file(path, error)) from error
        raise UserError(_explain(error, path, timeout, resumable)) from error
    except UnicodeDecodeError as error:  # in a message of SQLite, which repeats damaged text
        raise DamagedFile(_damaged_file(path, error)) from error


def _connect(path: str, mode: str) -> sqlite3.Connection:
    uri = "file::memory:"
    if path != MEMORY:  # three slashes: the part after two would be taken for a host
        uri = f"file:///{quote(os.fsencode(os.path.abspath(path)).lstrip(b'/'))}?mode={mode}"
        keep_private(path)
    # isolation_level=None: sqlite3 opens no transactions of its own.
    return sqlite3.connect(uri, uri=True, timeout=_SQLITE_WAIT, isolation_level=None)


def _file_identity(path: str) -> tuple[int, int] | None:
    """Return what tells a file from another one at the same path; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _prepare_directory(path: Path, read_only: bool) -> None:
    if os.path.isdir(path):
        raise UserError(
            f"store {path} is a directory: name a file in it, like {path / 'swarmtest.db'}"
        )
    if os.path.exists(path) and not os.path.isfile(path):
        raise UserError(f"store {path} is not a file, but a device or a pipe: name another file")
    if read_only:
        if not os.path.exists(path):
            raise UserError(no_store(path))
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.parent.name == ".swarmtest" and not (path.parent / ".gitignore").exists():
            (path.parent / ".gitignore").write_text("*\n")
    except OSError as error:
        raise UserError(
            f"store {path}: cannot create directory {path.parent} ({error.strerror}): "
            "pass --store with a path that you can write to"
        ) from error


def no_store(path: str | Path) -> str:
    """Return the message for a store that does not exist.

    >>> no_store("x.db")
    'no store at x.db: run `swarmtest run` first or pass --store'
    """
    return f"no store at {path}: run `swarmtest run` first or pass --store"


def _readable(connection: sqlite3.Connection, path: str) -> sqlite3.Connection:
    """Return a read-only connection that works even where SQLite may not create its `-shm` file."""
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        cause = error.sqlite_errorcode & 0xFF
        unfinished = os.path.exists(path + "-wal") and os.path.getsize(path + "-wal") > 0
        if cause not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) or unfinished:
            raise
        if not os.access(path, os.R_OK):
            raise
        connection.close()
        return _connect(path, "ro&immutable=1")
    return connection


def _adopt(connection: sqlite3.Connection, path: str, read_only: bool, timeout: float) -> None:
    """Check that the file is an up-to-date store; create the tables in an empty file."""
    empty = _retry_while_locked(lambda: _is_empty(connection, path), timeout)
    if read_only:
        if empty:
            raise UserError(no_store(path))
        if _version(connection) < VERSION:
            _migrate_for_reading(path, timeout)
        return
    # In WAL mode this is safe: only a crash of the machine may lose the last commits.
    _retry_while_locked(lambda: connection.execute("PRAGMA synchronous = NORMAL"), timeout)
    if empty:
        # The first two must come before the first page is written, which switching to WAL does.
        for pragma in (
            f"page_size = {PAGE_SIZE}", "auto_vacuum = INCREMENTAL", "journal_mode = WAL"
        ):  # fmt: skip
            _retry_while_locked(functools.partial(connection.execute, f"PRAGMA {pragma}"), timeout)
    if _version(connection) < VERSION:
        _retry_while_locked(lambda: _upgrade(connection, path), timeout)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _upgrade(connection: sqlite3.Connection, path: str) -> None:
    """Create the tables, or bring older ones up to date; several processes may do so at once."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been faster: then nothing is left to do.
        version = _version(connection)
        for statement in statements(SQLITE, version):
            connection.execute(statement)
        if 0 < version < BLOCKS:
            from swarmtest.store.conversion import convert_rows

            convert_rows(executing(connection), path)
        if version == 0:
            _sign(connection)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
        if 0 < version < BLOCKS:
            connection.executescript("PRAGMA incremental_vacuum")  # the rows are gone
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _sign(connection: sqlite3.Connection) -> None:
    """Mark a file as ours; store when, and by which swarmtest, it was created."""
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    connection.execute(
        "INSERT INTO meta VALUES ('created', ?), ('created_by', ?)",
        (now, f"swarmtest {own_version()}"),
    )


def _migrate_for_reading(path: str, timeout: float) -> None:
    """Upgrade a file that is opened for reading: readers need the current tables too."""
    try:
        connect(path, read_only=False, timeout=timeout).close()
    except UserError as error:
        raise UserError(
            f"store {path} was written by an older swarmtest and cannot be upgraded "
            f"({error}): copy it to a directory that you can write to"
        ) from error


def _is_empty(connection: sqlite3.Connection, path: str) -> bool:
    application, version, tables = _identity(connection)
    if application == APPLICATION_ID:
        if version < 1:
            raise DamagedFile(_damaged_file(path, f"its schema version is {version}"))
        if version > VERSION:
            raise UserError(
                f"store {path} was written by a newer swarmtest (schema {version}; this one knows "
                f"{VERSION}): upgrade with `pip install -U swarmtest`, or pass another --store"
            )
        return False
    if application or version or tables:
        raise UserError(
            f"{path} is an SQLite file of another program, not a swarmtest store; "
            "it was not changed: pass another --store"
        )
    return True


def _identity(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """Return application id, version and number of tables.

    They are read in one transaction, because another process may be creating the store.
    """
    connection.execute("BEGIN")
    try:
        application, version, tables = (
            int(connection.execute(query).fetchone()[0])
            for query in (
                "PRAGMA application_id",
                "PRAGMA user_version",
                "SELECT count(*) FROM sqlite_master",
            )
        )
    finally:
        if connection.in_transaction:
            connection.execute("COMMIT")
    return application, version, tables


def _retry_while_locked(call: Callable[[], T], timeout: float) -> T:
    """Call again while another process holds the lock, for up to `timeout` seconds.

    SQLite can wait by itself, but then Ctrl-C has no effect, and it does not wait at all while
    another process is switching to WAL.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            return call()
        except sqlite3.OperationalError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            busy = code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.005)


def _cause(error: sqlite3.Error) -> int:
    # An error without a code: sqlite3 could not decode what it read (text that is not UTF-8).
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)) & 0xFF


def _is_damage(error: sqlite3.Error) -> bool:
    return _cause(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _explain(error: sqlite3.Error, path: str, timeout: float, resumable: bool) -> str:
    cause = _cause(error)
    if cause in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return (
            f"store {path} is locked by another process (waited {timeout:g} s): "
            "wait until it has finished, or end it, or pass another --store"
        )
    if cause == sqlite3.SQLITE_FULL or (cause == sqlite3.SQLITE_IOERR and _no_space(path)):
        if not resumable:
            return (
                f"store {path}: the disk is full, and nothing was recorded: free some space, "
                "or pass --store with a file on another disk"
            )
        return (
            f"store {path}: the disk is full; what was recorded before is safe: "
            "free some space, then continue with `swarmtest resume`"
        )
    if cause in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return f"store {path} {_missing_right(Path(path))}, or pass another --store"
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return f"store {path} cannot be used ({name}: {error}): check the disk, or pass another --store"


def _damaged_file(path: str, error: Exception | str) -> str:
    return (
        f"store {path} is damaged or not a store ({' '.join(str(error).split())}): `swarmtest "
        f"doctor {path}` says what is lost; restore a backup, save what can be read with "
        f"`swarmtest doctor {path} --repair FILE` or `sqlite3 {path} .recover`, or move it away"
    )


def _no_space(path: str) -> bool:
    try:
        return shutil.disk_usage(Path(path).parent).free < PAGE_SIZE * 4
    except OSError:
        return False


def _missing_right(path: Path) -> str:
    if os.path.exists(path) and not os.access(path, os.R_OK):
        return f"cannot be read by you: ask for the right to read it (`ls -l {path}`)"
    if os.path.exists(path) and not os.access(path, os.W_OK):
        return f"is read-only for you: ask for the right to write it (`ls -l {path}`)"
    if not os.access(path.parent, os.W_OK | os.X_OK):
        return (
            f"cannot be written, because its directory {path.parent} is read-only for you: "
            "ask for the right to write there"
        )
    return "cannot be opened for writing: check that the file and its directory are writable"
