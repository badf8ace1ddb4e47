"""A connection to PostgreSQL that reconnects, and explains in one line why it cannot be used.

Invariants: work is passed as a function of the connection. It runs in one transaction, and runs
again from its start after a lost connection. So it must be idempotent: the connection may be lost
after the COMMIT and before its answer. Every error that the user can fix is a `UserError`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import errors, pq, sql

from swarmtest.core.errors import UserError
from swarmtest.store.interface import PostgresAddress
from swarmtest.store.schema import VERSION

# Errors, and messages of one line that say what would help.

_TEMPORARY = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.ConnectionException,
    errors.IdleInTransactionSessionTimeout,
    errors.SerializationFailure,
    errors.DeadlockDetected,
)
_IN_A_MOMENT = (
    "starting up",
    "shutting down",
    "in recovery mode",
    "not yet accepting connections",
    "server closed the connection unexpectedly",
)


def is_temporary(error: psycopg.Error) -> bool:
    """Return whether a retry may work, as after a lost connection or a restart of the server."""
    if isinstance(error, _TEMPORARY):
        return True
    # Errors that libpq detects itself have no code from the server.
    return error.sqlstate is None and isinstance(error, psycopg.OperationalError)


def is_starting_or_stopping(error: psycopg.Error) -> bool:
    """Return whether the server is there and will accept a connection in a moment."""
    return isinstance(error, _TEMPORARY) or any(words in str(error) for words in _IN_A_MOMENT)


def first_line(error: BaseException) -> str:
    """Return the first line of what the server or libpq said, without hints.

    >>> first_line(OSError("connection failed: no such host\\nIs the server running?"))
    'connection failed: no such host'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def cannot_connect(error: psycopg.Error, shown: str, tried: str) -> str:
    """Return why no connection could be made."""
    said = first_line(error)
    if "password authentication failed" in said or "no password supplied" in said:
        return (
            f"store {shown}: wrong user or password ({tried}): "
            "put the right one into PGPASSWORD or ~/.pgpass"
        )
    if "role" in said and "does not exist" in said:
        return f"store {shown}: the server has no such user ({tried}): create it with `createuser`"
    if "database" in said and "does not exist" in said:
        return f"store {shown}: there is no such database ({tried}): create it with `createdb`"
    if "pg_hba.conf" in said or "authentication failed" in said or "permission denied" in said:
        return f"store {shown}: the server refuses the connection ({tried}): {_last_part(said)}"
    if "too many" in said:
        return f"store {shown}: the server has too many connections ({tried}): {_last_part(said)}"
    return (
        f"store {shown}: the database cannot be reached ({tried}: {said}): "
        "start it, or pass another --store"
    )


def _last_part(said: str) -> str:
    return said.rpartition("FATAL:")[2].strip()


def cannot_reconnect(error: psycopg.Error, shown: str, tries: int, seconds: float) -> str:
    """Return the message for a connection that was lost and could not be made again."""
    attempts = "1 attempt" if tries == 1 else f"{tries} attempts"
    return (
        f"store {shown}: the connection was lost, and {attempts} in {seconds:.0f} s to connect "
        f"again failed (last error: {first_line(error)}); what was recorded before is safe: "
        "continue with `swarmtest resume` when the database is back"
    )


def explain_error(error: psycopg.Error, shown: str, timeout: float) -> str:
    """Return why a query failed."""
    if isinstance(error, errors.InsufficientPrivilege | errors.ReadOnlySqlTransaction):
        return (
            f"store {shown} is read-only for you ({first_line(error)}): "
            "ask its owner for the rights of a writer, or pass another --store"
        )
    if isinstance(error, errors.LockNotAvailable | errors.QueryCanceled):
        return (
            f"store {shown} is locked by another process (waited {timeout:g} s): "
            "wait until it has finished, or end it, or pass another --store"
        )
    if isinstance(error, errors.DiskFull):
        return (
            f"store {shown}: the database's disk is full; what was recorded before is safe: "
            "free some space, then continue with `swarmtest resume`"
        )
    why = first_line(error)
    return f"store {shown} cannot be used ({why}): ask the administrator of the database"


def newer_schema(shown: str, version: int) -> str:
    """Return the message for a store that a newer swarmtest has written."""
    return (
        f"store {shown} was written by a newer swarmtest (schema {version}; this one knows "
        f"{VERSION}): upgrade with `pip install -U swarmtest`, or pass another --store"
    )


def foreign_tables(shown: str, schema: str) -> str:
    """Return the message for a schema with tables that are not ours."""
    return (
        f"store {shown}: schema {schema} has tables of another program, which were not "
        "changed: name another schema, like ?schema=swarmtest"
    )


def no_right_to_create(shown: str, error: BaseException, version: int) -> str:
    """Return the message for missing or old tables that this user may not create."""
    if version == 0:
        what = "there are no tables yet, and you may not create them"
    else:
        what = f"its schema is {version}, this swarmtest needs {VERSION}, and you may not change it"
    return (
        f"store {shown}: {what} ({first_line(error)}): "
        "let the owner of the database open it once with this swarmtest"
    )


# The connection.

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]
Connection: TypeAlias = psycopg.Connection[Row]

_FIRST_NAP, _LONGEST_NAP = 0.05, 2.0
"""Seconds between attempts to reconnect; each wait is twice as long as the one before."""

_PATIENCE = {"connect_timeout": "10", "keepalives_idle": "10", "tcp_user_timeout": "30000"}
"""When a network that does not answer counts as lost, unless the URL says otherwise."""


