"""A store in a PostgreSQL database, for teams: many writers and readers, on many machines.

`PostgresStore` is at the end; before it is what creates and upgrades the tables. What writes is in
`batch`.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import psycopg
from psycopg import errors, sql

from swarmtest.core.errors import UserError
from swarmtest.core.errors import version as own_version
from swarmtest.core.targets import Source, Target
from swarmtest.store.fault_groups import FaultDecision
from swarmtest.store.interface import PostgresAddress
from swarmtest.store.postgres import connection as why
from swarmtest.store.postgres.batch import (
    decode_row,
    encode_row,
    encode_text,
    executing,
    forget_sources,
    insert_faults,
    insert_reduction,
    insert_sources,
    insert_targets,
    insert_tests,
    with_marks,
)
from swarmtest.store.postgres.connection import Connection, PostgresServer
from swarmtest.store.records import CampaignRecord, FaultEvent, ReductionRecord, WorkerRecord
from swarmtest.store.schema import BLOCKS, POSTGRES, VERSION, statements
from swarmtest.store.sql import (
    ADD_DECISION,
    ADD_FAULT_EVENT,
    ADD_WORKER,
    CAMPAIGN,
    FAR,
    FORGET_DECISION,
    FORGET_FAULT_EVENTS,
    OF_A_CAMPAIGN,
    TARGET,
    Row,
    campaign_values,
    changed_values,
)
from swarmtest.store.sql_blocks import BlockStore, TrialBatch

_TABLES = """
SELECT to_regclass('swarmtest_version') IS NOT NULL, to_regclass('alembic_version') IS NOT NULL,
       has_schema_privilege(oid, 'USAGE')
