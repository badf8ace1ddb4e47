"""A store in one SQLite file.

Two processes may write at once: every write is a `BEGIN IMMEDIATE` transaction, and the file is in
WAL mode, so readers never wait. Do not use a store in a process that was forked after it was
opened.

`SqliteStore` is at the end; before it are its queries for progress and workers, and for targets and
their files.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Mapping, Sequence
from os import fspath
from pathlib import Path
from typing import Any

from pyroaring import BitMap

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Source, Target
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
    FAR,
    OF_A_CAMPAIGN,
    TOTALS,
    Row,
    SqlReading,
    bucket_width,
    campaign_values,
    changed_values,
    cumulated,
)
from swarmtest.store.sqlite.batch import (
    insert_faults,
    insert_reduction,
    insert_tests,
    insert_trials,
    storable,
)
from swarmtest.store.sqlite.file import SqliteFile
from swarmtest.store.sqlite.schema import BLOCK, COUNT_BLOCKS

_WORKER = ", ".join(WorkerRecord._fields)
# The last report that arrives counts, not the one with the latest time: clocks may be set back.
_NOTE_WORKER = f"""
INSERT INTO workers (campaign, {_WORKER}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (campaign, name) DO UPDATE SET
    ({_WORKER}) = ({", ".join(f"excluded.{name}" for name in WorkerRecord._fields)})
"""
_COUNT_SOME_BLOCKS = (
    f"{COUNT_BLOCKS} WHERE campaign = ? AND trial BETWEEN ? AND ? GROUP BY trial / {BLOCK}"
)


def count_blocks(
    connection: sqlite3.Connection, campaign: int, trials: Sequence[TrialRecord]
) -> None:
    """Update the totals of the blocks that contain these trials.

    The blocks are counted again from the stored trials, so that a trial that was recorded twice
    counts once.
    """
    starts = sorted({trial.trial // BLOCK * BLOCK for trial in trials})
    connection.executemany(
        _COUNT_SOME_BLOCKS, [(campaign, start, start + BLOCK - 1) for start in starts]
    )


def totals(file: SqliteFile, campaign: int) -> dict[str, int]:
    """Return the sums over all trials of a campaign, by name."""
    sums = ", ".join(f"sum({name})" for name in TOTALS)
    row = file.rows(f"SELECT {sums} FROM blocks WHERE campaign = ?", campaign)[0]
    return {name: int(total or 0) for name, total in zip(TOTALS, row, strict=True)}


def progress_of(file: SqliteFile, campaign: int, buckets: int) -> list[ProgressPoint]:
    """Return the cumulative findings of a campaign at about `buckets` of its trials."""
    query = "SELECT max(trial) FROM trials WHERE campaign = ?"
    last = file.rows(query, campaign)[0][0]
    if last is None:
        return []
    width = bucket_width(last, buckets)
    if width < BLOCK:
        sums, trial, table = "count(*), sum(verdict = 1), total(cpu_ns)", "trial", "trials"
    else:
        sums, trial, table = "sum(trials), sum(failed), sum(cpu_ns)", f"block * {BLOCK}", "blocks"
    rows = file.rows(
        f"SELECT {trial} / {width}, {sums} FROM {table} WHERE campaign = ? GROUP BY 1 ORDER BY 1",
        campaign,
    )
    first_trials = "SELECT first_trial FROM faults WHERE campaign = ? ORDER BY first_trial"
    return cumulated(rows, last, width, [first for (first,) in file.rows(first_trials, campaign)])


def upsert_worker(connection: sqlite3.Connection, campaign: int, worker: WorkerRecord) -> None:
    """Store the latest report of a worker in place of its previous one."""
    clean = worker._replace(name=storable(worker.name), host=storable(worker.host))
    connection.execute(_NOTE_WORKER, (campaign, *clean))


def workers_of(file: SqliteFile, campaign: int) -> list[WorkerRecord]:
    """Return the workers of a campaign, sorted by name."""
    query = f"SELECT {_WORKER} FROM workers WHERE campaign = ? ORDER BY name"
    return list(map(WorkerRecord._make, file.rows(query, campaign)))


# Targets and the files that they lie in.

_COLUMNS = "kind, name, file, line, function, content, source, detail"
_INSERT = f"INSERT OR IGNORE INTO targets ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_FIND = "SELECT id FROM targets WHERE kind = ? AND name = ? AND source = ?"

FORGET_SOURCES = (
    "DELETE FROM sources WHERE id NOT IN (SELECT source FROM campaign_sources)",
    "DELETE FROM targets WHERE source != '' AND source NOT IN (SELECT id FROM sources)",
)
"""Delete the files that no campaign watches any more, and the targets in them."""
_IDS_PER_QUERY = 900
"""Older versions of SQLite take at most 999 parameters."""


def insert_targets(connection: sqlite3.Connection, targets: Sequence[Target]) -> list[int]:
    """Insert the targets that are not stored yet; return the ids of all, in order."""
    rows = [_row(target) for target in targets]
    connection.executemany(_INSERT, rows)
    find = connection.execute
    return [find(_FIND, (row[0], row[1], row[6])).fetchone()[0] for row in rows]


def checked(target: Target) -> Target:
    """Return the target if it has a kind and a name, otherwise raise a `UserError`."""
    if not target.kind or not target.name:
        raise UserError(
            "a target is written kind:name, like 'event:stack was full', "
            f"not {target.name or target.kind!r}"
        )
    return target


def _row(target: Target) -> tuple[str, str, str, int, str, str, str, str]:
    checked(target)
    return (
        storable(target.kind),
        storable(target.name),
        storable(target.file),
        target.line,
        storable(target.function),
        target.content,
        target.source,
        storable(target.detail),
    )


def targets_by_id(file: SqliteFile, ids: Iterable[int] | None) -> dict[int, Target]:
    """Return targets by id; all targets when `ids` is None."""
    query = f"SELECT id, {_COLUMNS} FROM targets"
    if ids is None:
        rows = file.rows(f"{query} ORDER BY id")
    else:
        rows, wanted = [], sorted(id for id in ids if id <= FAR)
        for start in range(0, len(wanted), _IDS_PER_QUERY):
            chunk = wanted[start : start + _IDS_PER_QUERY]
            marks = ", ".join("?" * len(chunk))
            rows += file.rows(f"{query} WHERE id IN ({marks}) ORDER BY id", *chunk)
    return {row[0]: Target(*row[1:]) for row in rows}


def targets_of_campaign(file: SqliteFile, campaign: int) -> dict[int, Target]:
    """Return the targets in a campaign's sources."""
    rows = file.rows(
        f"SELECT id, {_COLUMNS} FROM targets WHERE source IN "
        "(SELECT source FROM campaign_sources WHERE campaign = ?) ORDER BY id",
        campaign,
    )
    return {row[0]: Target(*row[1:]) for row in rows}


def insert_sources(
    connection: sqlite3.Connection, campaign: int, sources: Iterable[Source]
) -> None:
    """Store files, and that a campaign watches them."""
    for source in sources:
        text = zlib.compress(source.text.encode(errors="surrogatepass"))
        connection.execute(
            "INSERT OR IGNORE INTO sources (id, path, text) VALUES (?, ?, ?)",
            (source.id, storable(source.path), text),
        )
        connection.execute(
            "INSERT INTO campaign_sources (campaign, source, place) VALUES (?, ?, ?) "
            "ON CONFLICT DO UPDATE SET place = excluded.place WHERE excluded.place != ''",
            (campaign, source.id, storable(source.place)),
        )


def sources_of(file: SqliteFile, campaign: int) -> list[Source]:
    """Return the files that a campaign watched."""
    rows = file.rows(
        "SELECT path, text, place FROM sources JOIN campaign_sources ON source = id "
        "WHERE campaign = ? ORDER BY path",
        campaign,
    )
    return [
        Source(path, zlib.decompress(text).decode(errors="surrogatepass"), place)
        for path, text, place in rows
    ]


class SqliteStore(SqlReading):
    """Campaigns in an SQLite file; see `swarmtest.store.interface.Store` for the contract.

    >>> store = SqliteStore(":memory:")
    >>> campaign = store.add_campaign(CampaignRecord("stack.py", "coin", 7, {"dimensions": []}))
    >>> store.record(campaign, [TrialRecord(0, b"", steps=20), TrialRecord(1, b"", steps=30)])
    >>> store.summary(campaign)["steps"]
    50
    >>> store.close()
    """

    def __init__(self, path: str | Path, read_only: bool = False, *, timeout: float = 30.0) -> None:
        """Open a file; `timeout` is how many seconds to wait for a process that is writing."""
        self.url = fspath(path)
        self._file = SqliteFile(self.url, read_only=read_only, timeout=timeout)

    def add_campaign(self, campaign: CampaignRecord) -> int:
        """Store a new campaign and return its number."""
        values = [storable(v) if isinstance(v, str) else v for v in campaign_values(campaign)]
        with self._file.transaction() as connection:
            cursor = connection.execute(
                f"INSERT INTO campaigns ({CAMPAIGN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
                values,
            )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def update_campaign(self, campaign: int, **changes: Any) -> None:
        """Change `status`, `options`, `wall_seconds`, `cpu_seconds` or `outside` of a campaign."""
        values = changed_values(changes)
        with self._file.transaction() as connection:
            self._must_have(campaign)
            for column, value in values.items():
                connection.execute(
                    f"UPDATE campaigns SET {column} = ? WHERE id = ?", (value, campaign)
                )

    def delete_campaign(self, campaign: int) -> None:
        """Delete a campaign and everything that belongs to it, and free the disk space."""
        with self._file.transaction() as connection:
            self._must_have(campaign)
            for table in OF_A_CAMPAIGN:
                connection.execute(f"DELETE FROM {table} WHERE campaign = ?", (campaign,))
            connection.execute("DELETE FROM campaigns WHERE id = ?", (campaign,))
            for statement in FORGET_SOURCES:
                connection.execute(statement)
        self._file.shrink()

    def record(
        self,
        campaign: int,
        trials: Sequence[TrialRecord],
        faults: Sequence[FaultRecord] = (),
        tests: Sequence[TestRecord] = (),
    ) -> None:
        """Store a batch in one transaction."""
        with self._file.transaction() as connection:
            self._must_have(campaign)
            insert_trials(connection, campaign, trials)
            count_blocks(connection, campaign, trials)
            insert_faults(connection, campaign, faults)
            insert_tests(connection, campaign, tests)

    def add_hits(self, campaign: int, hits: Mapping[int, Iterable[int]]) -> None:
        """Add targets, by id, to the hits of trials: those found later, such as killed mutants."""
        with self._file.transaction() as connection:
            self._must_have(campaign)
            where = "campaign = ? AND trial = ?"
            for trial, ids in hits.items():
                query = f"SELECT hits FROM trials WHERE {where}"
                row = connection.execute(query, (campaign, trial)).fetchone()
                if row is None:
                    raise UserError(self._no_trial(campaign, trial))
                stored = BitMap.deserialize(row[0]) if row[0] else BitMap()
                packed = (stored | BitMap(ids)).serialize()
                update = f"UPDATE trials SET hits = ? WHERE {where}"
                connection.execute(update, (packed, campaign, trial))

    def summary(self, campaign: int) -> dict[str, int]:
        """Return totals: trials, passed, failed, invalid, steps, skipped, cpu_ns, wall_ns."""
        self._must_have(campaign)
        return totals(self._file, campaign)

    def progress(self, campaign: int, buckets: int = 200) -> list[ProgressPoint]:
        """Return the cumulative findings at about `buckets` evenly spaced trials."""
        self._must_have(campaign)
        return progress_of(self._file, campaign, buckets)

    def note_worker(self, campaign: int, worker: WorkerRecord) -> None:
        """Store the latest report of a worker in place of its previous one."""
        with self._file.transaction() as connection:
            self._must_have(campaign)
            upsert_worker(connection, campaign, worker)

    def workers(self, campaign: int) -> list[WorkerRecord]:
        """Return the latest report of each of the campaign's workers, sorted by name."""
        self._must_have(campaign)
        return workers_of(self._file, campaign)

    def add_reduction(self, campaign: int, reduction: ReductionRecord) -> None:
        """Store a reduced test of a fault unless a better one is stored."""
        with self._file.transaction() as connection:
            self._must_have(campaign)
            insert_reduction(connection, campaign, reduction)

    def target_ids(self, targets: Sequence[Target]) -> list[int]:
        """Return the ids of targets, in the same order; new targets get new ids."""
        if not targets:
            return []
        with self._file.transaction() as connection:
            return insert_targets(connection, targets)

    def targets(self, ids: Iterable[int] | None = None) -> dict[int, Target]:
        """Return targets by id; all targets when `ids` is None."""
        return targets_by_id(self._file, ids)

    def add_sources(self, campaign: int, sources: Iterable[Source]) -> None:
        """Store files that a campaign watches; a file that is stored already is only linked."""
        with self._file.transaction() as connection:
            self._must_have(campaign)
            insert_sources(connection, campaign, sources)

    def sources(self, campaign: int) -> list[Source]:
        """Return the files that a campaign watched, as they were then, sorted by path."""
        self._must_have(campaign)
        return sources_of(self._file, campaign)

    def watched_targets(self, campaign: int) -> dict[int, Target]:
        """Return the targets in a campaign's sources by id, hit or not."""
        self._must_have(campaign)
        return targets_of_campaign(self._file, campaign)

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        self._file.close()

    def _rows(self, query: str, *values: Any) -> list[Row]:
        return self._file.rows(query, *values)
