"""How many features first, then which: every size of configuration is equally likely.

A fair coin over 23 features hardly ever leaves out fewer than four or more than nineteen; bugs that
need nearly all features, or nearly none, live there.
"""

from __future__ import annotations

from dataclasses import dataclass

from swarmtest.errors import UserError
from swarmtest.seeds import Stream
from swarmtest.space import Proposal, Space, toss, weigh
from swarmtest.space.odds import alike_given_the_others
from swarmtest.strategies.strategy import register


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
        """The features with the smallest draws; constraints may add or remove some."""
        count = len(space.features)
        if not count:
            return toss(space, (), rng)
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
        # From one feature on stands for "from none on": a test with none is never run.
        sizes = [float((low if low > 1 else 0) <= s <= high) for s in range(count + 1)]
        chances = alike_given_the_others(sizes, sum(1 << number for number in chosen))
        return weigh(space, weights, rng, chances, f"size {size}")
