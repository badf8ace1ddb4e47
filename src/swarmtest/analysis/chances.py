"""How likely each feature was to be in each test: the base rates of everything that follows.

The claim behind a role is causal only if a feature that has nothing to do with a target is found in
the tests that hit it as often as chance alone would have put it there. Chance here is the
probability that the feature is in, given which of the others are (see `swarmtest.space.Proposal`).
Three cases:

1. The strategy logged it. That is taken as it is.
2. The space has constraints ("close requires open"). What was logged are the odds at the moment
   of the toss, which know of the features tossed before but not of those tossed after, so they are
   estimated from the tests themselves: the share of tests with the feature, among those that
   agree on every feature that a constraint ties to it.
3. Nothing was logged in a whole campaign (a strategy of the user's own): the same estimate, among
   tests that agree on how many other features they have. `Chances.notes` says so.

A test in which a feature had no choice (0 or 1), and one without odds in a campaign that logs
them, tells nothing about that feature and is left out of the count for it: its chance is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.evidence import Bools, Evidence
from swarmtest.space import Space

_FEWEST = 20
"""Tests in a group before the share in it counts as an estimate."""
_SIZES = 8
"""Groups by the number of other features."""


@dataclass(frozen=True)
class Chances:
    """Tests by features: the probability that a feature is in; NaN where that tells nothing."""

    values: npt.NDArray[np.float32]
    notes: tuple[str, ...]
    """What a reader of the results should know about them."""

    @property
    def informative(self) -> Bools:
        """Where a feature could have been in or out."""
        return ~np.isnan(self.values)


def chances(evidence: Evidence) -> Chances:
    """The base rate of every feature in every test."""
    values = evidence.odds.astype(np.float32)[evidence.odds_row]
    notes = []
    for number, space in enumerate(evidence.spaces):
        rows = np.flatnonzero(evidence.campaign == number)
        if not len(rows):
            continue
        campaign = evidence.campaigns[number]
        silent = np.isnan(values[rows, 0])
        if silent.all():
            _estimate(values, evidence, rows, space, sizes=True)
            notes.append(
                f"campaign {campaign}: its strategy logs no odds; base rates are estimated from "
                "the tests themselves"
            )
            continue
        if silent.any():
            share = silent.mean()
            notes.append(
                f"campaign {campaign}: {share:.1%} of the tests carry no odds and say nothing "
                "about what enabling a feature does"
            )
        if space.clauses:
            _estimate(values, evidence, rows[~silent], space, sizes=False)
    values[(values <= 0) | (values >= 1)] = np.nan
    return Chances(values, tuple(notes))


def _tied_to(space: Space, feature: int) -> list[int]:
    """The other features that some constraint mentions together with this one."""
    bit, mask = 1 << feature, 0
    for clause in space.clauses:
        if (clause.on | clause.off) & bit:
            mask |= clause.on | clause.off
    return [i for i in range(len(space.features)) if mask >> i & 1 and i != feature]


def _estimate(
    values: npt.NDArray[np.float32],
    evidence: Evidence,
    rows: npt.NDArray[np.intp],
    space: Space,
    sizes: bool,
) -> None:
    """Put the share of tests with each feature, among tests of the same group, in its place."""
    enabled = evidence.enabled[rows]
    total = enabled.sum(axis=1)
    origin = evidence.origin[rows]
    for feature in range(len(space.features)):
        inside = enabled[:, feature]
        keys = [origin, *(enabled[:, other] for other in _tied_to(space, feature))]
        if sizes:
            keys.append(_binned(total - inside))
        group = _groups(keys)
        # Where a feature is alone, its absence would have been the empty test, which is never run.
        free = (total - inside > 0).astype(float)
        tests = np.bincount(group, free)
        with np.errstate(invalid="ignore"):
            share = np.bincount(group, free * inside) / tests
        share[tests < _FEWEST] = np.nan
        values[rows, feature] = share[group]


def _binned(sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """At most so many groups of sizes, about equally full."""
    bounds = np.unique(np.quantile(sizes, np.linspace(0, 1, _SIZES + 1)[1:-1], method="nearest"))
    return np.searchsorted(bounds, sizes, side="right")


def _groups(keys: list[npt.NDArray[np.generic]]) -> npt.NDArray[np.intp]:
    """One number per test, the same where all keys are the same."""
    group = np.zeros(len(keys[0]), np.intp)
    for key in keys:
        _, code = np.unique(key, return_inverse=True)
        _, group = np.unique(group * (int(code.max(initial=0)) + 1) + code, return_inverse=True)
    return group
