"""Strategies in a few lines: all-on, coin, sized, complete and activation.

``all-on`` turns every feature on: ordinary random testing (the papers' C_D). ``complete`` runs all
subsets of the features in turn, in small spaces.

``coin`` tosses a coin for each feature, as the swarm testing paper does (section 2). With
``p=random``, a new bias of the coin is drawn for each test. With a fair coin and many features,
nearly all configurations have about half of them; a random bias also gives nearly empty and nearly
full ones (the blog's footnote 3; Hypothesis and the Csmith driver do the same). ``n=100`` fixes a
swarm of 100 configurations. They take turns, or, with ``by=time``, the one that has had the least
CPU time so far comes next: the paper's case studies gave each an equal share of time.

``sized`` draws first how many features there are, then which, so that every size is equally likely.
A fair coin over 23 features hardly ever leaves out fewer than four or more than nineteen; the bugs
that need nearly all features, or nearly none, are there.

``activation`` draws a weight, an activation probability, for each feature and test (the blog's
"simple extension"). On and off alone cannot express "five pops for each push"; weights can. As in
the blog, a chosen feature is skipped with probability 1 - weight, and the step is spent. With
``renormalise=yes`` no step is spent: features are chosen in proportion to their weights.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from swarmtest.core.batches import toss_many
from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.result import Result
from swarmtest.core.sampling import (
    Proposal,
    alike_given_the_others,
    draw_settings,
    rates_for,
    refuse_rates,
    toss,
    weigh,
)
from swarmtest.core.seeds import GOLDEN, Stream, mixed_array, trial_key
from swarmtest.core.space import Space
from swarmtest.strategies.strategy import register

RANDOM = "random"
"""The value of `Coin.p` that draws a new probability for each configuration."""


@dataclass
class Coin:
    """Include each feature with probability p, or with its own rate if it has one.

    >>> proposal = Coin(p=0.5).ask(Space(["push", "pop"]), 0, Stream(campaign_seed=3))
    >>> len(proposal.configuration.included) >= 1
    True
    """

    strategy_name: ClassVar[str] = "coin"

    p: float | str = 0.5
    """Probability of inclusion, or ``random``: drawn uniformly for each configuration."""
    n: int = 0
    """Size of a fixed swarm; 0: a fresh configuration for each test."""

    def __post_init__(self) -> None:
        if self.p != RANDOM and not (isinstance(self.p, int | float) and 0 < self.p <= 1):
            raise UserError(
                f"strategy 'coin': p is above 0 and at most 1, or {RANDOM}, not {self.p!r}"
            )
        if self.n < 0:
            raise UserError(f"strategy 'coin': n is 0 or the size of the swarm, not {self.n}")

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Propose a new toss, or the next member of the fixed swarm."""
        if not self.n:
            return self._toss(space, rng, "")
        return self.member(space, trial % self.n, rng)

    def ask_many(
        self, space: Space, trials: Sequence[int], campaign_seed: int
    ) -> list[Proposal] | None:
        """Return the proposals of a batch of trials; None for a fixed swarm or a random bias."""
        if self.n or isinstance(self.p, str):
            return None
        return toss_many(space, rates_for(space, self.p), trials, campaign_seed)

    def member(self, space: Space, number: int, rng: Stream) -> Proposal:
        """Return one configuration of the fixed swarm, the same in every trial."""
        return self._toss(space, rng.of_campaign(number), f"member {number}")

    def _toss(self, space: Space, rng: Stream, origin: str) -> Proposal:
        p = rng.named("*p") if isinstance(self.p, str) else self.p
        return toss(space, rates_for(space, p), rng, origin)


