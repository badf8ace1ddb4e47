"""Fixed mixtures of strategies: which shares are best on some bugs, and what no shares can reach.

A mixture finds a bug as often as its parts do, in the mean by their shares. The ratio of a bug is
what the best single strategy finds over what the mixture finds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]

MEAN, BETWEEN, WORST = 0.0, 1.0, 12.0
"""Shares have the least mean of a power of the ratios; these are for the geometric mean (the limit
for small powers), the arithmetic one, and nearly the worst ratio."""
_RATE = 0.05
"""How fast the shares follow what they gain."""


def best_shares(
    rates: Matrix,
    best: Matrix,
    power: float,
    least: Matrix | None = None,
    weights: Matrix | None = None,
    rounds: int = 3000,
) -> Matrix:
    """Return the shares, of at least `least` each, with the least mean of a power of the ratios.

    `rates` has a row for each bug and a column for each part of the mixture, `best` what the best
    single strategy finds, `weights` how much each bug counts. The mean is a convex function of the
    shares; each round multiplies them by what they gain.

    >>> best_shares(np.array([[0.5, 0.0], [0.0, 0.5]]), np.array([0.5, 0.5]), WORST).round(2)
    array([0.5, 0.5])
    """
    least = np.zeros(rates.shape[1]) if least is None else least
    each = np.ones(len(rates)) if weights is None else weights
    free = 1.0 - least.sum()
    above = np.full(rates.shape[1], free / rates.shape[1])
    for _ in range(rounds):
        mixed = rates @ (least + above) + 1e-9
        pull = each * np.maximum(best / mixed, 0.3) ** power
        above = above * ((pull / pull.sum() / mixed) @ rates) ** _RATE
        above *= free / above.sum()
    shares: Matrix = least + above
    return shares


def medians(rates: Matrix) -> Matrix:
    """Return the median number of tests until a bug is found, at least 1."""
    tests: Matrix = np.log(0.5) / np.log1p(-np.clip(rates, 1e-5, 0.5))
    return tests


def geometric_mean(ratios: Matrix | Sequence[float]) -> float:
    """Return the geometric mean.

    >>> geometric_mean([1.0, 4.0])
    2.0
    """
    return float(np.exp(np.mean(np.log(ratios))))


def weights_by_kind(kinds: Sequence[str]) -> Matrix:
    """Return the weight of each bug, so that each kind counts alike.

    >>> weights_by_kind(["run", "run", "depth"])
    array([0.5, 0.5, 1. ])
    """
    return np.array([1 / kinds.count(kind) for kind in kinds])
