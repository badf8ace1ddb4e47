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

Two choices matter more than the shares. Weights are scaled so that the largest is 1, because common
factors only waste steps; and a weight below 1/32 becomes 0, because a feature that shows once in a
test suppresses as much as one that shows always, but adds nothing.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from swarmtest.seeds import Stream
from swarmtest.space import Proposal, Space, weigh
from swarmtest.strategies.strategy import register

FLOOR = 1 / 32
"""A weight below this is a feature left out."""

Weights = Mapping[str, float]
"""Weights by name; what is missing is left out."""
Family = Callable[[Sequence[str], random.Random], Weights]
"""Draws weights for the features."""


def equal(names: Sequence[str], rng: random.Random) -> Weights:
    """All features alike: bugs that need everything.

    >>> dict(equal(["push", "pop"], random.Random(0)))
    {'push': 1.0, 'pop': 1.0}
    """
    return dict.fromkeys(names, 1.0)


def fair_coin(names: Sequence[str], rng: random.Random) -> Weights:
    """Half of the features: bugs that some features suppress."""
    return dict.fromkeys(_some(names, 0.5, rng), 1.0)


def biased_coin(names: Sequence[str], rng: random.Random) -> Weights:
    """A random share of the features: bugs that need nearly all, or nearly none."""
    return dict.fromkeys(_some(names, rng.random(), rng), 1.0)


def uniform(names: Sequence[str], rng: random.Random) -> Weights:
    """Every ratio between two features: the blog's activation probabilities."""
    return {name: 1.0 - rng.random() for name in names}


def beta(names: Sequence[str], rng: random.Random) -> Weights:
    """From "all or nothing" to "all alike", as the shape falls."""
    a, b = _log_uniform(1 / 4, 8, rng), _log_uniform(1 / 4, 8, rng)
    return {name: max(rng.betavariate(a, b), 1e-300) for name in names}


def power_law(names: Sequence[str], rng: random.Random) -> Weights:
    """A over B over C: bugs that need a ranking of the features."""
    order = _members(names, rng)
    rng.shuffle(order)
    exponent = 3.0 * rng.random()
    return {name: (rank + 1) ** -exponent for rank, name in enumerate(order)}


def groups(names: Sequence[str], rng: random.Random) -> Weights:
    """Two or three groups at a whole ratio: some features half as common as some others."""
    levels = rng.sample(range(1, 6), rng.choice((2, 2, 2, 3)))
    return {name: float(rng.choice(levels)) for name in _members(names, rng)}


def dominant(names: Sequence[str], rng: random.Random) -> Weights:
    """One feature far above the rest: ten times as likely as all others."""
    members = _members(names, rng)
    low, top = _log_uniform(FLOOR, 1 / 2, rng), rng.choice(members)
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
        """Draw a family, then weights. Names are drawn for in the space's order."""
        family, draw = _family_at(rng.named("*family"))
        weights = settled(space.feature_names, draw(space.feature_names, rng))
        return weigh(space, weights, rng, (), family, self.renormalise)


def _family_at(point: float) -> tuple[str, Family]:
    """The family whose share of [0, 1) holds the point."""
    name, _, draw = FAMILIES[bisect.bisect_right(_BOUNDS, point)]
    return name, draw


def settled(names: Sequence[str], raw: Weights) -> list[float]:
    """Weights in order, the largest scaled to 1, those below the floor (or missing) left out.

    >>> settled(["a", "b", "c"], {"a": 4, "b": 2})
    [1.0, 0.5, 0.0]
    """
    top = max(raw.values())
    least = FLOOR * top
    found = [raw.get(name, 0.0) for name in names]
    return [weight / top if weight >= least else 0.0 for weight in found]


def _log_uniform(low: float, high: float, rng: random.Random) -> float:
    return math.exp(math.log(low) + rng.random() * (math.log(high) - math.log(low)))


def _some(names: Sequence[str], p: float, rng: random.Random) -> list[str]:
    return [name for name in names if rng.random() < p] or [rng.choice(names)]


def _members(names: Sequence[str], rng: random.Random) -> list[str]:
    """The features that a shape applies to: mostly all, sometimes a random share."""
    return list(names) if rng.random() < 0.75 else _some(names, rng.random(), rng)
