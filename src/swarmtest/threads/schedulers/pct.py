"""PCT: priorities, and few points at which the thread that runs gets the lowest.

Burckhardt, Kothari, Musuvathi, Nagarakatti: "A randomized scheduler with probabilistic guarantees
of finding bugs", ASPLOS 2010. A bug that needs d orderings is found with a chance of at least
1 / (n * k^(d-1)), of n threads and k steps.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from swarmtest.threads.schedulers.scheduler import NEVER, Scheduler
from swarmtest.threads.tasks import Task


class PCT(Scheduler):
    """The able thread with the highest priority runs; at `depth` - 1 random steps it falls back.

    `steps`: how many probes a run of the program passes, about (`Run.steps` of an earlier run).
    """

    def __init__(self, seed: int, depth: int = 3, steps: int = 200) -> None:
        self._random = random.Random(seed)
        draws = (self._random.randrange(max(1, steps)) + 1 for _ in range(max(0, depth - 1)))
        self._changes = sorted(draws, reverse=True)
        self._lowest = 0.0
        self._priorities: dict[int, float] = {}

    def choose(self, running: Task, able: Sequence[Task], step: int) -> Task:
        """The one with the highest priority."""
        while self._changes and self._changes[-1] <= step:
            self._changes.pop()
            self.gave_way(running)
        best, highest = running, -NEVER + 0.0
        for task in able:
            priority = self._priorities.get(task.index)
            if priority is None:
                priority = self._priorities[task.index] = 1.0 + self._random.random()
            if priority > highest:
                best, highest = task, priority
        self.asks = self._changes[-1] - step if self._changes else NEVER
        return best

    def gave_way(self, task: Task) -> None:
        """Give a thread the lowest priority."""
        self._lowest -= 1.0
        self._priorities[task.index] = self._lowest
