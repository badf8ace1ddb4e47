"""Families of distributions that `layered` could draw from, in combinations.

A family draws which features are in a test, its *members*, and the weights of these: each way to
draw members goes with each way to draw weights. Where weights use up steps, a feature with a small
weight makes the test shorter (`short`: all of them, by the same factor; so the length of tests is
part of a configuration). `ladder` and `two-levels` were added for the version of November 2026.

These are drawn by numpy, thousands at once. A family that is chosen has to be written as a part of
`layered`, with draws by name; what is judged in `detection.py` are only shipped strategies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bug_families.simulation import Configurations

Matrix = npt.NDArray[np.float64]
Rows = npt.NDArray[np.bool_]

MEMBERS = ("all", "coin", "share", "odds")
WEIGHTS = (
    *("equal", "uniform", "power", "ladder", "groups", "dominant", "two-levels"),
    *("uniform-spent", "log-spent", "short-spent"),
)
FLOOR, LEAST_SPENT = 1 / 32, 1 / 128
"""As in `layered`: a proportion below the first is 0, and no weight that spends steps is below the
second."""


@dataclass(frozen=True)
class Candidate:
    """A way to draw members, and a way to draw weights."""

    members: str
    weights: str

    @property
    def name(self) -> str:
        return f"{self.members}-{self.weights}"

    def draw(self, tests: int, features: int, random: np.random.Generator) -> Configurations:
        """Draw configurations."""
        chosen = members_of(self.members, tests, features, random)
        weights = np.where(chosen, weights_of(self.weights, chosen, random), 0.0)
        spends = self.weights.endswith("-spent")
        if spends:
            weights = np.where(chosen, np.maximum(weights, LEAST_SPENT), 0.0)
        else:
            weights /= weights.max(axis=1, keepdims=True)
            weights[weights < FLOOR] = 0.0
        renormalised = np.full(tests, not spends)
        return Configurations(weights.astype(np.float32), renormalised, [self.name] * tests)


CANDIDATES = tuple(Candidate(members, weights) for members in MEMBERS for weights in WEIGHTS)


def members_of(members: str, tests: int, features: int, random: np.random.Generator) -> Rows:
    """Draw which features are in each test; one of them in place of none.

    ``share`` draws a share uniformly, ``odds`` on the scale of its logarithmic odds: there, two of
    60 features are as likely as 20 to 30.
    """
    if members == "all":
        return np.ones((tests, features), bool)
    share = np.full(tests, 0.5)
    if members == "share":
        share = random.random(tests)
    if members == "odds":
        widest = np.log(max(features, 2))
        share = 1.0 / (1.0 + np.exp(-random.uniform(-widest, widest, tests)))
    draws = random.random((tests, features))
    chosen: Rows = draws < share[:, None]
    empty = np.flatnonzero(~chosen.any(axis=1))
    chosen[empty, draws[empty].argmin(axis=1)] = True
    return chosen


def weights_of(weights: str, chosen: Rows, random: np.random.Generator) -> Matrix:
    """Draw weights for the members of each test."""
    tests, features = chosen.shape
    draws: Matrix = random.random(chosen.shape)
    if weights == "equal":
        return np.ones(chosen.shape)
    if weights.startswith("uniform"):
        return 1.0 - draws
    if weights == "log-spent":
        octaves = 6 * _column(random, tests)
        return _as_matrix(2.0 ** (-octaves * draws))
    if weights == "two-levels":
        low, share = 2.0 ** -(1 + 4 * _column(random, tests)), _column(random, tests)
        return _as_matrix(np.where(draws < share, low, 1.0))
    if weights == "short-spent":
        octaves = 6 * _column(random, tests)
        return np.repeat(_as_matrix(2.0**-octaves), features, axis=1)
    order = np.where(chosen, draws, 2.0)
    if weights == "ladder":
        rungs = order.argsort(axis=1).argsort(axis=1) * (0.2 + 1.3 * _column(random, tests))
        return _as_matrix(np.maximum(2.0**-rungs, FLOOR))
    if weights == "power":
        ranks = order.argsort(axis=1).argsort(axis=1) + 1.0
        return _as_matrix(ranks ** (-3.0 * _column(random, tests)))
    if weights == "dominant":
        low = _as_matrix(2.0 ** -(1 + 4 * _column(random, tests)))
        drawn = np.repeat(low, features, axis=1)
        drawn[np.arange(tests), order.argmin(axis=1)] = 1.0
        return drawn
    assert weights == "groups", weights
    levels = _as_matrix(random.random((tests, 5)).argsort(axis=1)[:, :3] + 1.0)
    counts = np.where(random.random(tests) < 0.75, 2, 3)
    return np.take_along_axis(levels, (draws * counts[:, None]).astype(np.intp), axis=1)


def _column(random: np.random.Generator, tests: int) -> Matrix:
    return random.random((tests, 1))


def _as_matrix(numbers: Any) -> Matrix:
    return np.asarray(numbers, np.float64)