FROM pg_namespace WHERE nspname = %s
"""
_VERSION = "SELECT version FROM swarmtest_version"
_ALEMBIC_VERSION = "SELECT version_num FROM alembic_version"
"""Where older versions of swarmtest, which used Alembic, stored the version."""
_LOCK = "SELECT pg_advisory_xact_lock(hashtext(%s))"
"""Taken before tables are created: two processes may open the same empty database at once."""


def _stored_version(rows: Callable[..., list[Row]], schema: str) -> int:
    """Return the version of the tables in the schema; 0 if there are none.

    Raise ValueError if they belong to another program.
    """
    has_version, has_alembic, may_use = (rows(_TABLES, schema) or [(False, False, True)])[0]
    if may_use and not has_version and not has_alembic:
        return 0
    # Tables in a schema that the user may not use look as if they did not exist.
    ((version,),) = rows(_ALEMBIC_VERSION if has_alembic and not has_version else _VERSION)
    return int(version)


def _bring_up_to_date(server: PostgresServer, schema: str, *, must_exist: bool) -> None:
    """Make sure that the current tables exist; raise a `UserError` if that is not possible."""
    try:
        version = _stored_version(server.rows, schema)
    except UserError as error:
        if not isinstance(error.__cause__, errors.InsufficientPrivilege | errors.UndefinedTable):
            raise
        raise UserError(
            f"store {server.shown} cannot be read by you: ask its owner for the rights of a reader"
        ) from error
    except ValueError:
        raise UserError(why.foreign_tables(server.shown, schema)) from None
    if version == VERSION:
        return
    if version == 0 and must_exist:
        raise UserError(f"no store at {server.shown}: run `swarmtest run` first or pass --store")
    if version > VERSION:
        raise UserError(why.newer_schema(server.shown, version))
    try:
        server.again(lambda _: _upgrade(server, schema))
    except psycopg.Error as error:
        if isinstance(error, errors.InsufficientPrivilege | errors.ReadOnlySqlTransaction):
            said = why.no_right_to_create(server.shown, error, version)
            raise UserError(said) from error
        if isinstance(error, errors.DuplicateTable):
            raise UserError(why.foreign_tables(server.shown, schema)) from error
        raise UserError(why.explain_error(error, server.shown, server.timeout)) from error


def _upgrade(server: PostgresServer, schema: str) -> None:
    """Create the tables, or bring older ones up to date, in one transaction."""
    with server.another_connection() as connection:
        execute = connection.execute
        execute(_LOCK, [f"swarmtest {schema}"])
        if not execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema]).fetchone():
            execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        version = _stored_version(lambda query, *values: execute(query, values).fetchall(), schema)
        if version >= VERSION:  # another process was faster
            return
        for statement in statements(POSTGRES, version):
            execute(statement)
        if 0 < version < BLOCKS:
            from swarmtest.store.conversion import convert_rows

            convert_rows(executing(connection), server.shown, decode_row)
        execute("CREATE TABLE IF NOT EXISTS swarmtest_version (version INTEGER NOT NULL)")
        execute("DELETE FROM swarmtest_version")
        execute("INSERT INTO swarmtest_version VALUES (%s)", [VERSION])
        if execute("SELECT to_regclass('alembic_version')").fetchone() != (None,):
            # A swarmtest that reads only this table must not take the store for an older one.
            execute("UPDATE alembic_version SET version_num = %s", [str(VERSION)])
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        execute(
            "INSERT INTO meta VALUES ('created', %s), ('created_by', %s) ON CONFLICT DO NOTHING",
            [now, f"swarmtest {own_version()}"],
        )


class PostgresStore(BlockStore):
    """Campaigns in a PostgreSQL schema; see `swarmtest.store.interface.Store` for the contract."""

    def __init__(
        self, url: str, read_only: bool = False, *, must_exist: bool = False, timeout: float = 30.0
    ) -> None:
        """Connect; `timeout` is how many seconds to wait for locks and for a lost server."""
        address = PostgresAddress.parse(url)
        self.url = address.shown
        self._server = PostgresServer(address, read_only=read_only, timeout=timeout)
        try:
            _bring_up_to_date(self._server, address.schema, must_exist=must_exist or read_only)
        except BaseException:
            self._server.close()
            raise

    def add_campaign(self, campaign: CampaignRecord) -> int:
        """Store a new campaign and return its number."""
        values = encode_row(campaign_values(campaign))
        # The number comes first: a retry after a lost connection must not add a second campaign.
        number = self._server.rows("SELECT nextval(pg_get_serial_sequence('campaigns', 'id'))")
        insert = f"INSERT INTO campaigns ({CAMPAIGN}) VALUES ({', '.join(['%s'] * 11)})"
        self._server.write(
            lambda connection: connection.execute(
                f"{insert} ON CONFLICT DO NOTHING", [*values, number[0][0]]
            )
        )
        return int(number[0][0])

    def update_campaign(self, campaign: int, **changes: Any) -> None:
        """Change `status`, `options`, `wall_seconds`, `cpu_seconds` or `outside` of a campaign."""
        values = changed_values(changes)

        def change(connection: Connection) -> None:
            self._hold(connection, campaign)
            for column, value in values.items():
                update = f"UPDATE campaigns SET {column} = %s WHERE id = %s"
                connection.execute(update, encode_row((value, campaign)))

        self._server.write(change)

    def delete_campaign(self, campaign: int) -> None:
        """Delete a campaign with everything in it; the server's vacuum reuses the space."""
        self._must_have(campaign)

        def delete(connection: Connection) -> None:
            # Writers wait for this lock, and then find no campaign.
            connection.execute("SELECT FROM campaigns WHERE id = %s FOR UPDATE", [campaign])
            for table in OF_A_CAMPAIGN:
                connection.execute(f"DELETE FROM {table} WHERE campaign = %s", [campaign])
            connection.execute("DELETE FROM campaigns WHERE id = %s", [campaign])
            forget_sources(connection)
            forget_number, forget_subjects = FORGET_FAULT_EVENTS
            connection.execute(with_marks(forget_number), [campaign])
            connection.execute(forget_subjects)

        self._server.write(delete)

    def _write_trials(self, campaign: int, write: Callable[[TrialBatch], None]) -> None:
        def transact(connection: Connection) -> None:
            self._hold_blocks(connection, campaign)
            with connection.pipeline():
                write(
                    TrialBatch(
                        executing(connection),
                        partial(insert_faults, connection, campaign),
                        partial(insert_tests, connection, campaign),
                    )
                )

        self._server.write(transact)

    def note_worker(self, campaign: int, worker: WorkerRecord) -> None:
        """Store the latest report of a worker in place of its previous one."""

        def note(connection: Connection) -> None:
            self._hold(connection, campaign)
            connection.execute(with_marks(ADD_WORKER), (campaign, *encode_row(worker)))

        self._server.write(note)

    def add_reduction(self, campaign: int, reduction: ReductionRecord) -> None:
        """Store a reduced test of a fault unless a better one is stored."""

        def add(connection: Connection) -> None:
            self._hold(connection, campaign)
            insert_reduction(connection, campaign, reduction)

        self._server.write(add)

    def decide_faults(
        self, decisions: Sequence[FaultDecision], forget: Sequence[FaultDecision] = ()
    ) -> None:
        """Store decisions in place of earlier ones of the same faults, and take others back."""

        def decide(connection: Connection) -> None:
            for old in forget:
                connection.execute(
                    with_marks(FORGET_DECISION), encode_row((old.fault, old.decided_by))
                )
            for new in decisions:
                connection.execute(with_marks(ADD_DECISION), encode_row(new))

        self._server.write(decide)

    def add_fault_events(self, events: Sequence[FaultEvent]) -> None:
        """Store what happened to faults; an event that is stored already is not stored again."""
        rows = [encode_row(event) for event in events]

        def add(connection: Connection) -> None:
            for row in rows:
                connection.execute(with_marks(ADD_FAULT_EVENT), row)

        self._server.write(add)

    def target_ids(self, targets: Sequence[Target]) -> list[int]:
        """Return the ids of targets, in the same order; new targets get new ids."""
        if not targets:
            return []
        return self._server.write(lambda connection: insert_targets(connection, targets))

    def targets(self, ids: Iterable[int] | None = None) -> dict[int, Target]:
        """Return targets by id; all targets when `ids` is None."""
        query = f"SELECT id, {TARGET} FROM targets"
        if ids is None:
            return self._targets(self._server.rows(f"{query} ORDER BY id"))
        possible = [id for id in ids if id <= FAR]
        query += " WHERE id = ANY(%s::bigint[]) ORDER BY id"
        return self._targets(self._server.rows(query, possible))

    def add_sources(self, campaign: int, sources: Iterable[Source]) -> None:
        """Store files that a campaign watches; a file that is stored already is only linked."""
        retriable = list(sources)  # `add` may run several times

        def add(connection: Connection) -> None:
            self._hold(connection, campaign)
            insert_sources(connection, campaign, retriable)

        self._server.write(add)

    def close(self) -> None:
        """Close the connection; the store cannot be used afterwards."""
        self._server.close()

    def _hold(self, connection: Connection, campaign: int) -> None:
        """Keep a campaign from being deleted until the end of the transaction."""
        lock = "SELECT 1 FROM campaigns WHERE id = %s FOR KEY SHARE"
        if not connection.execute(lock, [campaign]).fetchone():
            self._refuse(campaign)

    def _hold_blocks(self, connection: Connection, campaign: int) -> None:
        """Keep others from writing trials of a campaign until the end of the transaction.

        Blocks must not overlap, so writers of the same campaign take turns.
        """
        lock = "SELECT 1 FROM campaigns WHERE id = %s FOR NO KEY UPDATE"
        if not connection.execute(lock, [campaign]).fetchone():
            self._refuse(campaign)

    def integrity(self) -> list[str]:
        """Return what was damaged before the store was converted, a line for each."""
        return self._lost_in_conversion()

    def _rows(self, query: str, *values: Any) -> list[Row]:
        return self._server.rows(with_marks(query), *values)

    def _encoded(self, text: str | None) -> str | None:
        return encode_text(text)

    def _decoded(self, row: Row) -> Row:
        return decode_row(row)
