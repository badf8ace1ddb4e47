"""Do the numbers of pairs differ? Wilcoxon's signed-rank test, and Student's for paired numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.intervals import normal_p_value, student_p_value, student_quantile
from swarmtest.analysis.rank_tests import midranks

_EXACT_UP_TO = 25
"""Pairs for which every choice of signs is counted."""
_DIGITS = 12
"""Differences that agree in as many digits are ties: the rest is rounding."""


def wilcoxon_signed_rank(first: Sequence[float], second: Sequence[float]) -> float:
    """The two-sided p-value of Wilcoxon's signed-rank test; pairs without difference are left out.

    Exact, ties or not, up to 25 pairs; beyond that the normal approximation, corrected for ties and
    continuity.

    >>> wilcoxon_signed_rank([2, 3, 4, 5, 6], [1, 1, 1, 1, 1])
    0.0625
    """
    differences = _differences(first, second)
    differences = differences[differences != 0]
    if not len(differences):
        return 1.0
    ranks = midranks(np.abs(differences))
    above = float(ranks[differences > 0].sum())
    if len(differences) <= _EXACT_UP_TO:
        return _exact_p(np.rint(2 * ranks).astype(np.int64), round(2 * above))
    return _normal_p(ranks, above)


@dataclass(frozen=True)
class PairedMeans:
    """Student's test for paired numbers, as in table 8 of the paper."""

    first: float
    second: float
    low: float
    """Of the interval for how much the mean of the first is above that of the second."""
    high: float
    p: float


def paired_means(
    first: Sequence[float], second: Sequence[float], confidence: float = 0.95
) -> PairedMeans:
    """The means of paired numbers and the interval of their difference.

    >>> found = paired_means([0.5, 0.6, 0.7], [0.1, 0.3, 0.2])
    >>> round(found.low, 2), round(found.high, 2), round(found.p, 3)
    (0.15, 0.65, 0.02)
    """
    differences = _differences(first, second)
    n = len(differences)
    if n < 2:
        raise ValueError("an interval needs at least two pairs")
    middle = float(differences.mean())
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    reach = student_quantile(confidence, n - 1) * error
    p = float(student_p_value(middle / error, n - 1)) if error else float(middle == 0)
    return PairedMeans(
        float(np.mean(first)), float(np.mean(second)), middle - reach, middle + reach, p
    )


def _differences(first: Sequence[float], second: Sequence[float]) -> npt.NDArray[np.float64]:
    if len(first) != len(second):
        raise ValueError(f"pairs: {len(first)} numbers do not match {len(second)}")
    a, b = (np.asarray(numbers, np.float64) for numbers in (first, second))
    return np.asarray(np.round(a - b, _DIGITS), np.float64)


def _exact_p(doubled: npt.NDArray[np.int64], above: int) -> float:
    """Twice the smaller tail of the positive ranks' sum, over all choices of signs."""
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1.0
    for rank in doubled.tolist():
        ways[rank:] += ways[: len(ways) - rank].copy()
    tail = min(ways[: above + 1].sum(), ways[above:].sum())
    return min(1.0, float(2 * tail / ways.sum()))


def _normal_p(ranks: npt.NDArray[np.float64], above: float) -> float:
    deviation = math.sqrt(float((ranks**2).sum()) / 4)
    distance = abs(above - float(ranks.sum()) / 2)
    return float(normal_p_value(max(0.0, distance - 0.5) / deviation))
