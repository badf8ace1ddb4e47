"""Where there is no formula: ask the strategy for configurations, as a campaign would, and count.

Asking costs microseconds, so thousands of configurations can be had before the first test runs. The
seeds are fixed: the same question has the same answer. How much is simulated is limited by counted
work, not by time, for the same reason.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swarmtest.errors import UserError
from swarmtest.seeds import Stream
from swarmtest.space import Space
from swarmtest.space.constraints import solve

Ask = Callable[[int, Stream], int]
"""From a trial and its stream to the bits of the features that are in."""

SAMPLES = 10_000
"""Configurations that are drawn to learn how often something is in one."""
_CAMPAIGNS = 400
"""Campaigns that are simulated to learn when something is first in one."""
_FEWEST = 50
"""With fewer campaigns, an interval says next to nothing."""
_ASKS = 100_000
"""Configurations of all simulated campaigns together."""
_LOOKS = 300_000_000
"""Looks at k features of a configuration, of all simulated campaigns together."""
_MOST_SOLVED = 50_000
"""Combinations for which constraints are asked whether they allow them."""


@dataclass(frozen=True)
class FirstTimes:
    """After how many tests each simulated campaign had it; those that never did are not in."""

    times: tuple[int, ...]
    """In order."""
    campaigns: int
    limit: int
    """Tests of each campaign."""

    def within(self, n: int) -> int:
        """How many campaigns had it within n tests.

        >>> FirstTimes((3, 8, 8), campaigns=4, limit=10).within(8)
        3
        """
        return int(np.searchsorted(self.times, n, side="right"))


def is_fresh(ask: Ask) -> bool:
    """Whether every test's configuration is drawn by itself, whichever its number.

    >>> is_fresh(lambda trial, rng: 1 + int(rng.named("coin") < 0.5))
    True
    >>> is_fresh(lambda trial, rng: 1 + trial % 2)
    False
    """
    return all(ask(0, Stream(0, trial)) == ask(trial, Stream(0, trial)) for trial in range(1, 65))


def sampled(ask: Ask, samples: int = SAMPLES) -> list[int]:
    """The configurations of one long campaign, as bits."""
    return [ask(trial, Stream(0, trial)) for trial in range(samples)]


def first_with(ask: Ask, on: int, off: int, n: int | None = None) -> FirstTimes:
    """When campaigns first have all features of one mask in and all of another out."""
    limit = _limit(n)
    campaigns = min(_CAMPAIGNS, _ASKS // limit)
    found = (
        next((t + 1 for t in range(limit) if _has(ask(t, Stream(seed, t)), on, off)), None)
        for seed in range(campaigns)
    )
    return FirstTimes(tuple(sorted(t for t in found if t is not None)), campaigns, limit)


def _limit(n: int | None) -> int:
    longest = _ASKS // _FEWEST
    if n is not None and n > longest:
        raise UserError(f"simulated campaigns have at most {longest:,} tests, not {n:,}")
    return n or longest // 2


def _has(bits: int, on: int, off: int) -> bool:
    return bits & on == on and not bits & off


def first_covering(
    ask: Ask, space: Space, k: int, on_only: bool, n: int | None = None
) -> FirstTimes | None:
    """When campaigns first have all k-way combinations that the constraints allow.

    None where that is too much to simulate.
    """
    count, limit = len(space.features), _limit(n)
    subsets = math.comb(count, k)
    # Fair coins need about this many tests, and other strategies more.
    least = min(limit, 2**k * math.log(subsets * 2**k))
    if subsets * k * least * _FEWEST > _LOOKS:
        return None
    sets = np.array(list(itertools.combinations(range(count), k)), np.int64)
    wanted = _wanted(space, sets, on_only)
    asks, looks = 0, 0
    times: list[int | None] = []
    while len(times) < _CAMPAIGNS and asks < _ASKS and looks < _LOOKS:
        time = _time_to_cover(ask, len(times), sets, wanted, count, limit)
        asks += time or limit
        looks = asks * subsets * k
        times.append(time)
    if len(times) < _FEWEST:
        return None
    return FirstTimes(tuple(sorted(t for t in times if t is not None)), len(times), limit)


def _wanted(space: Space, sets: npt.NDArray[np.int64], on_only: bool) -> npt.NDArray[np.bool_]:
    """For each set of k features and each of its 2^k patterns, whether it is to be covered."""
    k = sets.shape[1]
    wanted = np.full((len(sets), 2**k), not on_only)
    wanted[:, -1] = True
    if k == len(space.features):
        wanted[:, 0] = False
    if space.clauses:
        if wanted.sum() > _MOST_SOLVED:
            raise UserError(
                f"under constraints, at most {_MOST_SOLVED:,} combinations can be looked at, and "
                f"{k}-way there are {wanted.sum():,}: take fewer --ways"
            )
        for row, pattern in np.argwhere(wanted).tolist():
            wanted[row, pattern] = _is_allowed(space, sets[row].tolist(), pattern)
    return wanted


def _is_allowed(space: Space, features: Sequence[int], pattern: int) -> bool:
    on = sum(1 << f for i, f in enumerate(features) if pattern >> i & 1)
    off = sum(1 << f for i, f in enumerate(features) if not pattern >> i & 1)
    return solve([space.never_empty, *space.clauses], on, off) is not None


def _time_to_cover(
    ask: Ask,
    seed: int,
    sets: npt.NDArray[np.int64],
    wanted: npt.NDArray[np.bool_],
    count: int,
    limit: int,
) -> int | None:
    """After how many tests of a campaign nothing is wanted any more; None: not within the limit."""
    left, total = wanted.ravel().copy(), int(wanted.sum())
    places = np.arange(len(sets)) * wanted.shape[1]
    columns = [(column.copy(), 1 << i) for i, column in enumerate(sets.T)]
    for trial in range(limit):
        bits = ask(trial, Stream(seed, trial))
        on = np.array([bits >> i & 1 for i in range(count)], np.int64)
        cells = sum((on[column] * weight for column, weight in columns), places)
        total -= int(np.count_nonzero(left[cells]))
        left[cells] = False
        if not total:
            return trial + 1
    return None
