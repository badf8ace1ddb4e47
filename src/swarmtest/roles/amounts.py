"""Amounts: does it matter how *often* a feature appears, where it is enabled anyway?

Presence hides the effects of features that are in every test: a stack overflows if there are many
more pushes than pops, and with the default configuration both are always there. So the shares of a
test's steps that its features took are compared between the tests that hit a target and the
others.

Three things would mislead a plain comparison:

- The other enabled features change the shares (with fewer rivals there is more of each, and a
  guard may keep a feature from ever running), and may themselves be what matters. So only similar
  tests are compared: those that agree on every feature that has a role for the target.
- A test that fails ends early. So the share of the executed steps is used, not the count.
- Shares add up to one: more of the feature that matters is less of every other. So all shares are
  weighed against each other at once, in a linear regression of the hits (deviations from the mean
  of similar tests, with errors that are robust to unequal variances). Effects are known only up to
  a common constant, because more of one feature is always less of the rest. So each is measured
  against the median feature, which does not matter as long as fewer than half of the features do.

What varies between similar tests is luck, and the weights if the strategy draws them; both are
fair experiments. In a swarm over many features hardly any two tests are similar, and there is
nothing to compare: the answer is "insufficient data", and such a campaign answers the other
question, whether enabling a feature matters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bit_counts import Bits, Bools, chunks
from swarmtest.analysis.intervals import (
    Floats,
    benjamini_hochberg,
    student_p_value,
    student_quantile,
)
from swarmtest.analysis.role_cells import FIXED, INSUFFICIENT, IRRELEVANT, SUPPRESSOR, TRIGGER
from swarmtest.analysis.trial_columns import Evidence

Numbers = npt.NDArray[np.intp]

_FEWEST = 5
"""The hits, and the other tests, with a feature that are needed to compare it."""


@dataclass(frozen=True)
class Amount:
    """What more or less of a feature, where it is enabled, does to a target.

    >>> Amount("pop", "suppressor", 40, 900, 0.35, 0.5, -0.15, -0.2, -0.1, 1e-9, 1e-8).role
    'suppressor'
    """

    feature: str
    role: str
    """A trigger: more of it, more hits; a suppressor: more of it, fewer hits."""
    hits: int
    others: int
    """The tests with the feature enabled that hit, and those that did not, if comparable."""
    share_in_hits: float
    share_in_others: float
    """Its share of the steps in those tests; the others are weighted to resemble the hits."""
    effect: float
    low: float
    high: float
    """How much the hitting fraction rises if this feature takes a tenth more of the steps."""
    p_value: float
    adjusted: float = 1.0
    """The p-value after correction for the number of features."""

    def is_discovery(self, rate: float = 0.05) -> bool:
        """Return whether the role survives the correction."""
        return self.role in (TRIGGER, SUPPRESSOR) and self.adjusted <= rate

    def to_json(self) -> dict[str, object]:
        """Return plain data."""
        return dict(vars(self))


def group_by_features(evidence: Evidence, features: list[int]) -> Numbers:
    """Return a group number for each test; equal if the same of these features are enabled."""
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
    """Return what more or less of each feature does to a target.

    Tests with equal numbers in `strata` are similar; `known` marks tests whose hits are known.
    """
    usable = np.flatnonzero(known & evidence.used.any(axis=1))
    rows = usable[_with_both(strata[usable], hit[usable])]
    tests = SimilarTests(evidence, rows, hit[rows], strata[rows])
    means = tests.means()
    enough = np.minimum(means.hits, means.others) >= _FEWEST
    gram, slope, largest = tests.products(means)
    compared = np.flatnonzero(enough & (largest > 1e-9))
    result = [
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
    if len(compared) < 2:
        return result
    inverse = np.linalg.pinv(gram[np.ix_(compared, compared)], rcond=1e-9, hermitian=True)
    effects = inverse @ slope[compared]
    spread = inverse @ tests.spread(means, compared, effects) @ inverse
    effects, errors = _against_the_middle(effects, spread)
    # Effects are reported for a tenth of the steps.
    for i, effect, error in zip(compared.tolist(), effects, errors, strict=True):
        result[i] = _judged(result[i], float(effect) / 10, float(error) / 10, confidence)
    adjusted = benjamini_hochberg([result[i].p_value for i in compared])
    for i, value in zip(compared.tolist(), adjusted.tolist(), strict=True):
        result[i] = replace(result[i], adjusted=value)
    return result


def _with_both(group: Numbers, hits: Bools) -> Bools:
    """Return the tests in whose group some tests hit and some did not."""
    tests = np.bincount(group, minlength=1)
    with_hit = np.bincount(group, hits, minlength=1)
    both: Bools = ((with_hit > 0) & (with_hit < tests))[group]
    return both


def _against_the_middle(effects: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """Return each effect relative to the median effect, and its standard error."""
    variances = np.diag(spread)
    if len(effects) > 2:
        middle = int(np.argsort(effects)[(len(effects) - 1) // 2])
        variances = variances + spread[middle, middle] - 2 * spread[middle]
        effects = effects - effects[middle]
    return effects, np.sqrt(np.maximum(variances, 0))


def _judged(amount: Amount, effect: float, error: float, confidence: float) -> Amount:
    if error < 1e-12:  # this is the median feature itself
        return replace(amount, role=IRRELEVANT, low=0.0, high=0.0)
    freedom = min(amount.hits, amount.others) - 1
    reach = student_quantile(confidence, freedom) * error
    low, high = effect - reach, effect + reach
    role = TRIGGER if low > 0 else SUPPRESSOR if high < 0 else IRRELEVANT
    p = float(student_p_value(effect / error, freedom))
    return replace(amount, role=role, effect=effect, low=low, high=high, p_value=p)


# Sums for the regression, over some tests at a time to save memory.


class ShareMeans(NamedTuple):
    """Means over all tests; by features, except for the first.

    They are needed before any tests can be compared.
    """

    by_group: Floats
    """The mean share of the steps, by groups of similar tests and by features."""
    in_hits: Floats
    in_others: Floats
    """The mean shares where the feature is enabled; others weighted like hits of their group."""
    hits: Floats
    others: Floats
    """The numbers of tests with the feature enabled."""


class SimilarTests:
    """Tests in groups of similar ones; in each group, some hit the target and some did not."""

    def __init__(self, evidence: Evidence, rows: Numbers, hit: Bools, group: Numbers) -> None:
        self._evidence, self._rows, self._hit = evidence, rows, hit
        self._group = np.unique(group, return_inverse=True)[1].ravel()
        self._tests = np.bincount(self._group)
        self._hits = np.bincount(self._group, hit)

    def means(self) -> ShareMeans:
        """Return the means, in one pass over the tests."""
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
                selected = enabled & side[:, None]
                weighted = weight[:, None] * selected
                totals[number] += (
                    selected.sum(axis=0),
                    weighted.sum(axis=0),
                    (weighted * shares).sum(axis=0),
                )
        in_hits, in_others = (
            np.divide(weighted, total, out=np.zeros(count), where=total > 0)
            for _, total, weighted in totals
        )
        by_group = sums / self._tests[:, None]
        return ShareMeans(by_group, in_hits, in_others, totals[0, 0], totals[1, 0])

    def products(self, means: ShareMeans) -> tuple[Floats, Floats, Floats]:
        """Return the sums for a regression of hits on shares, and each largest deviation."""
        count = len(self._evidence.features)
        gram, slope, largest = np.zeros((count, count)), np.zeros(count), np.zeros(count)
        for part in chunks(len(self._rows)):
            deviations, outcome = self._deviations(part, means)
            gram += deviations.T @ deviations
            slope += deviations.T @ outcome
            np.maximum(largest, np.abs(deviations).max(axis=0, initial=0), out=largest)
        return gram, slope, largest

    def spread(self, means: ShareMeans, features: Numbers, effects: Floats) -> Floats:
        """Return the middle factor of the robust (sandwich) variance estimate."""
        spread = np.zeros((len(features), len(features)))
        for part in chunks(len(self._rows)):
            deviations, outcome = self._deviations(part, means)
            columns = deviations[:, features]
            residual = outcome - columns @ effects
            spread += (columns * residual[:, None] ** 2).T @ columns
        return spread

    def _shares(self, part: slice) -> Floats:
        used = self._evidence.used[self._rows[part]].astype(np.float64)
        shares: Floats = used / used.sum(axis=1, keepdims=True)
        return shares

    def _deviations(self, part: slice, means: ShareMeans) -> tuple[Floats, Floats]:
        """Return shares and hits less the mean of their group."""
        group = self._group[part]
        outcome = self._hit[part] - (self._hits / self._tests)[group]
        return self._shares(part) - means.by_group[group], outcome
