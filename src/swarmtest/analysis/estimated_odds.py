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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bits import Bits, Bools, chunks
from swarmtest.analysis.evidence import Evidence
from swarmtest.analysis.intervals import Floats
from swarmtest.space import Space

_FEWEST = 50
"""Tests of one part of a strategy before anything is estimated from them."""
_MOST_PREDICTORS = 40
_FEWEST_ROWS, _MOST_ROWS, _ROWS_OF_ALL = 4_000, 20_000, 800_000
"""Tests that a fit takes, if there are as many: fewer where there are many features to fit."""
_NUMBER = re.compile(r" \d+$")


@dataclass(frozen=True)
class Estimates:
    """Odds that replace the logged ones, for some tests and some features."""

    features: list[int]
    row: npt.NDArray[np.int32]
    """By test: its row in `values`; -1: what was logged counts."""
    values: npt.NDArray[np.float32]
    """By those tests and features."""

    def put_into(self, odds: npt.NDArray[np.float32], tests: Any, column: Any) -> None:
        """Replace what was read of the logged odds: all columns of some tests, or one."""
        row = self.row[tests]
        has = row >= 0
        if isinstance(column, slice):
            odds[np.ix_(has, self.features)] = self.values[row[has]]
        elif column in self.features:
            odds[has] = self.values[row[has], self.features.index(column)]


def estimates_of(
    evidence: Evidence, parts: Sequence[tuple[npt.NDArray[np.intp], Space, list[int]]]
) -> Estimates:
    """Estimates for the tests of several campaigns: tests, their space, and what to estimate."""
    features = sorted({feature for _, _, some in parts for feature in some})
    row = np.full(evidence.n, -1, np.int32)
    values = np.empty((sum(len(tests) for tests, _, _ in parts), len(features)), np.float32)
    at = 0
    for tests, space, some in parts:
        row[tests] = np.arange(at, at + len(tests), dtype=np.int32)
        held = values[at : at + len(tests)]
        for chunk in chunks(len(tests)):
            held[chunk] = evidence.odds[evidence.odds_row[tests[chunk]]][:, features]
        places = [features.index(feature) for feature in some]
        _estimate(evidence, tests, space, some, held, places)
        at += len(tests)
    return Estimates(features, row, values)


def _estimate(
    evidence: Evidence,
    rows: npt.NDArray[np.intp],
    space: Space,
    features: list[int],
    odds: npt.NDArray[np.float32],
    places: list[int],
) -> None:
    """How likely each feature was, given the others, into its place; NaN: no choice, no idea.

    `rows` are the tests of one campaign.
    """
    odds[:, places] = np.nan
    sizes = evidence.enabled.sizes()[rows]
    parts = _parts(evidence, rows)
    neighbours = _neighbours(space)
    most = min(max(_ROWS_OF_ALL // len(features), _FEWEST_ROWS), _MOST_ROWS) if features else 0
    for place, feature in zip(places, features, strict=True):
        inside = evidence.enabled[rows, feature]
        choice = ~forced(space, evidence.enabled, feature, rows)
        for part in parts:
            free = np.flatnonzero(choice & part)
            # A feature alone in its test has no like: without it there is no test at all.
            known = free[(sizes > inside)[free]]
            if len(known) < _FEWEST:
                continue
            sample = known[:: -(-len(known) // most)]
            fit = _logistic(
                _predictors(evidence, rows[sample], sizes[sample], neighbours, feature),
                inside[sample].astype(float),
            )
            for chunk in chunks(len(free)):
                some = free[chunk]
                predictors = _predictors(evidence, rows[some], sizes[some], neighbours, feature)
                odds[some, place] = _expit(predictors @ fit)


def _predictors(
    evidence: Evidence,
    rows: npt.NDArray[np.intp],
    sizes: npt.NDArray[np.int64],
    neighbours: list[list[int]],
    feature: int,
) -> Floats:
    """What a feature's odds depend on, a row for each test."""
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


def forced(space: Space, enabled: Bits, feature: int, rows: npt.NDArray[np.intp]) -> Bools:
    """Where, of some tests, a feature could not be otherwise without breaking a constraint."""
    stuck = np.zeros(len(rows), bool)
    for clause in space.clauses:
        if not (clause.on | clause.off) >> feature & 1:
            continue
        on, off = (_places(mask & ~(1 << feature)) for mask in (clause.on, clause.off))
        stuck |= ~(enabled[rows, on].any(axis=1) | ~enabled[rows, off].all(axis=1))
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
    names = np.unique([part_of(origin) for origin in evidence.origins], return_inverse=True)[1]
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
