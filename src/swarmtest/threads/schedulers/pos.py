"""POS: a random priority for each coming event, drawn anew for events that race with one that ran.

Yuan, Yang, Gu: "Partial order aware concurrency sampling", CAV 2018. Orders of events that do not
touch the same variable are all alike; POS spends its choices on those that are not.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from typing import Any

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
        priorities, draw = self._priorities, self._random
        priorities[running.index] = draw()  # it has come to another event
        best, highest = running, -1.0
        for task in able:
            priority = priorities.get(task.index)
            if priority is None:
                priority = priorities[task.index] = draw()
            if priority > highest:
                best, highest = task, priority
        obj = best.obj
        for task in able:
            if task.obj is obj and task is not best and _race(task.site, best.site, obj):
                priorities[task.index] = draw()
        return best


@functools.cache
def _may_race(one: int, other: int) -> tuple[bool, bool]:
    """Whether two sites race that touch the same object; and where there is none."""
    first, second = SITES[one], SITES[other]
    if first.kind == second.kind == "read" or first.what != second.what:
        return False, False
    if first.what == "subscript":
        return True, True
    same = first.name == second.name
    return same, same and first.path == second.path


def _race(one: int, other: int, obj: Any) -> bool:
    """Whether the order of what two threads are about to do to one object may matter."""
    if one < 0 or other < 0:
        return one == other and obj is not None
    return _may_race(one, other)[obj is None]
