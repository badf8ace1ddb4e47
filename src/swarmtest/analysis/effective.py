"""How many independent tests a group of tests is worth, if some share their configuration."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.intervals import Floats


def effective_tests(clusters: npt.NDArray[np.int32], weight: Floats) -> float:
    """Kish's effective sample size: (sum of weights)^2 / sum of (weights of a cluster)^2.

    A test whose cluster is -1 shares its configuration with no other.

    >>> effective_tests(np.array([0, 0, 1, 1, -1, -1]), np.ones(6))
    3.6
    """
    if not len(weight):
        return 0.0
    shared = np.bincount(clusters[clusters >= 0], weight[clusters >= 0], minlength=1)
    alone = weight[clusters < 0]
    return float(weight.sum() ** 2 / ((shared**2).sum() + (alone**2).sum()))
