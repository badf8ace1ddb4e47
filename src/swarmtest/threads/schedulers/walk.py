"""The random walk: at each probe, each thread that is able to run is as likely as the others."""

from __future__ import annotations

import random
from collections.abc import Sequence

from swarmtest.threads.schedulers.scheduler import Scheduler
from swarmtest.threads.tasks import Task


class RandomWalk(Scheduler):
    """Each able thread is as likely as the others, at each probe."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def choose(self, running: Task, able: Sequence[Task], step: int) -> Task:
        """Any of them."""
        return able[int(self._random() * len(able))]
