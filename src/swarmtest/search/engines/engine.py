"""What the engines share: the fitness type, iterating over allowed points, and the end of a space.

An engine is a strategy: ``ask(space, trial, rng)`` returns a point, and ``tell(result)`` lets it
learn. An engine that looks for the best point has an attribute `fitness`, which the search sets.
An engine with nothing left to propose raises `SpaceExhausted`.

A user's own engine is a class with ``ask``, and with ``tell`` if it learns; its name is
``module:Class``. See docs/extending.md.
"""

from __future__ import annotations

from collections.abc import Callable

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.result import Result
from swarmtest.core.space import Space
from swarmtest.search.results import Fitness, Score
from swarmtest.search.space import is_allowed, point_at, size_of

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


def chances(space: Space, point: Configuration) -> tuple[float, ...]:
    """Return each feature's propensity if all allowed points are equally likely: 0.5, or no choice.

    >>> space = Space(["push", "pop"])
    >>> chances(space, space.configuration(["pop"]))
    (0.5, 0.5)
    """
    result = []
    for number in range(len(space.features)):
        other = Configuration(space, point.bits ^ 1 << number, None, tuple(point.settings.values()))
        free = not other.bits or is_allowed(space, other)
        result.append(0.5 if free else float(point.bits >> number & 1))
    return tuple(result)


class Walk:
    """The allowed points of a space, in the order in which a function returns their numbers.

    The n-th point is found from the (n-1)-th, so going forward is cheap. If nothing is forbidden,
    any point is found at once.

    >>> walk = Walk(Space(["push", "pop"]), lambda place: place)
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
