"""After a failure under noise: a controlled run that shows the same fault, and can be replayed.

Noise has held threads at some of their probes, and that is where the interleaving came from. So
controlled runs stop threads at about those places, and now and then before shared variables; every
third run knows nothing of what was seen.
"""

from __future__ import annotations

import platform
import random
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault
from swarmtest.processes.fork import NoAnswer, in_fork
from swarmtest.race.control.schedulers import POS, RandomWalk, Replay, Schedule, Scheduler, Switch
from swarmtest.race.control.tasks import Task
from swarmtest.race.free.noise import Noise, NoiseSettings
from swarmtest.race.race_test import POLICIES, ControlSettings, RaceTest
from swarmtest.race.racer import Racer, Ran
from swarmtest.race.target import Target
from swarmtest.race.timeline import STUCK, Explanation

# -------------------------------------------------------------------------------------------------
# What is done with a schedule that shows a fault: replay it, make it small, explain it.

_REPLAYS = 10
_FEASIBLE_RUNS = 200
_FEASIBLE_SECONDS = 3.0


def explained(racer: Racer, schedule: Schedule, fault: Fault) -> tuple[Schedule, Explanation]:
    """The fewest switches that show a fault, and what happens at them.

    It is replayed ten times first. One that shows in none of them depends on more than the order
    of threads.
    """
    same = sum(racer.follow(schedule).fault == fault for _ in range(_REPLAYS))
    if not same:
        raise UserError(
            f"the schedule does not show {fault.signature!r} again: the program depends on more "
            "than the order of its threads (random numbers, time, files, what earlier runs left); "
            "--isolated gives each run a process of its own"
        )
    small = racer.minimal(schedule, fault)
    traced = racer.follow(small, traced=True)
    return small, Explanation(
        fault.signature,
        message_of_fault(traced.fault or fault),
        traced.rows,
        (same, _REPLAYS),
        truth(racer, small, fault),
        tuple(map(str, small.switches)),
        traced.notes,
    )


def message_of_fault(fault: Fault) -> str:
    """How it showed: the exception's line of a traceback; of stuck threads, where each waits."""
    lines = fault.details.strip().splitlines()
    if fault.kind in STUCK or not lines:
        return "\n".join(lines) or fault.signature
    frames = [at for at, line in enumerate(lines[:-1]) if line.startswith("  ")]
    return lines[frames[-1] + 1 if frames else -1].strip()


def truth(racer: Racer, schedule: Schedule, fault: Fault) -> str:
    """Whether a fault can show with switches only where this interpreter makes them."""
    python = f"Python {platform.python_version()}"
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return f"happens on your interpreter ({python}, free-threaded)"
    if not schedule.switches or racer.follow(schedule, feasible=True).fault == fault:
        return f"happens on your interpreter ({python})"
    tried, until = 0, time.monotonic() + _FEASIBLE_SECONDS
    while tried < _FEASIBLE_RUNS and time.monotonic() < until:
        if _feasible(racer, tried).fault == fault:
            return f"happens on your interpreter ({python}), by another schedule"
        tried += 1
    sure = "" if tried >= _FEASIBLE_RUNS else "perhaps "
    return (
        f"{sure}only on free-threaded builds: not seen in {tried} schedules that switch only where "
        f"{python} can"
    )


def _feasible(racer: Racer, seed: int) -> Ran:
    scheduler: Scheduler = POS(seed) if seed % 2 else RandomWalk(seed)
    return racer.scheduled(scheduler, feasible=True)


# -------------------------------------------------------------------------------------------------

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


# -------------------------------------------------------------------------------------------------
# After a fix: schedules near the one that showed a fault.
#
# A neighbour keeps most switches of the old schedule, each at its place or some probes before or
# after, perhaps to another thread, and may have a few more. Neighbours are drawn independently, so
# what is seen in n of them bounds the chance of a failure in the next.

_PATIENCE = 90.0
"""Seconds for importing the program, and for explaining a failure."""
_LEFT_OUT = 0.2
_ELSEWHERE = 0.2
_STAYS = 0.5
_ONE_MORE = 0.4


@dataclass(frozen=True)
class Explored:
    """What came of the neighbourhood of a schedule."""

    program: str
    runs: int
    failures: int
    seconds: float
    old_fails: str
    """The signature of what the old schedule itself still shows; empty if it passes."""
    explanation: Explanation | None
    """Of the first failure."""
    notes: tuple[str, ...]
    """What a user should know: that places of changed code were found again, or not."""


def explore(
    target: Target, schedule: Schedule, tests: int | None, seconds: float | None, seed: int
) -> Explored:
    """Run a program by the old schedule, and by neighbours of it, in a process of its own."""
    limit = seconds if seconds is not None else 3600.0
    try:
        return in_fork(lambda: _explored(target, schedule, tests, limit, seed), limit + _PATIENCE)
    except NoAnswer as error:
        raise UserError(f"{target.reference}: {error}") from None


def _explored(
    target: Target, schedule: Schedule, tests: int | None, limit: float, seed: int
) -> Explored:
    racer = Racer(target)
    begun = time.monotonic()
    old = racer.follow(schedule, traced=True)
    if old.problem:
        raise UserError(f"{target.reference}: {old.problem}")
    lengths = dict(old.lengths)
    chance = random.Random(seed)
    shown = old if old.fault else None
    runs = failures = 0
    while (tests is None or runs < tests) and time.monotonic() - begun < limit:
        near = neighbour(old.schedule, lengths, chance)
        ran = racer.scheduled(Replay(near))
        if ran.problem:
            raise UserError(f"{target.reference}: {ran.problem}")
        runs += 1
        failures += ran.fault is not None
        shown = shown or (ran if ran.fault else None)
    explanation = None
    if shown is not None and shown.fault is not None:
        explanation = explained(racer, shown.schedule, shown.fault)[1]
    return Explored(
        target.reference,
        runs,
        failures,
        time.monotonic() - begun,
        old.fault.signature if old.fault else "",
        explanation,
        old.notes,
    )


def neighbour(schedule: Schedule, lengths: dict[str, int], chance: random.Random) -> Schedule:
    """A schedule near another one; `lengths`: how many probes each thread passes.

    >>> old = Schedule((Switch("main.1", 5, "main.2"),))
    >>> print(neighbour(old, {"main.1": 9, "main.2": 9}, random.Random(0)))
    main.1 before 6 -> main.2
    """
    threads = sorted(lengths)
    switches = [
        _moved(switch, threads, chance)
        for switch in schedule.switches
        if chance.random() >= _LEFT_OUT
    ]
    while threads and chance.random() < _ONE_MORE:
        thread = chance.choice(threads)
        switches.append(
            Switch(thread, chance.randint(1, max(lengths[thread], 1)), chance.choice(threads))
        )
    return Schedule(tuple(sorted(switches, key=lambda one: one.at)))


def _moved(switch: Switch, threads: Sequence[str], chance: random.Random) -> Switch:
    away = 0
    while not switch.forced and chance.random() >= _STAYS:
        away += 1
    at = max(1, switch.at + chance.choice((-away, away)))
    named = chance.choice(threads) if threads and chance.random() < _ELSEWHERE else switch.next
    return replace(switch, at=at, next=named, site="", nth=0)
