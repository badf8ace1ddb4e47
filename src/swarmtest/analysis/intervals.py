"""Intervals, exact tail probabilities, and the correction for many comparisons.

Roles are read from Wilson intervals, as in the papers. A table that is searched for discoveries
needs p-values far out in the tails. There the normal approximation behind Wilson's interval is
wrong by orders of magnitude if the base rate is not near a half (two of four tests at a base rate
of 5%: 0.00004 instead of 0.028). So these p-values are exact: a binomial tail is an incomplete beta
function, which also accepts the fractional numbers that result from tests that are not independent
of each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.core.errors import UserError

Floats = npt.NDArray[np.float64]

_TINY = 1e-300
_TERMS = 300
"""Enough terms of the continued fraction for 10^5 tests; it ends earlier if nothing changes."""
_MANY = 2000
"""Degrees of freedom from which four terms around the normal quantile have ten exact digits."""


@lru_cache(maxsize=64)
def normal_quantile(confidence: float) -> float:
    """Return how many standard deviations a two-sided interval reaches.

    >>> round(normal_quantile(0.95), 4)
    1.96
    """
    if not 0.01 <= confidence <= 0.999999:
        raise UserError(f"a confidence is from 0.01 to 0.999999, like 0.95, not {confidence}")
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def wilson_interval(hits: Any, n: Any, confidence: float = 0.95) -> tuple[Any, Any]:
    """Return Wilson's score interval for a share, of numbers or arrays; (0, 1) without tests.

    >>> low, high = wilson_interval(4, 4)
    >>> round(low, 3), high
    (0.51, 1.0)
    """
    z2 = normal_quantile(confidence) ** 2
    n = np.asarray(n, float)
    hits = np.asarray(hits, float)
    some = np.maximum(n, _TINY)
    middle = (hits + z2 / 2) / (n + z2)
    half = np.sqrt(z2 * (hits * np.maximum(n - hits, 0) / some + z2 / 4)) / (n + z2)
    low = np.where(hits <= 0, 0.0, np.maximum(middle - half, 0.0))
    high = np.where(hits >= n, 1.0, np.minimum(middle + half, 1.0))
    return (float(low), float(high)) if low.ndim == 0 else (low, high)


def hits_needed(base: float, confidence: float = 0.95) -> int:
    """Return the number of hits after which any feature with this base rate could show either role.

    It is the first number of hits at which "in all of them" gives an interval above the base rate,
    and "in none of them" one below. At 50% and 95% that is the paper's four (section 3.2.4).

    >>> hits_needed(0.5), hits_needed(0.9)
    (4, 35)
    """
    if not 0 < base < 1:
        raise UserError(f"a feature that is always in, or never, has no role (base rate {base})")
    odds = max(base / (1 - base), (1 - base) / base)
    return math.floor(normal_quantile(confidence) ** 2 * odds) + 1


def binomial_p_value(hits: Any, n: Any, base: Any) -> Floats:
    """Return two-sided exact p-values of `hits` among `n` if each came with probability `base`.

    That is twice the smaller tail, at most 1. `n` and `hits` need not be whole.

    >>> round(float(binomial_p_value(4, 4, 0.5)), 3)
    0.125
    """
    hits, n, base = np.broadcast_arrays(*(np.asarray(v, float) for v in (hits, n, base)))
    at_least = np.where(hits > 0, beta_cdf(base, np.maximum(hits, _TINY), n - hits + 1), 1.0)
    at_most = np.where(hits < n, 1.0 - beta_cdf(base, hits + 1, np.maximum(n - hits, _TINY)), 1.0)
    # Where the tail is tiny, 1 - cdf has lost all digits, but the mirrored function has not.
    at_most = np.where(hits < n, np.where(at_most < 1e-3, _mirrored(hits, n, base), at_most), 1.0)
    p: Floats = np.minimum(1.0, 2 * np.minimum(at_least, at_most))
    return p


def _mirrored(hits: Floats, n: Floats, base: Floats) -> Floats:
    return beta_cdf(1 - base, np.maximum(n - hits, _TINY), hits + 1)


def beta_cdf(x: Any, a: Any, b: Any) -> Floats:
    """Return the regularised incomplete beta function I_x(a, b), for arrays.

    >>> round(float(beta_cdf(0.5, 2, 3)), 4)
    0.6875
    """
    x, a, b = np.broadcast_arrays(*(np.asarray(v, float) for v in (x, a, b)))
    # The continued fraction converges fast on only one side of the mean; the other is 1 minus it.
    flip = x > (a + 1) / (a + b + 2)
    x, a, b = np.where(flip, 1 - x, x), np.where(flip, b, a), np.where(flip, a, b)
    with np.errstate(divide="ignore"):
        log_front = a * np.log(x) + b * np.log1p(-x) - _log_beta(a, b) - np.log(a)
    part = np.exp(log_front) * _continued_fraction(x, a, b)
    part = np.where(x <= 0, 0.0, part)
    cdf: Floats = np.where(flip, 1.0 - part, part)
    return cdf


def _continued_fraction(x: Floats, a: Floats, b: Floats) -> Floats:
    """Evaluate the continued fraction of I_x(a, b) by Lentz's method, all cells at once."""
    c = np.ones_like(x)
    d = _away_from_zero(1 - (a + b) * x / (a + 1))
    d = 1 / d
    value = d.copy()
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            value *= c * d
        if np.all(np.abs(c * d - 1) < 1e-12):
            break
    return value


