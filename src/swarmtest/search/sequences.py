"""Sequences of points: which few points together reach everything (the paper's table 3).

Each step of the greedy sequence takes the point that adds most to what those before it reached.
The number of targets that a point adds never grows as others are taken, so points are kept in a
heap by what they last added, and most are never looked at again (Minoux's accelerated greedy
algorithm).
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass

from pyroaring import BitMap

from swarmtest.core.configuration import Configuration
from swarmtest.search.exploration import Exploration


@dataclass(frozen=True)
class Step:
    """A point of a sequence, and what is reached up to it."""

    point: Configuration
    new: int
    """The targets that it adds."""
    reached: int
    """The targets that it and those before it reach."""
    runs: int
    """The runs of the test at it and at those before it."""


@dataclass(frozen=True)
class Sequence:
    """Points in an order, up to the one with which everything is reached."""

    steps: tuple[Step, ...]
    total: int
    """The targets that the whole exploration reached."""

    @property
    def points(self) -> list[Configuration]:
        """Return the points in their order."""
        return [step.point for step in self.steps]


def best_sequence(exploration: Exploration, most: int | None = None) -> Sequence:
    """Return the greedy sequence, until everything is reached or `most` points are taken.

    >>> from swarmtest import Integer, Test, open_store
    >>> from swarmtest.search import Search, SearchSpace
    >>> def sell(n): return {"hits": ["common"] + ["a"] * (n > 2) + ["b"] * (n == 1)}
    >>> space = SearchSpace([Integer("n", 1, 4), Test("test", ["sell"])], {"sell": sell})
    >>> with open_store(":memory:") as store:
    ...     outcome = Search(space, "sequential", store=store).run()
    ...     sequence = best_sequence(Exploration.load(store, outcome.campaign))
    >>> [(step.point["n"], step.reached) for step in sequence.steps]
    [(1, 2), (3, 3)]
    """
    total = len(exploration.reached())
    points = exploration.points
    heap = [(-len(exploration.hits(point)), number) for number, point in enumerate(points)]
    heapq.heapify(heap)
    reached, steps = BitMap(), list[Step]()
    while heap and len(reached) < total and (most is None or len(steps) < most):
        _, number = heapq.heappop(heap)
        new = len(exploration.hits(points[number]) - reached)
        # Its last known addition may be outdated; put it back if another may add more now.
        if heap and (-new, number) > heap[0]:
            heapq.heappush(heap, (-new, number))
            continue
        reached |= exploration.hits(points[number])
        steps.append(_step(exploration, points[number], new, len(reached), steps))
    return Sequence(tuple(steps), total)


def random_sequence(exploration: Exploration, seed: int) -> Sequence:
    """Return all points in random order, up to the one with which everything is reached."""
    points = list(exploration.points)
    random.Random(seed).shuffle(points)
    total = len(exploration.reached())
    reached, steps = BitMap(), list[Step]()
    for point in points:
        new = len(exploration.hits(point) - reached)
        reached |= exploration.hits(point)
        steps.append(_step(exploration, point, new, len(reached), steps))
        if len(reached) == total:
            break
    return Sequence(tuple(steps), total)


def _step(
    exploration: Exploration, point: Configuration, new: int, reached: int, before: list[Step]
) -> Step:
    runs = len(exploration.runs[point]) + (before[-1].runs if before else 0)
    return Step(point, new, reached, runs)
