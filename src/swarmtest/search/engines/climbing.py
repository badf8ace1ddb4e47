"""Hill climbing: try all neighbours, move to the best, and restart elsewhere at a local optimum."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import ClassVar

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.result import Result
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import Stream
from swarmtest.core.space import Space
from swarmtest.search.engines.engine import USUAL_FITNESS, Judge, SpaceExhausted
from swarmtest.search.engines.sequential import RandomOrder
from swarmtest.search.results import Score
from swarmtest.search.space import is_allowed, neighbours


@dataclass
class HillClimbing:
    """Climbs from a random point to its best neighbour while that is better; then restarts.

    Neighbours differ in one dimension; if `by` names a dimension, only that one is varied. After
    `restarts` restarts it stops; without a number it continues until everything is explored. No
    point is proposed twice.

    >>> from swarmtest import Integer, Test
    >>> from swarmtest.search import Search, SearchSpace
    >>> def hill(x): return {"height": -(x - 40) ** 2}
    >>> space = SearchSpace([Integer("x", 0, 100), Test("test", ["hill"])], {"hill": hill})
    >>> climb = HillClimbing(restarts=0)
    >>> Search(space, climb, fitness="height", store=":memory:").run().best["x"]
    40
    """

    strategy_name: ClassVar[str] = "climb"

    by: str = ""
    restarts: int | None = None
    fitness: Judge = field(default=USUAL_FITNESS, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._scores: dict[Configuration, Score | None] = {}
        self._waiting: deque[Configuration] = deque()
        self._round: list[Configuration] = []
        self._top: Configuration | None = None
        self._beginnings = 0
        self._starts = 0
        self._random = RandomOrder()

    def prepare(self, space: Space) -> None:
        """Start again, in a space."""
        names = [dimension.name for dimension in space.dimensions]
        if self.by and self.by not in names:
            raise UserError(f"climb: no dimension {self.by!r}{did_you_mean(self.by, names)}")
        if self.restarts is not None and not isinstance(self.restarts, int):
            raise UserError(f"climb: restarts is a whole number, not {self.restarts!r}")
        self.__post_init__()

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Return the next neighbour, or the next starting point."""
        if not self._waiting and not self._has_unscored():
            self._step(space)
        if self._waiting:
            point, origin = self._waiting.popleft(), "neighbour"
        else:
            point, origin = self._begin(space, rng), "beginning"
        self._scores[point] = None
        self._round.append(point)
        return Proposal(point, origin=origin)

    def tell(self, result: Result) -> None:
        """Remember how good a point is."""
        if result.configuration is not None:
            self._scores[result.configuration] = self.fitness(result)

    def _has_unscored(self) -> bool:
        return any(self._scores[point] is None for point in self._round)

    def _step(self, space: Space) -> None:
        """Move to the best point of the round, if it is better, and queue its neighbours."""
        while True:
            best = max(self._round, key=self._height, default=None)
            self._round = []
            if best is None or (self._top and self._height(best) <= self._height(self._top)):
                self._top = None
                return
            self._top = best
            for near in neighbours(best, self.by):
                if not is_allowed(space, near):
                    continue
                if near in self._scores:
                    self._round.append(near)
                else:
                    self._waiting.append(near)
            if self._waiting:
                return

    def _height(self, point: Configuration) -> Score:
        return self._scores[point] or ()

    def _begin(self, space: Space, rng: Stream) -> Configuration:
        """Return a random new point to start from; raise `SpaceExhausted` after enough restarts."""
        if self._top is None:
            if self.restarts is not None and self._beginnings > self.restarts:
                tops = "top" if self.restarts == 0 else "tops"
                raise SpaceExhausted(f"{self._beginnings} {tops} reached")
            self._beginnings += 1
        while True:
            point = self._random.ask(space, self._starts, rng).configuration
            self._starts += 1
            if point not in self._scores:
                return point
