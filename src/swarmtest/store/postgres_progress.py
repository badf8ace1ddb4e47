"""How far a campaign is, and who works on it, in PostgreSQL."""

from __future__ import annotations

from swarmtest.store.postgres_server import Connection, PostgresServer
from swarmtest.store.postgres_text import kept, told
from swarmtest.store.progress import TOTALS, bucket_width, cumulated
from swarmtest.store.records import ProgressPoint, WorkerRecord
from swarmtest.store.schema import BLOCK

_WORKER = ", ".join(WorkerRecord._fields)
# Whatever it says last counts, and not what it says is latest: clocks may be set back.
_NOTE_WORKER = f"""
INSERT INTO workers (campaign, {_WORKER}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (campaign, name) DO UPDATE SET
    ({_WORKER}) = ({", ".join(f"excluded.{name}" for name in WorkerRecord._fields)})
"""


def totals(server: PostgresServer, campaign: int) -> dict[str, int]:
    """The sums over all trials of a campaign, by name."""
    sums = ", ".join(f"sum({name})" for name in TOTALS)
    row = server.rows(f"SELECT {sums} FROM blocks WHERE campaign = %s", campaign)[0]
    return {name: int(total or 0) for name, total in zip(TOTALS, row, strict=True)}


def progress_of(server: PostgresServer, campaign: int, buckets: int) -> list[ProgressPoint]:
    """What a campaign had found by its trials, at about so many of them."""
    last = server.rows("SELECT max(trial) FROM trials WHERE campaign = %s", campaign)[0][0]
    if last is None:
        return []
    width = bucket_width(last, buckets)
    if width < BLOCK:
        sums, table = "count(*), count(*) FILTER (WHERE verdict = 1), sum(cpu_ns)", "trials"
        place = "trial"
    else:
        sums, table = "sum(trials), sum(failed), sum(cpu_ns)", "blocks"
        place = f"block * {BLOCK}"
    rows = server.rows(
        f"SELECT {place} / {width} AS bucket, {sums} FROM {table} "
        "WHERE campaign = %s GROUP BY bucket ORDER BY bucket",
        campaign,
    )
    found = "SELECT first_trial FROM faults WHERE campaign = %s ORDER BY first_trial"
    return cumulated(rows, last, width, [first for (first,) in server.rows(found, campaign)])


def upsert_worker(connection: Connection, campaign: int, worker: WorkerRecord) -> None:
    """Keep what a worker says of itself, in place of what it said before."""
    clean = worker._replace(
        name=kept(worker.name), host=kept(worker.host), state=kept(worker.state)
    )
    connection.execute(_NOTE_WORKER, (campaign, *clean))


def workers_of(server: PostgresServer, campaign: int) -> list[WorkerRecord]:
    """The workers of a campaign, by name."""
    query = f"SELECT {_WORKER} FROM workers WHERE campaign = %s ORDER BY name"
    return [
        one._replace(name=told(one.name), host=told(one.host), state=told(one.state))
        for one in map(WorkerRecord._make, server.rows(query, campaign))
    ]
