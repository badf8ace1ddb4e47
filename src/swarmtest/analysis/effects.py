"""How much a feature matters: how often tests hit a target with it, and without it.

A role says that a feature matters; this says how much, in words that need no statistics: "one test
in 8 with it, one in 900 without". Tests are weighted by the inverse of the chance of what they
are (with the feature, or without it), which makes the two groups comparable in everything else,
whatever the strategy preferred.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swarmtest.analysis.bits import Bools
from swarmtest.analysis.chances import Chances
from swarmtest.analysis.effective import effective_tests
from swarmtest.analysis.evidence import Evidence
from swarmtest.analysis.intervals import Floats, wilson_interval


@dataclass(frozen=True)
class Rate:
    """An estimated hitting fraction.

    >>> Rate(0.25, 0.1, 0.5).value
    0.25
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Effect:
    """The hitting fraction of a target with a feature and without it; None: no such tests."""

    feature: str
    with_it: Rate | None
    without_it: Rate | None

    def to_json(self) -> dict[str, object]:
        """Plain data."""
        sides = {"with_it": self.with_it, "without_it": self.without_it}
        plain = {name: vars(rate) if rate else None for name, rate in sides.items()}
        return {"feature": self.feature, **plain}

    @property
    def ratio(self) -> float:
        """How many times as often with it as without; infinite if never without, NaN if unknown."""
        if self.with_it is None or self.without_it is None:
            return float("nan")
        if self.without_it.value:
            return self.with_it.value / self.without_it.value
        return float("inf") if self.with_it.value else float("nan")


def effects(
    evidence: Evidence,
    chances: Chances,
    hit: Bools,
    known: Bools,
    alone: Bools,
    confidence: float = 0.95,
) -> list[Effect]:
    """What each feature does to the hitting fraction of a target.

    `known`: tests that can tell. `alone`: features whose tests without any other count, for what
    an empty test would have done is known (see `swarmtest.analysis.counting`).
    """
    found = []
    single = evidence.enabled.sizes() == 1
    for i, feature in enumerate(evidence.features):
        inside = evidence.enabled[:, i]
        chance = chances.values[:, i].astype(float)
        told = ~np.isnan(chance) & known & (alone[i] | ~(single & inside))
        rates = []
        for side, odds in ((told & inside, chance), (told & ~inside, 1 - chance)):
            weight = 1 / odds[side]
            tests = effective_tests(evidence.clusters[side], weight)
            rates.append(_rate(hit[side], weight, tests / chances.same_seed, confidence))
        found.append(Effect(feature, *rates))
    return found


def _rate(hit: Bools, weight: Floats, tests: float, confidence: float) -> Rate | None:
    """The weighted share of hits, with the interval of as many independent tests."""
    if not len(hit):
        return None
    value = float((weight * hit).sum() / weight.sum())
    low, high = wilson_interval(value * tests, tests, confidence)
    return Rate(value, low, high)
