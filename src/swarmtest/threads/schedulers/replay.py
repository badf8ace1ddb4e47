"""Replay: a schedule that is known, thread by thread and probe by probe.

It notices when the code has changed since; `swarmtest.threads.stale` finds the places again.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence

from swarmtest.threads.schedule import Schedule, Switch
from swarmtest.threads.schedulers.scheduler import NEVER, Scheduler
from swarmtest.threads.sites import SITES
from swarmtest.threads.tasks import Task


class Replay(Scheduler):
    """Switches where a schedule does; otherwise the thread that runs goes on while it can."""

    is_replay = True
    wakes = True

    def __init__(self, schedule: Schedule) -> None:
        self._ahead: dict[str, deque[Switch]] = defaultdict(deque)
        self._forced: dict[str, deque[Switch]] = defaultdict(deque)
        for switch in schedule.switches:
            (self._forced if switch.forced else self._ahead)[switch.thread].append(switch)
        self._missed = 0
        self.stale = False
        """Whether a thread did something else where the schedule wants a switch."""

    def choose(self, running: Task, able: Sequence[Task], step: int) -> Task:
        """The thread that the schedule names; if it names none, the one that ran."""
        return self._noted(self._at_probe(running, able))

    def choose_next(self, running: Task, able: Sequence[Task], step: int) -> Task:
        """The thread that the schedule names; if it names none, the one that was started first."""
        return self._noted(self._when_forced(running, able))

    def wakes_now(self) -> bool:
        """A schedule may name a thread that sleeps."""
        return True

    def _noted(self, chosen: Task) -> Task:
        ahead = self._ahead.get(chosen.name)
        self.asks = max(1, ahead[0].at - chosen.count) if ahead else NEVER
        return chosen

    def stops_again(self, task: Task) -> bool:
        """In feasible mode there may be several places for a switch before the same probe."""
        ahead = self._ahead.get(task.name)
        return ahead is not None and bool(ahead) and ahead[0].at == task.count

    def _at_probe(self, running: Task, able: Sequence[Task]) -> Task:
        ahead = self._ahead.get(running.name)
        while ahead and ahead[0].at < running.count:
            ahead.popleft()
            self._missed += 1
        if not ahead or ahead[0].at != running.count:
            return running
        switch = ahead.popleft()
        self.stale = self.stale or _is_elsewhere(switch, running)
        return self._named(switch, able) or running

    def _when_forced(self, running: Task, able: Sequence[Task]) -> Task:
        forced = self._forced.get(running.name)
        while forced and forced[0].at < running.count:
            forced.popleft()
            self._missed += 1
        if not forced or forced[0].at != running.count:
            return able[0]
        return self._named(forced.popleft(), able) or able[0]

    def _named(self, switch: Switch, able: Sequence[Task]) -> Task | None:
        for task in able:
            if task.name == switch.next:
                return task
        self._missed += 1
        return None

    @property
    def missed(self) -> int:
        """How many switches of the schedule could not be made."""
        left = sum(map(len, (*self._ahead.values(), *self._forced.values())))
        return self._missed + left


def _is_elsewhere(switch: Switch, task: Task) -> bool:
    """Whether a thread is about to do something else than when the switch was recorded."""
    if task.site >= 0:
        return bool(switch.site) and SITES[task.site].text != switch.site
    return not switch.site.endswith(task.doing)
