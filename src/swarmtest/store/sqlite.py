"""A store in one SQLite file, with nothing but the standard library.

Two processes may write at once: every write is a `BEGIN IMMEDIATE` transaction, and the file is in
WAL mode, so readers never wait. Do not use a store in a process forked after it was opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import fspath
from pathlib import Path
from typing import Any, Self

from pyroaring import BitMap

from swarmtest.errors import UserError
from swarmtest.store.batch import (
    insert_faults,
    insert_reduction,
    insert_tests,
    insert_trials,
    storable,
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
from swarmtest.store.rows import (
    CAMPAIGN,
    FAR,
    OF_A_CAMPAIGN,
    Span,
    campaign_of,
    campaign_values,
    changed_values,
    no_campaign,
    no_trial,
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

_TRIAL = ", ".join(TrialRecord._fields)
_REDUCTION = ", ".join(ReductionRecord._fields)
_FAULTS = """
SELECT id, kind, signature, details, first_trial, trial, size, test,
       (SELECT count(*) FROM trials
        WHERE trials.campaign = faults.campaign AND trials.fault = faults.id)
FROM faults WHERE campaign = ? ORDER BY first_trial, id
"""


class SqliteStore:
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

    def campaign(self, campaign: int) -> CampaignRecord:
        """One campaign; a number that is not there is a `UserError` that tells which are."""
        self._must_have(campaign)
        found = self._file.rows(f"SELECT {CAMPAIGN} FROM campaigns WHERE id = ?", campaign)
        return campaign_of(found[0])

    def campaigns(self) -> list[CampaignRecord]:
        """All campaigns, oldest first."""
        rows = self._file.rows(f"SELECT {CAMPAIGN} FROM campaigns ORDER BY id")
        return list(map(campaign_of, rows))

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

    def trials(
        self,
        campaign: int,
        *,
        after: int = -1,
        before: int | None = None,
        verdict: int | None = None,
        fault: str | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[TrialRecord]:
        """Trials in order of their numbers, streamed, all or those that are picked."""
        filters = {"campaign": campaign, "verdict": verdict, "fault": fault}
        wanted = {column: value for column, value in filters.items() if value is not None}
        where = " AND ".join(f"{column} = ?" for column in wanted)
        self._must_have(campaign)
        span = Span(after, FAR if before is None else before, newest_first, limit)
        chunks = self._chunks(f"SELECT {_TRIAL} FROM trials WHERE {where}", wanted.values(), span)
        return (TrialRecord._make(row) for chunk in chunks for row in chunk)

    def trial(self, campaign: int, trial: int) -> TrialRecord:
        """One trial; a `UserError` if it is not there."""
        query = f"SELECT {_TRIAL} FROM trials WHERE campaign = ? AND trial = ?"
        self._must_have(campaign)
        found = self._file.rows(query, campaign, trial)
        if not found:
            raise UserError(self._no_trial(campaign, trial))
        return TrialRecord._make(found[0])

    def trial_numbers(self, campaign: int) -> Iterator[int]:
        """The numbers of all recorded trials, in order: what `resume` need not run again."""
        self._must_have(campaign)
        chunks = self._chunks("SELECT trial FROM trials WHERE campaign = ?", (campaign,), Span())
        return (trial for chunk in chunks for (trial,) in chunk)

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

    def faults(self, campaign: int) -> list[FaultRecord]:
        """The campaign's faults, each with its count, in order of their first trial."""
        self._must_have(campaign)
        return list(map(FaultRecord._make, self._file.rows(_FAULTS, campaign)))

    def add_reduction(self, campaign: int, reduction: ReductionRecord) -> None:
        """Keep a fault's test made smaller, unless a better one is there."""
        with self._file.transaction() as connection:
            self._must_have(campaign)
            insert_reduction(connection, campaign, reduction)

    def reductions(self, campaign: int) -> list[ReductionRecord]:
        """The campaign's reductions, in order of their faults' ids."""
        self._must_have(campaign)
        rows = self._file.rows(
            f"SELECT {_REDUCTION} FROM reductions WHERE campaign = ? ORDER BY fault, criterion",
            campaign,
        )
        found = map(ReductionRecord._make, rows)
        return [one._replace(complete=bool(one.complete)) for one in found]

    def test(self, campaign: int, trial: int) -> str | None:
        """The JSON of a test that is kept whole (asked for, or a fault's shortest), or None."""
        self._must_have(campaign)
        for table in ("tests", "faults"):
            query = f"SELECT test FROM {table} WHERE campaign = ? AND trial = ? AND test NOT NULL"
            for (found,) in self._file.rows(query, campaign, trial):
                return str(found)
        return None

    def tests(self, campaign: int) -> Iterator[TestRecord]:
        """The tests that were asked to be kept whole, in order of their trials, streamed."""
        self._must_have(campaign)
        query = "SELECT trial, test FROM tests WHERE campaign = ?"
        chunks = self._chunks(query, (campaign,), Span())
        return (TestRecord._make(row) for chunk in chunks for row in chunk)

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _chunks(
        self, query: str, values: Iterable[Any], span: Span
    ) -> Iterator[list[tuple[Any, ...]]]:
        # By chunks, not by an open cursor: a reader that pauses must not keep the log from being
        # folded back into the file.
        while span.size > 0:
            chunk = self._file.rows(
                f"{query} AND trial > ? AND trial < ? {span.order}",
                *values,
                span.after,
                span.before,
            )
            if not chunk:
                return
            yield chunk
            span = span.beyond(chunk[-1][0], len(chunk))

    def _must_have(self, campaign: int) -> None:
        if self._file.rows("SELECT 1 FROM campaigns WHERE id = ?", campaign):
            return
        latest = self._file.rows("SELECT id FROM campaigns ORDER BY id DESC LIMIT 21")
        raise UserError(no_campaign(campaign, self.url, [id for (id,) in latest]))

    def _no_trial(self, campaign: int, trial: int) -> str:
        query = "SELECT count(*), min(trial), max(trial) FROM trials WHERE campaign = ?"
        return no_trial(campaign, trial, self.url, self._file.rows(query, campaign)[0])
