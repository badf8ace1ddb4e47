"""A test of Python code whose hits are what it reached: lines, branches and the rest."""

from __future__ import annotations

from collections.abc import Iterator

from swarmtest.instrument.watch import Coverage
from swarmtest.result import Result
from swarmtest.search.executors.executor import Executor, most_runs
from swarmtest.search.executors.wrapping import check_executor
from swarmtest.space import Configuration, Space


class CoveredExecutor:
    """A test that runs in this process, with what it reached among its hits.

    The coverage has to be installed before the program is imported.

    >>> import sys
    >>> from swarmtest import Coverage, CoverageOptions, FunctionExecutor, SearchSpace, Test
    >>> _ = sys.modules.pop("colorsys", None)
    >>> with Coverage(CoverageOptions(("line",), cover=("colorsys",))) as coverage:
    ...     import colorsys
    ...     hue = FunctionExecutor(lambda: {"hue": colorsys.rgb_to_hsv(1, 0, 0)[0]}, "hue")
    ...     covered = CoveredExecutor(hue, coverage)
    ...     space = SearchSpace([Test("test", ["hue"])], {"hue": covered})
    ...     result = covered.run(space.default(), iter([1]))[0]
    >>> len(result.covered[0].targets()) > 5
    True
    """

    def __init__(self, test: Executor, coverage: Coverage) -> None:
        self.test = test
        self.name = test.name
        self._coverage = coverage

    @property
    def uses(self) -> frozenset[str] | None:
        """What the test inside uses."""
        return self.test.uses

    def check(self, space: Space) -> None:
        """What is wrong with the test inside."""
        check_executor(self.test, space)

    def most_runs(self, point: Configuration) -> int | None:
        """As many as the test inside."""
        return most_runs(self.test, point)

    def run(self, point: Configuration, seeds: Iterator[int]) -> list[Result]:
        """Run the test, and see what it reaches; of several runs, what they reach together."""
        self._coverage.reset()
        results = self.test.run(point, seeds)
        reached = self._coverage.take()
        return [result._replace(covered=(reached, *result.covered)) for result in results]
