"""Shares of the steps in tests that are alike: sums for a regression, some tests at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bits import Bools, chunks
from swarmtest.analysis.evidence import Evidence
from swarmtest.analysis.intervals import Floats

Numbers = npt.NDArray[np.intp]


class Means(NamedTuple):
    """What is needed of all tests before any can be compared; by features, but for the first."""

    by_group: Floats
    """Groups of tests that are alike by features: the mean share of the steps."""
    in_hits: Floats
    in_others: Floats
    """The mean shares where the feature is enabled; others weighted like the hits beside them."""
    hits: Floats
    others: Floats
    """How many tests have the feature enabled."""


class AlikeTests:
    """Tests of the evidence in groups: of each group some hit and some did not."""

    def __init__(self, evidence: Evidence, rows: Numbers, hit: Bools, group: Numbers) -> None:
        self._evidence, self._rows, self._hit = evidence, rows, hit
        self._group = np.unique(group, return_inverse=True)[1].ravel()
        self._tests = np.bincount(self._group)
        self._hits = np.bincount(self._group, hit)

    def means(self) -> Means:
        """One pass over the tests."""
        count = len(self._evidence.features)
        sums = np.zeros((len(self._tests), count))
        totals = np.zeros((2, 3, count))
        others = np.maximum(self._tests - self._hits, 1)
        for part in chunks(len(self._rows)):
            group, hit, shares = self._group[part], self._hit[part], self._shares(part)
            enabled = self._evidence.enabled[self._rows[part]]
            np.add.at(sums, group, shares)
            weight = np.where(hit, 1.0, (self._hits / others)[group])
            for number, side in enumerate((hit, ~hit)):
                inside = enabled & side[:, None]
                weighted = weight[:, None] * inside
                totals[number] += (
                    inside.sum(axis=0),
                    weighted.sum(axis=0),
                    (weighted * shares).sum(axis=0),
                )
        in_hits, in_others = (
            np.divide(weighted, total, out=np.zeros(count), where=total > 0)
            for _, total, weighted in totals
        )
        by_group = sums / self._tests[:, None]
        return Means(by_group, in_hits, in_others, totals[0, 0], totals[1, 0])

    def products(self, means: Means) -> tuple[Floats, Floats, Floats]:
        """What a regression of the hits on the shares needs; and each share's largest deviation."""
        count = len(self._evidence.features)
        gram, slope, largest = np.zeros((count, count)), np.zeros(count), np.zeros(count)
        for part in chunks(len(self._rows)):
            deviations, outcome = self._deviations(part, means)
            gram += deviations.T @ deviations
            slope += deviations.T @ outcome
            np.maximum(largest, np.abs(deviations).max(axis=0, initial=0), out=largest)
        return gram, slope, largest

    def spread(self, means: Means, told: Numbers, effects: Floats) -> Floats:
        """The middle of an estimate of variances that may differ from test to test."""
        spread = np.zeros((len(told), len(told)))
        for part in chunks(len(self._rows)):
            deviations, outcome = self._deviations(part, means)
            some = deviations[:, told]
            left = outcome - some @ effects
            spread += (some * left[:, None] ** 2).T @ some
        return spread

    def _shares(self, part: slice) -> Floats:
        used = self._evidence.used[self._rows[part]].astype(np.float64)
        shares: Floats = used / used.sum(axis=1, keepdims=True)
        return shares

    def _deviations(self, part: slice, means: Means) -> tuple[Floats, Floats]:
        """Shares and hits less the mean of the like."""
        group = self._group[part]
        outcome = self._hit[part] - (self._hits / self._tests)[group]
        return self._shares(part) - means.by_group[group], outcome
