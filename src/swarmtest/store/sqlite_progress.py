"""How far a campaign is, and who works on it, in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from swarmtest.store.batch import storable
from swarmtest.store.progress import TOTALS, bucket_width, cumulated
from swarmtest.store.records import ProgressPoint, TrialRecord, WorkerRecord
from swarmtest.store.schema import BLOCK, COUNT_BLOCKS
from swarmtest.store.sqlite_file import SqliteFile

_WORKER = ", ".join(WorkerRecord._fields)
# Whatever it says last counts, and not what it says is latest: clocks may be set back.
_NOTE_WORKER = f"""
INSERT INTO workers (campaign, {_WORKER}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (campaign, name) DO UPDATE SET
    ({_WORKER}) = ({", ".join(f"excluded.{name}" for name in WorkerRecord._fields)})
"""
_COUNT = f"{COUNT_BLOCKS} WHERE campaign = ? AND trial BETWEEN ? AND ? GROUP BY trial / {BLOCK}"


def count_blocks(
    connection: sqlite3.Connection, campaign: int, trials: Sequence[TrialRecord]
) -> None:
    """Bring the totals of the blocks that these trials lie in up to date.

    They are counted again: what was recorded twice counts once without having to be found out.
    """
    # A row may be a plain tuple: the recorder makes no records of what only passes by.
    starts = sorted({trial[0] // BLOCK * BLOCK for trial in trials})
    connection.executemany(_COUNT, [(campaign, start, start + BLOCK - 1) for start in starts])


def totals(file: SqliteFile, campaign: int) -> dict[str, int]:
    """The sums over all trials of a campaign, by name."""
    sums = ", ".join(f"sum({name})" for name in TOTALS)
    row = file.rows(f"SELECT {sums} FROM blocks WHERE campaign = ?", campaign)[0]
    return {name: int(total or 0) for name, total in zip(TOTALS, row, strict=True)}


def progress_of(file: SqliteFile, campaign: int, buckets: int) -> list[ProgressPoint]:
    """What a campaign had found by its trials, at about so many of them."""
    query = "SELECT max(trial) FROM trials WHERE campaign = ?"
    last = file.rows(query, campaign)[0][0]
    if last is None:
        return []
    width = bucket_width(last, buckets)
    if width < BLOCK:
        sums, place, table = "count(*), sum(verdict = 1), total(cpu_ns)", "trial", "trials"
    else:
        sums, place, table = "sum(trials), sum(failed), sum(cpu_ns)", f"block * {BLOCK}", "blocks"
    rows = file.rows(
        f"SELECT {place} / {width}, {sums} FROM {table} WHERE campaign = ? GROUP BY 1 ORDER BY 1",
        campaign,
    )
    found = "SELECT first_trial FROM faults WHERE campaign = ? ORDER BY first_trial"
    return cumulated(rows, last, width, [first for (first,) in file.rows(found, campaign)])


def upsert_worker(connection: sqlite3.Connection, campaign: int, worker: WorkerRecord) -> None:
    """Keep what a worker says of itself, in place of what it said before."""
    clean = worker._replace(name=storable(worker.name), host=storable(worker.host))
    connection.execute(_NOTE_WORKER, (campaign, *clean))


def workers_of(file: SqliteFile, campaign: int) -> list[WorkerRecord]:
    """The workers of a campaign, by name."""
    query = f"SELECT {_WORKER} FROM workers WHERE campaign = ? ORDER BY name"
    return list(map(WorkerRecord._make, file.rows(query, campaign)))
