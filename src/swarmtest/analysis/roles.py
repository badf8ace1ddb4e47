"""Roles: which features make a target more likely, and which less (directed swarm, section 2.2).

Of the tests that hit target t and in which feature f was left to chance, a share contains f; chance
alone would have put it into a share r, the base rate. If Wilson's interval (l, h) for the first
lies above r, f is a trigger of t; if it lies below, a suppressor; otherwise f is irrelevant, or
there is too little data to tell. In a plain coin-toss campaign r is the coin's rate and this is the
papers' definition. In any other, r is the mean chance *over the tests that hit t*: it is that mean
to which the share goes when f does not matter, whatever made the strategy include f more often in
some tests than in others. A base rate taken over all tests would make a trigger of every
feature that a directed campaign happens to prefer.

Invariants: arrays are targets by features; `informative` counts the hits in which a feature was
left to chance, and only those.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import isnan

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.intervals import (
    Floats,
    benjamini_hochberg,
    binomial_p_value,
    hits_needed,
    normal_quantile,
    wilson_interval,
)
from swarmtest.targets import Target

TRIGGER, SUPPRESSOR, IRRELEVANT = "trigger", "suppressor", "irrelevant"
INSUFFICIENT, FIXED = "insufficient data", "no variation"
ROLES = (IRRELEVANT, TRIGGER, SUPPRESSOR, INSUFFICIENT, FIXED)
"""In the order of their codes in `RoleTable.codes`."""

Codes = npt.NDArray[np.int8]


@dataclass(frozen=True)
class FeatureRole:
    """What one feature is to one target.

    >>> FeatureRole("pop", "suppressor", 0.02, 0.0, 0.09, 0.5, 60, 1e-9, 1e-8, 4).estimate
    0.09
    """

    feature: str
    role: str
    """trigger, suppressor, irrelevant, insufficient data, or no variation."""
    share: float
    """Of the hits in which the feature was left to chance, how many contain it."""
    low: float
    high: float
    """Wilson's interval for that share."""
    base: float
    """The share that chance alone would give."""
    hits: float
    """How many hits that is; not whole when tests share configurations and count for less."""
    p_value: float
    adjusted: float
    """The p-value after correction for all comparisons of the table (Benjamini-Hochberg)."""
    needed: int
    """Hits after which either role could have been shown; 0 without variation."""

    @property
    def estimate(self) -> float:
        """The papers' F(f, t): the bound nearest to the base rate, or the base rate itself."""
        return {TRIGGER: self.low, SUPPRESSOR: self.high}.get(self.role, self.base)

    @property
    def missing_hits(self) -> int:
        """How many more hits are needed; 0 if there are enough."""
        return max(self.needed - int(self.hits), 0) if self.role == INSUFFICIENT else 0

    def is_discovery(self, rate: float = 0.05) -> bool:
        """Whether the role survives the correction: at most this share of such claims is false."""
        return self.role in (TRIGGER, SUPPRESSOR) and self.adjusted <= rate

    def to_json(self) -> dict[str, object]:
        """Plain data; a base rate that does not exist is None."""
        return {**vars(self), "base": None if isnan(self.base) else self.base}


