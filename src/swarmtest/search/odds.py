"""How likely each value of a dimension was, given the rest of a point.

Where points are forbidden, the dimensions are not independent: a value may be rare overall and yet
the only one that is allowed beside the others. So the odds are taken point by point.
"""

from __future__ import annotations

from collections.abc import Sequence

from swarmtest.errors import UserError
from swarmtest.search.exploration import Exploration
from swarmtest.search.grouping import Groups
from swarmtest.search.points import digits_of, point_of, values_of
from swarmtest.search.predicates import Predicate, predicate_of
from swarmtest.space import Configuration

_MOST_VALUES = 64
"""A dimension with more values is taken as it was explored."""


class Odds:
    """What was allowed in an exploration.

    An empty set of features counts as allowed, as everywhere: everybody knows what it does. What a
    function of the user's forbade is known only where all that it allows was explored.
    """

    def __init__(self, exploration: Exploration) -> None:
        self._space = exploration.space
        names = [dimension.name for dimension in self._space.dimensions]
        self._predicates: list[Predicate] = []
        for text in exploration.forbid:
            try:
                self._predicates.append(predicate_of(text, names))
            except UserError:  # the name of a function, which no store keeps
                continue
        self._points = len(exploration.points)

    def given_the_rest(
        self, place: int, points: Sequence[Configuration], groups: Groups
    ) -> list[float]:
        """For each group of a dimension's values, its chance at these points, on average."""
        dimension = self._space.dimensions[place]
        count = len(values_of(dimension))
        if count > _MOST_VALUES or len(groups.labels) != count or not points:
            inside = [int((groups.of_points == n).sum()) for n in range(len(groups.labels))]
            return [number / self._points for number in inside]
        totals = [0.0] * count
        for point in points:
            digits = digits_of(point)
            allowed = [n for n in range(count) if self._allows(digits, place, n)]
            for n in allowed:
                totals[n] += 1 / len(allowed)
        return [total / len(points) for total in totals]

    def _allows(self, digits: Sequence[int], place: int, digit: int) -> bool:
        if digits[place] == digit:
            return True
        point = point_of(self._space, [*digits[:place], digit, *digits[place + 1 :]])
        if point.bits and self._space.violated(point.bits):
            return False
        return not any(predicate.forbids(point) for predicate in self._predicates)
