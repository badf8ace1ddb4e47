"""The default configuration, every feature on: ordinary random testing (the papers' C_D)."""

from __future__ import annotations

from dataclasses import dataclass

from swarmtest.seeds import Stream
from swarmtest.space import Configuration, Proposal, Space
from swarmtest.space.sampling import draw_settings
from swarmtest.strategies.strategy import register


@register("default")
@dataclass(frozen=True)
class Default:
    """All features on, in every test.

    >>> print(Default().ask(Space(["push", "pop"]), 0, Stream()).configuration)
    push pop
    """

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """C_D, with settings that are not features drawn uniformly."""
        bits = space.default().bits
        configuration = Configuration(space, bits, None, draw_settings(space, rng))
        return Proposal(configuration, (1.0,), "default")
