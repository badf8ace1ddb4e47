"""Features that matter only together: a trigger only when another is absent, and the like.

If a feature multiplies the chance of a hit by some factor, whatever else is enabled, then among the
tests that hit, its own odds are those it was drawn with times that factor, with another feature and
without it. So an interplay of two shows as a factor that differs: a score test in a logistic
regression among the hits, with the odds of the draw as the offset, asks whether it does. The
odds given the others take care of everything by which strategies and constraints make features come
and go together. For the pairs that survive the correction for the number of pairs, the role of each
feature is computed twice, among the hits with the other and among those without it.

A target that needs both features of a pair is no interplay in this sense: both are triggers, and
no hit lacks either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bit_counts import Bools, chunks
from swarmtest.analysis.cells import INSUFFICIENT, IRRELEVANT, SUPPRESSOR, TRIGGER
from swarmtest.analysis.intervals import (
    Floats,
    benjamini_hochberg,
    hits_needed,
    normal_p_value,
    wilson_interval,
)
from swarmtest.analysis.propensities import Chances, effective_tests
from swarmtest.analysis.trial_columns import Evidence

_LEAST_VARIANCE = 1.5
"""Below this the normal approximation of the test is not worth its name, and nothing is claimed."""


@dataclass(frozen=True)
class Part:
    """A feature's role among the hits that agree on another feature."""

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
    with_other: Part
    without_other: Part
    p_value: float
    adjusted: float
    either: bool
    """Each triggers where the other is absent: they stand in for each other."""

    def sentence(self) -> str:
        """In words.

        >>> on, off = Part(TRIGGER, .9, .8, 1, .5, 40), Part(IRRELEVANT, .5, .4, .6, .5, 90)
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
        """Plain data."""
        parts = {"with_other": vars(self.with_other), "without_other": vars(self.without_other)}
        return {**vars(self), **parts, "sentence": self.sentence()}


def pairs(evidence: Evidence, chances: Chances, hit: Bools, confidence: float = 0.95) -> list[Pair]:
    """The pairs of features with an interplay for a target, the clearest first."""
    rows = np.flatnonzero(hit)
    hits = _Hits(evidence, chances, rows, evidence.enabled.sizes()[rows] == 1, confidence)
    independent = effective_tests(evidence.clusters[rows], np.ones(len(rows))) / chances.same_seed
    p_one_way = _interplay(hits, len(rows) / max(independent, 1e-9))
    # Both ways ask the same question of the same tests; the more doubtful answer counts.
    both_ways = np.maximum(p_one_way, p_one_way.T)
    first, second = np.triu_indices(len(evidence.features), 1)
    known = ~np.isnan(both_ways[first, second])
    first, second = first[known], second[known]
    p_values = both_ways[first, second]
    adjusted = benjamini_hochberg(p_values)
    found = []
    for at in np.argsort(adjusted, kind="stable"):
        if adjusted[at] > 1 - confidence:
            break
        pair = _described(evidence.features, hits, int(first[at]), int(second[at]))
        if pair is not None:
            found.append(Pair(*pair[:4], float(p_values[at]), float(adjusted[at]), pair[4]))
    return found


def _interplay(hits: _Hits, design_effect: float) -> Floats:
    """By pairs (f, g): the p-value of f's factor being the same with g and without g."""
    count = len(hits.evidence.features)
    factors = np.array([_factor(hits, feature) for feature in range(count)])
    score, share, total = np.zeros((count, count)), np.zeros((count, count)), np.zeros(count)
    for part in chunks(len(hits.rows)):
        enabled, chance = hits.part(part)
        told = ~np.isnan(chance)
        mean = _tilted(_offset(np.where(told, chance, 0.5)), factors)
        weight = np.where(told, mean * (1 - mean), 0)
        others = enabled.astype(float)
        score += np.where(told, others - mean, 0).T @ others
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
    """The odds of the draw times a factor, as chances."""
    mean: Floats = 1 / (1 + np.exp(-(offset + factor)))
    return mean


def _factor(hits: _Hits, feature: int) -> float:
    """The logarithm of the factor that makes a feature's chances add up to what was found."""
    inside, chance = hits.column(feature)
    told = ~np.isnan(chance)
    offset, times = np.unique(_offset(chance[told]), return_counts=True)
    found = inside[told].sum()
    low, high = -40.0, 40.0
    middle = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _tilted(offset, middle) @ times < found else (low, middle)
    return middle


@dataclass(frozen=True)
class _Hits:
    """The tests that hit a target, read by rows or by columns."""

    evidence: Evidence
    chances: Chances
    rows: npt.NDArray[np.intp]
    single: Bools
    """Tests with one feature: it says nothing of others, for without it there is no test at all."""
    confidence: float

    def part(self, part: slice) -> tuple[Bools, Floats]:
        """Of some of the tests, which features were enabled, and how likely each was."""
        enabled = self.evidence.enabled[self.rows[part]]
        chance = self.chances.values[self.rows[part]].astype(float)
        chance[enabled & self.single[part][:, None]] = np.nan
        return enabled, chance

    def column(self, feature: int) -> tuple[Bools, Floats]:
        """The same of one feature, in all of the tests."""
        enabled = self.evidence.enabled[self.rows, feature]
        chance = self.chances.values[self.rows, feature].astype(float)
        chance[enabled & self.single] = np.nan
        return enabled, chance

    def role_among(self, feature: int, other: int, with_other: bool) -> Part:
        """A feature's role among the hits that agree on another one."""
        (inside, chance), (has_other, other_chance) = self.column(feature), self.column(other)
        group = (has_other == with_other) & ~np.isnan(other_chance) & ~np.isnan(chance)
        hits = int(group.sum())
        if not hits:
            return Part(INSUFFICIENT, 0.0, 0.0, 1.0, float("nan"), 0)
        containing = int((group & inside).sum())
        base = float(chance[group].mean())
        low, high = wilson_interval(containing, hits, self.confidence)
        enough = hits >= hits_needed(base, self.confidence)
        role = TRIGGER if low > base else SUPPRESSOR if high < base else IRRELEVANT
        role = INSUFFICIENT if role == IRRELEVANT and not enough else role
        return Part(role, containing / hits, low, high, base, hits)


def _described(
    features: tuple[str, ...], hits: _Hits, one: int, two: int
) -> tuple[str, str, Part, Part, bool] | None:
    """The pair as one feature whose role depends on the other; None if no role changes."""
    views = []
    for feature, other in ((one, two), (two, one)):
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
