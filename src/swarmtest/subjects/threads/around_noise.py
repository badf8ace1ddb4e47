"""After a failure under noise: a controlled run that shows the same fault, and can be replayed.

Noise has held threads at some of their probes, and that is where the interleaving came from. So
controlled runs stop threads at about those places, and now and then before shared variables; every
third run knows nothing of what was seen.
"""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Sequence

from swarmtest.errors import UserError
from swarmtest.subjects.threads.race_test import RaceTest
from swarmtest.subjects.threads.racer import Racer, Ran
from swarmtest.subjects.threads.settings import POLICIES, ControlSettings
from swarmtest.threads import Noise, NoiseSettings, Scheduler
from swarmtest.threads.tasks import Task

_RUNS = 5_000
_SECONDS = 20.0
_KEPT = (0.5, 0.25, 1.0, 0.1)
"""Which share of the places is kept, in turn."""
_AWAY = 0.3
"""How likely a stop is at the probe before or after, or further away."""
_ANOTHER = 0.2
"""How likely another thread goes on than the one that was disturbed next."""
_MORE = 0.4
"""How likely there is a choice before a shared variable, or at synchronisation."""


def replayable(racer: Racer, test: RaceTest) -> Ran:
    """A controlled run that shows the fault of a test with noise."""
    until = time.monotonic() + _SECONDS
    tried = others = 0
    while tried < _RUNS and time.monotonic() < until:
        if test.seen and tried % 3 != 2:
            ran = _around(racer, test, tried)
        else:
            ran = _anywhere(racer, test.seed, others)
            others += 1
        if ran.fault is not None and ran.fault.id == test.fault:
            return ran
        tried += 1
    raise UserError(f"seen with noise, and in none of {tried:,} controlled schedules")


def _anywhere(racer: Racer, seed: int, tried: int) -> Ran:
    """Where threads share variables comes first, for noise acts there if anywhere."""
    policy = POLICIES[tried % len(POLICIES)]
    shared = tried // len(POLICIES) % 4 != 3
    return racer.run(ControlSettings(policy, 2 + tried % 3, shared), seed + tried)


def _around(racer: Racer, test: RaceTest, tried: int) -> Ran:
    assert isinstance(test.settings, NoiseSettings)
    shared = racer.shared_numbers()
    counted = Noise(test.settings, test.seed, shared).only
    sites = None if counted is None else counted | shared
    chance = random.Random(f"{test.seed} {tried}")
    places = [place for place in test.seen if chance.random() < _KEPT[tried % len(_KEPT)]]
    return racer.scheduled(AroundSeen(places, counted, shared, chance), sites=sites)


class AroundSeen(Scheduler):
    """Stops threads about where noise held them, and now and then before shared variables.

    `places`: a thread, and the how manieth of the probes that count, in their order. `counted`:
    the sites whose probes count; None: all, and synchronisation.
    """

    def __init__(
        self,
        places: Sequence[tuple[str, int]],
        counted: Collection[int] | None,
        shared: Collection[int],
        chance: random.Random,
    ) -> None:
        self._counted = counted
        self._shared = shared
        self._chance = chance
        self._passed: dict[str, int] = {}
        self._stops: dict[tuple[str, int], str] = {}
        """Where a thread stops, and who was disturbed next."""
        last = another = ""
        for thread, at in reversed(places):
            if thread != last:
                last, another = thread, last
            self._stops[thread, self._near(at)] = another

    def _near(self, at: int) -> int:
        away = 0
        while self._chance.random() < _AWAY:
            away += 1
        return max(1, at + self._chance.choice((-away, away)))

    def choose(self, running: Task, able: Sequence[Task], step: int) -> Task:
        """Another thread at the places, any at some others, the same everywhere else."""
        if self._counted is None or running.site in self._counted:
            at = self._passed[running.name] = self._passed.get(running.name, 0) + 1
            if (running.name, at) in self._stops:
                return self._other(running, able, self._stops[running.name, at])
        may_choose = running.site < 0 or running.site in self._shared
        if may_choose and self._chance.random() < _MORE:
            return self._chance.choice(able)
        return running

    def choose_next(self, running: Task, able: Sequence[Task], step: int) -> Task:
        """Any thread."""
        return self._chance.choice(able)

    def _other(self, running: Task, able: Sequence[Task], name: str) -> Task:
        others = [task for task in able if task is not running]
        named = [task for task in others if task.name == name]
        if named and self._chance.random() >= _ANOTHER:
            return named[0]
        return self._chance.choice(others or [running])
