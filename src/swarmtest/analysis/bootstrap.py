"""Intervals for any statistic of one or two samples, by drawing from them again and again.

Bias-corrected and accelerated (BCa), and widened for small samples (Hesterberg 2015), whose
resamples vary too little: without that, a "95%" interval of five values holds the truth in about
90 cases of 100. The seed is fixed: the same data give the same interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist

import numpy as np

from swarmtest.analysis.intervals import Floats, student_quantile

RESAMPLES = 5000
_BATCH = 500
_NORMAL = NormalDist()


def bootstrap_interval(
    *samples: Sequence[float],
    statistic: Callable[..., Floats],
    confidence: float = 0.95,
    seed: int = 0,
) -> tuple[float, float]:
    """A confidence interval for a statistic of independent samples.

    `statistic` takes an array per sample, whose last axis are the values, and reduces that axis:
    see `mean` and `difference_of_means`. A sample of one value says nothing about its spread, and
    is refused.

    >>> low, high = bootstrap_interval([1, 2, 3, 4, 5], statistic=mean)
    >>> round(low, 1), round(high, 1)
    (1.2, 4.8)
    """
    arrays = [np.asarray(sample, np.float64) for sample in samples]
    if not arrays or min(len(array) for array in arrays) < 2:
        raise ValueError("an interval needs at least two values in each sample")
    seen = float(statistic(*arrays))
    drawn = _resampled(arrays, statistic, seed)
    # Without rounding, a statistic that equals the observed one may differ in its last bit.
    drawn, seen = np.round(drawn, 12), round(seen, 12)
    below = ((drawn < seen).mean() + (drawn <= seen).mean()) / 2
    bias = _NORMAL.inv_cdf(float(np.clip(below, 1 / len(drawn), 1 - 1 / len(drawn))))
    speed = _acceleration(arrays, statistic)
    reach = _reach(min(map(len, arrays)), confidence)
    low, high = (float(np.quantile(drawn, _tail(z, bias, speed))) for z in (-reach, reach))
    return low, high


def mean(values: Floats) -> Floats:
    """The mean of the last axis.

    >>> float(mean(np.array([1.0, 2.0])))
    1.5
    """
    return np.asarray(values.mean(axis=-1))


def difference_of_means(a: Floats, b: Floats) -> Floats:
    """How much the mean of `a` is above that of `b`.

    >>> float(difference_of_means(np.array([3.0]), np.array([1.0])))
    2.0
    """
    return np.asarray(a.mean(axis=-1) - b.mean(axis=-1))


def _resampled(arrays: list[Floats], statistic: Callable[..., Floats], seed: int) -> Floats:
    random = np.random.default_rng(seed)
    drawn = [
        statistic(*(a[random.integers(0, len(a), (_BATCH, len(a)))] for a in arrays))
        for _ in range(RESAMPLES // _BATCH)
    ]
    return np.concatenate(drawn)


def _acceleration(arrays: list[Floats], statistic: Callable[..., Floats]) -> float:
    """How the spread of the statistic changes with its value: from leaving out one value each."""
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
    """Standard deviations to either side: those of resamples, which are too narrow by n - 1."""
    return math.sqrt(size / (size - 1)) * student_quantile(confidence, size - 1)


def _tail(z: float, bias: float, speed: float) -> float:
    """The quantile of the resamples that stands for a quantile of the normal distribution."""
    shifted = bias + z
    return _NORMAL.cdf(bias + shifted / max(1 - speed * shifted, 1e-9))
