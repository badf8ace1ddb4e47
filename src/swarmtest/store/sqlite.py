"""A store in one SQLite file, with nothing but the standard library.

Two processes may write at once: every write is a `BEGIN IMMEDIATE` transaction, and the file is in
WAL mode, so readers never wait. Do not use a store in a process forked after it was opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import fspath
from pathlib import Path
from typing import Any

from pyroaring import BitMap

from swarmtest.errors import UserError
from swarmtest.store.batch import (
    insert_faults,
    insert_reduction,
    insert_tests,
    insert_trials,
    storable,
)
from swarmtest.store.reading import Row, SqlReading
from swarmtest.store.records import (
    CampaignRecord,
    FaultRecord,
    ProgressPoint,
    ReductionRecord,
    TestRecord,
    TrialRecord,
    WorkerRecord,
)
from swarmtest.store.rows import (
    CAMPAIGN,
    OF_A_CAMPAIGN,
    campaign_values,
    changed_values,
)
from swarmtest.store.sqlite_file import SqliteFile
from swarmtest.store.sqlite_progress import (
    count_blocks,
    progress_of,
    totals,
    upsert_worker,
    workers_of,
)
from swarmtest.store.sqlite_targets import (
    FORGET_SOURCES,
    insert_sources,
    insert_targets,
    sources_of,
    targets_by_id,
    targets_of_campaign,
)
from swarmtest.targets import Source, Target


class SqliteStore(SqlReading):
    """Campaigns in an SQLite file; see `swarmtest.store.store.Store` for the contract.

    >>> store = SqliteStore(":memory:")
    >>> campaign = store.add_campaign(CampaignRecord("stack.py", "coin", 7, {"dimensions": []}))
    >>> store.record(campaign, [TrialRecord(0, b"", steps=20), TrialRecord(1, b"", steps=30)])
    >>> store.summary(campaign)["steps"]
    50
    >>> store.close()
    """

    def __init__(self, path: str | Path, read_only: bool = False, *, timeout: float = 30.0) -> None:
        """Open a file; `timeout`: seconds to wait for another process that is writing."""
        self.url = fspath(path)
        self._file = SqliteFile(self.url, read_only=read_only, timeout=timeout)

    def add_campaign(self, campaign: CampaignRecord) -> int:
        """Keep a new campaign and give it its number."""
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
        """Forget a campaign with all that belongs to it, and give the space back."""
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
        """Keep a batch, in one transaction."""
        with self._file.transaction() as connection:
            self._must_have(campaign)
            insert_trials(connection, campaign, trials)
            count_blocks(connection, campaign, trials)
            insert_faults(connection, campaign, faults)
            insert_tests(connection, campaign, tests)

    def add_hits(self, campaign: int, hits: Mapping[int, Iterable[int]]) -> None:
        """Add targets (by id) to what trials hit: what was found out later, like killed mutants."""
        with self._file.transaction() as connection:
            self._must_have(campaign)
            place = "campaign = ? AND trial = ?"
            for trial, ids in hits.items():
                query = f"SELECT hits FROM trials WHERE {place}"
                found = connection.execute(query, (campaign, trial)).fetchone()
                if found is None:
                    raise UserError(self._no_trial(campaign, trial))
                known = BitMap.deserialize(found[0]) if found[0] else BitMap()
                packed = (known | BitMap(ids)).serialize()
                update = f"UPDATE trials SET hits = ? WHERE {place}"
                connection.execute(update, (packed, campaign, trial))

    def summary(self, campaign: int) -> dict[str, int]:
        """Totals: trials, passed, failed, invalid, steps, skipped, cpu_ns, wall_ns."""
        self._must_have(campaign)
        return totals(self._file, campaign)

    def progress(self, campaign: int, buckets: int = 200) -> list[ProgressPoint]:
        """What was found by about so many of its trials, evenly spread over their numbers."""
        self._must_have(campaign)
        return progress_of(self._file, campaign, buckets)

    def note_worker(self, campaign: int, worker: WorkerRecord) -> None:
        """Keep what a worker says of itself, in place of what it said before."""
        with self._file.transaction() as connection:
            self._must_have(campaign)
            upsert_worker(connection, campaign, worker)

    def workers(self, campaign: int) -> list[WorkerRecord]:
        """The campaign's workers as they last spoke, by name."""
        self._must_have(campaign)
        return workers_of(self._file, campaign)

    def add_reduction(self, campaign: int, reduction: ReductionRecord) -> None:
        """Keep a fault's test made smaller, unless a better one is there."""
        with self._file.transaction() as connection:
            self._must_have(campaign)
            insert_reduction(connection, campaign, reduction)

    def target_ids(self, targets: Sequence[Target]) -> list[int]:
        """The ids of targets, in their order; those not yet known get one."""
        if not targets:
            return []
        with self._file.transaction() as connection:
            return insert_targets(connection, targets)

    def targets(self, ids: Iterable[int] | None = None) -> dict[int, Target]:
        """Targets by id; all of them when no ids are given."""
        return targets_by_id(self._file, ids)

    def add_sources(self, campaign: int, sources: Iterable[Source]) -> None:
        """Keep files that a campaign watches; what is kept already is only noted."""
        with self._file.transaction() as connection:
            self._must_have(campaign)
            insert_sources(connection, campaign, sources)

    def sources(self, campaign: int) -> list[Source]:
        """The files that a campaign watched, as they were then, in order of their paths."""
        self._must_have(campaign)
        return sources_of(self._file, campaign)

    def watched_targets(self, campaign: int) -> dict[int, Target]:
        """The targets that lie in a campaign's sources, hit or not, by id."""
        self._must_have(campaign)
        return targets_of_campaign(self._file, campaign)

    def close(self) -> None:
        """Let go of the file; the store is not used afterwards."""
        self._file.close()

    def _rows(self, query: str, *values: Any) -> list[Row]:
        return self._file.rows(query, *values)
