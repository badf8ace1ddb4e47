"""How likely each feature was to be in each test: the base rates of all role statistics.

The claim behind a role is causal only if a feature that has nothing to do with a target is found in
the tests that hit it as often as chance alone would have put it there. Chance here is the
probability that the feature is included, given which of the others are (see
`swarmtest.core.sampling.Proposal`). There are three cases:

1. The strategy logged it. Then the logged value is used.
2. Constraints tie the feature to others ("close requires open"). The logged odds are those at the
   moment of the toss, which depend on the features tossed before but not on those tossed after, so
   they are estimated from the tests themselves.
3. Nothing was logged in a whole campaign (a strategy of the user's own). Then the odds are
   estimated too, and `Propensities.notes` says so.

A test in which a feature had no choice (0 or 1), or without odds in a campaign that logs them, says
nothing about that feature and is left out of its count: its chance is NaN.

Estimation: where flipping the feature would violate a constraint, the feature had no choice.
Elsewhere a logistic regression of the feature on all others says how likely it was. That covers
configurations of varying size (more of the others means more of this one), constraints that reach a
feature through a third one, and a coin whose bias varies (its logged odds are one more predictor).
In large spaces, "all others" are those that share a constraint with the feature, or with one that
does, nearest first, and the number of the remaining ones: features without such a tie all have the
same influence. Parts of a strategy (a mixture's member, a layer's family) draw in different ways
and are fitted separately, small parts together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bit_counts import Bits, Bools, Words, chunks, packed_column
from swarmtest.analysis.intervals import Floats
from swarmtest.analysis.trial_columns import Evidence
from swarmtest.core.space import Space

_FEWEST = 50
"""How many tests of one part of a strategy are needed to estimate anything from them."""
_MOST_PREDICTORS = 40
_FEWEST_ROWS, _MOST_ROWS, _ROWS_OF_ALL = 4_000, 20_000, 800_000
"""How many tests a fit uses, if there are as many: fewer where there are many features to fit."""
_FEWEST_OF_CLUSTER = 5
"""A configuration with hardly any tests does not limit how many tests of the others count."""
_FIRST = 32
"""Campaigns that have this many first configurations in common did not draw them at random."""
_FEW_ROWS = 64
"""So many different rows of odds are told apart by a column of bits for each."""
_MANY_CHANCES = 16
"""More different chances of a feature are not told apart, also if only some of the tests count."""
_NUMBER = re.compile(r" \d+$")


@dataclass(frozen=True)
class Propensities:
    """How likely features were, and what that means for all tests together."""

    values: PropensityRows
    same_seed: int
    """The largest number of campaigns with information that repeat each other's tests.

    Trial 17 of one and trial 17 of another with the same seed come from the same random numbers, so
    together they say hardly more than one of them. The same holds for a strategy that ignores the
    seed, as ``complete`` did in stores of earlier versions.
    """
    notes: tuple[str, ...]
    """What readers of the results should know about them."""
    telling: Bools
    """Tests in which some feature could have been in or out."""

    @property
    def vary(self) -> bool:
        """Return whether any feature was ever left to chance."""
        return bool(self.telling.any())

    def tests_by_chance(self, feature: int, told_apart: bool = True) -> TestsByChance:
        """Return the tests in which a feature was left to chance, by the different chances.

        Without `told_apart`, only which tests these are is needed.
        """
        rows = self.values.few_rows
        if rows is None:
            return self._by_values(feature, told_apart)
        odds = self.values.odds[:, feature]
        known = np.zeros_like(rows[0])
        by_chance: dict[float, Words] = {}
        for number, tests in enumerate(rows):
            if 0 < odds[number] < 1:
                known |= tests
                chance = float(odds[number])
                by_chance[chance] = by_chance[chance] | tests if chance in by_chance else tests
        return TestsByChance(known, [(by_chance[chance], chance) for chance in sorted(by_chance)])

    def _by_values(self, feature: int, told_apart: bool) -> TestsByChance:
        chance = self.values[:, feature]
        is_known = ~np.isnan(chance)
        known = packed_column(is_known)
        if not told_apart:
            return TestsByChance(known, None)
        different = _distinct_values(chance[is_known])
        if len(different) > _MANY_CHANCES:
            return TestsByChance(known, None)
        return TestsByChance(
            known, [(packed_column(chance == value), float(value)) for value in different]
        )


class TestsByChance(NamedTuple):
    """Columns of bits: the tests in which a feature was left to chance."""

    known: Words
    by_chance: list[tuple[Words, float]] | None
    """The tests of each different chance; None if there are too many, or nobody asked."""


TestsByChance.__test__ = False  # type: ignore[attr-defined]  # pytest: not a test class


def _distinct_values(chances: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the distinct values; usually there is only one."""
    if len(chances) and chances.min() == chances.max():
        return chances[:1]
    return np.unique(chances)