@dataclass
class CoinByTime(Coin):
    """A fixed swarm whose members get equal CPU time: the one with the least so far comes next.

    It learns, so which member a trial gets depends on how long the others took; the store keeps
    the choices. Until the result of a test arrives, its member is charged the mean time.

    >>> CoinByTime(p=0.5, n=10).ask(Space(["push", "pop"]), 0, Stream()).origin
    'member 0'
    """

    by: str = "time"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.n:
            raise UserError("strategy 'coin': by=time shares time among a fixed swarm: set n")
        self._spent: dict[Configuration, float] = {}
        self._charged: dict[int, float] = {}
        self._results = 0
        self._total = 0.0

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Propose the member with the least time so far."""
        members = [self.member(space, number, rng) for number in range(self.n)]
        chosen = min(members, key=lambda member: self._spent.get(member.configuration, 0.0))
        charge = self._total / self._results if self._results else 1e-9
        self._charged[trial] = charge
        self._spent[chosen.configuration] = self._spent.get(chosen.configuration, 0.0) + charge
        return chosen

    def parameters_text(self) -> str:
        """Return the parameters as ``coin`` takes them."""
        bias = "" if self.p == 0.5 else f"p={self.p},"
        return f"{bias}n={self.n},by=time"

    def tell(self, result: Result) -> None:
        """Replace the member's estimated charge by the time that its test took."""
        configuration = result.configuration
        if configuration is not None:
            charged = self._charged.pop(result.trial, 0.0)
            spent = self._spent.get(configuration, 0.0)
            self._spent[configuration] = spent + result.cpu_seconds - charged
            self._results += 1
            self._total += result.cpu_seconds


@register("coin")
def coin(p: float | str = 0.5, n: int = 0, by: str = "tests") -> Coin:
    """Include each feature with probability p, or p=random; n fixes a swarm, by tests or time.

    >>> coin(n=100, by="time")
    CoinByTime(p=0.5, n=100, by='time')
    """
    if by not in ("tests", "time"):
        raise UserError(f"strategy 'coin': by is 'tests' or 'time', not {by!r}")
    return CoinByTime(p, n) if by == "time" else Coin(p, n)


@register("sized")
@dataclass(frozen=True)
class Sized:
    """Draw the number of features uniformly, then that many features.

    >>> rng = Stream(campaign_seed=1)
    >>> len(Sized(low=2, high=2).ask(Space(["a", "b", "c"]), 0, rng).configuration.included)
    2
    """

    low: int = 1
    """The smallest number of features."""
    high: int = 0
    """The largest number of features; 0: all of them."""

    def __post_init__(self) -> None:
        if self.low < 1 or (self.high and self.high < self.low):
            raise UserError(
                f"strategy 'sized': needs 1 <= low <= high, not low={self.low}, high={self.high}"
            )

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Propose the features with the smallest draws; constraints may add or remove some."""
        count = len(space.features)
        if not count:
            return toss(space, (), rng)
        refuse_rates(space, "sized", "treats all features alike")
        if self.low > count:
            raise UserError(f"strategy 'sized': low={self.low}, but there are {count} features")
        low, high = self.low, min(self.high or count, count)
        size = low + int(rng.named("*size") * (high - low + 1))
        draws = [rng.named(name) for name in space.feature_names]
        chosen = sorted(range(count), key=draws.__getitem__)[:size]
        weights = [0.0] * count
        for number in chosen:
            weights[number] = 1.0
        if space.clauses:
            return weigh(space, weights, rng, (), f"size {size}")
        # A lower limit of one feature counts as none: a test without features is never run.
        sizes = [float((low if low > 1 else 0) <= s <= high) for s in range(count + 1)]
        chances = alike_given_the_others(sizes, sum(1 << number for number in chosen))
        return weigh(space, weights, rng, chances, f"size {size}")


@register("activation")
@dataclass(frozen=True)
class Activation:
    """Draw the weight of each feature uniformly from 0 to 1; one with a rate may be left out.

    >>> weights = Activation().ask(Space(["push", "pop"]), 0, Stream(1)).configuration.weights
    >>> all(0 < weight < 1 for weight in weights)
    True
    """

    renormalise: bool = False
    """Choose in proportion to the weights instead of spending steps."""

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Propose weights, each drawn from the stream of the feature's name."""
        weights = [rng.named(name) for name in space.feature_names]
        if any(feature.rate is not None for feature in space.features):
            return self._at_own_rates(space, weights, rng)
        # Constraints may keep a feature out; how often has no known formula.
        propensities = () if space.clauses else (1.0,)
        return weigh(space, weights, rng, propensities, renormalised=self.renormalise)

    def _at_own_rates(self, space: Space, weights: list[float], rng: Stream) -> Proposal:
        """Toss the features that have a rate; those that are in get their weights."""
        # Another stream: a feature's weight must not depend on its toss.
        tossed = toss(space, rates_for(space, 1.0), rng.split("*rates"))
        bits = tossed.configuration.bits
        weights = [weight if bits >> i & 1 else 0.0 for i, weight in enumerate(weights)]
        propensities = () if space.clauses else tossed.propensities
        return weigh(space, weights, rng, propensities, renormalised=self.renormalise)


