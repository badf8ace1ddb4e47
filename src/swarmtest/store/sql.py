"""What the SQL stores share: columns, encodings, and everything that reads.

`SqlStore` is at the end. The tables are in `schema`.

Trials are read in chunks of trial numbers, not with an open cursor: a reader that pauses holds no
transaction open and does not prevent a checkpoint of the log, and a lost connection costs one
chunk.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import accumulate
from typing import Any, NamedTuple, NoReturn

from swarmtest.core.errors import UserError
from swarmtest.core.strategy_names import current_strategy_text
from swarmtest.core.targets import Source, Target
from swarmtest.store.interface import TOTALS, Store, damaged, no_campaign, no_trial
from swarmtest.store.records import (
    CampaignRecord,
    FaultRecord,
    ProgressPoint,
    ReductionRecord,
    TestRecord,
    TrialRecord,
    WorkerRecord,
)
from swarmtest.store.schema import BLOCK


def bucket_width(last: int, buckets: int) -> int:
    """Return how many trials a bucket has, so that trials 0 to `last` fill about `buckets` buckets.

    A bucket of a block or more consists of whole blocks, whose totals are stored.

    >>> bucket_width(149, 200), bucket_width(999_999, 200), bucket_width(1_000_001, 200)
    (1, 5000, 5100)
    """
    width = -(-(last + 1) // buckets)
    return width if width < BLOCK else -(-width // BLOCK) * BLOCK


def cumulated(
    buckets: Iterable[Sequence[Any]], last: int, width: int, first_trials: Sequence[int]
) -> list[ProgressPoint]:
    """Return cumulative points from rows of (bucket, tests, failed, cpu_ns), in order.

    `first_trials` are the first trials of the faults, in order.

    >>> rows = [(0, 10, 1, 5), (2, 4, 2, 5)]
    >>> for point in cumulated(rows, last=23, width=10, first_trials=[3, 21]):
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
        while faults < len(first_trials) and first_trials[faults] <= trial:
            faults += 1
        points.append(ProgressPoint(trial, tests, failed, faults, cpu_ns))
    return points


CAMPAIGN = ", ".join(field.name for field in fields(CampaignRecord))
"""The columns of a campaign, with its id last."""

TRIAL = ", ".join(TrialRecord._fields)
REDUCTION = ", ".join(ReductionRecord._fields)
WORKER = ", ".join(WorkerRecord._fields)
TARGET = ", ".join(Target._fields)
"""The columns of the other records. In SQL, each value is a ``?``."""

# Better: a test before none, then the smaller test, then one that cannot be reduced further.
ADD_REDUCTION = f"""
INSERT INTO reductions (campaign, {REDUCTION})
VALUES (?, {", ".join("?" for _ in ReductionRecord._fields)})
ON CONFLICT (campaign, fault, criterion) DO UPDATE SET
    ({REDUCTION}) = ({", ".join(f"excluded.{name}" for name in ReductionRecord._fields)})
WHERE (excluded.test IS NULL, excluded.size, NOT excluded.complete)
   <= (reductions.test IS NULL, reductions.size, NOT reductions.complete)
"""
# The last report that arrives counts, not the one with the latest time: clocks may be set back.
ADD_WORKER = f"""
INSERT INTO workers (campaign, {WORKER}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (campaign, name) DO UPDATE SET
    ({WORKER}) = ({", ".join(f"excluded.{name}" for name in WorkerRecord._fields)})
"""
ADD_CAMPAIGN_SOURCE = """
INSERT INTO campaign_sources (campaign, source, place) VALUES (?, ?, ?)
ON CONFLICT (campaign, source) DO UPDATE SET place = excluded.place WHERE excluded.place <> ''
"""

OF_A_CAMPAIGN = (
    "trials", "blocks", "faults", "tests", "reductions", "campaign_sources", "workers"
)  # fmt: skip
"""The tables whose rows are deleted with their campaign."""

CHUNK = 500
"""Trials read at a time: large enough to be fast, small enough for hits of 100 KB each."""

FAR = 2**63 - 1
"""A number above all trial numbers."""

_CHANGEABLE = {"status", "options", "wall_seconds", "cpu_seconds", "outside"}


