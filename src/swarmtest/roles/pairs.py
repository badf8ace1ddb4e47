"""Pairs of features that matter only together: a trigger only if another is absent, and the like.

If a feature multiplies the chance of a hit by some factor, whatever else is enabled, then among
the tests that hit, its odds are those of the draw times that factor, with another feature and
without it. So an interaction of two features shows as a factor that differs with the other. A
score test in a logistic regression among the hits, with the odds of the draw as the offset, tests
that. The odds are conditional on the other features, which accounts for everything by which
strategies and constraints make features come and go together. For the pairs that survive the
correction for the number of pairs, the role of each feature is computed twice: among the hits with
the other, and among those without it.

A target that needs both features of a pair is no interaction in this sense: both are triggers, and
no hit lacks either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bit_counts import Bools, chunks
from swarmtest.analysis.intervals import (
    Floats,
    benjamini_hochberg,
    hits_needed,
    normal_p_value,
    wilson_interval,
)
from swarmtest.analysis.propensities import Propensities, effective_tests
from swarmtest.analysis.role_cells import INSUFFICIENT, IRRELEVANT, SUPPRESSOR, TRIGGER
from swarmtest.analysis.trial_columns import Evidence

_LEAST_VARIANCE = 1.5
"""Below this, the normal approximation of the test is too poor, and nothing is claimed."""
_LARGEST = 40.0
"""The largest logarithm of a factor."""
_ROUNDS = 200


@dataclass(frozen=True)
class ConditionalRole:
    """The role of a feature among the hits with another feature, or among those without it."""

    role: str
    share: float
    low: float
    high: float
    base: float
    hits: int


@dataclass(frozen=True)
class Pair:
    """A feature whose role depends on another one."""

    feature: str
    other: str
    with_other: ConditionalRole
    without_other: ConditionalRole
    p_value: float
    adjusted: float
    either: bool
    """Whether each triggers where the other is absent: either of them is enough."""

    def sentence(self) -> str:
        """Describe the pair in words.

        >>> on = ConditionalRole(TRIGGER, .9, .8, 1, .5, 40)
        >>> off = ConditionalRole(IRRELEVANT, .5, .4, .6, .5, 90)
        >>> Pair("chmod", "sync", on, off, 1e-5, 1e-4, False).sentence()
        'chmod is a trigger with sync; without it, no effect was shown'
        """
        if self.either and self.with_other.high < self.with_other.base / 2:
            return f"it shows with {self.feature} or with {self.other}, hardly with both"
        if self.either:
            return f"{self.feature} and {self.other} stand in for each other"
        on, off = self.with_other.role, self.without_other.role
        if {on, off} == {TRIGGER, SUPPRESSOR}:
            return f"{self.feature} is a {on} with {self.other} and a {off} without it"
        if on in (TRIGGER, SUPPRESSOR):
            return f"{self.feature} is a {on} with {self.other}; without it, no effect was shown"
        return f"{self.feature} is a {off} without {self.other}; with it, no effect was shown"

    def to_json(self) -> dict[str, object]:
        """Return plain data."""
        parts = {"with_other": vars(self.with_other), "without_other": vars(self.without_other)}
        return {**vars(self), **parts, "sentence": self.sentence()}


def pairs(
    evidence: Evidence,
    chances: Propensities,
    rows: npt.NDArray[np.intp],
    confidence: float = 0.95,
) -> list[Pair]:
    """Return the pairs of features that interact for a target, the clearest first.

    `rows` are the tests that hit the target.
    """
    if not len(rows):
        return []
    hits = _Hits(evidence, chances, rows, evidence.sizes[rows] == 1, confidence)
    independent = effective_tests(evidence.clusters[rows], np.ones(len(rows))) / chances.same_seed
    p_one_direction = _interaction_p_values(hits, len(rows) / max(independent, 1e-9))
    # Both directions test the same hypothesis on the same tests; the larger p-value counts.
    p_both = np.maximum(p_one_direction, p_one_direction.T)
    first, second = np.triu_indices(len(evidence.features), 1)
    is_tested = ~np.isnan(p_both[first, second])
    first, second = first[is_tested], second[is_tested]
    p_values = p_both[first, second]
    adjusted = benjamini_hochberg(p_values)
    result = []
    for number in np.argsort(adjusted, kind="stable"):
        if adjusted[number] > 1 - confidence:
            break
        pair = _describe(evidence.features, hits, int(first[number]), int(second[number]))
        if pair is not None:
            result.append(
                Pair(*pair[:4], float(p_values[number]), float(adjusted[number]), pair[4])
            )
    return result


def _interaction_p_values(hits: _Hits, design_effect: float) -> Floats:
    """Return for pairs (f, g) the p-value of f's factor being the same with g and without g."""
    count = len(hits.evidence.features)
    factors = _factors(hits)
    score, share, total = np.zeros((count, count)), np.zeros((count, count)), np.zeros(count)
    for part in chunks(len(hits.rows)):
        enabled, chance = hits.part(part)
        informative = ~np.isnan(chance)
        mean = _tilted(_offset(np.where(informative, chance, 0.5)), factors)
        weight = np.where(informative, mean * (1 - mean), 0)
        others = enabled.astype(float)
        score += np.where(informative, others - mean, 0).T @ others
        share += weight.T @ others
        total += weight.sum(axis=0)
    variance = share - share**2 / np.maximum(total, 1e-12)[:, None]
    score, variance = score / design_effect, variance / design_effect
    usable = variance >= _LEAST_VARIANCE
    p_values = np.full((count, count), np.nan)
    z = np.maximum(np.abs(score[usable]) - 0.5, 0) / np.sqrt(variance[usable])
    p_values[usable] = normal_p_value(z)
    np.fill_diagonal(p_values, np.nan)
    return p_values


