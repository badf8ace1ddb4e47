"""A space of many dimensions laid out along one line: the paper's figure 4.

Points are ordered by the dimension that explains most of the measure, then by the next, and so on,
like the digits of a number. What matters shows as large hills, what does not as noise on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from swarmtest.errors import UserError, did_you_mean
from swarmtest.search.correlation import correlations
from swarmtest.search.exploration import Exploration
from swarmtest.search.points import digits_of
from swarmtest.space import Configuration


@dataclass(frozen=True)
class Collapsed:
    """The points of an exploration in a row, with a measure of each."""

    measure: str
    dimensions: tuple[str, ...]
    """From the one that changes slowest to the one that changes fastest."""
    points: tuple[Configuration, ...]
    values: tuple[float, ...]

    def blocks(self, depth: int = 1) -> list[tuple[int, tuple[object, ...]]]:
        """Where the values of the first `depth` dimensions change, and what they are there."""
        found: list[tuple[int, tuple[object, ...]]] = []
        for at, point in enumerate(self.points):
            label = tuple(point[name] for name in self.dimensions[:depth])
            if not found or found[-1][1] != label:
                found.append((at, label))
        return found


def collapsed(exploration: Exploration, measure: str, by: Sequence[str] = ()) -> Collapsed:
    """An exploration along one line; `by` names the dimensions that change slowest.

    >>> from swarmtest import Choice, Integer, Search, SearchSpace, Test, open_store
    >>> def sell(n, kind): return {"sold": n + 100 * (kind == "b")}
    >>> dimensions = [Integer("n", 1, 5), Choice("kind", ["a", "b"]), Test("test", ["sell"])]
    >>> with open_store(":memory:") as store:
    ...     outcome = Search(SearchSpace(dimensions, {"sell": sell}), store=store).run()
    ...     line = collapsed(Exploration.load(store, outcome.campaign), "sold")
    >>> line.dimensions, line.values[4:6], line.blocks()
    (('kind', 'n'), (5.0, 101.0), [(0, ('a',)), (5, ('b',))])
    """
    varied = [correlation.dimension for correlation in correlations(exploration, [measure])]
    for name in by:
        if name not in varied:
            raise UserError(f"no dimension {name!r} varies here{did_you_mean(name, varied)}")
    names = [*by, *(name for name in varied if name not in by)]
    places = [[d.name for d in exploration.space.dimensions].index(name) for name in names]
    values = exploration.values(measure)
    order = sorted(
        range(len(values)),
        key=lambda at: [digits_of(exploration.points[at])[place] for place in places],
    )
    points = tuple(exploration.points[at] for at in order)
    return Collapsed(measure, tuple(names), points, tuple(values[at] for at in order))
