"""POS: a random priority for each coming event, drawn anew for events that race with one that ran.

Yuan, Yang, Gu: "Partial order aware concurrency sampling", CAV 2018. Orders of events that do not
touch the same variable are all alike; POS spends its choices on those that are not.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from swarmtest.threads.schedulers.scheduler import Scheduler
from swarmtest.threads.sites import SITES
from swarmtest.threads.tasks import Task


class POS(Scheduler):
    """The able thread whose next event has the highest priority runs."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random
        self._priorities: dict[int, float] = {}

    def choose(self, running: Task, able: Sequence[Task], step: int) -> Task:
        """The one with the highest priority; those that race with it are drawn anew."""
        priorities = self._priorities
        priorities[running.index] = self._random()  # it has come to another event
        best, highest = running, -1.0
        for task in able:
            priority = priorities.get(task.index)
            if priority is None:
                priority = priorities[task.index] = self._random()
            if priority > highest:
                best, highest = task, priority
        for task in able:
            if task is not best and _race(task, best):
                priorities[task.index] = self._random()
        return best


def _race(one: Task, other: Task) -> bool:
    """Whether the order of what two threads are about to do may matter."""
    if one.obj is not other.obj:
        return False
    if one.site < 0 or other.site < 0:
        return one.site == other.site and one.obj is not None
    first, second = SITES[one.site], SITES[other.site]
    if first.kind == second.kind == "read" or first.what != second.what:
        return False
    if first.what == "subscript":
        return True
    return first.name == second.name and (one.obj is not None or first.path == second.path)
