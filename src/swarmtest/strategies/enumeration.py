"""Strategies without chance: the default configuration, and all subsets of the features in turn.

``all-on`` turns every feature on: ordinary random testing (the papers' C_D). ``complete`` is for
small spaces.
"""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.sampling import Proposal, draw_settings, toss
from swarmtest.core.seeds import Stream, key_of
from swarmtest.core.space import Space
from swarmtest.strategies.strategy import register

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
    """Every subset that the constraints allow, one after the other, then again from the start.

    The order is shuffled, so that a campaign that ends before it has run all subsets has still
    had every feature in about half of its tests.

    >>> space = Space(["push", "pop"])
    >>> sorted(str(Complete().ask(space, trial, Stream()).configuration) for trial in range(3))
    ['-push pop', 'push -pop', 'push pop']
    """

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Propose the subset of this trial."""
        if not space.features:
            return toss(space, (), rng)
        subsets = _subsets(space)
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
def _subsets(space: Space) -> list[int]:
    count = len(space.features)
    if count > _MOST_FEATURES:
        raise UserError(
            f"strategy 'complete' runs all subsets: {count} features have {2**count - 1:,}; "
            f"it takes at most {_MOST_FEATURES} features (covering:t=2 reaches all pairs in a few)"
        )
    subsets = [bits for bits in range(1, 1 << count) if not space.violated(bits)]
    random.Random(key_of("complete")).shuffle(subsets)
    return subsets
