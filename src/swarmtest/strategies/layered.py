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
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from swarmtest.seeds import Stream
from swarmtest.space import Proposal, Space, toss, weigh
from swarmtest.strategies.strategy import register

FLOOR = 1 / 32
"""A weight below this is a feature left out."""

Weights = Mapping[str, float]
"""Weights by name; what is missing is left out."""
Family = Callable[[Sequence[str], Stream], Weights]
"""Draws weights for the features."""


def equal(names: Sequence[str], rng: Stream) -> Weights:
    """All features alike: bugs that need everything.

    >>> dict(equal(["push", "pop"], Stream()))
    {'push': 1.0, 'pop': 1.0}
    """
    return dict.fromkeys(names, 1.0)


def fair_coin(names: Sequence[str], rng: Stream) -> Weights:
    """Half of the features: bugs that some features suppress."""
    return dict.fromkeys(_some(names, 0.5, rng), 1.0)


def biased_coin(names: Sequence[str], rng: Stream) -> Weights:
    """A random share of the features: bugs that need nearly all, or nearly none."""
    return dict.fromkeys(_some(names, rng.named("*share"), rng), 1.0)


def uniform(names: Sequence[str], rng: Stream) -> Weights:
    """Every ratio between two features: the blog's activation probabilities."""
    return {name: 1.0 - rng.named(name) for name in names}


def beta(names: Sequence[str], rng: Stream) -> Weights:
    """From "all or nothing" to "all alike", as the shape falls."""
    a = _log_uniform(1 / 4, 8, rng.named("*a"))
    b = _log_uniform(1 / 4, 8, rng.named("*b"))
    return {name: max(rng.split(name).betavariate(a, b), 1e-300) for name in names}


def power_law(names: Sequence[str], rng: Stream) -> Weights:
    """A over B over C: bugs that need a ranking of the features."""
    order = sorted(_members(names, rng), key=rng.named)
    exponent = 3.0 * rng.named("*exponent")
    return {name: (rank + 1) ** -exponent for rank, name in enumerate(order)}


def groups(names: Sequence[str], rng: Stream) -> Weights:
    """Two or three groups at a whole ratio: some features half as common as some others."""
    levels = rng.split("*levels").sample(range(1, 6), 2 if rng.named("*count") < 0.75 else 3)
    count = len(levels)
    return {name: float(levels[int(rng.named(name) * count)]) for name in _members(names, rng)}


def dominant(names: Sequence[str], rng: Stream) -> Weights:
    """One feature far above the rest: ten times as likely as all others."""
    members = _members(names, rng)
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
_REHEARSALS = 2000


@register("layered")
@dataclass
class Layered:
    """A family of distributions is drawn for each test, and the features' weights from it.

    >>> Layered().ask(Space(["push", "pop"]), 0, Stream(campaign_seed=1)).origin
    'uniform'
    """

    renormalise: bool = True
    """Choose in proportion to the weights; otherwise a weight below 1 spends steps."""
    _included: dict[str, tuple[float, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def prepare(self, space: Space) -> None:
        """Work out how often each family includes a feature: the propensities.

        Families treat features alike, so one number per family and number of features says it. It
        is counted in rehearsals with fixed seeds, to about one per cent.
        """
        if space.clauses or not space.features:
            return
        names = space.feature_names
        rehearsals = max(50, _REHEARSALS // len(names))
        for number, (family, _, draw) in enumerate(FAMILIES):
            drawn = [
                settled(names, draw(names, Stream(number, trial))) for trial in range(rehearsals)
            ]
            included = sum(weight > 0 for weights in drawn for weight in weights)
            self._included[family] = (included / (rehearsals * len(names)),)

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Draw a family, then weights."""
        names = space.feature_names
        if not names:
            return toss(space, (), rng)
        family, _, draw = FAMILIES[bisect.bisect_right(_BOUNDS, rng.named("*family"))]
        weights = settled(names, draw(names, rng))
        propensities = self._included.get(family, ())
        return weigh(space, weights, rng, propensities, family, self.renormalise)


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
