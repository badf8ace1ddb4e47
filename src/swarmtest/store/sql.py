"""What the SQL stores share: columns, encodings, and everything that reads.

`SqlStore` is at the end. The tables are in `schema`. What reads blocks of trials is in
`sql_blocks`.
"""

from __future__ import annotations

import copy
import json
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, NoReturn, Self

from swarmtest.core.errors import UserError
from swarmtest.core.strategy_names import current_strategy_text
from swarmtest.core.targets import Source, Target
from swarmtest.store.fault_groups import (
    FaultDecision,
    groups_of,
    merge_faults,
    merge_reductions,
)
from swarmtest.store.interface import Store, damaged, no_campaign
from swarmtest.store.records import (
    CampaignRecord,
    FaultEvent,
    FaultRecord,
    ReductionRecord,
    TestRecord,
    WorkerRecord,
)

CAMPAIGN = ", ".join(field.name for field in fields(CampaignRecord))
"""The columns of a campaign, with its id last."""

REDUCTION = ", ".join(ReductionRecord._fields)
WORKER = ", ".join(WorkerRecord._fields)
FAULT_EVENT = ", ".join(FaultEvent._fields)
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
DECISION = ", ".join(FaultDecision._fields)
ADD_DECISION = f"""
INSERT INTO fault_decisions ({DECISION}) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (fault, decided_by) DO UPDATE SET
    ({DECISION}) = ({", ".join(f"excluded.{name}" for name in FaultDecision._fields)})
"""
FORGET_DECISION = "DELETE FROM fault_decisions WHERE fault = ? AND decided_by = ?"
ADD_CAMPAIGN_SOURCE = """
INSERT INTO campaign_sources (campaign, source, place) VALUES (?, ?, ?)
ON CONFLICT (campaign, source) DO UPDATE SET place = excluded.place WHERE excluded.place <> ''
"""

# In PostgreSQL, a value without a table needs a type.
ADD_FAULT_EVENT = f"""
INSERT INTO fault_events ({FAULT_EVENT})
SELECT subject, fault, event, time, version, campaign, note
FROM (SELECT CAST(? AS TEXT) AS subject, CAST(? AS TEXT) AS fault, CAST(? AS TEXT) AS event,
             CAST(? AS DOUBLE PRECISION) AS time, CAST(? AS TEXT) AS version,
             CAST(? AS BIGINT) AS campaign, CAST(? AS TEXT) AS note) AS new
WHERE NOT EXISTS (
    SELECT 1 FROM fault_events AS old
    WHERE old.subject = new.subject AND old.fault = new.fault AND old.event = new.event
      AND old.time = new.time AND old.version = new.version AND old.campaign = new.campaign
      AND old.note = new.note
)
"""
FORGET_FAULT_EVENTS = (
    "UPDATE fault_events SET campaign = 0 WHERE campaign = ?",
    "DELETE FROM fault_events WHERE subject NOT IN (SELECT subject FROM campaigns)",
)
"""After a campaign was deleted: its number, and the histories of subjects without a campaign."""

OF_A_CAMPAIGN = (
    *("blocks", "block_faults", "block_targets", "block_hits"),
    *("faults", "tests", "reductions", "campaign_sources", "workers"),
)
"""The tables whose rows are deleted with their campaign."""

_CHUNK = 500
"""Tests read at a time."""

FAR = 2**63 - 1
"""A number above all trial numbers."""

_CHANGEABLE = {"status", "options", "wall_seconds", "cpu_seconds", "outside"}


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
       (SELECT sum(trials) FROM block_faults
        WHERE block_faults.campaign = faults.campaign AND block_faults.fault = faults.id), code
FROM faults WHERE campaign = ? ORDER BY first_trial, id
"""


class SqlStore(Store):
    """The part of a store that reads; queries have a ``?`` for each value."""

    _as_recorded = False

    @property
    def recorded(self) -> Self:
        """The same store, with faults as they were recorded, whatever was decided about them."""
        if self._as_recorded:
            return self
        other = copy.copy(self)  # it shares the connection
        other._as_recorded = True
        return other

    def fault_decisions(self) -> list[FaultDecision]:
        """Return the decisions which recorded faults are one, in the order of the faults' ids."""
        rows = self._rows(f"SELECT {DECISION} FROM fault_decisions ORDER BY fault, decided_by")
        decisions = [FaultDecision._make(self._decoded(row)) for row in rows]
        # A store from elsewhere may hold anything.
        return [each for each in decisions if all(isinstance(part, str) for part in each[:4])]

    def _groups(self) -> dict[str, str]:
        """Return the fault as which each merged fault is shown."""
        return {} if self._as_recorded else groups_of(self.fault_decisions())

    def _rows(self, query: str, *values: Any) -> list[Row]:
        """Return all rows of a query."""
        raise NotImplementedError

    def _encoded(self, text: str | None) -> str | None:
        """Return text as the store keeps it."""
        return text

    def _decoded(self, row: Row) -> Row:
        """Return a row with its original texts."""
        return row

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
        records = [FaultRecord(*self._decoded(row)) for row in self._rows(_FAULTS, campaign)]
        counted = [record._replace(count=int(record.count or 0)) for record in records]
        groups = self._groups()
        return merge_faults(counted, groups) if groups else counted

    def fault_ids(self) -> list[tuple[int, str]]:
        """Return the number of each campaign with the ids of its faults, in order."""
        query = "SELECT campaign, id FROM faults ORDER BY campaign, first_trial, id"
        return [(number, self._decoded((id,))[0]) for number, id in self._rows(query)]

    def fault_events(self, subject: str | None = None) -> list[FaultEvent]:
        """Return what happened to the faults of a subject, or of all, in the order of time."""
        query = f"SELECT {FAULT_EVENT} FROM fault_events"
        if subject is None:
            rows = self._rows(f"{query} ORDER BY time, id")
        else:
            rows = self._rows(
                f"{query} WHERE subject = ? ORDER BY time, id", self._encoded(subject)
            )
        return [FaultEvent._make(self._decoded(row)) for row in rows]

    def reductions(self, campaign: int) -> list[ReductionRecord]:
        """Return the campaign's reductions, in the order of their faults' ids."""
        self._must_have(campaign)
        rows = self._rows(
            f"SELECT {REDUCTION} FROM reductions WHERE campaign = ? ORDER BY fault, criterion",
            campaign,
        )
        records = [ReductionRecord._make(self._decoded(row)) for row in rows]
        # SQLite has no booleans.
        plain = [record._replace(complete=bool(record.complete)) for record in records]
        groups = self._groups()
        return merge_reductions(plain, groups) if groups else plain

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
        return map(TestRecord._make, self._test_rows(campaign))

    def _test_rows(self, campaign: int) -> Iterator[Row]:
        """Yield the rows of tests in chunks, so that a reader that pauses holds nothing open."""
        query = (
            "SELECT trial, test FROM tests WHERE campaign = ? AND trial > ? "
            f"ORDER BY trial LIMIT {_CHUNK}"
        )
        after = -1
        while rows := self._rows(query, campaign, after):
            yield from map(self._decoded, rows)
            after = rows[-1][0]

    def _must_have(self, campaign: int) -> None:
        if not self._rows("SELECT 1 FROM campaigns WHERE id = ?", campaign):
            self._refuse(campaign)

    def _refuse(self, campaign: int) -> NoReturn:
        latest = self._rows("SELECT id FROM campaigns ORDER BY id DESC LIMIT 21")
        raise UserError(no_campaign(campaign, self.url, [id for (id,) in latest]))