@dataclass(frozen=True)
class PropensityRows:
    """Tests by features: the probability that a feature is included, or NaN if it says nothing.

    It is read like an array, some rows or one column at a time: most strategies have few different
    rows of odds, and a number for each of a million tests x 300 features would take a gigabyte.
    """

    odds: npt.NDArray[np.float32]
    """The different rows of odds that were logged."""
    row: npt.NDArray[np.int32]
    """Which of these rows each test has."""
    silenced: Bools
    """Tests that do not count."""
    estimates: PropensityEstimates | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of tests and features."""
        return len(self.row), self.odds.shape[1]

    def __len__(self) -> int:
        return len(self.row)

    @cached_property
    def few_rows(self) -> list[Words] | None:
        """Return the tests that have each row of odds as columns of bits, without silenced ones.

        None if there are many rows, or if some odds are estimated.
        """
        if self.estimates is not None or len(self.odds) > _FEW_ROWS:
            return None
        counted = ~self.silenced
        return [packed_column(counted & (self.row == row)) for row in range(len(self.odds))]

    def telling(self) -> Bools:
        """Return the tests in which some feature could have been in or out."""
        if self.estimates is not None:
            return np.concatenate([~np.isnan(self[c]).all(axis=1) for c in chunks(len(self))])
        open_rows = np.asarray(((self.odds > 0) & (self.odds < 1)).any(axis=1))
        telling: Bools = open_rows[self.row] & ~self.silenced
        return telling

    def __getitem__(self, key: Any) -> npt.NDArray[np.float32]:
        rows, column = key if isinstance(key, tuple) else (key, slice(None))
        values: npt.NDArray[np.float32] = self.odds[self.row[rows], column]
        if self.estimates is not None:
            self.estimates.put_into(values, rows, column)
        values[(values <= 0) | (values >= 1)] = np.nan
        values[self.silenced[rows]] = np.nan
        return values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self[:].astype(dtype or np.float32, copy=False)


def propensities_of(evidence: Evidence) -> Propensities:
    """Return the base rate of every feature in every test."""
    notes = []
    if evidence.invalid:
        notes.append(
            f"{evidence.invalid:,} of {evidence.n:,} tests were invalid, and count as tests that "
            "hit nothing"
        )
    estimated: list[tuple[npt.NDArray[np.intp], Space, list[int]]] = []
    nothing_logged = np.isnan(evidence.odds[:, 0])[evidence.odds_row]
    for number, space in enumerate(evidence.spaces):
        rows = np.flatnonzero(evidence.campaign == number)
        if not len(rows):
            continue
        campaign = evidence.campaigns[number]
        silent = nothing_logged[rows]
        if silent.all():
            estimated.append((rows, space, list(range(len(space.features)))))
            notes.append(
                f"campaign {campaign}: its strategy logs no odds; base rates are estimated from "
                "the tests, which is right unless it draws features together for hidden reasons"
            )
            continue
        if silent.any():
            share = silent.mean()
            notes.append(
                f"campaign {campaign}: in {share:.0%} of the tests, weights or what the strategy "
                "has learnt decided which features are on, not chance; "
                "these tests show only how much of a feature matters"
            )
        tied = _constrained_features(space)
        if tied:
            estimated.append((rows[~silent], space, tied))
            notes.append(
                f"campaign {campaign}: constraints tie {len(tied)} features to others; their base "
                "rates are estimated from the tests"
            )
    values = PropensityRows(
        evidence.odds,
        evidence.odds_row,
        _beyond_the_fewest(evidence),
        estimates_of(evidence, estimated) if estimated else None,
    )
    telling = values.telling()
    numbers = np.unique(evidence.campaign[telling]).tolist()
    same_seed = _most_alike([evidence.seeds[number] for number in numbers])
    if same_seed > 1:
        notes.append(
            f"{same_seed} of these campaigns share a seed, so their tests are not independent, and "
            f"{same_seed} hits count as one: run with another --seed"
        )
    same_order = _most_alike([_first_configurations(evidence, number) for number in numbers])
    if same_order > same_seed:
        notes.append(
            f"{same_order} of these campaigns ran the same configurations in the same order, "
            f"whatever their seeds, so {same_order} hits count as one"
        )
        same_seed = same_order
    return Propensities(values, same_seed, tuple(notes), telling)


def _most_alike(keys: Sequence[object]) -> int:
    """Return how often the most frequent key occurs; 1 if there is none.

    >>> _most_alike([b"a", b"b", b"a", None, None, None])
    2
    """
    return max(Counter(key for key in keys if key is not None).values(), default=1)


def _first_configurations(evidence: Evidence, campaign: int) -> bytes | None:
    """Return the first configurations of a campaign that are not of a fixed set; None for few.

    Tests of fixed sets are counted by `Evidence.clusters`.
    """
    tests = np.flatnonzero((evidence.campaign == campaign) & (evidence.clusters < 0))[:_FIRST]
    return evidence.configurations(tests).tobytes() if len(tests) == _FIRST else None


def _beyond_the_fewest(evidence: Evidence) -> Bools:
    """Return the tests of a configuration beyond the smallest number in its fixed swarm.

    With ``by=time`` slow configurations have fewer tests, so a feature that only makes tests slow
    would look like a suppressor of everything.
    """
    clusters = evidence.members
    beyond = np.zeros(evidence.n, bool)
    rows = np.flatnonzero(clusters >= 0)
    if not len(rows):
        return beyond
    parts = np.unique([part_of(origin) for origin in evidence.origins], return_inverse=True)[1]
    part = parts[evidence.origin[rows]]
    keys = evidence.campaign[rows].astype(np.int64) * len(evidence.origins) + part
    swarm = np.unique(keys, return_inverse=True)[1]
    tests = np.bincount(clusters[rows])
    fewest = np.full(swarm.max() + 1, np.iinfo(np.int64).max)
    np.minimum.at(fewest, swarm, tests[clusters[rows]])
    order = np.argsort(clusters[rows], kind="stable")
    position = np.empty(len(rows), np.int64)
    position[order] = np.arange(len(rows)) - np.repeat(np.cumsum(tests) - tests, tests)
    beyond[rows] = position >= np.maximum(fewest[swarm], _FEWEST_OF_CLUSTER)
    return beyond


def _constrained_features(space: Space) -> list[int]:
    """Return the features that some constraint mentions."""
    mask = 0
    for clause in space.clauses:
        mask |= clause.on | clause.off
    return [i for i in range(len(space.features)) if mask >> i & 1]


def effective_tests(clusters: npt.NDArray[np.int32], weight: Floats) -> float:
    """Return how many independent tests a group of tests is worth, if some share a configuration.

    This is Kish's effective sample size: (sum of weights)^2 / sum of (weights of a cluster)^2. A
    test whose cluster is -1 shares its configuration with no other.

    >>> effective_tests(np.array([0, 0, 1, 1, -1, -1]), np.ones(6))
    3.6
    """
    if not len(weight):
        return 0.0
    shared = np.bincount(clusters[clusters >= 0], weight[clusters >= 0], minlength=1)
    alone = weight[clusters < 0]
    return float(weight.sum() ** 2 / ((shared**2).sum() + (alone**2).sum()))


def part_of(origin: str) -> str:
    """Return the part of a strategy that an origin names, without the number of a member.

    >>> part_of("coin:n=20/member 7")
    'coin:n=20/member'
    """
    return _NUMBER.sub("", origin)


def forced(space: Space, enabled: Bits, feature: int, rows: npt.NDArray[np.intp]) -> Bools:
    """Return, for some tests, whether flipping a feature would violate a constraint."""
    stuck = np.zeros(len(rows), bool)
    for clause in space.clauses:
        if not (clause.on | clause.off) >> feature & 1:
            continue
        on, off = (_bit_numbers(mask & ~(1 << feature)) for mask in (clause.on, clause.off))
        stuck |= ~(enabled[rows, on].any(axis=1) | ~enabled[rows, off].all(axis=1))
    return stuck


def _bit_numbers(mask: int) -> list[int]:
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]


# Estimating odds from the tests.


@dataclass(frozen=True)
class PropensityEstimates:
    """Odds that replace the logged ones, for some tests and some features."""

    features: list[int]
    row: npt.NDArray[np.int32]
    """For each test its row in `values`; -1 if the logged odds count."""
    values: npt.NDArray[np.float32]
    """By those tests and features."""

    def put_into(self, odds: npt.NDArray[np.float32], tests: Any, column: Any) -> None:
        """Replace logged odds, read for all columns of some tests or for one column."""
        row = self.row[tests]
        has = row >= 0
        if isinstance(column, slice):
            odds[np.ix_(has, self.features)] = self.values[row[has]]
        elif column in self.features:
            odds[has] = self.values[row[has], self.features.index(column)]


def estimates_of(
    evidence: Evidence, parts: Sequence[tuple[npt.NDArray[np.intp], Space, list[int]]]
) -> PropensityEstimates:
    """Return estimates for the tests of several campaigns.

    `parts` has, for each campaign, its tests, their space, and the features to estimate.
    """
    features = sorted({feature for _, _, estimated in parts for feature in estimated})
    row = np.full(evidence.n, -1, np.int32)
    values = np.empty((sum(len(tests) for tests, _, _ in parts), len(features)), np.float32)
    at = 0
    for tests, space, estimated in parts:
        row[tests] = np.arange(at, at + len(tests), dtype=np.int32)
        odds = values[at : at + len(tests)]
        for chunk in chunks(len(tests)):
            odds[chunk] = evidence.odds[evidence.odds_row[tests[chunk]]][:, features]
        columns = [features.index(feature) for feature in estimated]
        _estimate(evidence, tests, space, estimated, odds, columns)
        at += len(tests)
    return PropensityEstimates(features, row, values)


def _estimate(
    evidence: Evidence,
    rows: npt.NDArray[np.intp],
    space: Space,
    features: list[int],
    odds: npt.NDArray[np.float32],
    columns: list[int],
) -> None:
    """Write the probability of each feature, given the others, into its column of `odds`.

    It is NaN where the feature had no choice, or too few tests show it. `rows` are the tests of one
    campaign.
    """
    odds[:, columns] = np.nan
    sizes = evidence.enabled.sizes()[rows]
    parts = _parts(evidence, rows)
    neighbours = _neighbours(space)
    most = min(max(_ROWS_OF_ALL // len(features), _FEWEST_ROWS), _MOST_ROWS) if features else 0
    for column, feature in zip(columns, features, strict=True):
        inside = evidence.enabled[rows, feature]
        choice = ~forced(space, evidence.enabled, feature, rows)
        for part in parts:
            free = np.flatnonzero(choice & part)
            # A feature alone in its test cannot be compared: without it there is no test.
            comparable = free[(sizes > inside)[free]]
            if len(comparable) < _FEWEST:
                continue
            sample = comparable[:: -(-len(comparable) // most)]
            fit = _logistic(
                _predictors(evidence, rows[sample], sizes[sample], neighbours, feature),
                inside[sample].astype(float),
            )
            for chunk in chunks(len(free)):
                tests = free[chunk]
                predictors = _predictors(evidence, rows[tests], sizes[tests], neighbours, feature)
                odds[tests, column] = _expit(predictors @ fit)


def _predictors(
    evidence: Evidence,
    rows: npt.NDArray[np.intp],
    sizes: npt.NDArray[np.int64],
    neighbours: list[list[int]],
    feature: int,
) -> Floats:
    """Return what a feature's odds depend on, a row for each test."""
    count = len(evidence.features)
    logged = _logit(evidence.odds[evidence.odds_row[rows], feature].astype(float))
    columns = [np.ones(len(rows)), logged]
    if count - 1 > _MOST_PREDICTORS:
        others = _nearest(neighbours, feature)
        rest = sizes - evidence.enabled[rows, [feature, *others]].sum(axis=1)
        columns.append(rest / count)
        return np.column_stack([*columns, evidence.enabled[rows, others]])
    enabled = np.delete(evidence.enabled[rows], feature, axis=1)
    return np.column_stack([*columns, enabled])


