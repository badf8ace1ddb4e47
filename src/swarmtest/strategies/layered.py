"""Layered swarms: the distribution of the weights is itself drawn for each test.

The blog ends with this idea: a bug may need three features half as common as three others, one
feature ten times as common as the rest, or a power law; so the distribution of the activation
probabilities should be sampled from a space of distributions. Here that space is a few families of
distributions, whose parameters are drawn too.

The shares of the families were chosen by simulation: with the detection probability of each family
for each kind of bug, a mixture's detection rate is linear in the shares, so the worst ratio to the
best single strategy is a small linear programme. The optimum has a plateau; the shares are round
numbers on it that leave at least 5% to every family. ``benchmarks/detection.py`` prints what is
reached for each kind of bug, and ``docs/strategies.md`` has the picture.

Every draw is keyed by the feature's name: adding a feature leaves the draws of the others
unchanged.

Two choices matter more than the shares. Weights are scaled so that the largest is 1, because a
common factor only wastes steps. A weight below 1/32 becomes 0, because a feature that appears once
in a test suppresses as much as one that appears all the time, but adds nothing.

*Propensities.* Families treat features alike, so a configuration's odds depend only on its size,
and the distributions of the sizes have formulas. Three families have no known odds: in `uniform`,
`power` and `beta` a feature is left out if its weight happens to be tiny, so its inclusion cannot
be separated from the weights of the others.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from swarmtest.core.dimensions import Feature
from swarmtest.core.sampling import (
    Proposal,
    alike_given_the_others,
    odds_by_size,
    rates_for,
    toss,
    weigh,
)
from swarmtest.core.seeds import Stream
from swarmtest.core.space import Space
from swarmtest.strategies.strategy import register

# Families of distributions.

FLOOR = 1 / 32
"""A feature with a weight below this is left out."""
STEEPEST = 3.0
"""The largest exponent of a power law."""

_FEW_DRAWS, _OVERHEAD = 400, 6
"""Drawing a batch at once is worth it from about 400 draws on, if a trial counts as 6 more."""

Weights = Mapping[str, float]
"""Weights by name; a feature without one is left out."""
Family = Callable[[Space, Stream], Weights]
"""A function that draws weights for the features of a space."""


def equal(space: Space, rng: Stream) -> Weights:
    """Give all features the same weight, for bugs that need everything.

    >>> dict(equal(Space(["push", "pop"]), Stream()))
    {'push': 1.0, 'pop': 1.0}
    """
    return dict.fromkeys(space.feature_names, 1.0)


def fair_coin(space: Space, rng: Stream) -> Weights:
    """Draw half of the features, for bugs that some features suppress."""
    return dict.fromkeys(some_of(space.feature_names, 0.5, rng), 1.0)


def biased_coin(space: Space, rng: Stream) -> Weights:
    """Draw a random share of the features, for bugs that need nearly all or nearly none."""
    return dict.fromkeys(some_of(space.feature_names, rng.named("*share"), rng), 1.0)


def uniform(space: Space, rng: Stream) -> Weights:
    """Draw the blog's activation probabilities, with every ratio between two features."""
    return {name: 1.0 - rng.named(name) for name in space.feature_names}


def beta(space: Space, rng: Stream) -> Weights:
    """Draw weights between "all or nothing" (small shapes) and "all alike" (large shapes)."""
    a, b = beta_shape(rng.named("*a")), beta_shape(rng.named("*b"))
    draws = {name: rng.split(name).betavariate(a, b) for name in space.feature_names}
    return {name: max(draw, 1e-300) for name, draw in draws.items()}


def power_law(space: Space, rng: Stream) -> Weights:
    """Draw a ranking with a power law, for bugs that need A more often than B than C."""
    order = sorted(_members(space.feature_names, rng), key=rng.named)
    exponent = STEEPEST * rng.named("*exponent")
    return {name: (rank + 1) ** -exponent for rank, name in enumerate(order)}


def groups(space: Space, rng: Stream) -> Weights:
    """Draw two or three groups with a whole ratio: some features half as common as others.

    Features that the space puts into one group stay together.
    """
    weights = whole_groups(space, rng)
    return {name: weights[name] for name in _members(space.feature_names, rng)}


def whole_groups(space: Space, rng: Stream) -> Weights:
    """Draw two or three groups of all features with a whole ratio (`hedged`)."""
    levels = rng.split("*levels").sample(range(1, 6), 2 if rng.named("*count") < 0.75 else 3)
    return {
        feature.name: float(levels[int(rng.named(feature.group or feature.name) * len(levels))])
        for feature in space.features
    }


def dominant(space: Space, rng: Stream) -> Weights:
    """Make one feature two to thirty-two times as likely as each of the others."""
    return _dominated(_members(space.feature_names, rng), rng)


def whole_dominant(space: Space, rng: Stream) -> Weights:
    """Make one of all features more likely than each of the others (`hedged`)."""
    return _dominated(space.feature_names, rng)


