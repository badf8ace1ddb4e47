"""The draws of `hedged` for a batch of trials, exactly those of `hedged.py` trial by trial.

What a single number per trial decides is computed with `math` (see `_layered_batches`).
"""

from __future__ import annotations

import numpy as np

from swarmtest.core.configuration import FULL
from swarmtest.strategies._layered_batches import (
    DRAWING,
    Drawing,
    Drawn,
    Matrix,
    Rows,
    TrialDraws,
    all_bits,
    some_of,
    whole_dominant,
    whole_groups,
)
from swarmtest.strategies.hedged import LEAST_SPENT, rung_factor, rungs_of, short_weight
from swarmtest.strategies.layered import FLOOR


def spent(draws: TrialDraws) -> Drawn:
    """Draw each activation probability uniformly."""
    weights = np.maximum(1.0 - draws.features(), LEAST_SPENT)
    weights *= FULL
    return np.rint(weights, out=weights).astype(np.uint16), None


def short(draws: TrialDraws) -> Drawn:
    """Give all features of a trial the same small weight."""
    steps = [round(short_weight(draw) * FULL) for draw in draws.single("*length").tolist()]
    return np.repeat(np.array(steps, np.uint16)[:, None], draws.count, axis=1), None


_MOST_RUNGS = len(rungs_of(0.0))
"""No ladder has more rungs above the floor."""


def ladder(draws: TrialDraws) -> Drawn:
    """Draw a ranking of some features."""
    keys = np.where(some_of(draws, draws.single("*share")[:, None]), draws.features(), 2.0)
    most = min(_MOST_RUNGS, draws.count)
    # All members are at the floor; then the first ones get their rungs.
    steps = np.where(keys < 2.0, np.uint16(round(FLOOR * FULL)), np.uint16(0))
    first = _least(keys, most)
    order = np.take_along_axis(keys, first, axis=1)
    factors = [rung_factor(draw) for draw in draws.single("*rungs").tolist()]
    rungs = np.repeat(np.array(factors)[:, None], most, axis=1)
    rungs[:, 0] = 1.0
    # Multiplied one after the other, as in `rungs_of`.
    rungs = np.maximum(np.cumprod(rungs, axis=1), FLOOR)
    rungs = np.rint(rungs * FULL).astype(np.uint16)
    np.put_along_axis(steps, first, rungs & all_bits(order < 2.0), axis=1)
    return steps, None


def _least(keys: Matrix, count: int) -> Rows:
    """Return the columns of the least numbers of each row, in their order.

    Equal numbers keep the order of their columns, as they do in `sorted`; but not if the last of
    the least is one of them, which with draws of 53 bits does not happen.
    """
    if 2 * count >= keys.shape[1]:
        return keys.argsort(axis=1, kind="stable")[:, :count]
    least = np.sort(keys.argpartition(count - 1, axis=1)[:, :count], axis=1)
    order = np.take_along_axis(keys, least, axis=1).argsort(axis=1, kind="stable")
    return np.take_along_axis(least, order, axis=1)


HEDGED_DRAWING: Drawing = {
    **DRAWING,
    "whole-groups": whole_groups,
    "whole-dominant": whole_dominant,
    "spent": spent,
    "short": short,
    "ladder": ladder,
}
"""How each family draws, by its name in `hedged.HEDGED_FAMILIES`."""
