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

import numpy as np

from swarmtest.analysis.chances import Chances
from swarmtest.analysis.effective import effective_tests
from swarmtest.analysis.evidence import Bools, Evidence
from swarmtest.analysis.intervals import (
    Floats,
    benjamini_hochberg,
    hits_needed,
    normal_p_value,
    wilson_interval,
)
from swarmtest.analysis.roles import INSUFFICIENT, IRRELEVANT, SUPPRESSOR, TRIGGER

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
    enabled = evidence.enabled[rows]
    # A feature alone in its test says nothing of others: without it there is no test at all.
    alone = enabled & (enabled.sum(axis=1) == 1)[:, None]
    chance = np.where(alone, np.nan, chances.values[rows]).astype(float)
    told = ~np.isnan(chance)
    inside, outside = enabled & told, ~enabled & told
    independent = effective_tests(evidence.clusters[rows], np.ones(len(rows))) / chances.same_seed
    p_one_way = _interplay(enabled, chance, len(rows) / max(independent, 1e-9))
    # Both ways ask the same question of the same tests; the more doubtful answer counts.
    both_ways = np.maximum(p_one_way, p_one_way.T)
    first, second = np.triu_indices(len(evidence.features), 1)
    known = ~np.isnan(both_ways[first, second])
    first, second = first[known], second[known]
    p_values = both_ways[first, second]
    adjusted = benjamini_hochberg(p_values)
    table = _Conditional(inside, outside, np.nan_to_num(chance), confidence)
    found = []
    for at in np.argsort(adjusted, kind="stable"):
        if adjusted[at] > 1 - confidence:
            break
        pair = _described(evidence.features, table, int(first[at]), int(second[at]))
        if pair is not None:
            found.append(Pair(*pair[:4], float(p_values[at]), float(adjusted[at]), pair[4]))
    return found


def _interplay(enabled: Bools, chance: Floats, design_effect: float) -> Floats:
    """By pairs (f, g): the p-value of f's factor being the same with g and without g."""
    count = enabled.shape[1]
    p_values = np.full((count, count), np.nan)
    others = enabled.astype(float)
    for feature in range(count):
        told = ~np.isnan(chance[:, feature])
        if not told.any():
            continue
        offset = np.log(chance[told, feature] / (1 - chance[told, feature]))
        mean = _tilted(offset, enabled[told, feature])
        weight = mean * (1 - mean)
        score = (enabled[told, feature] - mean) @ others[told]
        share = weight @ others[told]
        variance = share - share**2 / max(weight.sum(), 1e-12)
        score, variance = score / design_effect, variance / design_effect
        usable = variance >= _LEAST_VARIANCE
        z = np.maximum(np.abs(score[usable]) - 0.5, 0) / np.sqrt(variance[usable])
        p_values[feature, usable] = normal_p_value(z)
        p_values[feature, feature] = np.nan
    return p_values


def _tilted(offset: Floats, outcome: Bools) -> Floats:
    """The odds of the draw times one factor, such that they add up to what was found."""
    low, high = -40.0, 40.0
    found = outcome.sum()
    for _ in range(60):
        middle = (low + high) / 2
        mean: Floats = 1 / (1 + np.exp(-(offset + middle)))
        low, high = (middle, high) if mean.sum() < found else (low, middle)
    return mean


@dataclass(frozen=True)
class _Conditional:
    """Roles among the hits that agree on another feature."""

    inside: Bools
    outside: Bools
    chance: Floats
    confidence: float

    def part(self, feature: int, other: int, with_other: bool) -> Part:
        group = (self.inside if with_other else self.outside)[:, other]
        group = group & (self.inside[:, feature] | self.outside[:, feature])
        hits = int(group.sum())
        if not hits:
            return Part(INSUFFICIENT, 0.0, 0.0, 1.0, float("nan"), 0)
        containing = int((group & self.inside[:, feature]).sum())
        base = float(self.chance[group, feature].mean())
        low, high = wilson_interval(containing, hits, self.confidence)
        enough = hits >= hits_needed(base, self.confidence)
        role = TRIGGER if low > base else SUPPRESSOR if high < base else IRRELEVANT
        role = INSUFFICIENT if role == IRRELEVANT and not enough else role
        return Part(role, containing / hits, low, high, base, hits)


def _described(
    features: tuple[str, ...], table: _Conditional, one: int, two: int
) -> tuple[str, str, Part, Part, bool] | None:
    """The pair as one feature whose role depends on the other; None if no role changes."""
    views = []
    for feature, other in ((one, two), (two, one)):
        on, off = table.part(feature, other, True), table.part(feature, other, False)
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
