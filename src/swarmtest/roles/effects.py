"""Effects: how often tests hit a target with a feature, and without it.

The population: tests as the campaigns draw them, in which the feature was left to chance. Each
counts as much as that toss was open, chance x (1 - chance). Tests in which the feature was sure
to be in say nothing about tests without it, and where it was nearly sure, a handful of tests
would have to stand for hundreds. A test with the feature gets the weight 1 - chance, one without
it the weight chance ("overlap weights": Li, Morgan, Zaslavsky 2018). That makes the two groups
comparable in everything else, whatever the strategy preferred. Where a coin with one rate decides
(``coin``, ``covering``), all weights are equal. Tests with this feature alone belong to the
population if it is known that the empty test, which is never run, would not hit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bit_counts import ROWS, Bools, packed_column
from swarmtest.analysis.intervals import (
    Floats,
    normal_quantile,
    student_quantile,
    wilson_interval,
)
from swarmtest.analysis.propensities import Propensities
from swarmtest.analysis.trial_columns import Evidence

_ROUNDING = 1e-12
"""By how much two sums of the same weights may differ."""


@dataclass(frozen=True)
class HittingRate:
    """An estimated hitting fraction.

    >>> HittingRate(0.25, 0.1, 0.5).value
    0.25
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class FeatureEffect:
    """The hitting fraction of a target with a feature and without it; None without such tests."""

    feature: str
    with_it: HittingRate | None
    without_it: HittingRate | None
    alone: bool = True
    """Whether tests without any other feature count: an empty test is known not to hit."""

    def to_json(self) -> dict[str, object]:
        """Return plain data."""
        sides = {"with_it": self.with_it, "without_it": self.without_it}
        plain = {name: vars(rate) if rate else None for name, rate in sides.items()}
        return {"feature": self.feature, **plain, "alone": self.alone}

    @property
    def ratio(self) -> float:
        """Return with / without; infinite if there are no hits without it, NaN if unknown."""
        if self.with_it is None or self.without_it is None:
            return float("nan")
        if self.without_it.value:
            return self.with_it.value / self.without_it.value
        return float("inf") if self.with_it.value else float("nan")


