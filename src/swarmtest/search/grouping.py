"""The values of a dimension as a few groups, so that each can be told something about.

Up to 32 values that occur are a group each. Of more, where they have an order, eight groups with
about as many points each stand for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.search.points import is_ordered, values_of
from swarmtest.space.dimensions import Dimension

_MOST_VALUES = 32
_GROUPS = 8


@dataclass(frozen=True)
class Groups:
    """Which group each point is in, and what the groups are called."""

    of_points: npt.NDArray[np.int64]
    labels: tuple[Any, ...]
    places: npt.NDArray[np.int64]
    """Where each point's value stands among all that occur."""


def groups_of(dimension: Dimension, digits: Sequence[int]) -> Groups:
    """The groups of a dimension's values, given where the value of each point stands.

    >>> from swarmtest import Integer
    >>> groups_of(Integer("n", 1, 100), [0, 4, 4]).labels
    (1, 5)
    >>> groups_of(Integer("n", 1, 800), range(800)).labels[:2]
    ('1 to 100', '101 to 200')
    """
    values = values_of(dimension)
    present = sorted(set(digits))
    place = {digit: at for at, digit in enumerate(present)}
    places = np.array([place[digit] for digit in digits], np.int64)
    if len(present) <= _MOST_VALUES or not is_ordered(dimension):
        return Groups(places, tuple(values[digit] for digit in present), places)
    bins = places * _GROUPS // len(present)
    labels = []
    for group in range(_GROUPS):
        inside = [digit for digit, at in place.items() if at * _GROUPS // len(present) == group]
        labels.append(f"{values[inside[0]]} to {values[inside[-1]]}")
    return Groups(bins, tuple(labels), places)
