"""Run tests without a mutant: the baseline that runs with mutants are compared with.

Every test runs twice: once counting its statements, and once as it will run with mutants. A test
that does not end the same way both times is left out.
"""

from __future__ import annotations

import functools
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from swarmtest.core.faults import message_of
from swarmtest.mutate.import_forks import noticed
from swarmtest.mutate.kill_matrix import PASSED
from swarmtest.mutate.loaded_files import OriginalOutcome, Tests, in_turn, outcome_of
from swarmtest.mutate.switching import LiveFile, Steps
from swarmtest.processes.fork_tasks import Forks, ForkTask, TaskAnswer, Tell

_CHUNK = 32
"""How many tests one fork runs without a mutant, so that several processes share the work."""


@dataclass(frozen=True)
class KillLimits:
    """Limits of time and memory, in addition to the budget of steps."""

    seconds: float = 10.0
    """How long a test may take without a mutant."""
    memory: int = 0
    """The bytes of memory that a fork may use; 0: no limit."""
    mutants_per_fork: int = 32
    """How many mutants one process runs, one after the other."""

    def with_mutant(self, seconds: float) -> float:
        """Return the time limit with a mutant for a test that takes `seconds` without one.

        It is generous, because the budget of steps normally stops an endless mutant first.
        """
        return 10.0 + 50.0 * seconds


class Baseline:
    """Runs tests of loaded files without a mutant and keeps how each one ended.

    All files share one budget of steps: a mutant of one file may cause an endless loop in another.
    """

    def __init__(
        self, tests: Tests, files: Sequence[LiveFile], limits: KillLimits, workers: int
    ) -> None:
        self.tests = tests
        self.files = list(files)
        self.limits = limits
        self.workers = workers
        self.originals: dict[int, OriginalOutcome] = {}
        """How each test ends without a mutant; tests that are left out are missing."""
        self.left_out: dict[str, list[str]] = defaultdict(list)
        """The names of tests that are not used, by the reason."""
        self._steps = Steps()
        for file in self.files:
            file.steps = self._steps

    def run(self) -> None:
        """Run every test once, counting, and once more as it will be with mutants."""
        limit = self.limits.seconds
        for answer in self._in_forks(self._count, range(len(self.tests.names)), lambda _: limit):
            if answer.value is None:
                why = "took too long" if answer.silent else "ended its process"
                self._leave_out(answer, f"{why} without a mutant")
            elif isinstance(answer.value, str):
                self._leave_out(answer, answer.value)
            else:
                self.originals[answer.item] = answer.value
        for file in self.files:
            file.tick()
        for answer in self._in_forks(self._compare, sorted(self.originals), self.seconds_for):
            if answer.value != PASSED:
                del self.originals[answer.item]
                self._leave_out(answer, "does not end the same way twice")

    def outcome(self, test: int, following: int | None = None) -> int:
        """Run a test on the program in its current state and compare it with the baseline."""
        return outcome_of(self.tests, test, following, self.originals[test], self._steps)

    def seconds_for(self, test: int) -> float:
        """Return how long a test may take with a mutant."""
        return self.limits.with_mutant(self.originals[test].seconds)

    def leave_out(self, tests: Sequence[int], why: str) -> None:
        """Note that tests are not used, and why."""
        self.left_out[why] += [self.tests.names[test] for test in tests]

    def _leave_out(self, answer: TaskAnswer, why: str) -> None:
        self.leave_out([answer.item], why)

    def _in_forks(
        self,
        run: Callable[[list[int], Tell], None],
        tests: Sequence[int],
        seconds: Callable[[int], float],
    ) -> Iterator[TaskAnswer]:
        chunks = [list(tests[i : i + _CHUNK]) for i in range(0, len(tests), _CHUNK)]
        tasks = [ForkTask(chunk, [*map(seconds, chunk)]) for chunk in chunks]
        return Forks(run, self.workers, self.limits.memory).answers(tasks)

    def _compare(self, tests: list[int], tell: Tell) -> None:
        for test, following in in_turn(tests):
            tell(self.outcome(test, following))

    def _count(self, tests: list[int], tell: Tell) -> None:
        counts = [file.count() for file in self.files]
        codes = {
            os.path.realpath(file.source.place): functools.partial(file.counting_code, file_counts)
            for file, file_counts in zip(self.files, counts, strict=True)
        }
        for test, following in in_turn(tests):
            for file_counts in counts:
                file_counts.reset()
            start = time.perf_counter()
            try:
                with noticed(codes) as imported:
                    ended = self.tests.run(test, following)
            except Exception as error:
                tell(f"cannot be run: {message_of(error)}")
                continue
            seconds = time.perf_counter() - start
            steps = sum(
                file_counts.of_statements[number]
                for file_counts, file in zip(counts, self.files, strict=True)
                for number in file.plain.ticks
            )
            reached = tuple(
                frozenset(np.flatnonzero(np.array(file_counts.of_statements, np.int64)).tolist())
                for file_counts in counts
            )
            original = OriginalOutcome(ended, seconds, steps, reached, bool(imported))
            tell(self.tests.why_not(ended) or original)
