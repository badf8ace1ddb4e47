"""What the SQL stores share: campaigns as rows, spans of trials, and what is not there in words."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

from swarmtest.store.records import CampaignRecord

CAMPAIGN = ", ".join(field.name for field in fields(CampaignRecord))
"""The columns of a campaign, its id last."""

OF_A_CAMPAIGN = (
    "trials", "blocks", "faults", "tests", "reductions", "campaign_sources", "workers"
)  # fmt: skip
"""The tables whose rows go when their campaign is deleted."""

CHUNK = 500
"""Trials read at a time: large enough to be fast, small enough for hits of 100 KB each."""

FAR = 2**63 - 1
"""Above all trial numbers."""

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
        """How many to read at once."""
        return CHUNK if self.limit is None else min(CHUNK, self.limit)

    @property
    def order(self) -> str:
        """The rest of a query by trial numbers."""
        return f"ORDER BY trial {'DESC' if self.newest_first else 'ASC'} LIMIT {self.size}"

    def beyond(self, last: int, count: int) -> Span:
        """What is left when `count` were read, up to `last`."""
        left = None if self.limit is None else self.limit - count
        if self.newest_first:
            return self._replace(before=last, limit=left)
        return self._replace(after=last, limit=left)


def campaign_values(campaign: CampaignRecord) -> list[Any]:
    """The values of `CAMPAIGN`, but for the id."""
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
    """The record of a row of `CAMPAIGN`."""
    record = CampaignRecord(*row)
    space, options = json.loads(row[3]), json.loads(row[4])
    return replace(record, seed=int(record.seed), space=space, options=options)


def changed_values(changes: dict[str, Any]) -> dict[str, Any]:
    """Changes of a campaign as values of its columns; what defines it cannot change."""
    unknown = changes.keys() - _CHANGEABLE
    if unknown:
        raise TypeError(f"a campaign's {', '.join(sorted(unknown))} cannot change")
    if "options" in changes:
        return changes | {"options": json.dumps(changes["options"])}
    return changes


def no_campaign(campaign: int, url: str, latest: Sequence[int]) -> str:
    """That a campaign is not there; `latest` are those that are, newest first, up to 21.

    >>> no_campaign(9, "x.db", [3, 2, 1])
    'no campaign 9 in x.db: it has 1, 2, 3'
    """
    if not latest:
        return f"no campaign {campaign} in {url}: it has none yet; run `swarmtest run` first"
    more = "..., " if len(latest) > 20 else ""
    known = ", ".join(map(str, latest[19::-1]))
    return f"no campaign {campaign} in {url}: it has {more}{known}"


def no_trial(campaign: int, trial: int, url: str, there: Sequence[Any]) -> str:
    """That a trial is not there; `there` is how many are, the lowest and the highest."""
    count, low, high = there
    told = f"it has {count}, numbered {low} to {high}" if count else "it has none yet"
    return f"campaign {campaign} in {url} has no trial {trial}: {told}"