class TrialRange(NamedTuple):
    """Which trial numbers to read, and in which order.

    >>> TrialRange(newest_first=True, limit=50).beyond(last=70, count=30)
    TrialRange(after=-1, before=70, newest_first=True, limit=20)
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

    def beyond(self, last: int, count: int) -> TrialRange:
        """Return what is left after `count` trials were read, the last one being `last`."""
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


def campaign_of(row: Sequence[Any], url: str) -> CampaignRecord:
    """Return the record of a row with the columns `CAMPAIGN`; `url` names the store."""
    record = CampaignRecord(*row)  # seed, space and options still as text
    decoders: dict[str, Callable[[str], Any]] = {
        "strategy": current_strategy_text,
        "seed": int,
        "space": _json_object,
        "options": _json_object,
    }
    values = {}
    for column, decode in decoders.items():
        try:
            values[column] = decode(str(getattr(record, column)))
        except ValueError as error:
            where = f"the {column} of campaign {record.id}"
            raise UserError(damaged(url, where, error)) from error
    return replace(record, **values)


def _json_object(text: str) -> dict[str, Any]:
    decoded = json.loads(text)
    if not isinstance(decoded, dict):
        raise ValueError(f"not a JSON object: {text[:40]}")
    return decoded


def changed_values(changes: dict[str, Any]) -> dict[str, Any]:
    """Return changes of a campaign as column values; raise if they would redefine it."""
    unknown = changes.keys() - _CHANGEABLE
    if unknown:
        raise TypeError(f"a campaign's {', '.join(sorted(unknown))} cannot change")
    if "options" in changes:
        return changes | {"options": json.dumps(changes["options"])}
    return changes


def storable(text: str) -> str:
    r"""Return text that UTF-8 can encode: random tests often print half of a surrogate pair.

    >>> storable("\ud800!")
    '\\ud800!'
    """
    return text.encode("utf-8", "backslashreplace").decode()


def compressed(source: Source) -> bytes:
    """Return the text of a file as the column sources.text holds it."""
    return zlib.compress(source.text.encode(errors="surrogatepass"))


def checked_target(target: Target) -> Target:
    """Return the target if it has a kind and a name, otherwise raise a `UserError`."""
    if not target.kind or not target.name:
        raise UserError(
            "a target is written kind:name, like 'event:stack was full', "
            f"not {target.name or target.kind!r}"
        )
    return target


# Reading.

Row = tuple[Any, ...]

_FAULTS = """
SELECT id, kind, signature, details, first_trial, trial, size, test,
       (SELECT count(*) FROM trials
        WHERE trials.campaign = faults.campaign AND trials.fault = faults.id), code
