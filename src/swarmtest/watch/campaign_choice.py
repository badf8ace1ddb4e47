"""Which campaign of a watch gets the next slice of time: the one that still finds most.

For each campaign, `swarmtest.growth` estimates how many new things (faults, lines, ...) the next
test of the same kind would find (Good-Turing). Tests of one strategy may take longer than those of
another, so what counts is new things per CPU second. A campaign with too few tests for an estimate
comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swarmtest.growth.growth import Growth, measure_growth
from swarmtest.growth.verdict import LEAST_TESTS
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord


@dataclass(frozen=True)
class WatchedCampaign:
    """A campaign that may go on, with what its growth promises.

    >>> WatchedCampaign(3, "coin", new_per_second=0.25).promise
    '0.25 new things per CPU second expected'
    """

    number: int
    """Its number in the store; 0 if it has not begun."""
    strategy: str
    """What ``--strategy`` names; empty for the usual one."""
    tests: int = 0
    cpu_seconds: float = 0.0
    new_per_second: float | None = None
    """How many new things a CPU second of it is expected to find; None: too few tests to tell."""

    @property
    def promise(self) -> str:
        """What is expected of it, in words."""
        if self.new_per_second is None:
            return "too few tests for an estimate"
        return f"{self.new_per_second:.2g} new things per CPU second expected"


def weigh_campaign(store: Store, record: CampaignRecord, strategy: str) -> WatchedCampaign:
    """Return a campaign with what it is expected to find."""
    summary = store.summary(record.id)
    tests, cpu_seconds = summary["trials"], summary["cpu_ns"] / 1e9
    rate = None
    if tests >= LEAST_TESTS and cpu_seconds > 0:
        rate = new_per_test(measure_growth(store, [record.id])) * tests / cpu_seconds
    return WatchedCampaign(record.id, strategy, tests, cpu_seconds, rate)


def new_per_test(growth: Growth) -> float:
    """Return how many new things the next test is expected to find, of all kinds together."""
    return sum(kind.seen.new_per_test for kind in growth.kinds)


def choose_campaign(candidates: Sequence[WatchedCampaign]) -> WatchedCampaign:
    """Return the campaign that gets the next slice.

    >>> slow, fast = WatchedCampaign(1, "", 90, 9.0, 0.1), WatchedCampaign(2, "coin", 90, 9.0, 0.4)
    >>> choose_campaign([slow, fast]).strategy
    'coin'
    >>> choose_campaign([slow, fast, WatchedCampaign(0, "all-on")]).strategy
    'all-on'
    """
    unknown = [each for each in candidates if each.new_per_second is None]
    if unknown:
        return min(unknown, key=lambda each: each.tests)
    return max(candidates, key=lambda each: (each.new_per_second or 0.0, -each.cpu_seconds))
