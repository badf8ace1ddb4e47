"""Many targets' hitting ratios in one line: the columns of the paper's tables 3 to 6."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from swarmtest.analysis.signed_ranks import wilcoxon_signed_rank


@dataclass(frozen=True)
class RatioSummary:
    """How the ratios of many targets are spread; what has no value is not a number."""

    improved: float
    """Share of the targets whose ratio is above 1."""
    count: int
    """Targets that either side hit."""
    unbounded: int
    """Of these, targets that only the first side hit: improved, but in no mean or quartile."""
    neither: int
    """Targets that no side hit; they count nowhere."""
    mean: float
    deviation: float
    least: float
    lower_quartile: float
    median: float
    upper_quartile: float
    greatest: float
    p: float
    """Of Wilcoxon's signed-rank test over the paired numbers, two-sided."""


def summarise(first: Sequence[float], second: Sequence[float]) -> RatioSummary:
    """The ratios of paired numbers: hitting fractions, or hits per CPU second, by target.

    >>> found = summarise([0.4, 0.6, 0.1, 0.2], [0.1, 0.2, 0.1, 0.0])
    >>> found.improved, found.count, found.unbounded, round(found.mean, 2), found.median
    (0.75, 4, 1, 2.67, 3.0)
    """
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a or b]
    ratios = np.array([a / b for a, b in pairs if b])
    nan = math.nan
    at = [0, 0.25, 0.5, 0.75, 1]
    least, lower, median, upper, greatest = (
        np.quantile(ratios, at).round(12).tolist() if len(ratios) else [nan] * 5
    )
    return RatioSummary(
        sum(a > b for a, b in pairs) / len(pairs) if pairs else nan,
        len(pairs),
        len(pairs) - len(ratios),
        len(first) - len(pairs),
        float(ratios.mean()) if len(ratios) else nan,
        float(ratios.std(ddof=1).round(12)) if len(ratios) > 1 else nan,
        least,
        lower,
        median,
        upper,
        greatest,
        wilcoxon_signed_rank([a for a, _ in pairs], [b for _, b in pairs]) if pairs else nan,
    )
