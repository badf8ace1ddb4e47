"""Compare groups of numbers without assuming a distribution: rank tests, and bootstrap intervals.

- Two independent groups: `mann_whitney` says whether chance explains the difference, and
  `vargha_delaney` how large the effect is.
- Pairs of numbers: `wilcoxon_signed_rank`, and `paired_means` (Student's test, as in the paper).
- Any statistic of one or more samples: `bootstrap_interval`. It is bias-corrected and accelerated
  (BCa), and widened for small samples (Hesterberg 2015), whose resamples vary too little: without
  that, a "95%" interval of five values contains the truth in about 90 cases of 100. The seed is
  fixed, so the same data give the same interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.intervals import (
    Floats,
    normal_p_value,
    normal_quantile,
    student_p_value,
    student_quantile,
)

RESAMPLES = 5000
_BATCH = 500
_EXACT_VALUES = 60
"""Values in both samples together for which every split is counted: some milliseconds of work."""
_EXACT_PAIRS = 25
"""Pairs for which every choice of signs is counted."""
_DIGITS = 12
"""Differences that agree in as many digits are ties: the rest is rounding."""
_EFFECT_WORDS = ((0.56, "negligible"), (0.64, "small"), (0.71, "medium"))
_NORMAL = NormalDist()


def mann_whitney(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the two-sided p-value of the Mann-Whitney U test.

    It is exact, with or without ties, for up to 60 values in all: the share of all ways to split
    the pooled ranks that are at least as uneven. Beyond that it is the normal approximation,
    corrected for ties and continuity.

    >>> mann_whitney([1, 2, 3], [4, 5, 6])
    0.1
    """
    n, m = len(a), len(b)
    if not n or not m:
        raise ValueError("both samples need at least one value")
    # Midranks are multiples of 1/2; doubled, they are whole numbers, which can be counted exactly.
    doubled = np.rint(2 * midranks(np.concatenate([a, b]))).astype(np.int64)
    if n + m <= _EXACT_VALUES:
        return _exact_rank_sum_p(doubled, n)
    u = doubled[:n].sum() / 2 - n * (n + 1) / 2
    return _normal_rank_sum_p(abs(u - n * m / 2), n, m, np.unique(doubled, return_counts=True)[1])


def smallest_p(n: int, m: int) -> float:
    """Return the smallest two-sided p-value for samples of these sizes: complete separation.

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
        """Return the conventional word: small from 0.56, medium from 0.64, large from 0.71."""
        distance = 0.5 + abs(self.a12 - 0.5)
        return next((word for bound, word in _EFFECT_WORDS if distance < bound), "large")


def vargha_delaney(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> EffectSize:
    """Return Vargha and Delaney's A12: the chance that a value of `a` is above one of `b`.

    Ties count as half. The interval is Newcombe's score interval (method 5): unlike a bootstrap
    interval, it does not shrink to a point if the samples do not overlap.

    >>> vargha_delaney([1, 2, 3], [1, 2, 3]).a12
    0.5
    """
    n, m = len(a), len(b)
    ranks = midranks(np.concatenate([a, b]))
    a12 = float((ranks[:n].sum() - n * (n + 1) / 2) / (n * m))
    z = normal_quantile(confidence)
    return EffectSize(a12, _score_limit(a12, 0.0, n, m, z), _score_limit(a12, 1.0, n, m, z))


def midranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return ranks from 1; equal values share the mean of their ranks.

    >>> midranks(np.array([5.0, 7.0, 7.0])).tolist()
    [1.0, 2.5, 2.5]
    """
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared: npt.NDArray[np.float64] = (last - (counts - 1) / 2)[inverse]
    return shared


def _exact_rank_sum_p(doubled: npt.NDArray[np.int64], n: int) -> float:
    """Return twice the smaller tail of the first `n` values' rank sum, over all choices of `n`."""
    ways = np.zeros((n + 1, int(doubled.sum()) + 1))
    ways[0, 0] = 1.0
    for rank in doubled.tolist():
        ways[1:, rank:] += ways[:-1, : ways.shape[1] - rank].copy()
    sums, seen = ways[n], int(doubled[:n].sum())
    tail = min(sums[: seen + 1].sum(), sums[seen:].sum())
    return min(1.0, float(2 * tail / sums.sum()))


