"""A store in a PostgreSQL database, for teams: many writers and readers, on many machines.

Reading goes by chunks of trial numbers and not by a cursor: nothing is held open in between, so a
reader that pauses keeps no transaction alive, and a lost connection costs one chunk, read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from pyroaring import BitMap

from swarmtest.errors import UserError
from swarmtest.store.postgres_batch import (
    insert_faults,
    insert_reduction,
    insert_tests,
    insert_trials,
)
from swarmtest.store.postgres_progress import progress_of, totals, upsert_worker, workers_of
from swarmtest.store.postgres_schema import bring_up_to_date
from swarmtest.store.postgres_server import Connection, PostgresServer, Row
from swarmtest.store.postgres_targets import (
    forget_sources,
    insert_sources,
    insert_targets,
    sources_of,
    targets_by_id,
    targets_of_campaign,
)
from swarmtest.store.postgres_text import is_as_given, kept, told, told_row
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
from swarmtest.store.urls import PostgresAddress
from swarmtest.targets import Source, Target

_TRIAL = ", ".join(TrialRecord._fields)
_REDUCTION = ", ".join(ReductionRecord._fields)
_FAULTS = """
SELECT id, kind, signature, details, first_trial, trial, size, test,
       (SELECT count(*) FROM trials
        WHERE trials.campaign = faults.campaign AND trials.fault = faults.id)