class EffectWeights:
    """The weights of all tests by feature, added up once for all targets.

    For each feature there are three kinds of tests: with it and others, with it alone, and without
    it. A target's own hits are few, and all that is left to look at for each target.

    A unit is a cluster of tests that share a configuration, or a test that shares it with no other.
    All tests of a unit are of the same kind. The variance of a rate follows from how much the units
    differ, for which these sums are enough.
    """

    def __init__(
        self, evidence: Evidence, chances: Propensities, known: Bools | None, confidence: float
    ) -> None:
        """Add up the weights of the `known` tests, or of all."""
        self._evidence, self._chances, self._confidence = evidence, chances, confidence
        self._known = known
        count = len(evidence.features)
        clusters = int(evidence.clusters.max(initial=-1)) + 1
        self._of_clusters = np.zeros((clusters, count))
        """The weight of each cluster, by feature."""
        self._all = _UnitSums.zero(count)
        if chances.values.few_rows is not None and not clusters:
            self._add_by_chance()
        else:
            for feature in range(count):
                self._add_feature(feature)

    def effects(self, hits: npt.NDArray[np.intp], alone: Bools) -> list[FeatureEffect]:
        """Return what each feature does to the hitting fraction of a target.

        `hits` are the tests that hit it. `alone` marks the features whose tests without any other
        feature count, because it is known that an empty test would not hit (see
        `swarmtest.roles.counting`).
        """
        if self._known is not None:
            hits = hits[self._known[hits]]
        hit = self._hit_sums(hits)
        result = []
        for i, feature in enumerate(self._evidence.features):
            with_it = self._all.of([0, 1] if alone[i] else [0], i)
            without_it = self._all.of([2], i)
            if alone[i]:
                # The other side of each test with this feature alone is the empty test, a miss.
                without_it += self._all.of([1], i).each_test_apart()
            rates = (
                self._rate(with_it, hit.of([0, 1] if alone[i] else [0], i)),
                self._rate(without_it, hit.of([2], i)),
            )
            result.append(FeatureEffect(feature, *rates, bool(alone[i])))
        return result

    def _rate(self, sums: _Side, hit: _HitSide) -> HittingRate | None:
        """Return the weighted share of hits with its interval; None without tests."""
        if not sums.weight:
            return None
        value = hit.weight / sums.weight
        if value > 1 - _ROUNDING:
            value = 1.0
        spread = hit.unit_squares - 2 * value * hit.across + value**2 * sums.unit_squares
        variance = 0.0 if value in (0.0, 1.0) else max(spread, 0.0) / sums.weight**2
        return rate_from_variance(value, variance, sums, self._chances.same_seed, self._confidence)

    def _hit_sums(self, hits: npt.NDArray[np.intp]) -> _HitSums:
        """Add up the weights of the tests that hit, unit by unit."""
        evidence = self._evidence
        hits = hits[np.argsort(evidence.clusters[hits], kind="stable")]
        sums = _HitSums.zero(len(evidence.features))
        for part in _whole_clusters(evidence.clusters[hits]):
            rows = hits[part]
            clusters = evidence.clusters[rows]
            shared = int(np.searchsorted(clusters, 0))  # before that: -1
            names, begins = np.unique(clusters[shared:], return_index=True)
            chance = self._chances.values[rows].astype(float)
            sides = self._sides(evidence.enabled[rows], evidence.sizes[rows], chance)
            for number, side, weight in sides:
                weight = np.where(side, weight, 0.0)
                sums.weight[number] += weight.sum(axis=0)
                single = (weight[:shared] ** 2).sum(axis=0)
                sums.unit_squares[number] += single
                sums.across[number] += single
                if len(names):
                    of_clusters = np.add.reduceat(weight[shared:], begins, axis=0)
                    sums.unit_squares[number] += (of_clusters**2).sum(axis=0)
                    sums.across[number] += (of_clusters * self._of_clusters[names]).sum(axis=0)
        return sums

    @staticmethod
    def _sides(
        enabled: Bools, sizes: npt.NDArray[np.int64], chance: Floats
    ) -> Iterator[tuple[int, Bools, Floats]]:
        """Yield each kind of tests by features: its number, which they are, and their weights."""
        informative = ~np.isnan(chance)
        inside = enabled & informative
        single = (sizes == 1)[:, None]
        yield 0, inside & ~single, 1 - chance
        yield 1, inside & single, 1 - chance
        yield 2, informative & ~enabled, chance

    def _add_by_chance(self) -> None:
        """Add up from counts: there are few different chances, and no clusters."""
        evidence, sums = self._evidence, self._all
        one_only = evidence.single
        known = None if self._known is None else packed_column(self._known)
        for i in range(len(evidence.features)):
            inside = evidence.columns[i]
            for tests, chance in self._chances.tests_by_chance(i).by_chance or ():
                counted = tests if known is None else tests & known
                kinds = (counted & inside & ~one_only, counted & inside & one_only)
                for number, side in enumerate((*kinds, counted & ~inside)):
                    count = int(np.bitwise_count(side).sum(dtype=np.int64))
                    weight = 1 - chance if number < 2 else chance
                    sums.tests[number, i] += count
                    sums.units[number, i] += count
                    sums.weight[number, i] += count * weight
                    sums.squares[number, i] += count * weight**2
                    sums.unit_squares[number, i] += count * weight**2

    def _add_feature(self, feature: int) -> None:
        evidence, sums = self._evidence, self._all
        enabled = evidence.enabled[:, feature][:, None]
        chance = self._chances.values[:, feature].astype(float)[:, None]
        most = len(self._of_clusters)
        for number, side, weights in self._sides(enabled, evidence.sizes, chance):
            rows = np.flatnonzero(side[:, 0] if self._known is None else side[:, 0] & self._known)
            weight, clusters = weights[rows, 0], evidence.clusters[rows]
            shared = clusters >= 0
            of_clusters = np.bincount(clusters[shared], weight[shared], minlength=most)
            present = np.bincount(clusters[shared], minlength=most) > 0
            self._of_clusters[:, feature] += of_clusters
            sums.tests[number, feature] = len(rows)
            sums.units[number, feature] = present.sum() + (~shared).sum()
            sums.weight[number, feature] = weight.sum()
            sums.squares[number, feature] = (weight**2).sum()
            sums.unit_squares[number, feature] = (of_clusters**2).sum() + (
                weight[~shared] ** 2
            ).sum()


