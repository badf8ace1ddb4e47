"""What is read in the same words from every SQL store.

Reading goes by chunks of trial numbers and not by an open cursor: a reader that pauses keeps no
transaction alive and no log from being folded back, and a lost connection costs one chunk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, Self

from swarmtest.errors import UserError
from swarmtest.store.records import (
    CampaignRecord,
    FaultRecord,
    ReductionRecord,
    TestRecord,
    TrialRecord,
)
from swarmtest.store.rows import CAMPAIGN, FAR, Span, campaign_of, no_campaign, no_trial

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
    """The reading half of a store; queries have a ``?`` for each value."""

    url: str

    @abstractmethod
    def _rows(self, query: str, *values: Any) -> list[Row]:
        """All rows of a query."""

    def _kept(self, text: str | None) -> str | None:
        """Text as the store keeps it."""
        return text

    def _told(self, row: Row) -> Row:
        """A row with its texts as they were given."""
        return row

    def _trial(self, row: Row) -> TrialRecord:
        return TrialRecord._make(row)

    @abstractmethod
    def close(self) -> None:
        """Let go of the file or connection; the store is not used afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def campaign(self, campaign: int) -> CampaignRecord:
        """One campaign; a number that is not there is a `UserError` that tells which are."""
        self._must_have(campaign)
        found = self._rows(f"SELECT {CAMPAIGN} FROM campaigns WHERE id = ?", campaign)
        return campaign_of(self._told(found[0]))

    def campaigns(self) -> list[CampaignRecord]:
        """All campaigns, oldest first."""
        rows = self._rows(f"SELECT {CAMPAIGN} FROM campaigns ORDER BY id")
        return [campaign_of(self._told(row)) for row in rows]

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
        filters = {"campaign": campaign, "verdict": verdict, "fault": self._kept(fault)}
        wanted = {column: value for column, value in filters.items() if value is not None}
        where = " AND ".join(f"{column} = ?" for column in wanted)
        self._must_have(campaign)
        span = Span(after, FAR if before is None else before, newest_first, limit)
        rows = self._stream(f"SELECT {_TRIAL} FROM trials WHERE {where}", wanted.values(), span)
        return map(self._trial, rows)

    def trial(self, campaign: int, trial: int) -> TrialRecord:
        """One trial; a `UserError` if it is not there."""
        query = f"SELECT {_TRIAL} FROM trials WHERE campaign = ? AND trial = ?"
        self._must_have(campaign)
        found = self._rows(query, campaign, trial)
        if not found:
            raise UserError(self._no_trial(campaign, trial))
        return self._trial(found[0])

    def trial_numbers(self, campaign: int) -> Iterator[int]:
        """The numbers of all recorded trials, in order: what `resume` need not run again."""
        self._must_have(campaign)
        rows = self._stream("SELECT trial FROM trials WHERE campaign = ?", (campaign,), Span())
        return (trial for (trial,) in rows)

    def faults(self, campaign: int) -> list[FaultRecord]:
        """The campaign's faults, each with its count, in order of their first trial."""
        self._must_have(campaign)
        return [FaultRecord._make(self._told(row)) for row in self._rows(_FAULTS, campaign)]

    def reductions(self, campaign: int) -> list[ReductionRecord]:
        """The campaign's reductions, in order of their faults' ids."""
        self._must_have(campaign)
        rows = self._rows(
            f"SELECT {_REDUCTION} FROM reductions WHERE campaign = ? ORDER BY fault, criterion",
            campaign,
        )
        found = [ReductionRecord._make(self._told(row)) for row in rows]
        return [one._replace(complete=bool(one.complete)) for one in found]

    def test(self, campaign: int, trial: int) -> str | None:
        """The JSON of a test that is kept whole (asked for, or a fault's shortest), or None."""
        self._must_have(campaign)
        place = "campaign = ? AND trial = ? AND test IS NOT NULL"
        for table in ("tests", "faults"):
            for row in self._rows(f"SELECT test FROM {table} WHERE {place}", campaign, trial):
                return str(self._told(row)[0])
        return None

    def tests(self, campaign: int) -> Iterator[TestRecord]:
        """The tests that were asked to be kept whole, in order of their trials, streamed."""
        self._must_have(campaign)
        rows = self._stream("SELECT trial, test FROM tests WHERE campaign = ?", (campaign,), Span())
        return (TestRecord._make(self._told(row)) for row in rows)

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
