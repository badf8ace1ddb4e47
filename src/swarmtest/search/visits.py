"""Visits: the points that an engine proposes, and the trial numbers of the runs at each.

A visit's trial numbers are fixed when it begins, whatever the visits before it gave: a test that
may be repeated reserves as many numbers as it may need. So the seed of a run does not depend on
the number of workers.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import seed_of_test
from swarmtest.core.targets import Catalogue
from swarmtest.processes.fork_pool import IsolatedRun, wait_for_any
from swarmtest.processes.shared_limit import SharedLimit, use_limit
from swarmtest.search.engines.engine import SpaceExhausted
from swarmtest.search.executors.function import most_runs
from swarmtest.search.results import INTERRUPTED, MovingResult, moving
from swarmtest.search.space import SearchSpace, is_allowed

_FORBIDDEN = 10_000
"""After this many forbidden proposals in a row, the engine is not asked any more."""


class Visit(NamedTuple):
    """A point that an engine proposed, and the number of its first trial."""

    number: int
    proposal: Proposal
    first_trial: int

    def seeds(self, campaign_seed: int, many_of_one: bool) -> Iterator[int]:
        """Return the seeds of its runs: those of their trials.

        With `many_of_one` all runs become one trial, so their seeds are drawn from its seed.
        """
        first = self.first_trial
        if not many_of_one:
            return (seed_of_test(campaign_seed, first + run) for run in itertools.count())
        trial_seed = seed_of_test(campaign_seed, first)
        return (seed_of_test(trial_seed, run) for run in itertools.count())


class Visits:
    """Asks an engine for points, one visit after the other.

    `ask` returns the n-th proposal. With `one_trial`, all runs of a visit become one trial.
    """

    def __init__(
        self,
        space: SearchSpace,
        ask: Callable[[int], Proposal],
        one_trial: bool,
        workers: int,
    ) -> None:
        self._space = space
        self._ask = ask
        self._one_trial = one_trial
        self._workers = workers
        self._asked = self._begun = self._next_trial = 0
        self._left: deque[Visit] = deque()

    def leave(self, visit: Visit) -> None:
        """Queue a visit that an interrupted part of the search began but did not finish."""
        self._left.append(visit)

    def are_begun(self, points: int | None) -> bool:
        """Return whether as many visits as are wanted have begun."""
        return points is not None and not self._left and self._begun >= points

    def next(self) -> Visit:
        """Return a visit left from before, or the next one that the engine proposes."""
        return self._left.popleft() if self._left else self.propose()

    def propose(self) -> Visit:
        """Return the next visit that the engine proposes; forbidden points are skipped."""
        proposal = self._allowed()
        visit = Visit(self._begun, proposal, self._next_trial)
        self._begun += 1
        self._next_trial += 1 if self._one_trial else self._most_runs(proposal.configuration)
        return visit

    def have_given(self, visit: Visit, results: int) -> None:
        """Reserve the trials of a visit whose test had not said how many results there will be."""
        trials = 1 if self._one_trial else results
        self._next_trial = max(self._next_trial, visit.first_trial + trials)

    def _allowed(self) -> Proposal:
        for _ in range(_FORBIDDEN):
            proposal = self._ask(self._asked)
            self._asked += 1
            if is_allowed(self._space, proposal.configuration):
                return proposal
        raise SpaceExhausted(f"{_FORBIDDEN:,} forbidden points in a row were proposed")

    def _most_runs(self, point: Configuration) -> int:
        executor = self._space.executor(point)
        most = most_runs(executor, point)
        if most is None and self._workers > 1:
            raise UserError(
                f"test {executor.name!r} does not say how many results it gives (most_runs): "
                "search it with 1 worker"
            )
        return most or 0


# Running visits in parallel.


class RunningVisits:
    """Runs visits, each in a fork of this process.

    If that process dies, the test has failed; it is ended when a test in it takes too long.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._catalogue = Catalogue()
        self._runs: dict[int, tuple[Visit, IsolatedRun[list[MovingResult]], SharedLimit]] = {}

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def has_room(self) -> bool:
        """Return whether another visit may begin."""
        return len(self._runs) < self._workers

    def begin(self, visit: Visit, run: Callable[[], list[Result]]) -> None:
        """Begin a visit."""
        limit = SharedLimit()

        def results() -> list[MovingResult]:
            use_limit(limit)
            return [*map(moving, run())]

        forked = IsolatedRun(results, math.inf, quiet=True, limit=limit)
        self._runs[visit.number] = visit, forked, limit

    def finished(self) -> list[tuple[Visit, list[Result]]]:
        """Wait until a visit is over; return all that are, in the order in which they began."""
        wait_for_any([run for _, run, _ in self._runs.values()])
        over = [number for number, (_, run, _) in self._runs.items() if run.over]
        finished = []
        for number in over:
            visit, run, limit = self._runs.pop(number)
            answer = run.outcome()
            if isinstance(answer, Fault):
                spent = limit.seconds if answer.kind == INTERRUPTED else 0.0
                results = [Result(Verdict.FAILED, answer, wall_seconds=spent)]
            else:
                results = [moved.arrived(self._catalogue) for moved in answer]
            finished.append((visit, results))
        return finished

    def end(self) -> None:
        """End all visits."""
        for _, run, _ in self._runs.values():
            run.end()