# Strategies without chance.


_MOST_FEATURES = 16


@register("all-on")
@dataclass(frozen=True)
class AllOn:
    """All features on, in every test.

    >>> print(AllOn().ask(Space(["push", "pop"]), 0, Stream()).configuration)
    push pop
    """

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Propose C_D; settings, which are not features, are drawn uniformly."""
        bits = space.default().bits
        configuration = Configuration(space, bits, None, draw_settings(space, rng))
        return Proposal(configuration, (1.0,), "all-on")


Default = AllOn
"""The old name of `AllOn`."""


@register("complete")
@dataclass(frozen=True)
class Complete:
    """Every subset that the constraints allow, in turn, then again from the start.

    The order follows the campaign's seed, so a campaign that ends before it has run all subsets has
    had every feature in about half of its tests, and another campaign has other subsets.

    >>> space = Space(["push", "pop"])
    >>> sorted(str(Complete().ask(space, trial, Stream()).configuration) for trial in range(3))
    ['-push pop', 'push -pop', 'push pop']
    """

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Propose the subset of this trial."""
        if not space.features:
            return toss(space, (), rng)
        refuse_rates(space, "complete", "runs all subsets equally often")
        subsets = _ordered_subsets(space, rng.campaign_seed)
        bits = subsets[trial % len(subsets)]
        configuration = Configuration(space, bits, None, draw_settings(space, rng))
        return Proposal(configuration, _propensities(space, bits))


def _propensities(space: Space, bits: int) -> tuple[float, ...]:
    """Return each feature's propensity given the others.

    All subsets are equally likely, so it is 0.5 for a feature that can be flipped, else 0 or 1.

    >>> _propensities(Space(["push", "pop"]), 0b01)
    (0.5, 0.5)
    """
    flipped = [bits ^ 1 << i for i in range(len(space.features))]
    free = [not other or not space.violated(other) for other in flipped]
    return tuple(0.5 if free[i] else float(bits >> i & 1) for i in range(len(free)))


@functools.lru_cache(maxsize=8)
def _ordered_subsets(space: Space, campaign_seed: int) -> list[int]:
    """Return the allowed subsets in the order of a campaign: that of 64 mixed bits of each."""
    import numpy as np

    subsets = np.array(_subsets(space), np.uint64)
    keys = mixed_array(subsets * np.uint64(GOLDEN)) ^ np.uint64(trial_key(campaign_seed, 0))
    ordered: list[int] = subsets[np.argsort(mixed_array(keys))].tolist()
    return ordered


@functools.lru_cache(maxsize=8)
def _subsets(space: Space) -> list[int]:
    count = len(space.features)
    if count > _MOST_FEATURES:
        raise UserError(
            f"strategy 'complete' runs all subsets: {count} features have {2**count - 1:,}; "
            f"it takes at most {_MOST_FEATURES} features (covering:t=2 reaches all pairs in a few)"
        )
    return [bits for bits in range(1, 1 << count) if not space.violated(bits)]
