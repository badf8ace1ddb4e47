"""A store in a PostgreSQL database, for teams: many writers and readers, on many machines.

`PostgresStore` follows its queries for progress and workers; those for targets and for batches are
in `targets` and `batch`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyroaring import BitMap

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Source, Target
from swarmtest.store.interface import PostgresAddress
from swarmtest.store.postgres.batch import (
    insert_faults,
    insert_reduction,
    insert_tests,
    insert_trials,
    is_as_given,
    kept,
    told,
    told_row,
)
from swarmtest.store.postgres.connection import Connection, PostgresServer
from swarmtest.store.postgres.schema import bring_up_to_date
from swarmtest.store.postgres.targets import (
    forget_sources,
    insert_sources,
    insert_targets,
    sources_of,
    targets_by_id,
    targets_of_campaign,
)
from swarmtest.store.records import (
    CampaignRecord,
    FaultRecord,
    ProgressPoint,
    ReductionRecord,
    TestRecord,
    TrialRecord,
    WorkerRecord,
)
from swarmtest.store.sql import (
    CAMPAIGN,
    OF_A_CAMPAIGN,
    TOTALS,
    Row,
    SqlReading,
    bucket_width,
    campaign_values,
    changed_values,
    cumulated,
)
from swarmtest.store.sqlite.schema import BLOCK

_WORKER = ", ".join(WorkerRecord._fields)
# The last report that arrives counts, not the one with the latest time: clocks may be set back.
_NOTE_WORKER = f"""
INSERT INTO workers (campaign, {_WORKER}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (campaign, name) DO UPDATE SET
    ({_WORKER}) = ({", ".join(f"excluded.{name}" for name in WorkerRecord._fields)})
"""


def totals(server: PostgresServer, campaign: int) -> dict[str, int]:
    """Return the sums over all trials of a campaign, by name."""
    sums = ", ".join(f"sum({name})" for name in TOTALS)
    row = server.rows(f"SELECT {sums} FROM blocks WHERE campaign = %s", campaign)[0]
    return {name: int(total or 0) for name, total in zip(TOTALS, row, strict=True)}


def progress_of(server: PostgresServer, campaign: int, buckets: int) -> list[ProgressPoint]:
    """Return the cumulative findings of a campaign at about `buckets` of its trials."""
    last = server.rows("SELECT max(trial) FROM trials WHERE campaign = %s", campaign)[0][0]
    if last is None:
        return []
    width = bucket_width(last, buckets)
    if width < BLOCK:
        sums, table = "count(*), count(*) FILTER (WHERE verdict = 1), sum(cpu_ns)", "trials"
        trial = "trial"
    else:
        sums, table = "sum(trials), sum(failed), sum(cpu_ns)", "blocks"
        trial = f"block * {BLOCK}"
    rows = server.rows(
        f"SELECT {trial} / {width} AS bucket, {sums} FROM {table} "
        "WHERE campaign = %s GROUP BY bucket ORDER BY bucket",
        campaign,
    )
    first_trials = "SELECT first_trial FROM faults WHERE campaign = %s ORDER BY first_trial"
    return cumulated(rows, last, width, [first for (first,) in server.rows(first_trials, campaign)])


def upsert_worker(connection: Connection, campaign: int, worker: WorkerRecord) -> None:
    """Store the latest report of a worker in place of its previous one."""
    clean = worker._replace(
        name=kept(worker.name), host=kept(worker.host), state=kept(worker.state)
    )
    connection.execute(_NOTE_WORKER, (campaign, *clean))


def workers_of(server: PostgresServer, campaign: int) -> list[WorkerRecord]:
    """Return the workers of a campaign, sorted by name."""
    query = f"SELECT {_WORKER} FROM workers WHERE campaign = %s ORDER BY name"
    return [
        worker._replace(name=told(worker.name), host=told(worker.host), state=told(worker.state))
        for worker in map(WorkerRecord._make, server.rows(query, campaign))
    ]


class PostgresStore(SqlReading):
    """Campaigns in a PostgreSQL schema; see `swarmtest.store.interface.Store` for the contract."""

    def __init__(
        self, url: str, read_only: bool = False, *, must_exist: bool = False, timeout: float = 30.0
    ) -> None:
        """Connect; `timeout` is how many seconds to wait for locks and for a lost server."""
        address = PostgresAddress.parse(url)
        self.url = address.shown
        self._server = PostgresServer(address, read_only=read_only, timeout=timeout)
        try:
            bring_up_to_date(self._server, address.schema, must_exist=must_exist or read_only)
        except BaseException:
            self._server.close()
            raise

    def add_campaign(self, campaign: CampaignRecord) -> int:
        """Store a new campaign and return its number."""
        values = [kept(v) if isinstance(v, str) else v for v in campaign_values(campaign)]
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
                clean = kept(value) if isinstance(value, str) else value
                connection.execute(update, (clean, campaign))

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

        self._server.write(delete)

    def record(
        self,
        campaign: int,
        trials: Sequence[TrialRecord],
        faults: Sequence[FaultRecord] = (),
        tests: Sequence[TestRecord] = (),
    ) -> None:
        """Store a batch in one transaction."""

        def insert(connection: Connection) -> None:
            self._hold(connection, campaign)
            insert_trials(connection, campaign, trials)
            insert_faults(connection, campaign, faults)
            insert_tests(connection, campaign, tests)

        self._server.write(insert)

    def add_hits(self, campaign: int, hits: Mapping[int, Iterable[int]]) -> None:
        """Add targets, by id, to the hits of trials: those found later, such as killed mutants."""
        added = {trial: BitMap(hits[trial]) for trial in sorted(hits)}
        where = "campaign = %s AND trial = %s"

        def add(connection: Connection) -> None:
            self._hold(connection, campaign)
            for trial, ids in added.items():
                query = f"SELECT hits FROM trials WHERE {where} FOR UPDATE"
                row = connection.execute(query, (campaign, trial)).fetchone()
                if row is None:
                    raise UserError(self._no_trial(campaign, trial))
                stored = BitMap.deserialize(row[0]) if row[0] else BitMap()
                update = f"UPDATE trials SET hits = %s WHERE {where}"
                connection.execute(update, ((stored | ids).serialize(), campaign, trial))

        self._server.write(add)

    def summary(self, campaign: int) -> dict[str, int]:
        """Return totals: trials, passed, failed, invalid, steps, skipped, cpu_ns, wall_ns."""
        self._must_have(campaign)
        return totals(self._server, campaign)

    def progress(self, campaign: int, buckets: int = 200) -> list[ProgressPoint]:
        """Return the cumulative findings at about `buckets` evenly spaced trials."""
        self._must_have(campaign)
        return progress_of(self._server, campaign, buckets)

    def note_worker(self, campaign: int, worker: WorkerRecord) -> None:
        """Store the latest report of a worker in place of its previous one."""

        def note(connection: Connection) -> None:
            self._hold(connection, campaign)
            upsert_worker(connection, campaign, worker)

        self._server.write(note)

    def workers(self, campaign: int) -> list[WorkerRecord]:
        """Return the latest report of each of the campaign's workers, sorted by name."""
        self._must_have(campaign)
        return workers_of(self._server, campaign)

    def add_reduction(self, campaign: int, reduction: ReductionRecord) -> None:
        """Store a reduced test of a fault unless a better one is stored."""

        def add(connection: Connection) -> None:
            self._hold(connection, campaign)
            insert_reduction(connection, campaign, reduction)

        self._server.write(add)

    def target_ids(self, targets: Sequence[Target]) -> list[int]:
        """Return the ids of targets, in the same order; new targets get new ids."""
        if not targets:
            return []
        return self._server.write(lambda connection: insert_targets(connection, targets))

    def targets(self, ids: Iterable[int] | None = None) -> dict[int, Target]:
        """Return targets by id; all targets when `ids` is None."""
        return targets_by_id(self._server, ids)

    def add_sources(self, campaign: int, sources: Iterable[Source]) -> None:
        """Store files that a campaign watches; a file that is stored already is only linked."""
        retriable = list(sources)  # `add` may run several times

        def add(connection: Connection) -> None:
            self._hold(connection, campaign)
            insert_sources(connection, campaign, retriable)

        self._server.write(add)

    def sources(self, campaign: int) -> list[Source]:
        """Return the files that a campaign watched, as they were then, sorted by path."""
        self._must_have(campaign)
        return sources_of(self._server, campaign)

    def watched_targets(self, campaign: int) -> dict[int, Target]:
        """Return the targets in a campaign's sources by id, hit or not."""
        self._must_have(campaign)
        return targets_of_campaign(self._server, campaign)

    def close(self) -> None:
        """Close the connection; the store cannot be used afterwards."""
        self._server.close()

    def _hold(self, connection: Connection, campaign: int) -> None:
        """Keep a campaign from being deleted until the end of the transaction."""
        lock = "SELECT 1 FROM campaigns WHERE id = %s FOR KEY SHARE"
        if not connection.execute(lock, [campaign]).fetchone():
            self._refuse(campaign)

    def _rows(self, query: str, *values: Any) -> list[Row]:
        return self._server.rows(query.replace("?", "%s"), *values)

    def _encoded(self, text: str | None) -> str | None:
        return kept(text)

    def _decoded(self, row: Row) -> Row:
        return told_row(row)

    def _trial(self, row: Row) -> TrialRecord:
        trial = TrialRecord._make(row)
        if all(map(is_as_given, (trial.origin, trial.fault, trial.missing))):
            return trial
        return TrialRecord._make(told_row(row))