def _offset(chance: Floats) -> Floats:
    offset: Floats = np.log(chance / (1 - chance))
    return offset


def _tilted(offset: Floats, factor: Any) -> Floats:
    """Return the odds of the draw times a factor, as chances; `factor` is a logarithm."""
    mean: Floats = 1 / (1 + np.exp(-(offset + factor)))
    return mean


def _factors(hits: _Hits) -> Floats:
    """Return the logarithms of the factors that make each feature's chances add up to its count.

    They are found by Newton's method, between bounds that become narrower; a feature that is in
    all hits, or in none, has the largest factor, or the smallest.
    """
    count = len(hits.evidence.features)
    offset, times, contained = _offsets(hits)
    low, high = np.full(count, -_LARGEST), np.full(count, _LARGEST)
    factors = np.zeros(count)
    for _ in range(_ROUNDS):
        mean = _tilted(offset, factors) * times
        missing = contained - mean.sum(axis=0)
        low, high = np.where(missing > 0, factors, low), np.where(missing > 0, high, factors)
        slope = (mean * (1 - np.divide(mean, times, out=np.zeros_like(mean), where=times > 0))).sum(
            axis=0
        )
        step = np.divide(missing, slope, out=np.full(count, np.inf), where=slope > 0)
        better = factors + step
        better = np.where((better > low) & (better < high), better, (low + high) / 2)
        if np.all(np.abs(better - factors) < 1e-13):
            break
        factors = better
    return factors


def _offsets(hits: _Hits) -> tuple[Floats, Floats, Floats]:
    """Return the different log-odds in the hits, how often each occurs, and how often it was in.

    The first two are rows by features. Hits with the same row of odds share a row, unless odds are
    estimated for each test.
    """
    values, count = hits.chances.values, len(hits.evidence.features)
    rows = values.row[hits.rows] if values.estimates is None else np.arange(len(hits.rows))
    distinct, group = np.unique(rows, return_inverse=True)
    offset, times = np.zeros((len(distinct), count)), np.zeros((len(distinct), count))
    contained = np.zeros(count)
    order = np.argsort(group.ravel(), kind="stable")
    for part in chunks(len(order)):
        enabled, chance = hits.part(order[part])
        informative = ~np.isnan(chance)
        contained += (enabled & informative).sum(axis=0)
        groups, first = np.unique(group.ravel()[order[part]], return_index=True)
        times[groups] += np.add.reduceat(informative, first, axis=0, dtype=float)
        # The log-odds of a group are those of any hit in which the feature counts.
        logarithms = np.where(informative, _offset(np.where(informative, chance, 0.5)), -np.inf)
        largest = np.maximum.reduceat(logarithms, first, axis=0)
        offset[groups] = np.where(np.isinf(largest), offset[groups], largest)
    return offset, times, contained


@dataclass(frozen=True)
class _Hits:
    """The tests that hit a target, read by rows or by columns."""

    evidence: Evidence
    chances: Propensities
    rows: npt.NDArray[np.intp]
    single: Bools
    """Tests with one feature; they say nothing about it, as there is no test without it."""
    confidence: float

    def part(self, part: Any) -> tuple[Bools, Floats]:
        """Return for some of the tests which features were enabled, and how likely each was."""
        enabled = self.evidence.enabled[self.rows[part]]
        chance = self.chances.values[self.rows[part]].astype(float)
        chance[enabled & self.single[part][:, None]] = np.nan
        return enabled, chance

    def column(self, feature: int) -> tuple[Bools, Floats]:
        """Return the same for one feature, in all of the tests."""
        enabled = self.evidence.enabled[self.rows, feature]
        chance = self.chances.values[self.rows, feature].astype(float)
        chance[enabled & self.single] = np.nan
        return enabled, chance

    def role_among(self, feature: int, other: int, with_other: bool) -> ConditionalRole:
        """Return a feature's role among the hits with another one, or among those without it."""
        (inside, chance), (has_other, other_chance) = self.column(feature), self.column(other)
        group = (has_other == with_other) & ~np.isnan(other_chance) & ~np.isnan(chance)
        hits = int(group.sum())
        if not hits:
            return ConditionalRole(INSUFFICIENT, 0.0, 0.0, 1.0, float("nan"), 0)
        containing = int((group & inside).sum())
        base = float(chance[group].mean())
        low, high = wilson_interval(containing, hits, self.confidence)
        enough = hits >= hits_needed(base, self.confidence)
        role = TRIGGER if low > base else SUPPRESSOR if high < base else IRRELEVANT
        role = INSUFFICIENT if role == IRRELEVANT and not enough else role
        return ConditionalRole(role, containing / hits, low, high, base, hits)


def _describe(
    features: tuple[str, ...], hits: _Hits, first: int, second: int
) -> tuple[str, str, ConditionalRole, ConditionalRole, bool] | None:
    """Return the pair as a feature whose role depends on the other; None if no role changes."""
    views = []
    for feature, other in ((first, second), (second, first)):
        on, off = (hits.role_among(feature, other, with_other) for with_other in (True, False))
        if on.role != off.role and INSUFFICIENT not in (on.role, off.role):
            views.append((features[feature], features[other], on, off))
    if not views:
        return None
    either = len(views) == 2 and all(
        off.role == TRIGGER and on.role != TRIGGER for _, _, on, off in views
    )
    # A trigger reads better than a suppressor, and "with" better than "without".
    views.sort(key=lambda view: (view[2].role != TRIGGER, view[3].role != TRIGGER))
    return (*views[0], either)
