"""A connection to PostgreSQL that survives its loss, and says in one line why it cannot be used.

Invariants: work is given as a function of the connection, which runs in one transaction and again
from its start after a lost connection, so it has to be idempotent: the answer to a COMMIT may be
what was lost. Every error that is the user's to mend is a `UserError`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import pq, sql

from swarmtest.errors import UserError
from swarmtest.store import postgres_errors as why
from swarmtest.store.urls import PostgresAddress

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]
Connection: TypeAlias = psycopg.Connection[Row]

_FIRST_NAP, _LONGEST_NAP = 0.05, 2.0
"""Seconds between two tries to connect again; each is twice as long as the one before."""

_PATIENCE = {"connect_timeout": "10", "keepalives_idle": "10", "tcp_user_timeout": "30000"}
"""When a network that answers nothing counts as lost, unless the URL says otherwise."""


class PostgresServer:
    """Queries and transactions on one connection at a time."""

    def __init__(self, address: PostgresAddress, *, read_only: bool, timeout: float) -> None:
        self.shown = address.shown
        self._address = address
        self._read_only = read_only
        self.timeout = timeout
        self._ended = False
        self._given_up = ""
        """What was said after waiting in vain: who tidies up then does not wait again."""
        self._connection = self._first_connection()

    def rows(self, query: str, *values: Any) -> list[Row]:
        """All rows of a query."""
        with self._translated():
            # binary: bytes need not be written out as digits and read back.
            return self.again(lambda line: line.execute(query, values, binary=True).fetchall())

    def write(self, work: Callable[[Connection], T]) -> T:
        """Do idempotent work: all of it or, after an error, nothing."""

        def whole(connection: Connection) -> T:
            with connection.transaction():
                return work(connection)

        with self._translated():
            return self.again(whole)

    def again(self, work: Callable[[Connection], T]) -> T:
        """Work, and work once more on a new connection while the old one is lost."""
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
                if not why.is_passing(error):
                    raise
                if self._given_up:
                    raise UserError(self._given_up) from error
                waited = time.monotonic() - began
                said = why.lost_for_good(error, self.shown, tries, waited)
                if waited > self.timeout:
                    self._given_up = said if self._connection.closed else ""
                    raise UserError(said) from error
            self._nap(nap, said)
            nap = min(2 * nap, _LONGEST_NAP)

    def _nap(self, seconds: float, said: str) -> None:
        """Wait before the next try; who cannot wait (Ctrl-C) does not wait afterwards either."""
        if self._connection.broken:
            self._connection.close()
        try:
            time.sleep(seconds)
        except KeyboardInterrupt:
            self._given_up = said if self._connection.closed else ""
            raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn PostgreSQL's errors into a `UserError`; misuse of `psycopg` stays what it is."""
        try:
            yield
        except psycopg.Error as error:
            if error.sqlstate is None:
                raise
            raise UserError(why.explained(error, self.shown, self.timeout)) from error

    def another_connection(self) -> Connection:
        """A new connection that may write, even if this one is for reading; raises as psycopg."""
        connection = self._connect(read_only=False)
        connection.autocommit = False
        return connection

    def close(self) -> None:
        """Let go of the connection."""
        self._ended = True
        self._connection.close()

    def _first_connection(self) -> Connection:
        """A connection; where there is no server, or none that wants us, it is not tried again."""
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                return self._connect(self._read_only)
            except psycopg.Error as error:
                if why.is_there(error) and time.monotonic() < deadline:
                    time.sleep(_FIRST_NAP)
                    continue
                said = why.cannot_connect(error, self.shown, f"tried {self._place()}")
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
            # While a table is new and the server knows nothing of it, it would collect and sort all
            # of a campaign's trials for each chunk; the index has them in order.
            "enable_bitmapscan": "off",
        }
        if read_only:  # and never off: an administrator may have set it for this user
            settings["default_transaction_read_only"] = "on"
        wanted = [
            sql.SQL("SET {} TO {}").format(sql.Identifier(name), sql.Literal(value))
            for name, value in settings.items()
        ]
        connection.execute(sql.SQL("; ").join(wanted))

    def _conninfo(self) -> str:
        given = self._parsed()
        missing = {name: value for name, value in _PATIENCE.items() if name not in given}
        named = {"application_name": "swarmtest"} if "application_name" not in given else {}
        return psycopg.conninfo.make_conninfo(self._address.conninfo, **missing, **named)

    def _parsed(self) -> dict[str, Any]:
        try:
            return dict(psycopg.conninfo.conninfo_to_dict(self._address.conninfo))
        except psycopg.ProgrammingError as error:
            # libpq repeats what it could not read, and that may be a part of a password.
            word = "an unknown option" if "URI query parameter" in str(error) else "a mistake"
            raise UserError(
                f"store {self.shown}: this URL has {word} in it: it is written "
                "postgresql://USER@HOST:PORT/DATABASE?OPTION=VALUE"
            ) from None

    def _place(self) -> str:
        """What was tried, with what libpq takes from the environment where the URL is silent."""
        usual = {
            option.keyword.decode(): (option.val or b"").decode()
            for option in pq.Conninfo.get_defaults()
        }
        known = {name: str(value) for name, value in self._parsed().items() if value}
        told = {name: known.get(name) or usual.get(name, "") for name in ("host", "port", "user")}
        database = known.get("dbname") or usual.get("dbname") or told["user"]
        host = told["host"] or known.get("hostaddr") or "a local socket"
        return f"{host} port {told['port']} as {told['user']}, database {database}"
