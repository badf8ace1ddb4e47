"""Does the *number of times* a feature appears matter, where it is enabled anyway?

Presence hides effects of features that are in every test: a stack overflows when there are many
more pushes than pops, and with the default configuration both are always there. So the shares of
a test's steps that its features took are compared between the tests that hit a target and others.

Three things would fool a plain comparison. Which others are enabled changes the shares (with
fewer rivals there is more of each, and a guard may keep a feature from ever running), and they may
be what matters: so like is compared with like, tests that agree on every feature that has a role
for the target. A test that fails ends early: so it is the share of the steps that were
executed, not the count. And shares add up to one: more of the one that matters is less of every
other. So all shares are weighed against each other at once, in a linear regression of the hits
(deviations from the mean of the like on deviations from the mean of the like, errors robust to
variances that differ). Their effects are known only up to a common constant, because more of one
is always less of the rest, so each is measured against the feature in the middle: as long as fewer
than half of the features matter, that is one that does not.

What varies between like tests is luck, and weights where the strategy draws them. Luck is a fair
experiment; so are drawn weights. In a swarm over many features hardly any two tests are alike, and
then there is nothing to compare: the answer is "insufficient data", and the other question, whether
enabling a feature matters, is the one that such a campaign answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bit_counts import Bits, Bools, chunks
from swarmtest.analysis.cells import FIXED, INSUFFICIENT, IRRELEVANT, SUPPRESSOR, TRIGGER
from swarmtest.analysis.intervals import (
    Floats,
    benjamini_hochberg,
    student_p_value,
    student_quantile,
)
from swarmtest.analysis.trial_columns import Evidence

# -------------------------------------------------------------------------------------------------
# Shares of the steps in tests that are alike: sums for a regression, some tests at a time.

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


# -------------------------------------------------------------------------------------------------

_FEWEST = 5
"""Hits, and others, with a feature before it is compared."""


@dataclass(frozen=True)
class Amount:
    """What more or less of a feature, where it is enabled, does to a target.

    >>> Amount("pop", "suppressor", 40, 900, 0.35, 0.5, -0.15, -0.2, -0.1, 1e-9, 1e-8).role
    'suppressor'
    """

    feature: str
    role: str
    """trigger: the more of it, the more hits; suppressor: the fewer."""
    hits: int
    others: int
    """Tests that hit, and that did not, with the feature enabled and their like beside them."""
    share_in_hits: float
    share_in_others: float
    """Its share of the steps in those; the others weighted to be as alike as can be."""
    effect: float
    low: float
    high: float
    """By how much the hitting fraction rises when a tenth of the steps more is this feature."""
    p_value: float
    adjusted: float = 1.0
    """The p-value after correction for the number of features."""

    def is_discovery(self, rate: float = 0.05) -> bool:
        """Whether the role survives the correction."""
        return self.role in (TRIGGER, SUPPRESSOR) and self.adjusted <= rate

    def to_json(self) -> dict[str, object]:
        """Plain data."""
        return dict(vars(self))


def alike(evidence: Evidence, features: list[int]) -> Numbers:
    """A number for each test, the same for tests that agree on whether these are enabled."""
    if not features:
        return np.zeros(evidence.n, np.intp)
    chosen = Bits.empty(evidence.n, len(features))
    for number, feature in enumerate(features):
        chosen.set_column(number, evidence.enabled[:, feature])
    keys = chosen.words.view(np.dtype((np.void, chosen.words.shape[1] * 8)))[:, 0]
    return np.unique(keys, return_inverse=True)[1].ravel()


def amounts(
    evidence: Evidence, strata: Numbers, hit: Bools, known: Bools, confidence: float = 0.95
) -> list[Amount]:
    """What more or less of each feature does to a target.

    `strata`: tests with the same number are alike; `known`: tests that can tell.
    """
    usable = np.flatnonzero(known & evidence.used.any(axis=1))
    rows = usable[_with_both(strata[usable], hit[usable])]
    tests = AlikeTests(evidence, rows, hit[rows], strata[rows])
    means = tests.means()
    enough = np.minimum(means.hits, means.others) >= _FEWEST
    gram, slope, largest = tests.products(means)
    told = np.flatnonzero(enough & (largest > 1e-9))
    found = [
        Amount(
            feature,
            FIXED if enough[i] else INSUFFICIENT,
            int(means.hits[i]),
            int(means.others[i]),
            float(means.in_hits[i]),
            float(means.in_others[i]),
            *(0.0, -1.0, 1.0, 1.0),
        )
        for i, feature in enumerate(evidence.features)
    ]
    if len(told) < 2:
        return found
    inverse = np.linalg.pinv(gram[np.ix_(told, told)], rcond=1e-9, hermitian=True)
    effects = inverse @ slope[told]
    spread = inverse @ tests.spread(means, told, effects) @ inverse
    effects, errors = _against_the_middle(effects, spread)
    for i, effect, error in zip(told.tolist(), effects, errors, strict=True):
        found[i] = _judged(found[i], float(effect) / 10, float(error) / 10, confidence)
    adjusted = benjamini_hochberg([found[i].p_value for i in told])
    for i, value in zip(told.tolist(), adjusted.tolist(), strict=True):
        found[i] = replace(found[i], adjusted=value)
    return found


def _with_both(group: Numbers, hits: Bools) -> Bools:
    """Tests whose like both hit and did not."""
    tests = np.bincount(group, minlength=1)
    with_hit = np.bincount(group, hits, minlength=1)
    both: Bools = ((with_hit > 0) & (with_hit < tests))[group]
    return both


def _against_the_middle(effects: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """Each effect against the one in the middle, and its standard error."""
    variances = np.diag(spread)
    if len(effects) > 2:
        middle = int(np.argsort(effects)[(len(effects) - 1) // 2])
        variances = variances + spread[middle, middle] - 2 * spread[middle]
        effects = effects - effects[middle]
    return effects, np.sqrt(np.maximum(variances, 0))


def _judged(amount: Amount, effect: float, error: float, confidence: float) -> Amount:
    if error < 1e-12:  # the feature in the middle itself
        return replace(amount, role=IRRELEVANT, low=0.0, high=0.0)
    freedom = min(amount.hits, amount.others) - 1
    reach = student_quantile(confidence, freedom) * error
    low, high = effect - reach, effect + reach
    role = TRIGGER if low > 0 else SUPPRESSOR if high < 0 else IRRELEVANT
    p = float(student_p_value(effect / error, freedom))
    return replace(amount, role=role, effect=effect, low=low, high=high, p_value=p)
