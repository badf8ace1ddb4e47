"""All points, one after the other: in the space's order, or in one that looks random."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from swarmtest.search.engines.engine import Walk, chances
from swarmtest.search.permutation import Permutation
from swarmtest.search.points import size_of
from swarmtest.seeds import Stream
from swarmtest.space import Proposal, Space


@dataclass
class Sequential:
    """Every point of the space, in its order; then there is nothing left.

    >>> from swarmtest import Integer
    >>> space = Space([Integer("n", 1, 3)])
    >>> engine = Sequential()
    >>> [engine.ask(space, trial, Stream()).configuration["n"] for trial in range(3)]
    [1, 2, 3]
    """

    strategy_name: ClassVar[str] = "sequential"

    _walk: Walk | None = field(default=None, init=False, repr=False, compare=False)

    def prepare(self, space: Space) -> None:
        """Start from the first point."""
        self._walk = Walk(space, lambda place: place)

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """The point whose turn it is."""
        if self._walk is None:
            self.prepare(space)
        assert self._walk is not None
        return Proposal(self._walk.at(trial))


@dataclass
class RandomOrder:
    """Every point of the space once, in random order, however large the space is.

    The order is a pseudo-random permutation that is computed, not stored.

    >>> from swarmtest import Integer
    >>> space = Space([Integer("n", 1, 10**12)])
    >>> engine = RandomOrder()
    >>> len({engine.ask(space, trial, Stream(1)).configuration["n"] for trial in range(1000)})
    1000
    """

    strategy_name: ClassVar[str] = "random"

    _walk: Walk | None = field(default=None, init=False, repr=False, compare=False)

    def prepare(self, space: Space) -> None:
        """Forget the order of another space or campaign."""
        self._walk = None

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """The point whose turn it is."""
        if self._walk is None:
            order = Permutation(size_of(space), rng.of_campaign(0).getrandbits(64))
            self._walk = Walk(space, order.at)
        point = self._walk.at(trial)
        return Proposal(point, chances(space, point))
