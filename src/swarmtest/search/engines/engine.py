"""Engines of our own (all points in order, in random order, hill climbing), and what they share.

An engine proposes the points of a search. It is a strategy: ``ask(space, trial, rng)`` returns a
point, and ``tell(result)`` lets it learn. An engine that looks for the best point has an attribute
`fitness`, which the search sets. An engine with nothing left to propose raises `SpaceExhausted`.

A user's own engine is a class with ``ask``, and with ``tell`` if it learns; its name is
``module:Class``. See docs/extending.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.result import Result
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import Stream, mixed
from swarmtest.core.space import Space
from swarmtest.search.results import Fitness, Score
from swarmtest.search.space import is_allowed, neighbours, point_at, size_of

_FORBIDDEN_IN_A_ROW = 100_000

Judge = Callable[[Result], Score]

USUAL_FITNESS: Judge = Fitness("hits")


class SpaceExhausted(UserError):
    """Raised when an engine has nothing left to propose.

    >>> raise SpaceExhausted("all 8 points are explored")
    Traceback (most recent call last):
    ...
    swarmtest.search.engines.engine.SpaceExhausted: all 8 points are explored
    """


def propensities_of(space: Space, point: Configuration) -> tuple[float, ...]:
    """Return each feature's propensity if all allowed points are equally likely: 0.5, or no choice.

    >>> space = Space(["push", "pop"])
    >>> propensities_of(space, space.configuration(["pop"]))
    (0.5, 0.5)
    """
    result = []
    for number in range(len(space.features)):
        other = Configuration(space, point.bits ^ 1 << number, None, tuple(point.settings.values()))
        free = not other.bits or is_allowed(space, other)
        result.append(0.5 if free else float(point.bits >> number & 1))
    return tuple(result)


class PointWalk:
    """The allowed points of a space, in the order in which a function returns their numbers.

    The n-th point is found from the (n-1)-th, so going forward is cheap. If nothing is forbidden,
    any point is found at once.

    >>> walk = PointWalk(Space(["push", "pop"]), lambda place: place)
    >>> [str(walk.at(n)) for n in range(3)]
    ['-push pop', 'push -pop', 'push pop']
    """

    def __init__(self, space: Space, number_at: Callable[[int], int]) -> None:
        self._space = space
        self._number_at = number_at
        self._size = size_of(space)
        self._free = not space.features and not getattr(space, "forbidden", ())
        self._next = self._place = 0

    def at(self, count: int) -> Configuration:
        """Return the allowed point after `count` others."""
        if self._free:
            return self._point(count)
        if count < self._next:
            self._next = self._place = 0
        while True:
            point = self._next_allowed()
            self._next += 1
            if self._next > count:
                return point

    def _next_allowed(self) -> Configuration:
        for _ in range(_FORBIDDEN_IN_A_ROW):
            point = self._point(self._place)
            self._place += 1
            if is_allowed(self._space, point):
                return point
        raise UserError(
            f"{_FORBIDDEN_IN_A_ROW:,} points in a row are forbidden: leave values out of the "
            "dimensions instead"
        )

    def _point(self, place: int) -> Configuration:
        if place >= self._size:
            which = f"all {self._size:,} points" if self._free else "all points that are allowed"
            raise SpaceExhausted(f"{which} are explored")
        return point_at(self._space, self._number_at(place))


# All points, one after the other.

_ROUNDS = 6
_WORD = (1 << 64) - 1


@dataclass
class Sequential:
    """Proposes every point of the space, in the space's order.

    >>> from swarmtest import Integer
    >>> space = Space([Integer("n", 1, 3)])
    >>> engine = Sequential()
    >>> [engine.ask(space, trial, Stream()).configuration["n"] for trial in range(3)]
    [1, 2, 3]
    """

    strategy_name: ClassVar[str] = "sequential"

    _walk: PointWalk | None = field(default=None, init=False, repr=False, compare=False)

    def prepare(self, space: Space) -> None:
        """Start from the first point."""
        self._walk = PointWalk(space, lambda place: place)

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Return the next point."""
        if self._walk is None:
            self.prepare(space)
        assert self._walk is not None
        return Proposal(self._walk.at(trial))


@dataclass
class RandomOrder:
    """Proposes every point of the space once, in random order, however large the space is.

    The order is a pseudo-random permutation that is computed, not stored.

    >>> from swarmtest import Integer
    >>> space = Space([Integer("n", 1, 10**12)])
    >>> engine = RandomOrder()
    >>> len({engine.ask(space, trial, Stream(1)).configuration["n"] for trial in range(1000)})
    1000
    """

    strategy_name: ClassVar[str] = "random"

    _walk: PointWalk | None = field(default=None, init=False, repr=False, compare=False)

    def prepare(self, space: Space) -> None:
        """Forget the order of another space or campaign."""
        self._walk = None

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Return the next point."""
        if self._walk is None:
            order = Permutation(size_of(space), rng.of_campaign(0).getrandbits(64))
            self._walk = PointWalk(space, order.at)
        point = self._walk.at(trial)
        return Proposal(point, propensities_of(space, point))


# A pseudo-random permutation that takes no memory.
#
# A Feistel network maps numbers of b bits one to one, whatever its round function is. Numbers
# beyond the size are mapped again until they are below it ("cycle walking": Black and Rogaway,
# "Ciphers with arbitrary finite domains", 2002), which keeps the map one to one. The network has at
# most four times as many numbers as needed, so this takes at worst four rounds on average.


class Permutation:
    """A pseudo-random order of ``range(size)``; `at` computes any position of it directly.

    >>> order = Permutation(10, key=1)
    >>> sorted(order.at(place) for place in range(10)) == list(range(10))
    True
    >>> Permutation(10**30, key=1).at(5) < 10**30
    True
    """

    def __init__(self, size: int, key: int) -> None:
        self.size = size
        self._half = max(1, ((size - 1).bit_length() + 1) // 2)
        self._mask = (1 << self._half) - 1
        self._keys = [mixed((key + number) & _WORD) for number in range(_ROUNDS)]

    def at(self, place: int) -> int:
        """Return the number at a position."""
        if not 0 <= place < self.size:
            raise IndexError(f"a place is from 0 to {self.size - 1}, not {place}")
        number = self._network(place)
        while number >= self.size:
            number = self._network(number)
        return number

    def _network(self, number: int) -> int:
        left, right = number >> self._half, number & self._mask
        for key in self._keys:
            left, right = right, left ^ (_mixed_bits(right, key, self._half) & self._mask)
        return left << self._half | right


def _mixed_bits(number: int, key: int, bits: int) -> int:
    """Return `bits` well-mixed bits of a number of that many bits."""
    result = mixed((number & _WORD) ^ key)
    if bits <= 64:
        return result
    state = result
    while number := number >> 64:
        state = mixed(state ^ (number & _WORD))
    for _ in range(bits // 64):
        state = mixed(state + 1 & _WORD)
        result = result << 64 | state
    return result


# Hill climbing: try all neighbours, move to the best, restart elsewhere at a local optimum.


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
