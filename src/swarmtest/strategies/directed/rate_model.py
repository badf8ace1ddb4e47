"""What configurations yield: hits of each goal and CPU time, learnt together.

A Bayesian linear regression. A candidate is a row of numbers (which features are in, how many, how
thin it is); what is learnt about one says something about those like it, so a few hundred tests
are enough for a hundred features. All goals share one matrix, so a goal more costs next to nothing.
Chances are not linear in features, but near the configurations that are proposed they nearly are,
and only the order of candidates matters here.

Thompson sampling: coefficients are drawn from what is believed of them, and the candidate that
would be best if they were true is taken. What is not known well is tried now and then, what is
known to be worse is not.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_NOISE = 0.15
"""The variance of a test's hits around their mean: of a coin with a bias it is at most 0.25."""
_COST_NOISE, _COST_SPREAD = 0.2, 0.5
"""The variance of the logarithm of CPU times, and the standard deviation of its coefficients."""
_BOLDNESS = 0.3
"""Draws differ from the mean by so many times what is believed; with a hundred coefficients, a
candidate of many features would otherwise be drawn as the best by its mere number of doubts."""
_LONGEST = 20.0
"""CPU times count up to so many times the usual: one test that hangs is no judgement."""
_LEAST = 0.01


class RateModel:
    """Hits per CPU second of candidates, as far as it is known.

    >>> model = RateModel(np.array([0.5, 0.5]), np.zeros((2, 1)), np.zeros(2))
    >>> without, having = [1.0, 0.0], [1.0, 1.0]
    >>> for _ in range(50):
    ...     model.learn(without, [0.0], 0.01)
    ...     model.learn(having, [1.0], 0.01)
    >>> model.take_in()
    >>> model.best(np.array([[without, having]]), np.ones(1), np.random.default_rng(0))
    [1]
    """

    def __init__(self, spread: Floats, hits: Floats, log_cost: Floats) -> None:
        """What is believed at first, by column: standard deviations of the coefficients for hits,
        means for the hits of each goal (a column per goal) and for the logarithm of the CPU time.
        """
        self._precision = np.diag(_NOISE / spread**2)
        self._hits = self._precision @ hits
        self._cost_precision = np.eye(len(spread)) * (_COST_NOISE / _COST_SPREAD**2)
        self._cost = self._cost_precision @ log_cost
        self._usual = 0.0
        self._told: list[tuple[npt.ArrayLike, npt.ArrayLike]] = []
        self._times: list[tuple[npt.ArrayLike, float]] = []
        self._refit()

    def learn(self, row: npt.ArrayLike, hits: npt.ArrayLike, cpu_seconds: float) -> None:
        """What a test hit (a number per goal), and what it took; `take_in` makes use of it.

        A time of 0 is not learnt from.
        """
        self._told.append((row, hits))
        if cpu_seconds > 0:
            self._times.append((row, cpu_seconds))

    def take_in(self) -> None:
        """Make use of what was told."""
        if self._times:
            timed, seconds = zip(*self._times, strict=True)
            rows, times = np.array(timed, float), np.array(seconds)
            self._usual = self._usual or float(np.median(times))
            relative = np.clip(times / self._usual, 1 / _LONGEST, _LONGEST)
            self._cost_precision += rows.T @ rows
            self._cost += rows.T @ np.log(relative)
            self._times.clear()
        if self._told:
            told, hits = zip(*self._told, strict=True)
            rows = np.array(told, float)
            self._precision += rows.T @ rows
            self._hits += rows.T @ np.array(hits, float)
            self._told.clear()
            self._refit()

    def best(self, rows: Floats, weights: Floats, rng: np.random.Generator) -> list[int]:
        """Of each group of candidates (groups by candidates by columns) the number of the best.

        Coefficients are drawn anew for each group. `weights`: what a hit of each goal counts.
        """
        share = weights / len(weights)
        doubt = _BOLDNESS * np.sqrt(_NOISE * float(share @ share))
        noise = rng.standard_normal((len(self._root), len(rows)))
        drawn = (self._mean_hits @ share)[:, None] + doubt * (self._root @ noise)
        hits = np.matmul(rows, drawn.T[:, :, None])[:, :, 0]
        rates = np.maximum(hits, _LEAST) / np.exp(rows @ self._mean_cost)
        found: list[int] = rates.argmax(1).tolist()
        return found

    def _refit(self) -> None:
        covariance: Floats = np.linalg.inv(self._precision).astype(np.float64)
        self._mean_hits: Floats = covariance @ self._hits
        self._mean_cost = np.linalg.solve(self._cost_precision, self._cost)
        self._root: Floats = np.linalg.cholesky((covariance + covariance.T) / 2).astype(np.float64)
