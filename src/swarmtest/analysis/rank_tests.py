"""Are the numbers of one group larger than those of another? By ranks, so that no shape is assumed.

`mann_whitney` says whether chance would do; `vargha_delaney` says how large the effect is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.intervals import normal_p_value, normal_quantile

_EXACT_UP_TO = 60
"""Values in both samples together for which every split is counted: some milliseconds of work."""

_WORDS = ((0.56, "negligible"), (0.64, "small"), (0.71, "medium"))


def mann_whitney(a: Sequence[float], b: Sequence[float]) -> float:
    """The two-sided p-value of the Mann-Whitney U test.

    Exact, ties or not, up to 60 values in all: the share of all ways to split the pooled ranks
    that are at least as uneven. Beyond that the normal approximation, corrected for ties and
    continuity.

    >>> mann_whitney([1, 2, 3], [4, 5, 6])
    0.1
    """
    n, m = len(a), len(b)
    if not n or not m:
        raise ValueError("both samples need at least one value")
    doubled = np.rint(2 * midranks(np.concatenate([a, b]))).astype(np.int64)
    if n + m <= _EXACT_UP_TO:
        return _exact_p(doubled, n)
    u = doubled[:n].sum() / 2 - n * (n + 1) / 2
    return _normal_p(abs(u - n * m / 2), n, m, np.unique(doubled, return_counts=True)[1])


def smallest_p(n: int, m: int) -> float:
    """The smallest two-sided p that samples of these sizes can give: complete separation.

    >>> smallest_p(3, 3)
    0.1
    """
    return min(1.0, 2 / math.comb(n + m, n))


@dataclass(frozen=True)
class EffectSize:
    """How often a value of one group is above one of the other: 0.5 is no difference.

    >>> vargha_delaney([4, 5, 6], [1, 2, 3]).word
    'large'
    """

    a12: float
    low: float
    high: float

    @property
    def word(self) -> str:
        """The conventional word: from 0.56 small, from 0.64 medium, from 0.71 large."""
        distance = 0.5 + abs(self.a12 - 0.5)
        return next((word for bound, word in _WORDS if distance < bound), "large")


def vargha_delaney(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> EffectSize:
    """Vargha and Delaney's A12: the chance that a value of `a` is above one of `b`, ties as half.

    The interval is Newcombe's score interval (method 5): unlike a bootstrap it does not shrink to a
    point when the samples do not overlap.

    >>> vargha_delaney([1, 2, 3], [1, 2, 3]).a12
    0.5
    """
    n, m = len(a), len(b)
    ranks = midranks(np.concatenate([a, b]))
    a12 = float((ranks[:n].sum() - n * (n + 1) / 2) / (n * m))
    z = normal_quantile(confidence)
    return EffectSize(a12, _score_limit(a12, 0.0, n, m, z), _score_limit(a12, 1.0, n, m, z))


def midranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of theirs.

    >>> midranks(np.array([5.0, 7.0, 7.0])).tolist()
    [1.0, 2.5, 2.5]
    """
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared: npt.NDArray[np.float64] = (last - (counts - 1) / 2)[inverse]
    return shared


def _exact_p(doubled: npt.NDArray[np.int64], n: int) -> float:
    """Twice the smaller tail of the rank sum of the first `n`, over all ways to choose `n`."""
    ways = np.zeros((n + 1, int(doubled.sum()) + 1))
    ways[0, 0] = 1.0
    for rank in doubled.tolist():
        ways[1:, rank:] += ways[:-1, : ways.shape[1] - rank].copy()
    sums, seen = ways[n], int(doubled[:n].sum())
    tail = min(sums[: seen + 1].sum(), sums[seen:].sum())
    return min(1.0, float(2 * tail / sums.sum()))


def _normal_p(distance: float, n: int, m: int, ties: npt.NDArray[np.int64]) -> float:
    size = n + m
    lost = float((ties.astype(float) ** 3 - ties).sum()) / (size * (size - 1))
    deviation = math.sqrt(n * m / 12 * (size + 1 - lost))
    if not deviation:
        return 1.0
    return float(normal_p_value(max(0.0, distance - 0.5) / deviation))


def _score_limit(a12: float, end: float, n: int, m: int, z: float) -> float:
    """The A12 nearest to `end` that the observed one does not contradict, by bisection."""
    inside, outside = a12, end
    for _ in range(60):
        middle = (inside + outside) / 2
        if (a12 - middle) ** 2 <= z * z * _variance(middle, n, m):
            inside = middle
        else:
            outside = middle
    return inside


def _variance(a12: float, n: int, m: int) -> float:
    spread = (n + m) / 2 - 1
    pairs = 1 + spread * (1 - a12) / (2 - a12) + spread * a12 / (1 + a12)
    return a12 * (1 - a12) * pairs / (n * m)
