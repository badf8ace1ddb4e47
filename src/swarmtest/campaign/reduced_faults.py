"""The reduced tests of a campaign's faults: how long reducing may take, and what came of it.

`fault_reductions` reduces. What only shows results reads them here, without loading a reducer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from swarmtest.store.interface import Store
from swarmtest.store.records import ReductionRecord

SAME_FAULT = "fault"
"""The criterion of these reductions: `ReductionRecord.criterion`."""
_LEAST_TIME, _MOST_TIME = 20.0, 60.0


@dataclass(frozen=True)
class ReductionTime:
    """How long reducing the faults of a campaign may take, in seconds of wall time.

    >>> ReductionTime().within(campaign_seconds=2.0)
    20.0
    """

    total: float | None = None
    """For all faults; None: as long as the campaign took, but 20 seconds at least and 60 at
    most."""
    each: float | None = None
    """For one fault; None: 20 seconds, or all that is left for it if `total` is given."""

    def within(self, campaign_seconds: float) -> float:
        """The time for all faults of a campaign that took so long."""
        return (
            min(max(campaign_seconds, _LEAST_TIME), _MOST_TIME)
            if self.total is None
            else self.total
        )

    def share(self, left: float, faults: int) -> float:
        """The time for one fault, when so much is left for so many: what one saves, others get."""
        fair = left / max(faults, 1)
        most = self.each if self.each is not None else (_LEAST_TIME if self.total is None else left)
        return min(max(fair, 1.0), most, left)


@dataclass(frozen=True)
class FaultReductions:
    """What came of reducing the faults of a campaign."""

    campaign: int
    reductions: dict[str, ReductionRecord]
    """By fault, those of earlier times included."""
    untried: tuple[str, ...] = ()
    """Faults that keep the test they had, for want of time."""
    why: dict[str, str] = field(default_factory=dict)
    """Why faults could not be reduced: a line each."""
    interrupted: bool = False
    """Whether the user ended it."""


@dataclass(frozen=True)
class Reducing:
    """How it goes."""

    fault: str
    number: int
    """Which of the faults it is, from 1."""
    faults: int
    runs: int
    size: int
    """The parts that are left of its test."""


def reductions_of(store: Store, campaign: int) -> dict[str, ReductionRecord]:
    """What is left of the tests of a campaign's faults, by fault."""
    return {one.fault: one for one in store.reductions(campaign) if one.criterion == SAME_FAULT}
