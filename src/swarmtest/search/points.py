"""The points of a space by number, and the points next to a point.

Nothing is stored: a point is its digits in the numbers of values that the dimensions have, with the
first dimension as the highest digit. A feature has two values here, off and on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from swarmtest.space import Choice, Configuration, Feature, Scalar, Space, Test
from swarmtest.space.dimensions import Dimension

_OFF_AND_ON: tuple[Scalar, ...] = (0, 1)


def values_of(dimension: Dimension) -> Sequence[Scalar]:
    """The values that a dimension has in a search, in order.

    >>> values_of(Feature("push"))
    (0, 1)
    """
    return _OFF_AND_ON if isinstance(dimension, Feature) else dimension.values


def is_ordered(dimension: Dimension) -> bool:
    """Whether values that stand next to each other resemble each other.

    >>> is_ordered(Choice("kind", ["sleep", "yield"]))
    False
    """
    return dimension.ordered if isinstance(dimension, Choice) else not isinstance(dimension, Test)


def size_of(space: Space) -> int:
    """How many points a space has, the forbidden ones among them.

    >>> size_of(Space([Feature("push"), Choice("kind", ["a", "b", "c"])]))
    6
    """
    return math.prod(len(values_of(dimension)) for dimension in space.dimensions)


def point_at(space: Space, number: int) -> Configuration:
    """The point of a number.

    >>> print(point_at(Space([Feature("push"), Choice("kind", ["a", "b", "c"])]), 4))
    push kind=b
    """
    digits: list[int] = []
    for dimension in reversed(space.dimensions):
        number, digit = divmod(number, len(values_of(dimension)))
        digits.append(digit)
    return point_of(space, digits[::-1])


def point_of(space: Space, digits: Sequence[int]) -> Configuration:
    """The point whose values stand at these places among those of their dimensions.

    >>> print(point_of(Space([Feature("push"), Choice("kind", ["a", "b", "c"])]), [0, 2]))
    -push kind=c
    """
    bits, bit, settings = 0, 1, []
    for dimension, digit in zip(space.dimensions, digits, strict=True):
        if isinstance(dimension, Feature):
            bits |= bit if digit else 0
            bit <<= 1
        else:
            settings.append(dimension.values[digit])
    return Configuration(space, bits, None, tuple(settings))


def digits_of(point: Configuration) -> list[int]:
    """Where its values stand among those of their dimensions.

    >>> digits_of(Space([Feature("push"), Choice("kind", ["a", "b"])]).configuration({"push": 1}))
    [1, 0]
    """
    return [
        int(point[d.name] > 0) if isinstance(d, Feature) else d.values.index(point[d.name])
        for d in point.space.dimensions
    ]


def number_of(point: Configuration) -> int:
    """The number of a point.

    >>> space = Space([Feature("push"), Choice("kind", ["a", "b", "c"])])
    >>> number_of(point_at(space, 4))
    4
    """
    number = 0
    for dimension, digit in zip(point.space.dimensions, digits_of(point), strict=True):
        number = number * len(values_of(dimension)) + digit
    return number


def is_allowed(space: Space, point: Configuration) -> bool:
    """Whether a point may be explored: constraints on features hold, and nothing forbids it.

    >>> is_allowed(Space(["push", "pop"]), point_at(Space(["push", "pop"]), 0))
    False
    """
    if space.features and space.violated(point.bits):
        return False
    allows = getattr(space, "allows", None)
    return allows is None or bool(allows(point))


def neighbours(point: Configuration, by: str = "") -> Iterator[Configuration]:
    """The points that differ in one dimension (only in `by`, if given), allowed or not.

    Where values are ordered, the next lower and the next higher one; all others where they are not.

    >>> space = Space([Choice("level", [1, 2, 3], ordered=True), Choice("kind", ["a", "b", "c"])])
    >>> [str(near) for near in neighbours(space.default())]
    ['level=2 kind=a', 'level=1 kind=b', 'level=1 kind=c']
    """
    digits = digits_of(point)
    for place, dimension in enumerate(point.space.dimensions):
        if by and dimension.name != by:
            continue
        here, count = digits[place], len(values_of(dimension))
        near = (here - 1, here + 1) if is_ordered(dimension) else range(count)
        for digit in near:
            if 0 <= digit < count and digit != here:
                yield point_of(point.space, [*digits[:place], digit, *digits[place + 1 :]])
