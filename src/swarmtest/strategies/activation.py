"""Activation probabilities: a weight per feature and per test (the blog's "simple extension").

On and off reach the axes of the picture; weights also reach what lies between, such as "five pops
for each push". The blog's semantics: a feature that is chosen is skipped with probability
1 - weight, and the step is spent. ``renormalise=yes`` spends no step: features are chosen in
proportion to their weights.
"""

from __future__ import annotations

from dataclasses import dataclass

from swarmtest.seeds import Stream
from swarmtest.space import Proposal, Space, weigh
from swarmtest.strategies.strategy import register


@register("activation")
@dataclass(frozen=True)
class Activation:
    """Every feature's weight is drawn uniformly from 0 to 1.

    >>> weights = Activation().ask(Space(["push", "pop"]), 0, Stream(1)).configuration.weights
    >>> all(0 < weight < 1 for weight in weights)
    True
    """

    renormalise: bool = False
    """Choose in proportion to the weights instead of spending steps."""

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """A weight from the draw of each feature's own name."""
        weights = [rng.named(name) for name in space.feature_names]
        # Constraints may keep a feature out, and then nobody has worked out how often.
        propensities = () if space.clauses else (1.0,)
        return weigh(space, weights, rng, propensities, renormalised=self.renormalise)
