"""Create the tables of a PostgreSQL store, and upgrade older ones, with Alembic."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors, sql

from swarmtest.core.errors import UserError
from swarmtest.core.errors import version as own_version
from swarmtest.store.postgres import connection as why
from swarmtest.store.postgres.connection import Connection, PostgresServer
from swarmtest.store.sqlite.schema import VERSION

_TABLES = """
SELECT to_regclass('alembic_version') IS NOT NULL, has_schema_privilege(oid, 'USAGE')
FROM pg_namespace WHERE nspname = %s
"""
_LOCK = "SELECT pg_advisory_xact_lock(hashtext(%s))"
"""Taken before tables are created: two processes may open the same empty database at once."""


def version_of(server: PostgresServer, schema: str) -> int | None:
    """Return the version of the tables in the schema; None if there are none."""
    rows = server.rows(_TABLES, schema)
    if not rows or rows[0] == (False, True):
        return None
    try:
        [(version,)] = server.rows("SELECT version_num FROM alembic_version")
        return int(version)
    except UserError as error:
        # Tables in a schema that the user may not use look as if they did not exist.
        if not isinstance(error.__cause__, errors.InsufficientPrivilege | errors.UndefinedTable):
            raise
        raise UserError(
            f"store {server.shown} cannot be read by you: ask its owner for the rights of a reader"
        ) from error
    except ValueError:
        raise UserError(why.foreign(server.shown, schema)) from None


def bring_up_to_date(server: PostgresServer, schema: str, *, must_exist: bool) -> None:
    """Make sure that the current tables exist; raise a `UserError` if that is not possible."""
    version = version_of(server, schema)
    if version == VERSION:
        return
    if version is None and must_exist:
        raise UserError(f"no store at {server.shown}: run `swarmtest run` first or pass --store")
    if version is not None and version > VERSION:
        raise UserError(why.newer(server.shown, version))
    try:
        server.again(lambda _: migrate(server.another_connection, schema))
    except psycopg.Error as error:
        if isinstance(error, errors.InsufficientPrivilege | errors.ReadOnlySqlTransaction):
            said = why.no_rights_to_create(server.shown, error, version)
            raise UserError(said) from error
        if isinstance(error, errors.DuplicateTable):
            raise UserError(why.foreign(server.shown, schema)) from error
        raise UserError(why.explained(error, server.shown, server.timeout)) from error


def migrate(connect: Callable[[], Connection], schema: str, to: int = VERSION) -> None:
    """Run the scripts that lead from the stored version to version `to`, in one transaction."""
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import NullPool

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    with connect() as raw:
        engine = create_engine("postgresql+psycopg://", creator=lambda: raw, poolclass=NullPool)
        try:
            with engine.connect() as connection, connection.begin():
                raw.execute(_LOCK, [f"swarmtest {schema}"])
                if not raw.execute(
                    "SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema]
                ).fetchone():
                    raw.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
                config.attributes["connection"] = connection
                command.upgrade(config, str(to))
                _store_creation(raw)
        except DBAPIError as error:
            if isinstance(error.orig, psycopg.Error):
                raise error.orig from error
            raise


def _store_creation(connection: psycopg.Connection[Any]) -> None:
    """Store when, and by which swarmtest, the tables were created."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    connection.execute(
        "INSERT INTO meta VALUES ('created', %s), ('created_by', %s) ON CONFLICT DO NOTHING",
        [now, f"swarmtest {own_version()}"],
    )
