"""Does the *number of times* a feature appears matter, where it is enabled anyway?

Presence hides effects of features that are in every test: a stack overflows when there are many
more pushes than pops, and with the default configuration both are always there. So the share of a
test's steps that a feature took is compared between the tests that hit a target and the others.

Two things would fool a plain comparison. Which other features are enabled changes the share (with
fewer rivals there is more of each), and they may be what matters: so the share is first predicted
from the set of enabled features, and only what the prediction leaves is compared. And a test that
fails ends early: so it is the share of the steps that were executed, not the count.

What remains is luck, and weights where the strategy draws them. Luck is a fair experiment; so are
drawn weights. The prediction is linear in what is enabled, plus one over how many are; what
three-way interplay of guards does to shares is not modelled, and `docs/roles.md` says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.evidence import Bools, Evidence
from swarmtest.analysis.intervals import (
    Floats,
    benjamini_hochberg,
    student_p_value,
    student_quantile,
)
from swarmtest.analysis.roles import FIXED, INSUFFICIENT, IRRELEVANT, SUPPRESSOR, TRIGGER

_FEWEST = 5
"""Tests on either side before means are compared."""


@dataclass(frozen=True)
class Amount:
    """What more or less of a feature, where it is enabled, does to a target.

    >>> Amount("pop", "suppressor", 40, 900, 0.35, 0.5, -0.15, -0.2, -0.1, 1e-9, 1e-8).role
    'suppressor'
    """

    feature: str
    role: str
    """trigger: hitting tests have more of it than others; suppressor: less."""
    hits: int
    others: int
    """Tests with the feature enabled that hit, and that did not."""
    share_in_hits: float
    share_in_others: float
    """Its share of the steps, as counted."""
    difference: float
    low: float
    high: float
    """The difference that is left when the enabled features are accounted for, and its interval."""
    p_value: float
    adjusted: float = 1.0
    """The p-value after correction for the number of features."""

    def is_discovery(self, rate: float = 0.05) -> bool:
        """Whether the role survives the correction."""
        return self.role in (TRIGGER, SUPPRESSOR) and self.adjusted <= rate

    @property
    def missing_hits(self) -> int:
        """How many more hits are needed; 0 if there are enough."""
        return max(_FEWEST - self.hits, 0) if self.role == INSUFFICIENT else 0

    def to_json(self) -> dict[str, object]:
        """Plain data."""
        return dict(vars(self))


def step_shares(evidence: Evidence) -> Floats:
    """Tests by features: the share of the executed steps; NaN where a feature was not enabled."""
    total = evidence.used.sum(axis=1, keepdims=True, dtype=float)
    with np.errstate(invalid="ignore"):
        shares: Floats = evidence.used / total
    shares[~evidence.enabled] = np.nan
    return shares


def surplus(evidence: Evidence, shares: Floats) -> Floats:
    """Tests by features: the share beyond what the set of enabled features lets one expect."""
    enabled = evidence.enabled.astype(float)
    rivals = 1 / np.maximum(enabled.sum(axis=1), 1)
    left = np.full(shares.shape, np.nan)
    for i in range(shares.shape[1]):
        rows = np.flatnonzero(~np.isnan(shares[:, i]))
        if len(rows):
            predictors = _varying(np.column_stack([enabled[rows], rivals[rows]]))
            left[rows, i] = _residual(predictors, shares[rows, i])
    return left


def _varying(predictors: Floats) -> Floats:
    kept = predictors[:, np.ptp(predictors, axis=0) > 0]
    return np.column_stack([np.ones(len(predictors)), kept])


def _residual(predictors: Floats, values: Floats) -> Floats:
    square = predictors.T @ predictors
    fitted: Floats = predictors @ np.linalg.lstsq(square, predictors.T @ values, rcond=None)[0]
    return values - fitted


def amounts(
    features: tuple[str, ...],
    shares: Floats,
    left: Floats,
    hit: Bools,
    known: Bools,
    confidence: float = 0.95,
) -> list[Amount]:
    """What more or less of each feature does to a target; `known`: tests that can tell."""
    found = [
        _compared(
            feature, shares[:, i], left[:, i], hit, known & ~np.isnan(shares[:, i]), confidence
        )
        for i, feature in enumerate(features)
    ]
    told = [i for i, one in enumerate(found) if one.role not in (INSUFFICIENT, FIXED)]
    adjusted = benjamini_hochberg([found[i].p_value for i in told])
    for i, value in zip(told, adjusted.tolist(), strict=True):
        found[i] = replace(found[i], adjusted=value)
    return found


def _compared(
    feature: str, shares: Floats, left: Floats, hit: Bools, rows: Bools, confidence: float
) -> Amount:
    with_hit, without = rows & hit, rows & ~hit
    k, m = int(with_hit.sum()), int(without.sum())
    in_hits, in_others = (float(shares[g].mean()) if g.any() else 0.0 for g in (with_hit, without))
    if min(k, m) < _FEWEST:
        return Amount(feature, INSUFFICIENT, k, m, in_hits, in_others, 0.0, -1.0, 1.0, 1.0)
    difference, error, freedom = _welch(left[with_hit], left[without])
    if error < 1e-9:
        return Amount(feature, FIXED, k, m, in_hits, in_others, 0.0, 0.0, 0.0, 1.0)
    reach = student_quantile(confidence, round(freedom, 1)) * error
    low, high = difference - reach, difference + reach
    role = TRIGGER if low > 0 else SUPPRESSOR if high < 0 else IRRELEVANT
    p = float(student_p_value(difference / error, freedom))
    return Amount(feature, role, k, m, in_hits, in_others, difference, low, high, p)


def _welch(
    one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]
) -> tuple[float, float, float]:
    """Difference of means, its standard error, degrees of freedom; variances may differ."""
    parts = [float(group.var(ddof=1)) / len(group) for group in (one, other)]
    total = sum(parts)
    spread = sum(p * p / (len(g) - 1) for p, g in zip(parts, (one, other), strict=True))
    freedom = total * total / spread if spread else 1.0
    return float(one.mean() - other.mean()), total**0.5, freedom