def _dominated(members: Sequence[str], rng: Stream) -> Weights:
    low, top = low_weight(rng.named("*low")), min(members, key=rng.named)
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
BOUNDS = list(itertools.accumulate(share for _, share, _ in FAMILIES))[:-1]
"""Where the share of each family but the first begins."""


@register("layered")
@dataclass(frozen=True)
class Layered:
    """Draw a family of distributions for each test, and the weights of the features from it.

    >>> Layered().ask(Space(["push", "pop"]), 0, Stream(campaign_seed=1)).origin
    'uniform'
    """

    renormalise: bool = True
    """Choose in proportion to the weights; otherwise a weight below 1 spends steps."""

    families: ClassVar[Sequence[tuple[str, float, Family]]] = FAMILIES
    bounds: ClassVar[Sequence[float]] = BOUNDS
    spending: ClassVar[frozenset[str]] = frozenset()
    """Families in which a weight below 1 always spends steps."""

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Draw a family, then weights from it."""
        number = bisect.bisect_right(self.bounds, rng.named("*family"))
        return self.ask_of_family(space, number, rng)

    def ask_of_family(self, space: Space, number: int, rng: Stream) -> Proposal:
        """Draw weights from the family with this number."""
        names = space.feature_names
        if not names:
            return toss(space, (), rng)
        family, _, draw = self.families[number]
        renormalise, spends = self.renormalises(family), family in self.spending
        if _has_rates(space):
            return _at_own_rates(space, family, draw, rng, renormalise, spends)
        weights = settled(names, draw(space, rng), proportions=not spends)
        bits = sum(1 << number for number, weight in enumerate(weights) if weight)
        # Constraints may keep a feature out; how often has no known formula.
        chances = () if space.clauses else chances_of(family, len(names), bits)
        return weigh(space, weights, rng, chances, family, renormalise)

    def renormalises(self, family: str) -> bool:
        """Return whether features are chosen in proportion to the weights of a family.

        >>> Layered().renormalises("groups")
        True
        """
        return self.renormalise and family not in self.spending

    def ask_many(
        self, space: Space, trials: Sequence[int], campaign_seed: int
    ) -> list[Proposal] | None:
        """Return the proposals of a batch of trials; None if it has to ask for each.

        It is not worth it for a few, and a feature with a rate of its own is tossed for each.
        """
        count = len(space.features)
        if not count or len(trials) * (count + _OVERHEAD) <= _FEW_DRAWS:
            return None
        if _has_rates(space):
            return None
        from swarmtest.strategies._layered_batches import propose  # it imports numpy

        return propose(self, space, trials, campaign_seed, self._batch_draws())

    def _batch_draws(self) -> Mapping[str, Any]:
        """Return the function that draws for a batch of trials, by family."""
        from swarmtest.strategies._layered_batches import DRAWING

        return DRAWING


def _at_own_rates(
    space: Space, family: str, draw: Family, rng: Stream, renormalise: bool, spends: bool
) -> Proposal:
    """Toss the features that have a rate of their own; a family decides about the others.

    A feature that was tossed in has the weight that the family would give it, or the largest one.
    """
    rated = {f.name: f.rate for f in space.features if f.rate is not None}
    others = _without_rates(space)
    names = others.feature_names if others else ()
    raw = dict(draw(others, rng)) if others else {}
    if raw:
        tosses = rng.split("*rates")
        included = [name for name, rate in rated.items() if tosses.named(name) < rate]
    else:
        included = [*toss(space, rates_for(space, 1.0), rng.split("*rates")).configuration.included]
    usual, top = draw(space, rng), max(raw.values(), default=1.0)
    raw |= {name: usual.get(name, top) for name in included}
    settled_weights = settled(space.feature_names, raw, proportions=not spends)
    weights = dict(zip(space.feature_names, settled_weights, strict=True))
    # A feature that was tossed in is in, however small its weight.
    weights |= {name: max(weights[name], FLOOR) for name in included}
    chances: tuple[float, ...] = ()
    if not space.clauses:
        bits = sum(1 << i for i, name in enumerate(names) if weights[name])
        known = _chances_beside(family, len(names), bits, bool(included))
        if len(known) == len(names):
            by_name = rated | dict(zip(names, known, strict=True))
            chances = tuple(by_name[name] for name in space.feature_names)
    return weigh(space, [*weights.values()], rng, chances, family, renormalise)


@functools.lru_cache(maxsize=64)
def _has_rates(space: Space) -> bool:
    return any(feature.rate is not None for feature in space.features)


@functools.lru_cache(maxsize=64)
def _without_rates(space: Space) -> Space | None:
    """Return a space of the features without a rate, and without constraints; None for none."""
    features = [Feature(f.name, group=f.group) for f in space.features if f.rate is None]
    return Space(features) if features else None


def _chances_beside(family: str, count: int, bits: int, beside: bool) -> tuple[float, ...]:
    """Return `chances_of` as one number per feature, if there are other features beside these.

    A family includes one feature in place of none. Where a test without any of these would not be
    empty, because something is `beside` them, the single one had no choice.
    """
    chances = chances_of(family, count, bits) if count else ()
    if not chances:
        return ()
    each = chances * count if len(chances) == 1 else chances
    if beside and bits.bit_count() == 1:
        return tuple(1.0 if bits >> i & 1 else chance for i, chance in enumerate(each))
    return each


def settled(names: Sequence[str], raw: Weights, proportions: bool = True) -> list[float]:
    """Return the weights in the order of the names; missing ones are 0.

    If they are proportions, they are scaled so that the largest is 1; those below the floor are 0.

    >>> settled(["a", "b", "c"], {"a": 4, "b": 2})
    [1.0, 0.5, 0.0]
    """
    if not proportions:
        return [raw.get(name, 0.0) for name in names]
    top = max(raw.values())
    least = FLOOR * top
    weights = [raw.get(name, 0.0) for name in names]
    return [weight / top if weight >= least else 0.0 for weight in weights]


def beta_shape(draw: float) -> float:
    """Return a shape of the beta distribution: small and large ones are equally likely."""
    return _log_uniform(1 / 4, 8, draw)


def low_weight(draw: float) -> float:
    """Return the weight of the features beside a dominant one."""
    return _log_uniform(FLOOR, 1 / 2, draw)


def _log_uniform(low: float, high: float, draw: float) -> float:
    return low * math.exp(draw * math.log(high / low))


def some_of(names: Sequence[str], p: float, rng: Stream) -> list[str]:
    """Return each name with probability p; if that is none, one of them."""
    draws = {name: rng.named(name, attempt=1) for name in names}
    return [name for name in names if draws[name] < p] or [min(names, key=draws.__getitem__)]


def _members(names: Sequence[str], rng: Stream) -> Sequence[str]:
    """Return the features that a family includes: usually all, sometimes a random share."""
    return names if rng.named("*members") < 0.75 else some_of(names, rng.named("*share"), rng)


# Propensities of the families.

Sizes = tuple[float, ...]
"""The probability of including 0, 1, 2, ... features.

