"""How likely each feature was to be in each test: the base rates of everything that follows.

The claim behind a role is causal only if a feature that has nothing to do with a target is found in
the tests that hit it as often as chance alone would have put it there. Chance here is the
probability that the feature is in, given which of the others are (see `swarmtest.space.Proposal`).
Three cases:

1. The strategy logged it. That is taken as it is.
2. Constraints tie the feature to others ("close requires open"). What was logged are the odds at
   the moment of the toss, which know of the features tossed before but not of those tossed after,
   so they are estimated from the tests themselves (`swarmtest.analysis.estimated_odds`).
3. Nothing was logged in a whole campaign (a strategy of the user's own): the same estimate, and
   `Chances.notes` says so.

A test in which a feature had no choice (0 or 1), and one without odds in a campaign that logs
them, tells nothing about that feature and is left out of the count for it: its chance is NaN.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bits import Bools, chunks
from swarmtest.analysis.estimated_odds import Estimates, estimates_of, part_of
from swarmtest.analysis.evidence import Evidence
from swarmtest.space import Space

_FEWEST = 5
"""A configuration that had hardly any tests does not decide how many of the others count."""


@dataclass(frozen=True)
class ChanceRows:
    """Tests by features: the probability that a feature is in; NaN where that tells nothing.

    Read like an array, some rows or one column at a time: most strategies have a few different
    rows of odds, and a million tests x 300 features of numbers would be a gigabyte.
    """

    odds: npt.NDArray[np.float32]
    """Different rows of odds as they were logged."""
    row: npt.NDArray[np.int32]
    """Which of them each test has."""
    silenced: Bools
    """Tests that do not count."""
    estimates: Estimates | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Tests and features."""
        return len(self.row), self.odds.shape[1]

    def __len__(self) -> int:
        return len(self.row)

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


@dataclass(frozen=True)
class Chances:
    """How likely features were, and what follows for all tests together."""

    values: ChanceRows
    same_seed: int
    """How many campaigns that tell anything share a seed, at most.

    Trial 17 of one and trial 17 of another with the same seed come from the same random numbers,
    so together they say hardly more than one of them.
    """
    notes: tuple[str, ...]
    """What a reader of the results should know about them."""
    telling: Bools
    """Tests in which some feature could have been in or out."""

    @property
    def vary(self) -> bool:
        """Whether any feature was ever left to chance."""
        return bool(self.telling.any())


def chances(evidence: Evidence) -> Chances:
    """The base rate of every feature in every test."""
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
                f"campaign {campaign}: in {share:.0%} of the tests weights decide which features "
                "are in; those say nothing about enabling, only about amounts"
            )
        tied = _tied(space)
        if tied:
            estimated.append((rows[~silent], space, tied))
            notes.append(
                f"campaign {campaign}: constraints tie {len(tied)} features to others; their base "
                "rates are estimated from the tests"
            )
    values = ChanceRows(
        evidence.odds,
        evidence.odds_row,
        _beyond_the_fewest(evidence),
        estimates_of(evidence, estimated) if estimated else None,
    )
    telling = np.concatenate([~np.isnan(values[c]).all(axis=1) for c in chunks(evidence.n)])
    seeds = Counter(evidence.seeds[n] for n in np.unique(evidence.campaign[telling]).tolist())
    same_seed = max(seeds.values(), default=1)
    if same_seed > 1:
        notes.append(
            f"{same_seed} of these campaigns share a seed, so their tests are not independent, and "
            f"{same_seed} hits count as one: run with another --seed"
        )
    return Chances(values, same_seed, tuple(notes), telling)


def _beyond_the_fewest(evidence: Evidence) -> Bools:
    """Tests of a configuration beyond those that each of its fixed swarm had.

    With ``by=time`` slow configurations have fewer tests, so a feature that only makes tests slow
    would look like a suppressor of everything.
    """
    clusters = evidence.clusters
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
    place = np.empty(len(rows), np.int64)
    place[order] = np.arange(len(rows)) - np.repeat(np.cumsum(tests) - tests, tests)
    beyond[rows] = place >= np.maximum(fewest[swarm], _FEWEST)
    return beyond


def _tied(space: Space) -> list[int]:
    """The features that some constraint mentions."""
    mask = 0
    for clause in space.clauses:
        mask |= clause.on | clause.off
    return [i for i in range(len(space.features)) if mask >> i & 1]
