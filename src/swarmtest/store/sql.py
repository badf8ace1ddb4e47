"""What the SQL stores share: reading, campaigns as rows, and progress from totals of trials.

Trials are read in chunks of trial numbers, not with an open cursor: a reader that pauses holds no
transaction open and does not prevent a checkpoint of the log, and a lost connection costs one
chunk.
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import accumulate
from typing import Any, NamedTuple, NoReturn, Self

from swarmtest.core.errors import UserError
from swarmtest.core.strategy_names import current_strategy_text
from swarmtest.store.records import (
    CampaignRecord,
    FaultRecord,
    ProgressPoint,
    ReductionRecord,
    TestRecord,
    TrialRecord,
)
from swarmtest.store.sqlite.schema import BLOCK

TOTALS = ("trials", "passed", "failed", "invalid", "steps", "skipped", "cpu_ns", "wall_ns")
"""The fields of a summary, and the columns of the table blocks."""


def bucket_width(last: int, buckets: int) -> int:
    """Return how many trials a bucket has, so that trials 0 to `last` fill about `buckets` buckets.

    A bucket of a block or more consists of whole blocks, whose totals are stored.

    >>> bucket_width(149, 200), bucket_width(999_999, 200), bucket_width(1_000_001, 200)
    (1, 5000, 5100)
    """
    width = -(-(last + 1) // buckets)
    return width if width < BLOCK else -(-width // BLOCK) * BLOCK


def cumulated(
    buckets: Iterable[Sequence[Any]], last: int, width: int, found: Sequence[int]
) -> list[ProgressPoint]:
    """Return cumulative points from rows of (bucket, tests, failed, cpu_ns), in order.

    `found` are the first trials of the faults, in order.

    >>> for point in cumulated([(0, 10, 1, 5), (2, 4, 2, 5)], last=23, width=10, found=[3, 21]):
    ...     print(*point)
    9 10 1 1 5
    23 14 3 2 10
    """
    points: list[ProgressPoint] = []
    rows = [tuple(map(int, row)) for row in buckets]
    sums = accumulate(
        (row[1:] for row in rows), lambda a, b: tuple(map(sum, zip(a, b, strict=True)))
    )
    faults = 0
    for (bucket, *_), (tests, failed, cpu_ns) in zip(rows, sums, strict=True):
        trial = min((bucket + 1) * width - 1, last)
        while faults < len(found) and found[faults] <= trial:
            faults += 1
        points.append(ProgressPoint(trial, tests, failed, faults, cpu_ns))
    return points


CAMPAIGN = ", ".join(field.name for field in fields(CampaignRecord))
"""The columns of a campaign, with its id last."""

OF_A_CAMPAIGN = (
    "trials", "blocks", "faults", "tests", "reductions", "campaign_sources", "workers"
)  # fmt: skip
"""The tables whose rows are deleted with their campaign."""

CHUNK = 500
"""Trials read at a time: large enough to be fast, small enough for hits of 100 KB each."""

FAR = 2**63 - 1
"""A number above all trial numbers."""

_CHANGEABLE = {"status", "options", "wall_seconds", "cpu_seconds", "outside"}


class Span(NamedTuple):
    """Which trial numbers to read, and in which order.

    >>> Span(newest_first=True, limit=50).beyond(last=70, count=30)
    Span(after=-1, before=70, newest_first=True, limit=20)
    """

    after: int = -1
    before: int = FAR
    newest_first: bool = False
    limit: int | None = None

    @property
    def size(self) -> int:
        """How many trials to read at once."""
        return CHUNK if self.limit is None else min(CHUNK, self.limit)

    @property
    def order(self) -> str:
        """The ORDER BY and LIMIT clauses of a query by trial numbers."""
        return f"ORDER BY trial {'DESC' if self.newest_first else 'ASC'} LIMIT {self.size}"

    def beyond(self, last: int, count: int) -> Span:
        """Return the rest of the span after `count` trials were read, the last one being `last`."""
        left = None if self.limit is None else self.limit - count
        if self.newest_first:
            return self._replace(before=last, limit=left)
        return self._replace(after=last, limit=left)


def campaign_values(campaign: CampaignRecord) -> list[Any]:
    """Return the values of the columns `CAMPAIGN`, except the id."""
    return [
        campaign.subject,
        campaign.strategy,
        str(campaign.seed),
        json.dumps(campaign.space),
        json.dumps(campaign.options),
        campaign.status,
        campaign.created or time.time(),
        campaign.wall_seconds,
        campaign.cpu_seconds,
        campaign.outside,
    ]


def campaign_of(row: Sequence[Any]) -> CampaignRecord:
    """Return the record of a row with the columns `CAMPAIGN`."""
    record = CampaignRecord(*row)
    space, options = json.loads(row[3]), json.loads(row[4])
    strategy = current_strategy_text(record.strategy)
    return replace(record, strategy=strategy, seed=int(record.seed), space=space, options=options)


def changed_values(changes: dict[str, Any]) -> dict[str, Any]:
    """Return changes of a campaign as column values; raise if they would redefine it."""
    unknown = changes.keys() - _CHANGEABLE
    if unknown:
        raise TypeError(f"a campaign's {', '.join(sorted(unknown))} cannot change")
    if "options" in changes:
        return changes | {"options": json.dumps(changes["options"])}
    return changes


def no_campaign(campaign: int, url: str, latest: Sequence[int]) -> str:
    """Return the message for a missing campaign.

    `latest` are the numbers of up to 21 campaigns that exist, newest first.

    >>> no_campaign(9, "x.db", [3, 2, 1])
    'no campaign 9 in x.db: it has 1, 2, 3'
    """
    if not latest:
        return f"no campaign {campaign} in {url}: it has none yet; run `swarmtest run` first"
    more = "..., " if len(latest) > 20 else ""
    numbers = ", ".join(map(str, latest[19::-1]))
    return f"no campaign {campaign} in {url}: it has {more}{numbers}"


def no_trial(campaign: int, trial: int, url: str, there: Sequence[Any]) -> str:
    """Return the message for a missing trial.

    `there` is the number of trials that exist, the lowest and the highest number.
    """
    count, low, high = there
    existing = f"it has {count}, numbered {low} to {high}" if count else "it has none yet"
    return f"campaign {campaign} in {url} has no trial {trial}: {existing}"


# Reading.

Row = tuple[Any, ...]

_TRIAL = ", ".join(TrialRecord._fields)
_REDUCTION = ", ".join(ReductionRecord._fields)
_FAULTS = """
SELECT id, kind, signature, details, first_trial, trial, size, test,
       (SELECT count(*) FROM trials
        WHERE trials.campaign = faults.campaign AND trials.fault = faults.id)