If a family includes one feature in place of none, the probability of "none" counts for both sizes,
and the sum is above 1. Only ratios matter; "none" is the empty test that is not run (see
`Proposal`).
"""


@functools.lru_cache(maxsize=4096)
def chances_of(family: str, count: int, bits: int) -> tuple[float, ...]:
    """Return each feature's propensity given the others; empty if there is no formula.

    >>> chances_of("biased-coin", 3, 0b111), chances_of("equal", 3, 0b111)
    ((0.75,), (1.0,))
    """
    sizes = sizes_of(family, count)
    return alike_given_the_others(sizes, bits) if sizes else ()


@functools.lru_cache(maxsize=65536)
def chances_by_size(family: str, count: int, size: int) -> tuple[float, ...]:
    """Return the propensity of a feature that is in and of one that is out.

    There is only one number if the two are the same, and none if there is no formula.

    >>> chances_by_size("biased-coin", 3, 3), chances_by_size("uniform", 3, 2)
    ((0.75,), ())
    """
    sizes = sizes_of(family, count)
    return odds_by_size(sizes, size) if sizes else ()


@functools.lru_cache(maxsize=256)
def sizes_of(family: str, count: int) -> Sizes:
    """Return the distribution of how many of `count` features a family includes.

    It is empty if there is no formula.

    >>> sizes_of("coin", 2), sizes_of("equal", 2)
    ((0.25, 0.75, 0.25), (0.0, 0.0, 1.0))
    """
    everything = (0.0,) * count + (1.0,)
    random_share = _random_share(count)
    formulas = {
        "ladder": random_share,
        "whole-groups": everything,
        "whole-dominant": everything,
        "spent": everything,
        "short": everything,
        "coin": _fair_coin(count),
        "biased-coin": random_share,
        "equal": everything,
        "groups": _mixed(0.75, everything, random_share),
        "dominant": _mixed(0.75, everything, random_share),
    }
    return formulas.get(family, ())


def _mixed(share: float, first: Sequence[float], second: Sequence[float]) -> Sizes:
    return tuple(share * a + (1 - share) * b for a, b in zip(first, second, strict=True))


def _fair_coin(count: int) -> Sizes:
    """Return the sizes of fair coin tosses, with one feature in place of none."""
    sizes = [math.comb(count, size) / 2**count for size in range(count + 1)]
    return (sizes[0], sizes[1] + sizes[0], *sizes[2:])


def _random_share(count: int) -> Sizes:
    """Return the sizes of a random share: all equally likely, with one feature in place of none."""
    each = 1 / (count + 1)
    return (each, 2 * each, *[each] * (count - 1))
