"""How likely each family of `layered` is to include a feature.

Families treat features alike, so all that matters is how many they include: a configuration's odds
depend on its size only, and the sizes have formulas. Three families have no odds to tell: in
`uniform`, `power` and `beta` a feature is out when its weight happens to be tiny, so whether it is
in cannot be told apart from what the weights of the others are.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from swarmtest.space.odds import alike_given_the_others

Sizes = tuple[float, ...]
"""The probability of including 0, 1, 2, ... features.

Where one feature comes in place of none, both have their share of it: the sum is above 1. Only
ratios matter, and "none" is what an empty test would have been (see `swarmtest.space.Proposal`).
"""


@functools.lru_cache(maxsize=4096)
def chances_of(family: str, count: int, bits: int) -> tuple[float, ...]:
    """Each feature's chance of being in, given the others; empty where there is no formula.

    >>> chances_of("biased-coin", 3, 0b111), chances_of("equal", 3, 0b111)
    ((0.75,), (1.0,))
    """
    sizes = sizes_of(family, count)
    return alike_given_the_others(sizes, bits) if sizes else ()


@functools.lru_cache(maxsize=256)
def sizes_of(family: str, count: int) -> Sizes:
    """How many of `count` features a family includes; empty where there is no formula.

    >>> sizes_of("coin", 2), sizes_of("equal", 2)
    ((0.25, 0.75, 0.25), (0.0, 0.0, 1.0))
    """
    everything = (0.0,) * count + (1.0,)
    some = _random_share(count)
    formulas = {
        "coin": _fair_coin(count),
        "biased-coin": some,
        "equal": everything,
        "groups": _mixed(0.75, everything, some),
        "dominant": _mixed(0.75, everything, some),
    }
    return formulas.get(family, ())


def _mixed(share: float, one: Sequence[float], other: Sequence[float]) -> Sizes:
    return tuple(share * a + (1 - share) * b for a, b in zip(one, other, strict=True))


def _fair_coin(count: int) -> Sizes:
    """Coin tosses, and one feature in place of none."""
    sizes = [math.comb(count, size) / 2**count for size in range(count + 1)]
    return (sizes[0], sizes[1] + sizes[0], *sizes[2:])


def _random_share(count: int) -> Sizes:
    """A random share makes every size from 0 equally likely; one in place of none."""
    each = 1 / (count + 1)
    return (each, 2 * each, *[each] * (count - 1))
