"""Features that matter only together: a trigger only when another is absent, and the like.

If two features act independently of each other (each multiplies the odds of a hit by its own
factor), then among the tests that hit, one is found with the other as often as without it. So an
interplay shows as an association *among the hits*, and a Cochran-Mantel-Haenszel test finds it:
over strata, because in a mixture of strategies features come and go together for reasons of
their own. For the pairs that survive the correction for the number of pairs, the role of each
feature is computed twice, among the hits with the other and among those without it.

A target that needs both features of a pair is no interplay in this sense: both are triggers, and
no hit lacks either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.chances import Chances
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
    """Each triggers where the other is absent: the target shows with one *or* the other."""

    def sentence(self) -> str:
        """In words.

        >>> on, off = Part(TRIGGER, .9, .8, 1, .5, 40), Part(IRRELEVANT, .5, .4, .6, .5, 90)
        >>> Pair("chmod", "sync", on, off, 1e-5, 1e-4, False).sentence()
        'chmod is a trigger only with sync'
        """
        if self.either:
            return f"it shows with {self.feature} or with {self.other}; one of them is enough"
        on, off = self.with_other.role, self.without_other.role
        if {on, off} == {TRIGGER, SUPPRESSOR}:
            return f"{self.feature} is a {on} with {self.other} and a {off} without it"
        if on in (TRIGGER, SUPPRESSOR):
            return f"{self.feature} is a {on} only with {self.other}"
        return f"{self.feature} is a {off} only without {self.other}"

    def to_json(self) -> dict[str, object]:
        """Plain data."""
        parts = {"with_other": vars(self.with_other), "without_other": vars(self.without_other)}
        return {**vars(self), **parts, "sentence": self.sentence()}


def pairs(evidence: Evidence, chances: Chances, hit: Bools, confidence: float = 0.95) -> list[Pair]:
    """The pairs of features with an interplay for a target, the clearest first."""
    rows = np.flatnonzero(hit)
    told = chances.informative[rows]
    inside = evidence.enabled[rows] & told
    outside = ~evidence.enabled[rows] & told
    score, variance = _association(inside, outside, _strata(evidence, rows))
    first, second = np.triu_indices(len(evidence.features), 1)
    enough = variance[first, second] >= _LEAST_VARIANCE
    first, second = first[enough], second[enough]
    z = np.maximum(np.abs(score[first, second]) - 0.5, 0) / np.sqrt(variance[first, second])
    p_values = normal_p_value(z)
    adjusted = benjamini_hochberg(p_values)
    table = _Conditional(inside, outside, np.nan_to_num(chances.values[rows]), confidence)
    found = []
    for at in np.argsort(adjusted, kind="stable"):
        if adjusted[at] > 1 - confidence:
            break
        pair = _described(evidence.features, table, int(first[at]), int(second[at]))
        if pair is not None:
            found.append(Pair(*pair[:4], float(p_values[at]), float(adjusted[at]), pair[4]))
    return found


def _strata(evidence: Evidence, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Hits of one campaign and one part of its strategy, and of one size if sizes matter there."""
    spread = evidence.odds[evidence.odds_row[rows]]
    varies = len(np.unique(spread, axis=0)) > len(evidence.features) + 1
    size = evidence.enabled[rows].sum(axis=1) if varies else np.zeros(len(rows), np.intp)
    keys = np.column_stack([evidence.campaign[rows], evidence.origin[rows], size])
    return np.unique(keys, axis=0, return_inverse=True)[1].ravel()


def _association(
    inside: Bools, outside: Bools, strata: npt.NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """For each pair: how many hits with both there are beyond expectation, and the variance."""
    count = inside.shape[1]
    score, variance = np.zeros((count, count)), np.zeros((count, count))
    for stratum in range(int(strata.max(initial=-1)) + 1):
        on = inside[strata == stratum].astype(np.float64)
        off = outside[strata == stratum].astype(np.float64)
        both, one, other, neither = on.T @ on, on.T @ off, off.T @ on, off.T @ off
        n = both + one + other + neither
        rows, columns = both + one, both + other
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = rows * columns / n
            spread = expected * (n - rows) * (n - columns) / (n * (n - 1))
        usable = n > 1
        score += np.where(usable, both - expected, 0.0)
        variance += np.where(usable, spread, 0.0)
    return score, variance


@dataclass(frozen=True)
class _Conditional:
    """Roles among the hits that agree on another feature."""

    inside: Bools
    outside: Bools
    chance: npt.NDArray[np.float32]
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
    # A trigger reads better than a suppressor, and "only with" better than "only without".
    views.sort(key=lambda view: (view[2].role != TRIGGER, view[3].role != TRIGGER))
    return (*views[0], either)