def _neighbours(space: Space) -> list[list[int]]:
    """Return, for each feature, those that share a constraint with it, short constraints first."""
    neighbours: list[dict[int, None]] = [{} for _ in space.features]
    for clause in sorted(space.clauses, key=lambda clause: (clause.on | clause.off).bit_count()):
        named = [i for i in range(len(neighbours)) if (clause.on | clause.off) >> i & 1]
        for feature in named:
            neighbours[feature].update(dict.fromkeys(other for other in named if other != feature))
    return [list(others) for others in neighbours]


def _nearest(neighbours: list[list[int]], feature: int) -> list[int]:
    """Return the features with the smallest distance in constraints, as many as a fit takes."""
    nearest = dict.fromkeys([feature])
    for near in nearest.copy() | dict.fromkeys(neighbours[feature]):
        for other in neighbours[near]:
            if len(nearest) <= _MOST_PREDICTORS:
                nearest.setdefault(other)
    return list(nearest)[1:]


def _parts(evidence: Evidence, rows: npt.NDArray[np.intp]) -> list[Bools]:
    """Return the tests of each part of a strategy.

    ``coin/member 7`` and ``coin/member 8`` are the same part.
    """
    names = np.unique([part_of(origin) for origin in evidence.origins], return_inverse=True)[1]
    part = names[evidence.origin[rows]]
    parts, tests = np.unique(part, return_counts=True)
    large = [part == name for name, count in zip(parts, tests, strict=True) if count >= _FEWEST]
    small = ~np.logical_or.reduce([*large, np.zeros(len(rows), bool)])
    return [*large, small] if small.any() else large


def _logistic(predictors: Floats, outcome: Floats) -> Floats:
    """Fit a logistic regression by iteratively reweighted least squares.

    A faint pull towards 0 keeps the coefficients finite.
    """
    fit = np.zeros(predictors.shape[1])
    pull = np.eye(predictors.shape[1])
    for _ in range(25):
        mean = _expit(predictors @ fit)
        weight = mean * (1 - mean)
        slope = predictors.T @ (outcome - mean) - fit
        step = np.linalg.solve((predictors * weight[:, None]).T @ predictors + pull, slope)
        fit = fit + step
        if np.abs(step).max() < 1e-5:
            break
    return fit


def _expit(values: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(values, -30, 30)))


def _logit(odds: Floats) -> Floats:
    """Return log-odds; 0 where nothing was logged, or the odds are 0 or 1."""
    usable = (odds > 0) & (odds < 1)
    inside = np.where(usable, odds, 0.5)
    logit: Floats = np.log(inside / (1 - inside))
    return logit