FROM faults WHERE campaign = ? ORDER BY first_trial, id
"""


class SqlReading(ABC):
    """The part of a store that reads; queries have a ``?`` for each value."""

    url: str

    @abstractmethod
    def _rows(self, query: str, *values: Any) -> list[Row]:
        """Return all rows of a query."""

    def _encoded(self, text: str | None) -> str | None:
        """Return text as the store keeps it."""
        return text

    def _decoded(self, row: Row) -> Row:
        """Return a row with its original texts."""
        return row

    def _trial(self, row: Row) -> TrialRecord:
        return TrialRecord._make(row)

    @abstractmethod
    def close(self) -> None:
        """Close the file or connection; the store cannot be used afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def campaign(self, campaign: int) -> CampaignRecord:
        """Return a campaign; raise a `UserError` that lists the campaigns if there is none."""
        self._must_have(campaign)
        rows = self._rows(f"SELECT {CAMPAIGN} FROM campaigns WHERE id = ?", campaign)
        return campaign_of(self._decoded(rows[0]))

    def campaigns(self) -> list[CampaignRecord]:
        """Return all campaigns, oldest first."""
        rows = self._rows(f"SELECT {CAMPAIGN} FROM campaigns ORDER BY id")
        return [campaign_of(self._decoded(row)) for row in rows]

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
        """Stream trials in the order of their numbers, all or a selection."""
        filters = {"campaign": campaign, "verdict": verdict, "fault": self._encoded(fault)}
        filters = {column: value for column, value in filters.items() if value is not None}
        where = " AND ".join(f"{column} = ?" for column in filters)
        self._must_have(campaign)
        span = Span(after, FAR if before is None else before, newest_first, limit)
        rows = self._stream(f"SELECT {_TRIAL} FROM trials WHERE {where}", filters.values(), span)
        return map(self._trial, rows)

    def trial(self, campaign: int, trial: int) -> TrialRecord:
        """Return one trial; raise a `UserError` if it does not exist."""
        query = f"SELECT {_TRIAL} FROM trials WHERE campaign = ? AND trial = ?"
        self._must_have(campaign)
        rows = self._rows(query, campaign, trial)
        if not rows:
            raise UserError(self._no_trial(campaign, trial))
        return self._trial(rows[0])

    def trial_numbers(self, campaign: int) -> Iterator[int]:
        """Stream the numbers of all recorded trials in order; `resume` does not run them again."""
        self._must_have(campaign)
        rows = self._stream("SELECT trial FROM trials WHERE campaign = ?", (campaign,), Span())
        return (trial for (trial,) in rows)

    def faults(self, campaign: int) -> list[FaultRecord]:
        """Return the campaign's faults with their counts, in the order of their first trials."""
        self._must_have(campaign)
        return [FaultRecord._make(self._decoded(row)) for row in self._rows(_FAULTS, campaign)]

    def reductions(self, campaign: int) -> list[ReductionRecord]:
        """Return the campaign's reductions, in the order of their faults' ids."""
        self._must_have(campaign)
        rows = self._rows(
            f"SELECT {_REDUCTION} FROM reductions WHERE campaign = ? ORDER BY fault, criterion",
            campaign,
        )
        records = [ReductionRecord._make(self._decoded(row)) for row in rows]
        # SQLite has no booleans.
        return [record._replace(complete=bool(record.complete)) for record in records]

    def test(self, campaign: int, trial: int) -> str | None:
        """Return the JSON of a stored test (kept on request, or a fault's shortest), or None."""
        self._must_have(campaign)
        where = "campaign = ? AND trial = ? AND test IS NOT NULL"
        for table in ("tests", "faults"):
            for row in self._rows(f"SELECT test FROM {table} WHERE {where}", campaign, trial):
                return str(self._decoded(row)[0])
        return None

    def tests(self, campaign: int) -> Iterator[TestRecord]:
        """Stream the tests that were kept on request, in the order of their trials."""
        self._must_have(campaign)
        rows = self._stream("SELECT trial, test FROM tests WHERE campaign = ?", (campaign,), Span())
        return (TestRecord._make(self._decoded(row)) for row in rows)

    def _stream(self, query: str, values: Iterable[Any], span: Span) -> Iterator[Row]:
        while span.size > 0:
            chunk = self._rows(
                f"{query} AND trial > ? AND trial < ? {span.order}",
                *values,
                span.after,
                span.before,
            )
            if not chunk:
                return
            yield from chunk
            span = span.beyond(chunk[-1][0], len(chunk))

    def _must_have(self, campaign: int) -> None:
        if not self._rows("SELECT 1 FROM campaigns WHERE id = ?", campaign):
            self._refuse(campaign)

    def _refuse(self, campaign: int) -> NoReturn:
        latest = self._rows("SELECT id FROM campaigns ORDER BY id DESC LIMIT 21")
        raise UserError(no_campaign(campaign, self.url, [id for (id,) in latest]))

    def _no_trial(self, campaign: int, trial: int) -> str:
        query = "SELECT count(*), min(trial), max(trial) FROM trials WHERE campaign = ?"
        return no_trial(campaign, trial, self.url, self._rows(query, campaign)[0])