FROM faults WHERE campaign = ? ORDER BY first_trial, id
"""


class SqlStore(Store):
    """The part of a store that reads; queries have a ``?`` for each value."""

    def _rows(self, query: str, *values: Any) -> list[Row]:
        """Return all rows of a query."""
        raise NotImplementedError

    def _encoded(self, text: str | None) -> str | None:
        """Return text as the store keeps it."""
        return text

    def _decoded(self, row: Row) -> Row:
        """Return a row with its original texts."""
        return row

    def _trial(self, row: Row) -> TrialRecord:
        return TrialRecord._make(row)

    def campaign(self, campaign: int) -> CampaignRecord:
        """Return a campaign; raise a `UserError` that lists the campaigns if there is none."""
        self._must_have(campaign)
        rows = self._rows(f"SELECT {CAMPAIGN} FROM campaigns WHERE id = ?", campaign)
        return campaign_of(self._decoded(rows[0]), self.url)

    def campaigns(self) -> list[CampaignRecord]:
        """Return all campaigns, oldest first."""
        rows = self._rows(f"SELECT {CAMPAIGN} FROM campaigns ORDER BY id")
        return [campaign_of(self._decoded(row), self.url) for row in rows]

    def campaign_numbers(self) -> list[int]:
        """Return the numbers of all campaigns, oldest first, also of damaged ones."""
        return [number for (number,) in self._rows("SELECT id FROM campaigns ORDER BY id")]

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
        numbers = TrialRange(after, FAR if before is None else before, newest_first, limit)
        rows = self._stream(f"SELECT {TRIAL} FROM trials WHERE {where}", filters.values(), numbers)
        return map(self._trial, rows)

    def trial(self, campaign: int, trial: int) -> TrialRecord:
        """Return one trial; raise a `UserError` if it does not exist."""
        query = f"SELECT {TRIAL} FROM trials WHERE campaign = ? AND trial = ?"
        self._must_have(campaign)
        rows = self._rows(query, campaign, trial)
        if not rows:
            raise UserError(self._no_trial(campaign, trial))
        return self._trial(rows[0])

    def trial_numbers(self, campaign: int) -> Iterator[int]:
        """Stream the numbers of all recorded trials in order; `resume` does not run them again."""
        self._must_have(campaign)
        rows = self._stream(
            "SELECT trial FROM trials WHERE campaign = ?", (campaign,), TrialRange()
        )
        return (trial for (trial,) in rows)

    def summary(self, campaign: int) -> dict[str, int]:
        """Return totals: trials, passed, failed, invalid, steps, skipped, cpu_ns, wall_ns."""
        self._must_have(campaign)
        sums = ", ".join(f"sum({name})" for name in TOTALS)
        (row,) = self._rows(f"SELECT {sums} FROM blocks WHERE campaign = ?", campaign)
        return {name: int(total or 0) for name, total in zip(TOTALS, row, strict=True)}

    def progress(self, campaign: int, buckets: int = 200) -> list[ProgressPoint]:
        """Return the cumulative findings at about `buckets` evenly spaced trials."""
        self._must_have(campaign)
        ((last,),) = self._rows("SELECT max(trial) FROM trials WHERE campaign = ?", campaign)
        if last is None:
            return []
        width = bucket_width(last, buckets)
        if width < BLOCK:
            table, trial, failed = "trials", "trial", "CASE verdict WHEN 1 THEN 1 ELSE 0 END"
            sums = f"count(*), sum({failed}), sum(1.0 * cpu_ns)"
        else:
            table, trial = "blocks", f"block * {BLOCK}"
            sums = "sum(trials), sum(failed), sum(cpu_ns)"
        rows = self._rows(
            f"SELECT {trial} / {width}, {sums} FROM {table} WHERE campaign = ? "
            "GROUP BY 1 ORDER BY 1",
            campaign,
        )
        query = "SELECT first_trial FROM faults WHERE campaign = ? ORDER BY first_trial"
        return cumulated(rows, last, width, [first for (first,) in self._rows(query, campaign)])

    def workers(self, campaign: int) -> list[WorkerRecord]:
        """Return the latest report of each of the campaign's workers, sorted by name."""
        self._must_have(campaign)
        rows = self._rows(
            f"SELECT {WORKER} FROM workers WHERE campaign = ? ORDER BY name", campaign
        )
        return [WorkerRecord._make(self._decoded(row)) for row in rows]

    def sources(self, campaign: int) -> list[Source]:
        """Return the files that a campaign watched, as they were then, sorted by path."""
        self._must_have(campaign)
        rows = self._rows(
            "SELECT path, text, place FROM sources JOIN campaign_sources ON source = id "
            "WHERE campaign = ? ORDER BY path",
            campaign,
        )
        return [self._source(*self._decoded(row)) for row in rows]

    def _source(self, path: str, text: bytes, place: str) -> Source:
        try:
            return Source(path, zlib.decompress(text).decode(errors="surrogatepass"), place)
        except (zlib.error, ValueError, TypeError) as error:
            raise UserError(damaged(self.url, f"the text of file {path}", error)) from error

    def watched_targets(self, campaign: int) -> dict[int, Target]:
        """Return the targets in a campaign's sources by id, hit or not."""
        self._must_have(campaign)
        rows = self._rows(
            f"SELECT id, {TARGET} FROM targets WHERE source <> '' AND source IN "
            "(SELECT source FROM campaign_sources WHERE campaign = ?) ORDER BY id",
            campaign,
        )
        return self._targets(rows)

    def _targets(self, rows: Iterable[Row]) -> dict[int, Target]:
        return {id: Target._make(self._decoded(tuple(fields))) for id, *fields in rows}

    def faults(self, campaign: int) -> list[FaultRecord]:
        """Return the campaign's faults with their counts, in the order of their first trials."""
        self._must_have(campaign)
        return [FaultRecord._make(self._decoded(row)) for row in self._rows(_FAULTS, campaign)]

    def reductions(self, campaign: int) -> list[ReductionRecord]:
        """Return the campaign's reductions, in the order of their faults' ids."""
        self._must_have(campaign)
        rows = self._rows(
            f"SELECT {REDUCTION} FROM reductions WHERE campaign = ? ORDER BY fault, criterion",
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
        rows = self._stream(
            "SELECT trial, test FROM tests WHERE campaign = ?", (campaign,), TrialRange()
        )
        return (TestRecord._make(self._decoded(row)) for row in rows)

    def _stream(self, query: str, values: Iterable[Any], numbers: TrialRange) -> Iterator[Row]:
        while numbers.size > 0:
            chunk = self._rows(
                f"{query} AND trial > ? AND trial < ? {numbers.order}",
                *values,
                numbers.after,
                numbers.before,
            )
            if not chunk:
                return
            yield from chunk
            numbers = numbers.beyond(chunk[-1][0], len(chunk))

    def _must_have(self, campaign: int) -> None:
        if not self._rows("SELECT 1 FROM campaigns WHERE id = ?", campaign):
            self._refuse(campaign)

    def _refuse(self, campaign: int) -> NoReturn:
        latest = self._rows("SELECT id FROM campaigns ORDER BY id DESC LIMIT 21")
        raise UserError(no_campaign(campaign, self.url, [id for (id,) in latest]))

    def _no_trial(self, campaign: int, trial: int) -> str:
        query = "SELECT count(*), min(trial), max(trial) FROM trials WHERE campaign = ?"
        return no_trial(campaign, trial, self.url, self._rows(query, campaign)[0])
