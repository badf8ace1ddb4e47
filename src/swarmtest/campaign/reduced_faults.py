"""The reduced tests of a campaign's faults: how long reduction may take, and its results.

The reduction itself is in `swarmtest.reduce`. Code that only shows results reads them here, without
loading a reducer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from swarmtest.store.interface import Store
from swarmtest.store.records import ReductionRecord

SAME_FAULT = "fault"
"""The criterion of these reductions: `ReductionRecord.criterion`."""
EXPLAINED = "why"
"""The criterion of the records that hold the explanations of `swarmtest.why`, beside reductions."""
_LEAST_TIME, _MOST_TIME = 20.0, 60.0


@dataclass(frozen=True)
class ReductionTime:
    """How long the reduction of a campaign's faults may take, in seconds of wall time.

    >>> ReductionTime().within(campaign_seconds=2.0)
    20.0
    """

    total: float | None = None
    """For all faults; None: as long as the campaign took, but between 20 and 60 seconds."""
    each: float | None = None
    """For one fault; None: 20 seconds, or all the time that is left if `total` is given."""

    def within(self, campaign_seconds: float) -> float:
        """Return the time for all faults of a campaign that took `campaign_seconds`."""
        return (
            min(max(campaign_seconds, _LEAST_TIME), _MOST_TIME)
            if self.total is None
            else self.total
        )

    def share(self, left: float, faults: int) -> float:
        """Return the time for one fault when `left` seconds remain for `faults` faults.

        Time that one fault does not need goes to the others.
        """
        fair = left / max(faults, 1)
        most = self.each if self.each is not None else (_LEAST_TIME if self.total is None else left)
        return min(max(fair, 1.0), most, left)


@dataclass(frozen=True)
class FaultReductions:
    """The results of reducing the faults of a campaign."""

    campaign: int
    reductions: dict[str, ReductionRecord]
    """By fault, including those of earlier reductions."""
    untried: tuple[str, ...] = ()
    """Faults that were not reduced because the time was up."""
    why: dict[str, str] = field(default_factory=dict)
    """Why faults could not be reduced, one line each."""
    interrupted: bool = False
    """Whether the user interrupted the reduction."""


@dataclass(frozen=True)
class FaultReductionProgress:
    """The progress of a reduction: which fault it is at, and how far."""

    fault: str
    number: int
    """Which of the faults it is, counted from 1."""
    faults: int
    runs: int
    size: int
    """How many parts of its test are left."""


def reductions_of(store: Store, campaign: int) -> dict[str, ReductionRecord]:
    """Return the reduced tests of a campaign's faults, by fault."""
    reductions = store.reductions(campaign)
    return {record.fault: record for record in reductions if record.criterion == SAME_FAULT}


def explanation_texts(store: Store, campaigns: Iterable[int]) -> dict[str, str]:
    """Return what experiments showed about faults, by fault, in the words of the last campaign.

    Each text is a paragraph, and a line about generated tests if there were any.
    """
    return {
        record.fault: record.code
        for campaign in campaigns
        for record in store.reductions(campaign)
        if record.criterion == EXPLAINED and record.code
    }