FROM faults WHERE campaign = %s ORDER BY first_trial, id
"""


class PostgresStore:
    """Campaigns in a PostgreSQL schema; see `swarmtest.store.store.Store` for the contract."""

    def __init__(
        self, url: str, read_only: bool = False, *, must_exist: bool = False, timeout: float = 30.0
    ) -> None:
        """Connect; `timeout`: seconds to wait for locks, and for a lost server to come back."""
        address = PostgresAddress.parse(url)
        self.url = address.shown
        self._server = PostgresServer(address, read_only=read_only, timeout=timeout)
        try:
            bring_up_to_date(self._server, address.schema, must_exist=must_exist or read_only)
        except BaseException:
            self._server.close()
            raise

    def add_campaign(self, campaign: CampaignRecord) -> int:
        """Keep a new campaign and give it its number."""
        values = [kept(v) if isinstance(v, str) else v for v in campaign_values(campaign)]
        # The number first: a second try after a lost connection must not make a second campaign.
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

    def campaign(self, campaign: int) -> CampaignRecord:
        """One campaign; a number that is not there is a `UserError` that tells which are."""
        self._must_have(campaign)
        found = self._server.rows(f"SELECT {CAMPAIGN} FROM campaigns WHERE id = %s", campaign)
        return campaign_of(told_row(found[0]))

    def campaigns(self) -> list[CampaignRecord]:
        """All campaigns, oldest first."""
        rows = self._server.rows(f"SELECT {CAMPAIGN} FROM campaigns ORDER BY id")
        return [campaign_of(told_row(row)) for row in rows]

    def delete_campaign(self, campaign: int) -> None:
        """Forget a campaign with all that belongs to it; the server's vacuum reuses the space."""
        self._must_have(campaign)

        def delete(connection: Connection) -> None:
            # Whoever records waits here, and then finds no campaign.
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
        """Keep a batch, in one transaction."""

        def insert(connection: Connection) -> None:
            self._hold(connection, campaign)
            insert_trials(connection, campaign, trials)
            insert_faults(connection, campaign, faults)
            insert_tests(connection, campaign, tests)

        self._server.write(insert)

    def add_hits(self, campaign: int, hits: Mapping[int, Iterable[int]]) -> None:
        """Add targets (by id) to what trials hit: what was found out later, like killed mutants."""
        added = {trial: BitMap(hits[trial]) for trial in sorted(hits)}
        place = "campaign = %s AND trial = %s"

        def add(connection: Connection) -> None:
            self._hold(connection, campaign)
            for trial, ids in added.items():
                query = f"SELECT hits FROM trials WHERE {place} FOR UPDATE"
                found = connection.execute(query, (campaign, trial)).fetchone()
                if found is None:
                    raise UserError(self._no_trial(campaign, trial))
                known = BitMap.deserialize(found[0]) if found[0] else BitMap()
                update = f"UPDATE trials SET hits = %s WHERE {place}"
                connection.execute(update, ((known | ids).serialize(), campaign, trial))

        self._server.write(add)

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
        filters = {"campaign": campaign, "verdict": verdict, "fault": kept(fault)}
        wanted = {column: value for column, value in filters.items() if value is not None}
        where = " AND ".join(f"{column} = %s" for column in wanted)
        self._must_have(campaign)
        span = Span(after, FAR if before is None else before, newest_first, limit)
        rows = self._stream(f"SELECT {_TRIAL} FROM trials WHERE {where}", wanted.values(), span)
        return map(_trial, rows)

    def trial(self, campaign: int, trial: int) -> TrialRecord:
        """One trial; a `UserError` if it is not there."""
        query = f"SELECT {_TRIAL} FROM trials WHERE campaign = %s AND trial = %s"
        self._must_have(campaign)
        found = self._server.rows(query, campaign, trial)
        if not found:
            raise UserError(self._no_trial(campaign, trial))
        return _trial(found[0])

    def trial_numbers(self, campaign: int) -> Iterator[int]:
        """The numbers of all recorded trials, in order: what `resume` need not run again."""
        self._must_have(campaign)
        rows = self._stream("SELECT trial FROM trials WHERE campaign = %s", (campaign,), Span())
        return (trial for (trial,) in rows)

    def summary(self, campaign: int) -> dict[str, int]:
        """Totals: trials, passed, failed, invalid, steps, skipped, cpu_ns, wall_ns."""
        self._must_have(campaign)
        return totals(self._server, campaign)

    def progress(self, campaign: int, buckets: int = 200) -> list[ProgressPoint]:
        """What was found by about so many of its trials, evenly spread over their numbers."""
        self._must_have(campaign)
        return progress_of(self._server, campaign, buckets)

    def note_worker(self, campaign: int, worker: WorkerRecord) -> None:
        """Keep what a worker says of itself, in place of what it said before."""

        def note(connection: Connection) -> None:
            self._hold(connection, campaign)
            upsert_worker(connection, campaign, worker)

        self._server.write(note)

    def workers(self, campaign: int) -> list[WorkerRecord]:
        """The campaign's workers as they last spoke, by name."""
        self._must_have(campaign)
        return workers_of(self._server, campaign)

    def faults(self, campaign: int) -> list[FaultRecord]:
        """The campaign's faults, each with its count, in order of their first trial."""
        self._must_have(campaign)
        return [FaultRecord._make(told_row(row)) for row in self._server.rows(_FAULTS, campaign)]

    def add_reduction(self, campaign: int, reduction: ReductionRecord) -> None:
        """Keep a fault's test made smaller, unless a better one is there."""

        def add(connection: Connection) -> None:
            self._hold(connection, campaign)
            insert_reduction(connection, campaign, reduction)

        self._server.write(add)

    def reductions(self, campaign: int) -> list[ReductionRecord]:
        """The campaign's reductions, in order of their faults' ids."""
        self._must_have(campaign)
        rows = self._server.rows(
            f"SELECT {_REDUCTION} FROM reductions WHERE campaign = %s ORDER BY fault, criterion",
            campaign,
        )
        return [ReductionRecord._make(told_row(row)) for row in rows]

    def test(self, campaign: int, trial: int) -> str | None:
        """The JSON of a test that is kept whole (asked for, or a fault's shortest), or None."""
        self._must_have(campaign)
        place = "campaign = %s AND trial = %s AND test IS NOT NULL"
        for table in ("tests", "faults"):
            query = f"SELECT test FROM {table} WHERE {place}"
            for (found,) in self._server.rows(query, campaign, trial):
                return told(str(found))
        return None

    def tests(self, campaign: int) -> Iterator[TestRecord]:
        """The tests that were asked to be kept whole, in order of their trials, streamed."""
        self._must_have(campaign)
        query = "SELECT trial, test FROM tests WHERE campaign = %s"
        return (TestRecord(n, told(test)) for n, test in self._stream(query, (campaign,), Span()))

    def target_ids(self, targets: Sequence[Target]) -> list[int]:
        """The ids of targets, in their order; those not yet known get one."""
        if not targets:
            return []
        return self._server.write(lambda connection: insert_targets(connection, targets))

    def targets(self, ids: Iterable[int] | None = None) -> dict[int, Target]:
        """Targets by id; all of them when no ids are given."""
        return targets_by_id(self._server, ids)

    def add_sources(self, campaign: int, sources: Iterable[Source]) -> None:
        """Keep files that a campaign watches; what is kept already is only noted."""
        several = list(sources)

        def add(connection: Connection) -> None:
            self._hold(connection, campaign)
            insert_sources(connection, campaign, several)

        self._server.write(add)

    def sources(self, campaign: int) -> list[Source]:
        """The files that a campaign watched, as they were then, in order of their paths."""
        self._must_have(campaign)
        return sources_of(self._server, campaign)

    def watched_targets(self, campaign: int) -> dict[int, Target]:
        """The targets that lie in a campaign's sources, hit or not, by id."""
        self._must_have(campaign)
        return targets_of_campaign(self._server, campaign)

    def close(self) -> None:
        """Let go of the connection; the store is not used afterwards."""
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _stream(self, query: str, values: Iterable[Any], span: Span) -> Iterator[Row]:
        while span.size > 0:
            chunk = self._server.rows(
                f"{query} AND trial > %s AND trial < %s {span.order}",
                *values,
                span.after,
                span.before,
            )
            if not chunk:
                return
            yield from chunk
            span = span.beyond(chunk[-1][0], len(chunk))

    def _hold(self, connection: Connection, campaign: int) -> None:
        """Keep a campaign from being deleted until the end of the transaction."""
        held = "SELECT 1 FROM campaigns WHERE id = %s FOR KEY SHARE"
        if not connection.execute(held, [campaign]).fetchone():
            self._refuse(campaign)

    def _must_have(self, campaign: int) -> None:
        if not self._server.rows("SELECT 1 FROM campaigns WHERE id = %s", campaign):
            self._refuse(campaign)

    def _refuse(self, campaign: int) -> None:
        latest = self._server.rows("SELECT id FROM campaigns ORDER BY id DESC LIMIT 21")
        raise UserError(no_campaign(campaign, self.url, [id for (id,) in latest]))

    def _no_trial(self, campaign: int, trial: int) -> str:
        query = "SELECT count(*), min(trial), max(trial) FROM trials WHERE campaign = %s"
        return no_trial(campaign, trial, self.url, self._server.rows(query, campaign)[0])


def _trial(row: Row) -> TrialRecord:
    found = TrialRecord._make(row)
    if all(map(is_as_given, (found.origin, found.fault, found.missing))):
        return found
    return TrialRecord._make(told_row(row))
