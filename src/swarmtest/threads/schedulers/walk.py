"""The random walk: each thread that is able to run is as likely as the others."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from swarmtest.threads.schedulers.scheduler import Scheduler
from swarmtest.threads.tasks import Task

_WAKES = 0.1
"""How often a thread that sleeps may be chosen although others are able to run."""


class RandomWalk(Scheduler):
    """Each able thread is as likely as the others, at each probe or at a share of them.

    `rate`: the share of probes at which it chooses, 1 for all. A long run with few switches is much
    cheaper, and shows races that need a thread to get far while another one stands.
    """

    wakes = True

    def __init__(self, seed: int, rate: float = 1.0) -> None:
        self._random = random.Random(seed).random
        self._scale = math.log1p(-rate) if rate < 1 else 0.0
        self.asks = self._gap()

    def choose(self, running: Task, able: Sequence[Task], step: int) -> Task:
        """Any of them."""
        if self._scale:
            self.asks = self._gap()
        return able[int(self._random() * len(able))]

    def wakes_now(self) -> bool:
        """Seldom: who sleeps usually wakes when the others have got somewhere."""
        return self._random() < _WAKES

    def _gap(self) -> int:
        """How many probes until the next choice."""
        if not self._scale:
            return 1
        return 1 + int(math.log1p(-self._random()) / self._scale)