@dataclass(frozen=True)
class RoleTable:
    """Every feature's role for every target of a table."""

    targets: tuple[Target, ...]
    features: tuple[str, ...]
    hits: npt.NDArray[np.int64]
    """How many tests hit each target."""
    informative: Floats
    containing: Floats
    base: Floats
    alone: npt.NDArray[np.bool_]
    """Whether hits with a feature alone in its test are among those."""
    confidence: float = 0.95

    @cached_property
    def interval(self) -> tuple[Floats, Floats]:
        """Wilson's interval for each share."""
        low, high = wilson_interval(self.containing, self.informative, self.confidence)
        return np.asarray(low), np.asarray(high)

    @cached_property
    def codes(self) -> Codes:
        """Each role as an index into `ROLES`."""
        low, high = self.interval
        odds = np.maximum(self.base, 1 - self.base) / np.minimum(self.base, 1 - self.base)
        enough = self.informative > normal_quantile(self.confidence) ** 2 * odds
        codes = np.where(enough, 0, ROLES.index(INSUFFICIENT)).astype(np.int8)
        codes[low > self.base] = ROLES.index(TRIGGER)
        codes[high < self.base] = ROLES.index(SUPPRESSOR)
        codes[np.isnan(self.base)] = ROLES.index(FIXED)
        return codes

    @cached_property
    def p_values(self) -> Floats:
        """Exact two-sided p-values of the triggers and suppressors; 1 for all else.

        Only those can be discoveries, and the exact tail costs more than everything before it.
        Many cells have the same counts and are worked out once.
        """
        p = np.ones(self.codes.shape)
        cells = (self.codes == ROLES.index(TRIGGER)) | (self.codes == ROLES.index(SUPPRESSOR))
        counts = np.stack([a[cells] for a in (self.containing, self.informative, self.base)])
        distinct, place = np.unique(counts, axis=1, return_inverse=True)
        p[cells] = binomial_p_value(*distinct)[place.ravel()]
        return p

    @cached_property
    def adjusted(self) -> Floats:
        """The p-values after Benjamini and Hochberg's correction, over all cells with variation."""
        adjusted = np.ones(self.codes.shape)
        comparisons = int((self.codes != ROLES.index(FIXED)).sum())
        cells = self.p_values < 1
        adjusted[cells] = benjamini_hochberg(self.p_values[cells], comparisons)
        return adjusted

    @cached_property
    def certain_triggers(self) -> npt.NDArray[np.bool_]:
        """Triggers that hardly one target in a hundred has by chance (Bonferroni over features).

        Unlike `discoveries`, this does not depend on which other targets are in the table.
        """
        triggers = self.codes == ROLES.index(TRIGGER)
        certain: npt.NDArray[np.bool_] = triggers & (self.p_values <= 0.01 / len(self.features))
        return certain

    def discoveries(self, rate: float | None = None) -> Codes:
        """`codes` with only the roles that survive the correction; everything else is irrelevant.

        `rate` is the share of false ones among them; 1 - confidence unless given.
        """
        rate = 1 - self.confidence if rate is None else rate
        return np.where((self.codes <= 2) & (self.adjusted <= rate), self.codes, 0).astype(np.int8)

    def of(self, target: int) -> list[FeatureRole]:
        """All features' roles for one target, by its place in `targets`."""
        low, high = self.interval
        found = []
        for i, feature in enumerate(self.features):
            base, hits = float(self.base[target, i]), float(self.informative[target, i])
            fixed = bool(np.isnan(base))
            share = float(self.containing[target, i]) / hits if hits else 0.0
            found.append(
                FeatureRole(
                    feature=feature,
                    role=ROLES[self.codes[target, i]],
                    share=share,
                    low=float(low[target, i]),
                    high=float(high[target, i]),
                    base=base,
                    hits=hits,
                    p_value=1.0 if fixed else float(binomial_p_value(share * hits, hits, base)),
                    adjusted=float(self.adjusted[target, i]),
                    needed=0 if fixed else hits_needed(base, self.confidence),
                )
            )
        return found

    def discovered(self, target: int, role: str) -> list[str]:
        """The features that have this role for a target and survive the correction."""
        found = self._discovered[target] == ROLES.index(role)
        return [feature for feature, is_it in zip(self.features, found, strict=True) if is_it]

    @cached_property
    def _discovered(self) -> Codes:
        return self.discoveries()

    def __iter__(self) -> Iterator[tuple[Target, list[FeatureRole]]]:
        return ((target, self.of(number)) for number, target in enumerate(self.targets))


@dataclass(frozen=True)
class FeatureShare:
    """For which share of targets a feature is a trigger, and for which a suppressor.

    The papers' tables 2 and 6.
    """

    feature: str
    trigger: float
    suppressor: float
    targets: int
    """Targets with enough hits to tell."""


def feature_shares(table: RoleTable, corrected: bool = True) -> list[FeatureShare]:
    """Summarise a table by features; of the roles that survive the correction, or of all."""
    codes = table.discoveries() if corrected else table.codes
    can_tell = table.codes <= ROLES.index(SUPPRESSOR)
    targets = can_tell.sum(axis=0)
    shares = []
    for i, feature in enumerate(table.features):
        of = max(int(targets[i]), 1)
        trigger, suppressor = (
            int((codes[:, i] == ROLES.index(role)).sum()) / of for role in (TRIGGER, SUPPRESSOR)
        )
        shares.append(FeatureShare(feature, trigger, suppressor, int(targets[i])))
    return shares
