"""Visits that are under way in processes of their own, some at a time."""

from __future__ import annotations

import math
from collections.abc import Callable

from swarmtest.campaign.isolated import IsolatedRun, wait_for_any
from swarmtest.result import Fault, Result, Verdict
from swarmtest.search.results import MovingResult, moving
from swarmtest.search.visits import Visit
from swarmtest.targets import Catalogue


class UnderWay:
    """Runs visits, each in a fork of this process; one that ends its process has failed."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._catalogue = Catalogue()
        self._runs: dict[int, tuple[Visit, IsolatedRun[list[MovingResult]]]] = {}

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def has_room(self) -> bool:
        """Whether another visit may begin."""
        return len(self._runs) < self._workers

    def begin(self, visit: Visit, run: Callable[[], list[Result]]) -> None:
        """Begin a visit."""
        forked = IsolatedRun(lambda: [*map(moving, run())], math.inf, quiet=True)
        self._runs[visit.number] = visit, forked

    def finished(self) -> list[tuple[Visit, list[Result]]]:
        """Wait until one is over; all that are, in the order in which they began."""
        wait_for_any([run for _, run in self._runs.values()])
        over = [number for number, (_, run) in self._runs.items() if run.over]
        found = []
        for number in over:
            visit, run = self._runs.pop(number)
            answer = run.outcome()
            results = (
                [Result(Verdict.FAILED, answer)]
                if isinstance(answer, Fault)
                else [one.arrived(self._catalogue) for one in answer]
            )
            found.append((visit, results))
        return found

    def end(self) -> None:
        """End all of them."""
        for _, run in self._runs.values():
            run.end()