class _Side(NamedTuple):
    """Sums over some tests, for one feature."""

    tests: float
    units: float
    weight: float
    squares: float
    """Of the weights of tests."""
    unit_squares: float
    """Of the weights of units."""

    def __add__(self, other: _Side) -> _Side:  # type: ignore[override]  # of tuples: one after the other
        return _Side(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def each_test_apart(self) -> _Side:
        """Return the sums as if each test had a configuration of its own."""
        return self._replace(units=self.tests, unit_squares=self.squares)


class _UnitSums(NamedTuple):
    """The fields of `_Side` by kind of test and feature."""

    tests: Floats
    units: Floats
    weight: Floats
    squares: Floats
    unit_squares: Floats

    @classmethod
    def zero(cls, features: int) -> _UnitSums:
        return cls(*np.zeros((5, 3, features)))

    def of(self, kinds: list[int], feature: int) -> _Side:
        """Return the sums of some kinds of tests, for one feature."""
        return _Side(*(_sum_of(sums, kinds, feature) for sums in self))


class _HitSide(NamedTuple):
    """Sums over the tests of one side that hit, for one feature."""

    weight: float
    unit_squares: float
    across: float
    """The sum over units of the weight that hit times the whole weight."""


class _HitSums(NamedTuple):
    """The fields of `_HitSide` by kind of test and feature."""

    weight: Floats
    unit_squares: Floats
    across: Floats

    @classmethod
    def zero(cls, features: int) -> _HitSums:
        return cls(*np.zeros((3, 3, features)))

    def of(self, kinds: list[int], feature: int) -> _HitSide:
        """Return the sums of some kinds of tests, for one feature."""
        return _HitSide(*(_sum_of(sums, kinds, feature) for sums in self))


def _sum_of(sums: Floats, kinds: list[int], feature: int) -> float:
    """Return the sum of some rows of a column, in a fraction of the time that numpy needs for it.

    >>> _sum_of(np.array([[0.25, 1.0], [2.0, 3.0]]), [0, 1], 0)
    2.25
    """
    total = float(sums.item(kinds[0], feature))
    for kind in kinds[1:]:
        total += sums.item(kind, feature)
    return total


def _whole_clusters(clusters: npt.NDArray[np.int32]) -> Iterator[slice]:
    """Yield sorted tests, some at a time, without dividing a cluster."""
    start = 0
    while start < len(clusters):
        end = min(start + ROWS, len(clusters))
        if clusters[end - 1] >= 0:
            end = int(np.searchsorted(clusters, clusters[end - 1], side="right"))
        yield slice(start, end)
        start = end


def hitting_rate(
    hit: Bools,
    weight: Floats,
    clusters: npt.NDArray[np.int32],
    same_seed: int = 1,
    confidence: float = 0.95,
) -> HittingRate | None:
    """Return the weighted share of hits with its interval; None without tests.

    >>> rate = hitting_rate(np.arange(100) < 20, np.ones(100), np.full(100, -1))
    >>> rate and (rate.value, round(rate.low, 3), round(rate.high, 3))
    (0.2, 0.132, 0.291)
    """
    total = float(weight.sum())
    if not total:
        return None
    value = min(float((weight * hit).sum()) / total, 1.0)
    shared = clusters >= 0

    def of_units(each: Floats) -> Floats:
        return np.concatenate([np.bincount(clusters[shared], each[shared]), each[~shared]])

    variance = float((of_units(weight * (hit - value)) ** 2).sum()) / total**2
    units = len(np.unique(clusters[shared])) + int((~shared).sum())
    squares, unit_squares = float((weight**2).sum()), float((of_units(weight) ** 2).sum())
    side = _Side(len(weight), units, total, squares, unit_squares)
    return rate_from_variance(value, variance, side, same_seed, confidence)


def rate_from_variance(
    value: float, variance: float, side: _Side, same_seed: int, confidence: float
) -> HittingRate:
    """Return a weighted share with its interval.

    The interval is Wilson's for as many independent tests as have the variance of this share, which
    follows from how much the units differ (Korn and Graubard 1998). Without a miss, or without a
    hit, tests of one cluster count as one: Kish's effective sample size.
    """
    if variance > 0 and side.units > 1:
        stretch = normal_quantile(confidence) / student_quantile(confidence, side.units - 1)
        variance *= side.units / (side.units - 1)
        most = side.weight**2 / side.squares
        tests = min(value * (1 - value) / variance, most) * stretch**2
    else:
        tests = side.weight**2 / side.unit_squares
    tests /= same_seed
    low, high = wilson_interval(value * tests, tests, confidence)
    return HittingRate(value, low, high)
