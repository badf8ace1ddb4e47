"""Why a PostgreSQL store cannot be used, in one line that says what would help."""

from __future__ import annotations

import psycopg
from psycopg import errors

from swarmtest.store.schema import VERSION

_PASSING = (
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


def is_passing(error: psycopg.Error) -> bool:
    """Whether it may work if it is tried again: a lost connection, a server that restarts."""
    if isinstance(error, _PASSING):
        return True
    # What libpq finds out by itself has no code of the server.
    return error.sqlstate is None and isinstance(error, psycopg.OperationalError)


def is_there(error: psycopg.Error) -> bool:
    """Whether the server is there, and will take a connection in a moment."""
    return isinstance(error, _PASSING) or any(words in str(error) for words in _IN_A_MOMENT)


def first_line(error: BaseException) -> str:
    """What the server or libpq said, without hints and the rest.

    >>> first_line(OSError("connection failed: no such host\\nIs the server running?"))
    'connection failed: no such host'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def cannot_connect(error: psycopg.Error, shown: str, tried: str) -> str:
    """Why no connection could be made."""
    said = first_line(error)
    if "password authentication failed" in said or "no password supplied" in said:
        return (
            f"store {shown}: wrong user or password ({tried}): "
            "put the right one into PGPASSWORD or ~/.pgpass"
        )
    if "role" in said and "does not exist" in said:
        return f"store {shown}: the server knows no such user ({tried}): `createuser` makes one"
    if "database" in said and "does not exist" in said:
        return f"store {shown}: there is no such database ({tried}): `createdb` makes one"
    if "pg_hba.conf" in said or "authentication failed" in said or "permission denied" in said:
        return f"store {shown}: the server does not let you in ({tried}): {_last_part(said)}"
    if "too many" in said:
        return f"store {shown}: the server has no connection left ({tried}): {_last_part(said)}"
    return (
        f"store {shown}: the database cannot be reached ({tried}: {said}): "
        "start it, or pass another --store"
    )


def _last_part(said: str) -> str:
    return said.rpartition("FATAL:")[2].strip()


def lost_for_good(error: psycopg.Error, shown: str, tries: int, seconds: float) -> str:
    """The connection was lost, and trying again did not help."""
    times = "once" if tries == 1 else f"{tries} times"
    return (
        f"store {shown}: the connection was lost, and {times} in {seconds:.0f} s no other could be "
        f"made (the last: {first_line(error)}); what was recorded before is safe: "
        "go on with `swarmtest resume` when the database is back"
    )


def explained(error: psycopg.Error, shown: str, timeout: float) -> str:
    """Why a query did not work."""
    if isinstance(error, errors.InsufficientPrivilege | errors.ReadOnlySqlTransaction):
        return (
            f"store {shown} is read-only for you ({first_line(error)}): "
            "ask its owner for the rights of a writer, or pass another --store"
        )
    if isinstance(error, errors.LockNotAvailable | errors.QueryCanceled):
        return (
            f"store {shown} is locked by another process (waited {timeout:g} s): "
            "wait until that one has finished or end it, or pass another --store"
        )
    if isinstance(error, errors.DiskFull):
        return (
            f"store {shown}: the database's disk is full; what was recorded before is safe: "
            "free some space, then go on with `swarmtest resume`"
        )
    return f"store {shown} cannot be used ({first_line(error)}): ask whoever keeps the database"


def newer(shown: str, version: int) -> str:
    """It was written by a swarmtest that is newer than this one."""
    return (
        f"store {shown} was written by a newer swarmtest (schema {version}; this one knows "
        f"{VERSION}): upgrade with `pip install -U swarmtest`, or pass another --store"
    )


def foreign(shown: str, schema: str) -> str:
    """There are tables that are not ours."""
    return (
        f"store {shown}: schema {schema} has tables of another program, which were left as they "
        "are: name another one, like ?schema=swarmtest"
    )


def no_rights_to_create(shown: str, error: BaseException, version: int | None) -> str:
    """Its tables are missing or old, and this user may not make them."""
    if version is None:
        what = "there are no tables yet, and you may not make them"
    else:
        what = f"its schema is {version}, this swarmtest needs {VERSION}, and you may not change it"
    return (
        f"store {shown}: {what} ({first_line(error)}): "
        "let the owner of the database open it once with this swarmtest"
    )
