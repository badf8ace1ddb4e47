"""The odds of a feature given the others, estimated from the tests themselves.

For strategies that log none, and for features that constraints tie together. Where flipping the
feature would break a constraint it had no choice, and that is read off the constraints. Elsewhere
a logistic regression of the feature on all others says how likely it was: that catches
configurations of varying size (more of the others means more of this one), constraints that reach a
feature through a third, and a coin whose bias varies (its logged odds are one more predictor).
In large spaces "all others" are those that share a constraint with the feature, or with one that
does, nearest first, and the number of the rest: features that nothing ties matter alike.
Parts of a strategy (a mixture's member, a layer's family) draw in different ways and are fitted
apart, small ones together.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.evidence import Bools, Evidence
from swarmtest.analysis.intervals import Floats
from swarmtest.space import Space

_FEWEST = 50
"""Tests of one part of a strategy before anything is estimated from them."""
_MOST_PREDICTORS = 40
_FEWEST_ROWS, _MOST_ROWS, _ROWS_OF_ALL = 4_000, 20_000, 800_000
"""Tests that a fit takes, if there are as many: fewer where there are many features to fit."""
_NUMBER = re.compile(r" \d+$")


def estimated_odds(
    evidence: Evidence, rows: npt.NDArray[np.intp], space: Space, features: list[int]
) -> Floats:
    """Tests by the given features: how likely each was, given the others; NaN: no choice, no idea.

    `rows` are the tests of one campaign.
    """
    enabled = evidence.enabled[rows]
    odds = np.full((len(rows), len(features)), np.nan)
    logged = _logit(evidence.odds[evidence.odds_row[rows]])
    sizes = enabled.sum(axis=1)
    parts = _parts(evidence, rows)
    neighbours = _neighbours(space)
    most = min(max(_ROWS_OF_ALL // len(features), _FEWEST_ROWS), _MOST_ROWS) if features else 0
    for column, feature in enumerate(features):
        choice = ~forced(space, enabled, feature)
        predictors = _predictors(enabled, sizes, neighbours, feature, logged[:, feature])
        for part in parts:
            free = choice & part
            # A feature alone in its test has no like: without it there is no test at all.
            known = np.flatnonzero(free & (sizes > enabled[:, feature]))
            if len(known) < _FEWEST:
                continue
            sample = known[:: -(-len(known) // most)]
            fit = _logistic(predictors[sample], enabled[sample, feature].astype(float))
            odds[free, column] = _expit(predictors[free] @ fit)
    return odds


def _predictors(
    enabled: Bools,
    sizes: npt.NDArray[np.int64],
    neighbours: list[list[int]],
    feature: int,
    logged: Floats,
) -> Floats:
    """What a feature's odds depend on, a row for each test."""
    others = [other for other in range(enabled.shape[1]) if other != feature]
    columns = [np.ones(len(enabled)), logged]
    if len(others) > _MOST_PREDICTORS:
        others = _nearest(neighbours, feature)
        rest = sizes - enabled[:, [feature, *others]].sum(axis=1)
        columns.append(rest / enabled.shape[1])
    return np.column_stack([*columns, enabled[:, others]])


def _neighbours(space: Space) -> list[list[int]]:
    """For each feature, those that share a constraint with it; in short constraints first."""
    found: list[dict[int, None]] = [{} for _ in space.features]
    for clause in sorted(space.clauses, key=lambda clause: (clause.on | clause.off).bit_count()):
        named = [i for i in range(len(found)) if (clause.on | clause.off) >> i & 1]
        for one in named:
            found[one].update(dict.fromkeys(other for other in named if other != one))
    return [list(one) for one in found]


def _nearest(neighbours: list[list[int]], feature: int) -> list[int]:
    """Features by their distance in constraints, as many as a fit takes."""
    found = dict.fromkeys([feature])
    for one in found.copy() | dict.fromkeys(neighbours[feature]):
        for other in neighbours[one]:
            if len(found) <= _MOST_PREDICTORS:
                found.setdefault(other)
    return list(found)[1:]


def forced(space: Space, enabled: Bools, feature: int) -> Bools:
    """Where a feature could not have been otherwise without breaking a constraint."""
    stuck = np.zeros(len(enabled), bool)
    for clause in space.clauses:
        if not (clause.on | clause.off) >> feature & 1:
            continue
        on, off = (_places(mask & ~(1 << feature)) for mask in (clause.on, clause.off))
        stuck |= ~(enabled[:, on].any(axis=1) | ~enabled[:, off].all(axis=1))
    return stuck


def _places(mask: int) -> list[int]:
    return [place for place in range(mask.bit_length()) if mask >> place & 1]


def part_of(origin: str) -> str:
    """The part of a strategy that an origin names, without the number of a member.

    >>> part_of("coin:n=20/member 7")
    'coin:n=20/member'
    """
    return _NUMBER.sub("", origin)


def _parts(evidence: Evidence, rows: npt.NDArray[np.intp]) -> list[Bools]:
    """The tests of each part of a strategy: ``coin/member 7`` and ``coin/member 8`` are one."""
    names = np.array([part_of(origin) for origin in evidence.origins])
    part = names[evidence.origin[rows]]
    found, tests = np.unique(part, return_counts=True)
    large = [part == name for name, count in zip(found, tests, strict=True) if count >= _FEWEST]
    small = ~np.logical_or.reduce([*large, np.zeros(len(rows), bool)])
    return [*large, small] if small.any() else large


def _logistic(predictors: Floats, outcome: Floats) -> Floats:
    """Coefficients by iteratively reweighted least squares, with a faint pull towards 0."""
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
    """Log-odds; 0 where nothing was logged, or it was certain."""
    usable = (odds > 0) & (odds < 1)
    inside = np.where(usable, odds, 0.5)
    logit: Floats = np.log(inside / (1 - inside))
    return logit
