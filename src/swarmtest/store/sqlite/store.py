"""A store in one SQLite file.

Two processes may write at once: every write is a `BEGIN IMMEDIATE` transaction, and the file is in
WAL mode, so readers never wait. Do not use a store in a process that was forked after it was
opened.

`SqliteStore` is at the end; before it are its statements for targets and their files. Those for
faults and tests are in `batch`, those for blocks of trials in `swarmtest.store.block_tables`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from os import fspath
from pathlib import Path
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Source, Target
from swarmtest.store.fault_groups import FaultDecision
from swarmtest.store.records import CampaignRecord, FaultEvent, ReductionRecord, WorkerRecord
from swarmtest.store.sql import (
    ADD_CAMPAIGN_SOURCE,
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
    checked_target,
    compressed,
    storable,
)
from swarmtest.store.sql_blocks import BlockStore, TrialBatch
from swarmtest.store.sqlite.batch import insert_faults, insert_reduction, insert_tests
from swarmtest.store.sqlite.file import SqliteFile, executing

_INSERT = f"INSERT OR IGNORE INTO targets ({TARGET}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_FIND = "SELECT id FROM targets WHERE kind = ? AND name = ? AND source = ?"

_FORGET_SOURCES = (
    "DELETE FROM sources WHERE id NOT IN (SELECT source FROM campaign_sources)",
    "DELETE FROM targets WHERE source != '' AND source NOT IN (SELECT id FROM sources)",
)
"""Delete the files that no campaign watches any more, and the targets in them."""
_PROBLEMS = 20
"""How many problems of a damaged file are listed."""
_IDS_PER_QUERY = 900
"""Older versions of SQLite take at most 999 parameters."""


def _insert_targets(connection: sqlite3.Connection, targets: Sequence[Target]) -> list[int]:
    """Insert the targets that are not stored yet; return the ids of all, in order."""
    rows = [_storable_target(target) for target in targets]
    connection.executemany(_INSERT, rows)
    find = connection.execute
    return [find(_FIND, (row.kind, row.name, row.source)).fetchone()[0] for row in rows]


def _storable_target(target: Target) -> Target:
    return checked_target(target)._replace(
        kind=storable(target.kind),
        name=storable(target.name),
        file=storable(target.file),
        function=storable(target.function),
        detail=storable(target.detail),
    )


def _insert_sources(
    connection: sqlite3.Connection, campaign: int, sources: Iterable[Source]
) -> None:
    """Store files, and that a campaign watches them."""
    for source in sources:
        connection.execute(
            "INSERT OR IGNORE INTO sources (id, path, text) VALUES (?, ?, ?)",
            (source.id, storable(source.path), compressed(source)),
        )
        connection.execute(ADD_CAMPAIGN_SOURCE, (campaign, source.id, storable(source.place)))


class SqliteStore(BlockStore):
    """Campaigns in an SQLite file; see `swarmtest.store.interface.Store` for the contract.

    >>> from swarmtest.store.records import TrialRecord
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
        with self._file.transaction(resumable=False) as connection:
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
            for statement in _FORGET_SOURCES:
                connection.execute(statement)
            forget_number, forget_subjects = FORGET_FAULT_EVENTS
            connection.execute(forget_number, (campaign,))
            connection.execute(forget_subjects)
        self._file.shrink()

    def _write_trials(self, campaign: int, write: Callable[[TrialBatch], None]) -> None:
        with self._file.transaction() as connection:
            self._must_have(campaign)
            write(
                TrialBatch(
                    executing(connection),
                    partial(insert_faults, connection, campaign),
                    partial(insert_tests, connection, campaign),
                )
            )

    def _free_space(self) -> None:
        self._file.shrink()

    def note_worker(self, campaign: int, worker: WorkerRecord) -> None:
        """Store the latest report of a worker in place of its previous one."""
        with self._file.transaction() as connection:
            self._must_have(campaign)
            clean = worker._replace(name=storable(worker.name), host=storable(worker.host))
            connection.execute(ADD_WORKER, (campaign, *clean))

    def add_reduction(self, campaign: int, reduction: ReductionRecord) -> None:
        """Store a reduced test of a fault unless a better one is stored."""
        with self._file.transaction() as connection:
            self._must_have(campaign)
            insert_reduction(connection, campaign, reduction)

    def decide_faults(
        self, decisions: Sequence[FaultDecision], forget: Sequence[FaultDecision] = ()
    ) -> None:
        """Store decisions in place of earlier ones of the same faults, and take others back."""
        with self._file.transaction() as connection:
            for old in forget:
                connection.execute(FORGET_DECISION, (old.fault, old.decided_by))
            for new in decisions:
                connection.execute(ADD_DECISION, new._replace(reason=storable(new.reason)))

    def add_fault_events(self, events: Sequence[FaultEvent]) -> None:
        """Store what happened to faults; an event that is stored already is not stored again."""
        rows = [[storable(v) if isinstance(v, str) else v for v in event] for event in events]
        with self._file.transaction() as connection:
            connection.executemany(ADD_FAULT_EVENT, rows)

    def target_ids(self, targets: Sequence[Target]) -> list[int]:
        """Return the ids of targets, in the same order; new targets get new ids."""
        if not targets:
            return []
        with self._file.transaction() as connection:
            return _insert_targets(connection, targets)

    def targets(self, ids: Iterable[int] | None = None) -> dict[int, Target]:
        """Return targets by id; all targets when `ids` is None."""
        query = f"SELECT id, {TARGET} FROM targets"
        if ids is None:
            return self._targets(self._file.rows(f"{query} ORDER BY id"))
        rows, possible = [], sorted(id for id in ids if id <= FAR)
        for start in range(0, len(possible), _IDS_PER_QUERY):
            chunk = possible[start : start + _IDS_PER_QUERY]
            marks = ", ".join("?" * len(chunk))
            rows += self._file.rows(f"{query} WHERE id IN ({marks}) ORDER BY id", *chunk)
        return self._targets(rows)

    def add_sources(self, campaign: int, sources: Iterable[Source]) -> None:
        """Store files that a campaign watches; a file that is stored already is only linked."""
        with self._file.transaction() as connection:
            self._must_have(campaign)
            _insert_sources(connection, campaign, sources)

    def integrity(self) -> list[str]:
        """Return what SQLite finds wrong with the file, a line for each."""
        try:
            rows = self._rows(f"PRAGMA integrity_check({_PROBLEMS})")
        except UserError as error:
            return [str(error)]
        found = [" ".join(str(line).split()) for (line,) in rows if line != "ok"]
        return [*found, *self._lost_in_conversion()]

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        self._file.close()

    def _rows(self, query: str, *values: Any) -> list[Row]:
        return self._file.rows(query, *values)
