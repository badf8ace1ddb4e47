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

Where a target is rare, most tests are comparable and did not hit. Beyond twenty for each hit they
add hardly any information: the error of the comparison is dominated by the hits. So of the tests
of a group that did not hit, twenty for each hit are drawn, and each stands for as many as there
were (a case-control sample; weighted sums stay unbiased, and the variance is a twentieth larger).
Up to 20,000 tests there is no need to hurry, and all of them are compared.

What varies between similar tests is luck, and the weights if the strategy draws them; both are
fair experiments. In a swarm over many features hardly any two tests are similar, and there is
nothing to compare: the answer is "insufficient data", and such a campaign answers the other
question, whether enabling a feature matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bit_counts import Bools, Counts, Words, bits_in_common, chunks, packed
from swarmtest.analysis.intervals import (
    Floats,
    benjamini_hochberg,
    student_p_value,
    student_quantiles,
)
from swarmtest.analysis.role_cells import FIXED, INSUFFICIENT, IRRELEVANT, SUPPRESSOR, TRIGGER
from swarmtest.analysis.trial_columns import Evidence
from swarmtest.core.seeds import mixed_array

Numbers = npt.NDArray[np.intp]

_FEWEST = 5
"""The hits, and the other tests, with a feature that are needed to compare it."""
_OTHERS_PER_HIT = 20
"""How many of the tests that did not hit are compared with each one that did."""
_MOST_OTHERS = 20_000
"""Up to this many tests that did not hit are all compared."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
_TO_SLOT = np.uint64(48)
"""Multiplied by an odd number, and without the lower 48 bits, keys are spread over 2^16 slots."""


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


def amounts(
    evidence: Evidence,
    relevant: Sequence[int],
    hits: Numbers,
    known: Bools | None = None,
    confidence: float = 0.95,
) -> list[Amount]:
    """Return what more or less of each feature does to a target.

    Tests are similar if they agree on the `relevant` features. `hits` are the tests that hit the
    target, ascending; `known` marks the tests whose hits are known, if not all are.
    """
    tests = SimilarTests.of(evidence, relevant, hits, known)
    means = tests.means()
    enough = np.minimum(tests.hits, tests.others) >= _FEWEST
    gram, slope, largest = tests.products(means)
    compared = np.flatnonzero(enough & (largest > 1e-9))
    result = [
        Amount(
            feature,
            FIXED if enough[i] else INSUFFICIENT,
            int(tests.hits[i]),
            int(tests.others[i]),
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
    judged = _judged([result[i] for i in compared], effects / 10, errors / 10, confidence)
    for i, amount in zip(compared.tolist(), judged, strict=True):
        result[i] = amount
    return result


def _against_the_middle(effects: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """Return each effect relative to the median effect, and its standard error."""
    variances = np.diag(spread)
    if len(effects) > 2:
        middle = int(np.argsort(effects)[(len(effects) - 1) // 2])
        variances = variances + spread[middle, middle] - 2 * spread[middle]
        effects = effects - effects[middle]
    return effects, np.sqrt(np.maximum(variances, 0))


def _judged(
    amounts: Sequence[Amount], effects: Floats, errors: Floats, confidence: float
) -> list[Amount]:
    """Return amounts with their effects, intervals, roles and p-values."""
    measured = errors >= 1e-12  # the others are the median feature itself
    freedom = np.array([min(amount.hits, amount.others) - 1 for amount in amounts], float)
    reach = student_quantiles(confidence, freedom) * errors
    low, high = np.where(measured, effects - reach, 0.0), np.where(measured, effects + reach, 0.0)
    scores = np.divide(effects, errors, out=np.zeros(len(errors)), where=measured)
    p_values = np.where(measured, student_p_value(scores, freedom), 1.0)
    adjusted = benjamini_hochberg(p_values)
    return [
        replace(
            amount,
            role=TRIGGER if low[i] > 0 else SUPPRESSOR if high[i] < 0 else IRRELEVANT,
            effect=float(effects[i]) if measured[i] else 0.0,
            low=float(low[i]),
            high=float(high[i]),
            p_value=float(p_values[i]),
            adjusted=float(adjusted[i]),
        )
        for i, amount in enumerate(amounts)
    ]


# Groups of similar tests.


class ShareMeans(NamedTuple):
    """Means over all tests; by features, except for the first.

    They are needed before any tests can be compared.
    """

    by_group: Floats
    """The mean share of the steps, by groups of similar tests and by features."""
    in_hits: Floats
    in_others: Floats
    """The mean shares where the feature is enabled; others weighted like hits of their group."""


@dataclass(frozen=True)
class SimilarTests:
    """Tests in groups of similar ones; in each group, some hit the target and some did not.

    Sums for the regression are made over some tests at a time to save memory.
    """

    evidence: Evidence
    rows: Numbers
    """The tests that are compared, by groups."""
    group: Numbers
    hit: Bools
    weight: Floats
    """How many tests each of them stands for."""
    tests_of: Floats
    hits_of: Floats
    """The numbers of tests in each group, drawn or not, and of hits."""
    hits: Counts
    others: Counts
    """The numbers of comparable tests with each feature enabled, drawn or not."""

    @classmethod
    def of(
        cls, evidence: Evidence, relevant: Sequence[int], hits: Numbers, known: Bools | None
    ) -> SimilarTests:
        """Return the groups that have both hits and other tests."""
        usable = evidence.has_uses if known is None else evidence.has_uses & known
        hits = hits[usable[hits]]
        keys = _keys(evidence, relevant)
        hit_keys = np.unique(keys[hits])
        is_other = usable.copy()
        is_other[hits] = False
        others, group = _members(keys, hit_keys, is_other)
        # A group without other tests has nothing to compare with.
        others_of = np.bincount(group, minlength=len(hit_keys))
        hit_group = np.searchsorted(hit_keys, keys[hits])
        both = others_of > 0
        hits, hit_group = hits[both[hit_group]], hit_group[both[hit_group]]
        number = np.cumsum(both) - 1
        hit_group, group = number[hit_group], number[group]
        others_of, hits_of = others_of[both], np.bincount(hit_group, minlength=int(both.sum()))
        counts = [_enabled_in(evidence, rows) for rows in (hits, others)]
        wanted = others_of
        if len(others) > _MOST_OTHERS:
            wanted = np.minimum(others_of, _OTHERS_PER_HIT * hits_of)
        drawn = _drawn(evidence, others, group, wanted)
        rows = np.concatenate([hits, others[drawn]])
        groups = np.concatenate([hit_group, group[drawn]])
        weight = others_of / np.maximum(np.bincount(group[drawn], minlength=len(others_of)), 1)
        order = np.argsort(groups, kind="stable")
        is_hit = (np.arange(len(rows)) < len(hits))[order]
        group = groups[order]
        return cls(
            evidence,
            rows[order],
            group,
            is_hit,
            np.where(is_hit, 1.0, weight[group]),
            (others_of + hits_of).astype(float),
            hits_of.astype(float),
            *counts,
        )

    def means(self) -> ShareMeans:
        """Return the means, in one pass over the tests."""
        count = len(self.evidence.features)
        sums = np.zeros((len(self.tests_of), count))
        totals = np.zeros((2, 2, count))
        like_hits = self.hits_of / np.maximum(self.tests_of - self.hits_of, 1)
        for part in chunks(len(self.rows)):
            shares, weight, hit = self._shares(part), self.weight[part], self.hit[part]
            groups, first = np.unique(self.group[part], return_index=True)
            sums[groups] += np.add.reduceat(weight[:, None] * shares, first, axis=0)
            enabled = self.evidence.enabled[self.rows[part]].astype(float)
            as_hits = np.where(hit, 1.0, weight * like_hits[self.group[part]])
            for number, side in enumerate((hit, ~hit)):
                side_weight = as_hits * side
                totals[number] += side_weight @ enabled, side_weight @ (enabled * shares)
        in_hits, in_others = (
            np.divide(weighted, total, out=np.zeros(count), where=total > 0)
            for total, weighted in totals
        )
        return ShareMeans(sums / self.tests_of[:, None], in_hits, in_others)

    def products(self, means: ShareMeans) -> tuple[Floats, Floats, Floats]:
        """Return the sums for a regression of hits on shares, and each largest deviation."""
        count = len(self.evidence.features)
        gram, slope, largest = np.zeros((count, count)), np.zeros(count), np.zeros(count)
        for part in chunks(len(self.rows)):
            deviations, outcome = self._deviations(part, means)
            weighted = deviations * self.weight[part][:, None]
            gram += weighted.T @ deviations
            slope += outcome @ weighted
            np.maximum(largest, np.abs(deviations).max(axis=0, initial=0), out=largest)
        return gram, slope, largest

    def spread(self, means: ShareMeans, features: Numbers, effects: Floats) -> Floats:
        """Return the middle factor of the robust (sandwich) variance estimate.

        A test that stands for several varies as much as all of them together would.
        """
        spread = np.zeros((len(features), len(features)))
        for part in chunks(len(self.rows)):
            deviations, outcome = self._deviations(part, means)
            columns = deviations[:, features]
            residual = self.weight[part] * (outcome - columns @ effects)
            columns *= residual[:, None]
            spread += columns.T @ columns
        return spread

    def _shares(self, part: slice) -> Floats:
        used = self.evidence.used[self.rows[part]].astype(np.float64)
        shares: Floats = used / used.sum(axis=1, keepdims=True)
        return shares

    def _deviations(self, part: slice, means: ShareMeans) -> tuple[Floats, Floats]:
        """Return shares and hits less the mean of their group."""
        group = self.group[part]
        outcome = self.hit[part] - (self.hits_of / self.tests_of)[group]
        deviations = self._shares(part)
        deviations -= means.by_group[group]
        return deviations, outcome


def _keys(evidence: Evidence, features: Sequence[int]) -> Words:
    """Return a number for each test; equal if the same of these features are enabled.

    Where features take several words, numbers of other tests are equal once in 2^64 times.
    """
    words = evidence.enabled.words
    masks = np.zeros(words.shape[1], np.uint64)
    for feature in features:
        masks[feature // 64] |= np.uint64(1) << np.uint64(feature % 64)
    keys = np.zeros(len(words), np.uint64)
    salts = np.arange(len(masks), dtype=np.uint64) * _ODD
    for word in np.flatnonzero(masks).tolist():
        part = words[:, word] & masks[word]
        keys += part if len(masks) == 1 else mixed_array(part + salts[word])
    return keys


def _members(keys: Words, chosen: Words, usable: Bools) -> tuple[Numbers, Numbers]:
    """Return the usable tests whose key is one of the chosen ones (ascending), and which it is."""
    # A small table rules most tests out before the exact search.
    slots = np.zeros(1 << 16, bool)
    slots[chosen * _ODD >> _TO_SLOT] = True
    rows = np.flatnonzero(slots[keys * _ODD >> _TO_SLOT] & usable)
    at = np.searchsorted(chosen, keys[rows])
    found = at < len(chosen)
    found[found] = chosen[at[found]] == keys[rows[found]]
    return rows[found], at[found]


def _drawn(evidence: Evidence, rows: Numbers, group: Numbers, wanted: Numbers) -> Numbers:
    """Return, for each group, the positions of as many of its tests as are wanted, at random."""
    tests = np.bincount(group, minlength=len(wanted))
    if (tests == wanted).all():
        return np.arange(len(rows))
    lots = evidence.lots[rows]
    # Nearly always enough tests have a lot below this limit, and only those have to be sorted.
    limit = (wanted + 8 * np.sqrt(wanted) + 8) / np.maximum(tests, 1)
    likely = np.flatnonzero(lots < limit[group])
    found = np.bincount(group[likely], minlength=len(wanted))
    if (found < wanted).any():
        likely, found = np.arange(len(rows)), tests
    order = likely[np.lexsort((lots[likely], group[likely]))]
    place = np.arange(len(order)) - np.repeat(np.cumsum(found) - found, found)
    chosen: Numbers = order[place < np.repeat(wanted, found)]
    return chosen


def _enabled_in(evidence: Evidence, rows: Numbers) -> Counts:
    """Return in how many of some tests each feature is enabled."""
    if len(rows) < evidence.n // 64:
        return np.asarray(evidence.enabled[rows].sum(axis=0, dtype=np.int64))
    chosen = np.zeros(evidence.n, bool)
    chosen[rows] = True
    return bits_in_common(evidence.columns, packed(chosen[:, None])[0])
