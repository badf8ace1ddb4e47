"""Executors around executors: with a time limit, repeated, with tasks, or with coverage."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.space import Space
from swarmtest.core.targets import Catalogue
from swarmtest.coverage.watch import Coverage
from swarmtest.processes.fork_pool import IsolatedRun, wait_for_any
from swarmtest.processes.shared_limit import use_limit
from swarmtest.search.executors.command import TaskLike, task_of
from swarmtest.search.executors.function import Executor, most_runs
from swarmtest.search.results import MovingResult, moving
from swarmtest.search.stopping import AfterRuns, IterationChecker

_MOST_RUNS = 10_000


class _WrappingExecutor:
    """An executor around another one, with the same name and dimensions."""

    def __init__(self, test: Executor) -> None:
        self.test = test
        self.name = test.name

    @property
    def uses(self) -> frozenset[str] | None:
        """Return what the test inside uses."""
        return self.test.uses

    def check(self, space: Space) -> None:
        """Raise an error if something is wrong with the test inside."""
        check_executor(self.test, space)

    def most_runs(self, point: Configuration) -> int | None:
        """Return how many results the test inside returns at most."""
        return most_runs(self.test, point)


def check_executor(test: Executor, space: Space) -> None:
    """Let an executor raise an error about a space, if it has a check."""
    check: Any = getattr(test, "check", None)
    if check is not None:
        check(space)


class TimedExecutor(_WrappingExecutor):
    """A test in a process of its own, which is killed when its time is up.

    If that process crashes, the test has failed; the search goes on.

    >>> import time
    >>> from swarmtest import Test
    >>> from swarmtest.search import FunctionExecutor, SearchSpace
    >>> slow = TimedExecutor(FunctionExecutor(lambda: time.sleep(9), "slow"), seconds=0.1)
    >>> space = SearchSpace([Test("test", ["slow"])], {"slow": slow})
    >>> slow.run(space.default(), iter([1]))[0].fault.kind
    'timeout'
    """

    def __init__(self, test: Executor, seconds: float) -> None:
        if seconds <= 0:
            raise UserError(f"the time limit of a test is above 0 s, not {seconds:g}")
        super().__init__(test)
        self.seconds = seconds
        self._catalogue = Catalogue()

    def run(self, point: Configuration, seeds: Iterator[int]) -> list[Result]:
        """Run the test in a process of its own."""
        first = next(seeds)

        def results() -> list[MovingResult]:
            use_limit(None)  # this process has a limit of its own
            return [*map(moving, self.test.run(point, itertools.chain([first], seeds)))]

        process = IsolatedRun(results, self.seconds, quiet=True)
        try:
            wait_for_any([process])
        finally:
            process.end()
        answer = process.outcome()
        if isinstance(answer, Fault):
            spent = self.seconds if answer.kind == "timeout" else 0.0
            return [Result(Verdict.FAILED, answer, wall_seconds=spent)]
        for _ in answer[1:]:
            next(seeds)  # the process took them from its own copy of the iterator
        return [moved.arrived(self._catalogue) for moved in answer]


class RepeatedExecutor(_WrappingExecutor):
    """A test that is repeated until one of some checkers says that it is enough.

    >>> from swarmtest import Test
    >>> from swarmtest.search import AfterRuns, FunctionExecutor, SearchSpace
    >>> often = RepeatedExecutor(FunctionExecutor(lambda: None, "often"), AfterRuns(3))
    >>> space = SearchSpace([Test("test", ["often"])], {"often": often})
    >>> len(often.run(space.default(), iter(range(9))))
    3
    """

    def __init__(self, test: Executor, *until: IterationChecker, most: int = _MOST_RUNS) -> None:
        """Repeat a test at most `most` times, whatever the checkers say."""
        super().__init__(test)
        if not until:
            raise UserError("say when repetition ends: AfterRuns(20), WhenSaturated(), ...")
        self._until = (*until, AfterRuns(most))
        self._most = min(checker.runs for checker in self._until if isinstance(checker, AfterRuns))

    def most_runs(self, point: Configuration) -> int | None:
        """Return how many results there are at most."""
        inside = most_runs(self.test, point)
        return None if inside is None else self._most - 1 + inside

    def run(self, point: Configuration, seeds: Iterator[int]) -> list[Result]:
        """Run the test until a checker says that it is enough."""
        checks = [checker.begin() for checker in self._until]
        results: list[Result] = []
        while True:
            latest = self.test.run(point, seeds)
            results += latest
            # All checkers see every result, so this must not stop at the first that is satisfied.
            answers = [enough(result) for result in latest for enough in checks]
            if any(answers):
                return results


class ComposedExecutor(_WrappingExecutor):
    """A test with a task before it, one after it, or both.

    If the task before it fails, the test does not run, and its result is invalid. The task after it
    is performed whenever the test was started.

    >>> from swarmtest import Test
    >>> from swarmtest.search import FunctionExecutor, SearchSpace
    >>> done = []
    >>> test = FunctionExecutor(lambda: done.append("test"), "test")
    >>> composed = ComposedExecutor(test, before=lambda: done.append("before"))
    >>> space = SearchSpace([Test("test", ["test"])], {"test": composed})
    >>> composed.run(space.default(), iter([1]))[0].verdict.label, done
    ('passed', ['before', 'test'])
    """

    def __init__(
        self, test: Executor, before: TaskLike | None = None, after: TaskLike | None = None
    ) -> None:
        super().__init__(test)
        self._before = task_of(before) if before is not None else None
        self._after = task_of(after) if after is not None else None

    def check(self, space: Space) -> None:
        """Raise an error if something is wrong with the test or the tasks."""
        super().check(space)
        for task in (self._before, self._after):
            if task is not None:
                task.check(space)

    def run(self, point: Configuration, seeds: Iterator[int]) -> list[Result]:
        """Perform the task before, the test, and the task after."""
        try:
            if self._before is not None:
                self._before.perform(point)
        except UserError as error:
            next(seeds)
            return [Result(Verdict.INVALID, missing=f"before the test: {error}")]
        try:
            return self.test.run(point, seeds)
        finally:
            if self._after is not None:
                self._after.perform(point)


def once(test: Executor) -> Executor:
    """Return the test inside any repetition.

    >>> from swarmtest.search import AfterRuns, FunctionExecutor
    >>> once(RepeatedExecutor(FunctionExecutor(print), AfterRuns(3))).most_runs(None)
    1
    """
    while isinstance(test, RepeatedExecutor):
        test = test.test
    return test


def wrap_executor(
    test: Executor,
    seconds: float | None = None,
    until: Iterable[IterationChecker] = (),
    before: TaskLike | None = None,
    after: TaskLike | None = None,
) -> Executor:
    """Return a test with these wrappers; tasks and time limit apply to each single run.

    >>> from swarmtest.search import FunctionExecutor
    >>> wrap_executor(FunctionExecutor(print)).name
    'print'
    """
    if before is not None or after is not None:
        test = ComposedExecutor(test, before, after)
    if seconds is not None:
        test = TimedExecutor(test, seconds)
    checkers = tuple(until)
    return RepeatedExecutor(test, *checkers) if checkers else test


class CoveredExecutor(_WrappingExecutor):
    """A test that runs in this process, and whose hits include the code that it reached.

    The coverage has to be installed before the program under test is imported.

    >>> import sys
    >>> from swarmtest import Coverage, Test
    >>> from swarmtest.coverage import CoverageOptions
    >>> from swarmtest.search import FunctionExecutor, SearchSpace
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
        super().__init__(test)
        self._coverage = coverage

    def run(self, point: Configuration, seeds: Iterator[int]) -> list[Result]:
        """Run the test and add what it reaches; of several runs, what they reach together."""
        self._coverage.reset()
        results = self.test.run(point, seeds)
        reached = self._coverage.take()
        return [result._replace(covered=(reached, *result.covered)) for result in results]