class PostgresServer:
    """A server on which queries and transactions run, on one connection at a time."""

    def __init__(self, address: PostgresAddress, *, read_only: bool, timeout: float) -> None:
        self.shown = address.shown
        self._address = address
        self._read_only = read_only
        self.timeout = timeout
        self._ended = False
        self._given_up = ""
        """The message after waiting in vain; later calls, which clean up, do not wait again."""
        self._connection = self._first_connection()

    def rows(self, query: str, *values: Any) -> list[Row]:
        """Return all rows of a query."""
        with self._translated():
            # In binary, bytes need not be written as digits and read back.
            return self.again(lambda line: line.execute(query, values, binary=True).fetchall())

    def write(self, work: Callable[[Connection], T]) -> T:
        """Do idempotent work in one transaction: all of it or, after an error, nothing."""

        def whole(connection: Connection) -> T:
            with connection.transaction():
                return work(connection)

        with self._translated():
            return self.again(whole)

    def again(self, work: Callable[[Connection], T]) -> T:
        """Call `work` with the connection, again on a new one as long as connections are lost."""
        if self._ended:
            raise ValueError(f"store {self.shown} was closed")
        began, tries, nap = time.monotonic(), 0, _FIRST_NAP
        while True:
            try:
                if self._connection.closed:
                    tries += 1
                    self._connection = self._connect(self._read_only)
                    self._given_up = ""
                return work(self._connection)
            except psycopg.Error as error:
                if not is_temporary(error):
                    raise
                if self._given_up:
                    raise UserError(self._given_up) from error
                waited = time.monotonic() - began
                said = cannot_reconnect(error, self.shown, tries, waited)
                if waited > self.timeout:
                    self._given_up = said if self._connection.closed else ""
                    raise UserError(said) from error
            self._nap(nap, said)
            nap = min(2 * nap, _LONGEST_NAP)

    def _nap(self, seconds: float, said: str) -> None:
        """Wait before the next attempt; after Ctrl-C, later calls do not wait either."""
        if self._connection.broken:
            self._connection.close()
        try:
            time.sleep(seconds)
        except KeyboardInterrupt:
            self._given_up = said if self._connection.closed else ""
            raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn PostgreSQL's errors into a `UserError`, except misuse of `psycopg`, a bug."""
        try:
            yield
        except psycopg.Error as error:
            if error.sqlstate is None:
                raise
            raise UserError(explain_error(error, self.shown, self.timeout)) from error

    def another_connection(self) -> Connection:
        """Return a new connection that may write, even if this one may only read.

        It raises the errors of psycopg.
        """
        connection = self._connect(read_only=False)
        connection.autocommit = False
        return connection

    def close(self) -> None:
        """Close the connection."""
        self._ended = True
        self._connection.close()

    def _first_connection(self) -> Connection:
        """Return the first connection; retry only while the server is starting or stopping."""
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                return self._connect(self._read_only)
            except psycopg.Error as error:
                if is_starting_or_stopping(error) and time.monotonic() < deadline:
                    time.sleep(_FIRST_NAP)
                    continue
                said = cannot_connect(error, self.shown, f"tried {self._place()}")
                raise UserError(said) from error

    def _connect(self, read_only: bool) -> Connection:
        connection = psycopg.connect(self._conninfo(), autocommit=True)
        try:
            self._prepare(connection, read_only)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: Connection, read_only: bool) -> None:
        settings = {
            "search_path": self._address.schema,
            "lock_timeout": f"{max(1, int(self.timeout * 1000))}ms",
            "client_min_messages": "warning",
            # While a table is new and the server has no statistics of it, it would collect and sort
            # all of a campaign's trials for each chunk; the index has them in order.
            "enable_bitmapscan": "off",
        }
        if read_only:  # never set to off: an administrator may have set it for this user
            settings["default_transaction_read_only"] = "on"
        commands = [
            sql.SQL("SET {} TO {}").format(sql.Identifier(name), sql.Literal(value))
            for name, value in settings.items()
        ]
        connection.execute(sql.SQL("; ").join(commands))

    def _conninfo(self) -> str:
        in_url = self._parsed()
        defaults = _PATIENCE | {"application_name": "swarmtest"}
        missing = {name: value for name, value in defaults.items() if name not in in_url}
        return psycopg.conninfo.make_conninfo(self._address.conninfo, **missing)

    def _parsed(self) -> dict[str, Any]:
        try:
            return dict(psycopg.conninfo.conninfo_to_dict(self._address.conninfo))
        except psycopg.ProgrammingError as error:
            # libpq's message repeats what it could not parse, which may be part of a password.
            word = "an unknown option" if "URI query parameter" in str(error) else "a mistake"
            raise UserError(
                f"store {self.shown}: this URL has {word} in it: it is written "
                "postgresql://USER@HOST:PORT/DATABASE?OPTION=VALUE"
            ) from None

    def _place(self) -> str:
        """Return which server was tried, with libpq's defaults where the URL says nothing."""
        defaults = {
            option.keyword.decode(): (option.val or b"").decode()
            for option in pq.Conninfo.get_defaults()
        }
        in_url = {name: str(value) for name, value in self._parsed().items() if value}
        values = {
            name: in_url.get(name) or defaults.get(name, "") for name in ("host", "port", "user")
        }
        database = in_url.get("dbname") or defaults.get("dbname") or values["user"]
        host = values["host"] or in_url.get("hostaddr") or "a local socket"
        return f"{host} port {values['port']} as {values['user']}, database {database}"
