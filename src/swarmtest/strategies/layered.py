"""Swarms all the way down: the distribution of the weights is itself drawn for each test.

The blog ends with this teaser: a bug may need three features half as common as three others, one
feature ten times as common as the rest, or a power law; so the distribution of the activation
probabilities should be sampled from a space of distributions. Here that space is a handful of
families, each a few lines, each with parameters that are drawn too.

The shares were chosen by simulation, not by taste: with the detection probability of each family on
each kind of bug, a mixture's detection rate is linear in the shares, so the worst ratio to the best
single strategy is a small linear programme. The optimum has a plateau; these are round numbers
on it that keep at least 5% for every family. Row by row, ``benchmarks/detection.py`` prints what is
reached, and ``docs/strategies.md`` has the picture.

Every draw is keyed by the feature's name: adding a feature leaves what the others drew unchanged.

Two choices matter more than the shares. Weights are scaled so that the largest is 1, because common
factors only waste steps; and a weight below 1/32 becomes 0, because a feature that shows once in a
test suppresses as much as one that shows always, but adds nothing.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from swarmtest.core.sampling import Proposal, alike_given_the_others, toss, weigh
from swarmtest.core.seeds import Stream
from swarmtest.core.space import Space
from swarmtest.strategies.strategy import register

# -------------------------------------------------------------------------------------------------
# How likely each family of `layered` is to include a feature.
#
# Families treat features alike, so all that matters is how many they include: a configuration's
# odds
# depend on its size only, and the sizes have formulas. Three families have no odds to tell: in
# `uniform`, `power` and `beta` a feature is out when its weight happens to be tiny, so whether it
# is
# in cannot be told apart from what the weights of the others are.

Sizes = tuple[float, ...]
"""The probability of including 0, 1, 2, ... features.

Where one feature comes in place of none, both have their share of it: the sum is above 1. Only
ratios matter, and "none" is what an empty test would have been (see `Proposal`).
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


# -------------------------------------------------------------------------------------------------

FLOOR = 1 / 32
"""A weight below this is a feature left out."""
_STEEPEST = 3.0
"""The largest exponent of a power law."""

Weights = Mapping[str, float]
"""Weights by name; what is missing is left out."""
Family = Callable[[Space, Stream], Weights]
"""Draws weights for the features."""


def equal(space: Space, rng: Stream) -> Weights:
    """All features alike: bugs that need everything.

    >>> dict(equal(Space(["push", "pop"]), Stream()))
    {'push': 1.0, 'pop': 1.0}
    """
    return dict.fromkeys(space.feature_names, 1.0)


def fair_coin(space: Space, rng: Stream) -> Weights:
    """Half of the features: bugs that some features suppress."""
    return dict.fromkeys(_some(space.feature_names, 0.5, rng), 1.0)


def biased_coin(space: Space, rng: Stream) -> Weights:
    """A random share of the features: bugs that need nearly all, or nearly none."""
    return dict.fromkeys(_some(space.feature_names, rng.named("*share"), rng), 1.0)


def uniform(space: Space, rng: Stream) -> Weights:
    """Every ratio between two features: the blog's activation probabilities."""
    return {name: 1.0 - rng.named(name) for name in space.feature_names}


def beta(space: Space, rng: Stream) -> Weights:
    """From "all or nothing" (small shapes) to "all alike" (large ones)."""
    a = _log_uniform(1 / 4, 8, rng.named("*a"))
    b = _log_uniform(1 / 4, 8, rng.named("*b"))
    draws = {name: rng.split(name).betavariate(a, b) for name in space.feature_names}
    return {name: max(draw, 1e-300) for name, draw in draws.items()}


def power_law(space: Space, rng: Stream) -> Weights:
    """A over B over C: bugs that need a ranking of the features."""
    order = sorted(_members(space.feature_names, rng), key=rng.named)
    exponent = _STEEPEST * rng.named("*exponent")
    return {name: (rank + 1) ** -exponent for rank, name in enumerate(order)}


def groups(space: Space, rng: Stream) -> Weights:
    """Two or three groups at a whole ratio: some features half as common as some others.

    Features that the space puts into one group stay together.
    """
    levels = rng.split("*levels").sample(range(1, 6), 2 if rng.named("*count") < 0.75 else 3)
    group = {feature.name: feature.group or feature.name for feature in space.features}
    members = _members(space.feature_names, rng)
    return {name: float(levels[int(rng.named(group[name]) * len(levels))]) for name in members}


def dominant(space: Space, rng: Stream) -> Weights:
    """One feature two to thirty-two times as likely as each of the others."""
    members = _members(space.feature_names, rng)
    low, top = _log_uniform(FLOOR, 1 / 2, rng.named("*low")), min(members, key=rng.named)
    return {name: 1.0 if name == top else low for name in members}


FAMILIES: tuple[tuple[str, float, Family], ...] = (
    ("coin", 0.35, fair_coin),
    ("groups", 0.20, groups),
    ("power", 0.10, power_law),
    ("uniform", 0.10, uniform),
    ("dominant", 0.10, dominant),
    ("biased-coin", 0.05, biased_coin),
    ("beta", 0.05, beta),
    ("equal", 0.05, equal),
)
"""Each family's name, its share of the tests, and how it draws weights."""
_BOUNDS = list(itertools.accumulate(share for _, share, _ in FAMILIES))[:-1]


@register("layered")
@dataclass(frozen=True)
class Layered:
    """A family of distributions is drawn for each test, and the features' weights from it.

    >>> Layered().ask(Space(["push", "pop"]), 0, Stream(campaign_seed=1)).origin
    'uniform'
    """

    renormalise: bool = True
    """Choose in proportion to the weights; otherwise a weight below 1 spends steps."""

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Draw a family, then weights."""
        names = space.feature_names
        if not names:
            return toss(space, (), rng)
        family, _, draw = FAMILIES[bisect.bisect_right(_BOUNDS, rng.named("*family"))]
        weights = settled(names, draw(space, rng))
        bits = sum(1 << number for number, weight in enumerate(weights) if weight)
        # Constraints may keep a feature out, and then nobody has worked out how often.
        chances = () if space.clauses else chances_of(family, len(names), bits)
        return weigh(space, weights, rng, chances, family, self.renormalise)


def settled(names: Sequence[str], raw: Weights) -> list[float]:
    """Weights in order, the largest scaled to 1, those below the floor (or missing) left out.

    >>> settled(["a", "b", "c"], {"a": 4, "b": 2})
    [1.0, 0.5, 0.0]
    """
    top = max(raw.values())
    least = FLOOR * top
    found = [raw.get(name, 0.0) for name in names]
    return [weight / top if weight >= least else 0.0 for weight in found]


def _log_uniform(low: float, high: float, draw: float) -> float:
    return low * math.exp(draw * math.log(high / low))


def _some(names: Sequence[str], p: float, rng: Stream) -> list[str]:
    """Each name with probability p; if none, one of them."""
    draws = {name: rng.named(name, attempt=1) for name in names}
    return [name for name in names if draws[name] < p] or [min(names, key=draws.__getitem__)]


def _members(names: Sequence[str], rng: Stream) -> Sequence[str]:
    """The features that a shape applies to: mostly all, sometimes a random share."""
    return names if rng.named("*members") < 0.75 else _some(names, rng.named("*share"), rng)