def _normal_rank_sum_p(distance: float, n: int, m: int, ties: npt.NDArray[np.int64]) -> float:
    size = n + m
    lost = float((ties.astype(float) ** 3 - ties).sum()) / (size * (size - 1))
    deviation = math.sqrt(n * m / 12 * (size + 1 - lost))
    if not deviation:
        return 1.0
    return float(normal_p_value(max(0.0, distance - 0.5) / deviation))


def _score_limit(a12: float, end: float, n: int, m: int, z: float) -> float:
    """Return the A12 nearest to `end` that the observed one does not contradict, by bisection."""
    inside, outside = a12, end
    for _ in range(60):
        middle = (inside + outside) / 2
        if (a12 - middle) ** 2 <= z * z * _a12_variance(middle, n, m):
            inside = middle
        else:
            outside = middle
    return inside


def _a12_variance(a12: float, n: int, m: int) -> float:
    spread = (n + m) / 2 - 1
    pairs = 1 + spread * (1 - a12) / (2 - a12) + spread * a12 / (1 + a12)
    return a12 * (1 - a12) * pairs / (n * m)


# Pairs of numbers.


def wilcoxon_signed_rank(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test.

    Pairs without a difference are left out. The p-value is exact, with or without ties, for up to
    25 pairs; beyond that it is the normal approximation, corrected for ties and continuity.

    >>> wilcoxon_signed_rank([2, 3, 4, 5, 6], [1, 1, 1, 1, 1])
    0.0625
    """
    differences = _differences(first, second)
    differences = differences[differences != 0]
    if not len(differences):
        return 1.0
    ranks = midranks(np.abs(differences))
    above = float(ranks[differences > 0].sum())
    if len(differences) <= _EXACT_PAIRS:
        return _exact_signed_rank_p(np.rint(2 * ranks).astype(np.int64), round(2 * above))
    return _normal_signed_rank_p(ranks, above)


@dataclass(frozen=True)
class PairedMeans:
    """The result of Student's test for paired numbers, as in table 8 of the paper."""

    first: float
    second: float
    low: float
    """The interval is that of how much the first mean is above the second."""
    high: float
    p: float


def paired_means(
    first: Sequence[float], second: Sequence[float], confidence: float = 0.95
) -> PairedMeans:
    """Return the means of paired numbers and the interval of their difference.

    >>> found = paired_means([0.5, 0.6, 0.7], [0.1, 0.3, 0.2])
    >>> round(found.low, 2), round(found.high, 2), round(found.p, 3)
    (0.15, 0.65, 0.02)
    """
    differences = _differences(first, second)
    n = len(differences)
    if n < 2:
        raise ValueError("an interval needs at least two pairs")
    difference = float(differences.mean())
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    reach = student_quantile(confidence, n - 1) * error
    p = float(student_p_value(difference / error, n - 1)) if error else float(difference == 0)
    return PairedMeans(
        float(np.mean(first)),
        float(np.mean(second)),
        difference - reach,
        difference + reach,
        p,
    )


def _differences(first: Sequence[float], second: Sequence[float]) -> npt.NDArray[np.float64]:
    if len(first) != len(second):
        raise ValueError(f"pairs: {len(first)} numbers do not match {len(second)}")
    a, b = (np.asarray(numbers, np.float64) for numbers in (first, second))
    return np.asarray(np.round(a - b, _DIGITS), np.float64)


def _exact_signed_rank_p(doubled: npt.NDArray[np.int64], above: int) -> float:
    """Return twice the smaller tail of the sum of the positive ranks, over all choices of signs."""
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1.0
    for rank in doubled.tolist():
        ways[rank:] += ways[: len(ways) - rank].copy()
    tail = min(ways[: above + 1].sum(), ways[above:].sum())
    return min(1.0, float(2 * tail / ways.sum()))


def _normal_signed_rank_p(ranks: npt.NDArray[np.float64], above: float) -> float:
    deviation = math.sqrt(float((ranks**2).sum()) / 4)
    distance = abs(above - float(ranks.sum()) / 2)
    return float(normal_p_value(max(0.0, distance - 0.5) / deviation))


# Bootstrap intervals.


def bootstrap_interval(
    *samples: Sequence[float],
    statistic: Callable[..., Floats],
    confidence: float = 0.95,
    seed: int = 0,
) -> tuple[float, float]:
    """Return a confidence interval for a statistic of independent samples.

    `statistic` takes an array per sample, whose last axis has the values, and reduces that axis:
    see `mean` and `difference_of_means`. A sample of one value says nothing about its spread, so it
    is refused.

    >>> low, high = bootstrap_interval([1, 2, 3, 4, 5], statistic=mean)
    >>> round(low, 1), round(high, 1)
    (1.2, 4.8)
    """
    arrays = [np.asarray(sample, np.float64) for sample in samples]
    if not arrays or min(len(array) for array in arrays) < 2:
        raise ValueError("an interval needs at least two values in each sample")
    seen = float(statistic(*arrays))
    drawn = _statistics_of_resamples(arrays, statistic, seed)
    # Without rounding, a statistic equal to the observed one may differ from it in the last bit.
    drawn, seen = np.round(drawn, 12), round(seen, 12)
    below = ((drawn < seen).mean() + (drawn <= seen).mean()) / 2
    bias = _NORMAL.inv_cdf(float(np.clip(below, 1 / len(drawn), 1 - 1 / len(drawn))))
    speed = _acceleration(arrays, statistic)
    reach = _reach(min(map(len, arrays)), confidence)
    low, high = (float(np.quantile(drawn, _bca_quantile(z, bias, speed))) for z in (-reach, reach))
    return low, high


def mean(values: Floats) -> Floats:
    """Return the mean of the last axis.

    >>> float(mean(np.array([1.0, 2.0])))
    1.5
    """
    return np.asarray(values.mean(axis=-1))


def difference_of_means(a: Floats, b: Floats) -> Floats:
    """Return how much the mean of `a` is above that of `b`.

    >>> float(difference_of_means(np.array([3.0]), np.array([1.0])))
    2.0
    """
    return np.asarray(a.mean(axis=-1) - b.mean(axis=-1))


def _statistics_of_resamples(
    arrays: list[Floats], statistic: Callable[..., Floats], seed: int
) -> Floats:
    random = np.random.default_rng(seed)
    drawn = [
        statistic(*(a[random.integers(0, len(a), (_BATCH, len(a)))] for a in arrays))
        for _ in range(RESAMPLES // _BATCH)
    ]
    return np.concatenate(drawn)


def _acceleration(arrays: list[Floats], statistic: Callable[..., Floats]) -> float:
    """Return how the spread of the statistic changes with its value.

    It is estimated by leaving out each value once.
    """
    cubes = squares = 0.0
    for at, array in enumerate(arrays):
        rest = np.stack([np.delete(array, i) for i in range(len(array))])
        others = [np.broadcast_to(a, (len(array), len(a))) for a in arrays]
        left = statistic(*others[:at], rest, *others[at + 1 :])
        influence = (len(array) - 1) * (left.mean() - left) / len(array)
        cubes += float((influence**3).sum())
        squares += float((influence**2).sum())
    return cubes / (6 * squares**1.5) if squares > 1e-24 else 0.0


def _reach(size: int, confidence: float) -> float:
    """Return how many standard deviations the interval reaches to either side.

    Those of resamples are too small by a factor of sqrt((n - 1) / n).
    """
    return math.sqrt(size / (size - 1)) * student_quantile(confidence, size - 1)


def _bca_quantile(z: float, bias: float, speed: float) -> float:
    """Return the quantile of the resamples that corresponds to a normal quantile."""
    shifted = bias + z
    return _NORMAL.cdf(bias + shifted / max(1 - speed * shifted, 1e-9))
