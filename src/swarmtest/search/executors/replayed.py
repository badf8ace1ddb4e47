"""A recorded exploration in place of a test: the results are there at once, and always the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from swarmtest.result import Result
from swarmtest.space import Configuration

if TYPE_CHECKING:
    from swarmtest.search.exploration import Exploration


class ReplayedExecutor:
    """Answers with what was recorded at a point.

    >>> from swarmtest import Exploration, Search, SearchSpace, Test, open_store
    >>> space = SearchSpace([Test("test", ["f"])], {"f": lambda: {"size": 3}})
    >>> with open_store(":memory:") as store:
    ...     outcome = Search(space, "sequential", store=store).run()
    ...     replayed = ReplayedExecutor(Exploration.load(store, outcome.campaign))
    >>> replayed.run(space.default(), iter([1]))[0].measures
    {'size': 3.0}
    """

    def __init__(self, exploration: Exploration) -> None:
        self._exploration = exploration
        self.name = "replayed"

    @property
    def uses(self) -> frozenset[str] | None:
        """All that it was recorded with."""
        return None

    def most_runs(self, point: Configuration) -> int:
        """As many as were recorded there."""
        return len(self._exploration.runs.get(point, ()))

    def run(self, point: Configuration, seeds: Iterator[int]) -> list[Result]:
        """All results that were recorded there, in their order."""
        results = self._exploration.results(point)
        for _ in results:
            next(seeds)
        return results
