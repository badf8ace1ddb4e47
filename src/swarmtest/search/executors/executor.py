"""What executes a test at a point: the values of a space's test dimension."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Protocol, runtime_checkable

from swarmtest.errors import UserError
from swarmtest.faults import fault_of_exception
from swarmtest.result import Result, Verdict
from swarmtest.search.results import result_of
from swarmtest.space import Configuration


@runtime_checkable
class Executor(Protocol):
    """Runs a test at a point; whatever has these members is one.

    One that also tells how many results it gives at most, by ``most_runs(point)``, can be run by
    several workers.

    >>> from swarmtest import Space, Test
    >>> class Always:
    ...     name, uses = "always", frozenset()
    ...     def run(self, point, seeds):
    ...         return [Result(Verdict.PASSED)]
    >>> isinstance(Always(), Executor)
    True
    """

    @property
    def name(self) -> str:
        """How a person names the test."""

    @property
    def uses(self) -> frozenset[str] | None:
        """The dimensions that make a difference to it; None: it sees all of them."""

    def run(self, point: Configuration, seeds: Iterator[int]) -> list[Result]:
        """Run the test: one result, or as many as it was repeated; each run takes one seed."""


def most_runs(executor: Executor, point: Configuration) -> int | None:
    """How many results an executor gives at most; None if it does not say so.

    >>> from swarmtest import AfterRuns, FunctionExecutor, RepeatedExecutor, SearchSpace, Test
    >>> often = RepeatedExecutor(FunctionExecutor(print, "often"), AfterRuns(3))
    >>> most_runs(often, SearchSpace([Test("test", ["often"])], {"often": often}).default())
    3
    """
    told: Callable[[Configuration], int | None] | None = getattr(executor, "most_runs", None)
    return told(point) if told is not None else None


def timed_result(run: Callable[[], object]) -> Result:
    """What a user's function answered or raised, with the time it took.

    >>> timed_result(lambda: {"sold": 150}).verdict.label, timed_result(lambda: 1 / 0).verdict.label
    ('passed', 'failed')
    """
    wall, cpu = time.monotonic(), time.process_time()
    try:
        result = result_of(run())
    except (UserError, KeyboardInterrupt):
        raise
    except BaseException as error:
        result = Result(Verdict.FAILED, fault_of_exception(error))
    return result._replace(
        wall_seconds=result.wall_seconds or time.monotonic() - wall,
        cpu_seconds=result.cpu_seconds or time.process_time() - cpu,
    )