def _away_from_zero(values: Floats) -> Floats:
    return np.where(np.abs(values) < _TINY, _TINY, values)


_log_gamma = np.frompyfunc(math.lgamma, 1, 1)


def _log_beta(a: Floats, b: Floats) -> Floats:
    return np.asarray(_log_gamma(a) + _log_gamma(b) - _log_gamma(a + b), float)


def normal_p_value(z: Any) -> Floats:
    """Return two-sided p-values of standard normal scores.

    >>> round(float(normal_p_value(1.96)), 3)
    0.05
    """
    return np.asarray(np.frompyfunc(math.erfc, 1, 1)(np.abs(z) / math.sqrt(2)), float)


def student_p_value(t: Any, freedom: Any) -> Floats:
    """Return two-sided p-values of Student's t.

    >>> round(float(student_p_value(2.776, 4)), 3)
    0.05
    """
    t, freedom = np.asarray(t, float), np.asarray(freedom, float)
    return beta_cdf(freedom / (freedom + t * t), freedom / 2, 0.5)


@lru_cache(maxsize=4096)
def student_quantile(confidence: float, freedom: float) -> float:
    """Return how many standard errors a two-sided interval of Student's t reaches.

    >>> round(student_quantile(0.95, 4), 3)
    2.776
    """
    return float(student_quantiles(confidence, freedom)[()])


def student_quantiles(confidence: float, freedom: Any) -> Floats:
    """Return `student_quantile` for an array of degrees of freedom.

    >>> student_quantiles(0.95, [4, 1e6]).round(3).tolist()
    [2.776, 1.96]
    """
    freedom = np.asarray(freedom, float)
    z = normal_quantile(confidence)
    reach = _expanded_quantile(z, freedom)
    few = freedom < _MANY
    if few.any():
        reach = np.where(few, _exact_quantile(confidence, z, np.where(few, freedom, 1.0)), reach)
    return np.asarray(reach)


def _expanded_quantile(z: float, freedom: Floats) -> Floats:
    """Return the quantile by its expansion around the normal one (Cornish and Fisher)."""
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    expansion = np.full_like(freedom, z)
    for power, term in enumerate(terms, 1):
        expansion += term / freedom**power
    return expansion


def _exact_quantile(confidence: float, z: float, freedom: Floats) -> Floats:
    """Return the quantile by Newton's method, on logarithms.

    The logarithm of the tail is concave in the logarithm of t, and the normal quantile is below the
    solution. So no step but the first goes beyond it.
    """
    log_density = -_log_beta(freedom / 2, np.full_like(freedom, 0.5)) - np.log(freedom) / 2
    log_reach = np.full_like(freedom, math.log(z))
    for _ in range(_TERMS):
        t = np.exp(log_reach)
        tail = student_p_value(t, freedom)
        density = 2 * np.exp(log_density - (freedom + 1) / 2 * np.log1p(t * t / freedom))
        step = np.log(tail / (1 - confidence)) * tail / (density * t)
        log_reach = log_reach + step
        if np.all(np.abs(step) < 1e-12):
            break
    return np.exp(log_reach)


def benjamini_hochberg(p_values: npt.ArrayLike, comparisons: int | None = None) -> Floats:
    """Return each p-value adjusted for many comparisons.

    If those below q are listed, a share of at most q of them is expected to be false. `comparisons`
    is how many comparisons were made, if the p-values that are not given are known to be larger
    than all that are.

    >>> benjamini_hochberg([0.01, 0.04, 0.03, 0.5]).round(3).tolist()
    [0.04, 0.053, 0.053, 0.5]
    """
    p = np.asarray(p_values, float).ravel()
    return adjusted_for(p, len(p) if comparisons is None else comparisons, np.ones(len(p), int))


def adjusted_for(p: Floats, comparisons: int, times: npt.NDArray[np.integer[Any]]) -> Floats:
    """Return Benjamini and Hochberg's correction of p-values that each occur `times` times.

    >>> adjusted_for(np.array([0.01, 0.03]), 4, np.array([1, 2])).round(3).tolist()
    [0.04, 0.04]
    """
    order = np.argsort(p)
    # In place, because there may be millions.
    values = p[order]
    values *= comparisons
    values /= np.cumsum(times[order], dtype=np.int64)
    from_end = values[::-1]
    np.minimum.accumulate(from_end, out=from_end)
    np.minimum(values, 1.0, out=values)
    adjusted = np.empty(len(p))
    adjusted[order] = values
    return adjusted


@dataclass(frozen=True)
class Estimate:
    """A number with its interval.

    >>> Estimate(2.5).low is None
    True
    """

    value: float
    low: float | None = None
    """None if there is no interval, because a single run has no spread."""
    high: float | None = None
