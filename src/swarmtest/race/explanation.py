"""Explain a failing run: find a schedule that shows the fault, minimise it, and tell if it is real.

`explain_schedule` replays and minimises a schedule. `find_schedule` finds a controlled schedule for
a failure under noise, which has none. `explore` runs the neighbours of an old schedule after a fix.
"""

from __future__ import annotations

import platform
import random
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from swarmtest.core.errors import UserError
from swarmtest.core.formatting import plural
from swarmtest.core.result import Fault
from swarmtest.processes.fork import NoAnswer, in_fork
from swarmtest.race.control.schedulers import (
    LateTimers,
    Schedule,
    ScheduleReplay,
    Switch,
    ThreadScheduler,
)
from swarmtest.race.control.systematic import search_schedules
from swarmtest.race.control.tasks import ThreadTask
from swarmtest.race.free.noise import Noise
from swarmtest.race.noise_settings import NoiseSettings
from swarmtest.race.race_test import POLICIES, ControlSettings, RaceTest
from swarmtest.race.raced_program import RacedProgram
from swarmtest.race.racer import Racer, RunOutcome, WorkTime
from swarmtest.race.timeline import STUCK, Explanation

_REPLAYS = 10
_FEASIBLE_RUNS = 200
_FEASIBLE_ISOLATED_RUNS = 40
"""The same if each run has a process of its own."""
_FEASIBLE_SETTINGS = (
    ControlSettings("random-walk"),
    ControlSettings("random-walk", switches=16),
    ControlSettings("pos"),
    ControlSettings("random-walk", switches=4),
    ControlSettings("pct"),
)
"""How the schedules are drawn in which a fault is looked for again, used in turn."""
_FEASIBLE_SECONDS = 3.0
_UNKNOWN_TRUTH = "the time was up before it was known whether it happens on your interpreter"
_NOT_MINIMAL = "the time was up before the schedule was minimal: fewer switches may be enough"


Explained = tuple[Schedule, Explanation]


def explain_schedule(
    racer: Racer,
    schedule: Schedule,
    fault: Fault,
    on_better: Callable[[Explained], None] = lambda explained: None,
) -> Explained:
    """Return the fewest switches that show a fault, and an explanation of them.

    The schedule is replayed ten times first. If no replay shows the fault, it depends on more than
    the order of threads, and a `UserError` says so. If the fault shows in a schedule that this
    interpreter can make, that schedule is returned and explained.

    `on_better` gets what is known after each step of this work, which may take long.
    """
    shown = sum(racer.follow(schedule).fault == fault for _ in range(_REPLAYS))
    if not shown:
        raise UserError(
            f"the schedule does not show {fault.signature!r} again: the program depends on more "
            "than the order of its threads (random numbers, time, files, what earlier runs left); "
            "--isolated gives each run a process of its own"
        )

    def explained(schedule: Schedule, truth: str, *notes: str) -> Explained:
        traced = racer.follow(schedule, traced=True)
        return schedule, Explanation(
            fault.signature,
            message_of_fault(traced.fault or fault),
            traced.rows,
            (shown, _REPLAYS),
            truth,
            tuple(map(str, schedule.switches)),
            (*traced.notes, *notes),
        )

    on_better(explained(schedule, _UNKNOWN_TRUTH, _NOT_MINIMAL))
    smallest = racer.minimal(schedule, fault)
    on_better(explained(smallest, _UNKNOWN_TRUTH))
    return explained(*with_evidence(racer, smallest, fault))


def message_of_fault(fault: Fault) -> str:
    """Return the traceback's exception line, or where each thread waits if they are stuck."""
    lines = fault.details.strip().splitlines()
    if fault.kind in STUCK or not lines:
        return "\n".join(lines) or fault.signature
    frames = [at for at, line in enumerate(lines[:-1]) if line.startswith("  ")]
    return lines[frames[-1] + 1 if frames else -1].strip()


def with_evidence(racer: Racer, schedule: Schedule, fault: Fault) -> tuple[Schedule, str]:
    """Return a schedule that shows a fault, and what it says about this interpreter.

    An interpreter with a lock switches threads only at some places. If the fault shows in a
    schedule with switches only there, that schedule is the evidence, and is returned.
    """
    python = f"Python {platform.python_version()}"
    shown = f"happens on your interpreter ({python}): shown by this schedule"
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return schedule, f"happens on your interpreter ({python}, free-threaded): shown by this one"
    if not schedule.switches:
        return schedule, shown
    if any(switch.step or switch.late for switch in schedule.switches):
        return _with_own_order(racer, schedule, fault)
    if racer.follow(replace(schedule, feasible=True)).fault == fault:
        return schedule, shown
    most = _FEASIBLE_ISOLATED_RUNS if racer.is_isolated else _FEASIBLE_RUNS
    tried, allowed = 0, WorkTime(_FEASIBLE_SECONDS)
    while tried < most and not allowed.is_over:
        ran = _run_feasible(racer, tried, schedule.library)
        tried += 1
        if ran.fault == fault:
            return _anywhere(racer, racer.minimal(ran.schedule, fault), fault), shown
    return schedule, (
        f"not seen on your interpreter ({python}) in {plural(tried, 'schedule')} that respect its "
        "lock"
    )


_OWN_ORDER = "happens with asyncio's own order of tasks"


def _with_own_order(racer: Racer, schedule: Schedule, fault: Fault) -> tuple[Schedule, str]:
    """Return a schedule in which tasks run in asyncio's own order, if one shows the fault."""
    shown = f"{_OWN_ORDER}, when timers are late: shown by this schedule"
    if not any(switch.step for switch in schedule.switches):
        return schedule, shown
    tried, allowed = 0, WorkTime(_FEASIBLE_SECONDS)
    while tried < _FEASIBLE_RUNS and not allowed.is_over:
        ran = racer.scheduled(LateTimers(tried))
        tried += 1
        if ran.fault == fault:
            smallest = racer.minimal(ran.schedule, fault)
            if not any(switch.step for switch in smallest.switches):
                return smallest, shown if smallest.switches else f"{_OWN_ORDER}: shown by this one"
    return schedule, (
        f"seen when ready tasks run in another order than asyncio's; not seen in "
        f"{plural(tried, 'schedule')} that keep it"
    )


def _anywhere(racer: Racer, schedule: Schedule, fault: Fault) -> Schedule:
    """Return a feasible schedule as one whose places can be named, if it shows the fault too."""
    placed = racer.numbered(replace(schedule, feasible=False))
    both = placed, replace(placed, feasible=True)
    return placed if all(racer.follow(one).fault == fault for one in both) else schedule


def _run_feasible(racer: Racer, seed: int, library: bool) -> RunOutcome:
    """Run with switches only where the interpreter makes them: with many of them, or with few."""
    settings = _FEASIBLE_SETTINGS[seed % len(_FEASIBLE_SETTINGS)]
    scheduler = racer.scheduler(settings, seed, library)
    return racer.scheduled(scheduler, feasible=True, library=library)


# Finding a schedule for a failure under noise. Noise delayed threads at some of their probes, and
# these delays caused the interleaving. So most controlled runs stop threads near those places, and
# now and then before shared variables. Every third run ignores where the noise was.

_RUNS = 5_000
_SECONDS = 20.0
_PLACE_SHARES = (0.5, 0.25, 1.0, 0.1)
"""The shares of the disturbed places that are kept, used in turn."""
_SHIFT_PROBABILITY = 0.3
"""The probability of moving a stop by one more probe, before or after its place."""
_OTHER_THREAD_PROBABILITY = 0.2
"""The probability of continuing with another thread than the one that was disturbed next."""
_EXTRA_CHOICE_PROBABILITY = 0.4
"""The probability of choosing a thread before a shared variable or at synchronisation."""


def find_schedule(racer: Racer, test: RaceTest, runs: int = _RUNS) -> RunOutcome:
    """Return a controlled run that shows the fault of a test with noise; try so many runs."""
    allowed = WorkTime(_SECONDS)
    tried = policy_runs = 0
    while tried < runs and not allowed.is_over:
        if test.seen and tried % 3 != 2:
            ran = _run_near_noise(racer, test, tried)
        else:
            ran = _run_policy(racer, test.seed, policy_runs)
            policy_runs += 1
        if ran.fault is not None and ran.fault.key == test.fault:
            return ran
        tried += 1
    raise UserError(f"seen with noise, but in none of {tried:,} controlled schedules")


def _run_policy(racer: Racer, seed: int, tried: int) -> RunOutcome:
    """Run by one of the policies; most runs switch at shared variables, where noise acts most."""
    policy = POLICIES[tried % len(POLICIES)]
    shared = tried // len(POLICIES) % 4 != 3
    return racer.run(ControlSettings(policy, 2 + tried % 3, shared), seed + tried)


def _run_near_noise(racer: Racer, test: RaceTest, tried: int) -> RunOutcome:
    assert isinstance(test.settings, NoiseSettings)
    shared = racer.shared_numbers()
    counted = Noise(test.settings, test.seed, shared).only
    sites = None if counted is None else counted | shared
    rng = random.Random(f"{test.seed} {tried}")
    places = [
        place for place in test.seen if rng.random() < _PLACE_SHARES[tried % len(_PLACE_SHARES)]
    ]
    return racer.scheduled(NearNoise(places, counted, shared, rng), sites=sites)


class NearNoise(ThreadScheduler):
    """A scheduler that stops threads near where noise delayed them.

    It also chooses threads before shared variables now and then. `places` lists the disturbed
    threads in order, each with the number of its probe. `counted` is the set of sites whose probes
    are counted; None counts all sites and synchronisation.
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
        self._rng = chance
        self._passed: dict[str, int] = {}
        self._stops: dict[tuple[str, int], str] = {}
        """The thread that was disturbed next, by the thread that stops and the number of its
        probe."""
        last = following = ""
        # Going backwards, the thread that was disturbed next is known.
        for thread, at in reversed(places):
            if thread != last:
                last, following = thread, last
            self._stops[thread, self._shifted(at)] = following

    def _shifted(self, at: int) -> int:
        distance = 0
        while self._rng.random() < _SHIFT_PROBABILITY:
            distance += 1
        return max(1, at + self._rng.choice((-distance, distance)))

    def choose(self, running: ThreadTask, able: Sequence[ThreadTask], step: int) -> ThreadTask:
        """Return another thread at a stop, any thread at some others, else the running thread."""
        if self._counted is None or running.site in self._counted:
            at = self._passed[running.name] = self._passed.get(running.name, 0) + 1
            if (running.name, at) in self._stops:
                return self._another_thread(running, able, self._stops[running.name, at])
        may_choose = running.site < 0 or running.site in self._shared
        if may_choose and self._rng.random() < _EXTRA_CHOICE_PROBABILITY:
            return self._rng.choice(able)
        return running

    def choose_next(self, running: ThreadTask, able: Sequence[ThreadTask], step: int) -> ThreadTask:
        """Return any thread."""
        return self._rng.choice(able)

    def _another_thread(
        self, running: ThreadTask, able: Sequence[ThreadTask], name: str
    ) -> ThreadTask:
        others = [task for task in able if task is not running]
        named = [task for task in others if task.name == name]
        if named and self._rng.random() >= _OTHER_THREAD_PROBABILITY:
            return named[0]
        return self._rng.choice(others or [running])


# Checking a fix. A neighbour keeps most switches of the old schedule, each at its place or some
# probes before or after, perhaps to another thread, and may have a few more. Neighbours are drawn
# independently, so the failures among n of them bound the probability that the next one fails.

_EXTRA_SECONDS = 90.0
"""Seconds allowed for importing the program and explaining a failure."""
_OMIT_PROBABILITY = 0.2
_REDIRECT_PROBABILITY = 0.2
_STAY_PROBABILITY = 0.5
_EXTRA_SWITCH_PROBABILITY = 0.4


@dataclass(frozen=True)
class Explored:
    """The outcome of running schedules near an old one."""

    program: str
    runs: int
    failures: int
    seconds: float
    old_fails: str
    """The signature of the fault that the old schedule still shows; empty if it passes."""
    explanation: Explanation | None
    """The explanation of the first failure, if there was one."""
    notes: tuple[str, ...]
    """What a user should know, such as how many places of changed code were found again."""


def explore(
    raced: RacedProgram, schedule: Schedule, tests: int | None, seconds: float | None, seed: int
) -> Explored:
    """Run a program by an old schedule and by neighbours of it, in a process of its own."""
    limit = seconds if seconds is not None else 3600.0
    try:
        return in_fork(
            lambda: _explore_here(raced, schedule, tests, limit, seed), limit + _EXTRA_SECONDS
        )
    except NoAnswer as error:
        raise UserError(f"{raced.reference}: {error}") from None


def _explore_here(
    raced: RacedProgram, schedule: Schedule, tests: int | None, limit: float, seed: int
) -> Explored:
    racer = Racer(raced)
    begin = time.monotonic()
    old = racer.follow(schedule, traced=True)
    if old.problem:
        raise UserError(f"{raced.reference}: {old.problem}")
    lengths = dict(old.lengths)
    rng = random.Random(seed)
    first_failure = old if old.fault else None
    runs = failures = 0
    while (tests is None or runs < tests) and time.monotonic() - begin < limit:
        nearby = neighbour(replace(old.schedule, feasible=False), lengths, rng)
        ran = racer.scheduled(ScheduleReplay(nearby))
        if ran.problem:
            raise UserError(f"{raced.reference}: {ran.problem}")
        runs += 1
        failures += ran.fault is not None
        first_failure = first_failure or (ran if ran.fault else None)
    explanation = None
    if first_failure is not None and first_failure.fault is not None:
        explanation = explain_schedule(racer, first_failure.schedule, first_failure.fault)[1]
    return Explored(
        raced.reference,
        runs,
        failures,
        time.monotonic() - begin,
        old.fault.signature if old.fault else "",
        explanation,
        old.notes,
    )


def neighbour(schedule: Schedule, lengths: dict[str, int], chance: random.Random) -> Schedule:
    """Return a schedule near another one; `lengths` maps a thread to its number of probes.

    >>> old = Schedule((Switch("main.1", 5, "main.2"),))
    >>> print(neighbour(old, {"main.1": 9, "main.2": 9}, random.Random(0)))
    main.1 before 6 -> main.2
    """
    threads = sorted(lengths)
    switches = [
        _moved(switch, threads, chance)
        for switch in schedule.switches
        if chance.random() >= _OMIT_PROBABILITY
    ]
    while threads and chance.random() < _EXTRA_SWITCH_PROBABILITY:
        thread = chance.choice(threads)
        switches.append(
            Switch(thread, chance.randint(1, max(lengths[thread], 1)), chance.choice(threads))
        )
    return schedule.with_switches(sorted(switches, key=lambda switch: switch.at))


def _moved(switch: Switch, threads: Sequence[str], rng: random.Random) -> Switch:
    distance = 0
    while not switch.forced and rng.random() >= _STAY_PROBABILITY:
        distance += 1
    at = max(1, switch.at + rng.choice((-distance, distance)))
    named = rng.choice(threads) if threads and rng.random() < _REDIRECT_PROBABILITY else switch.next
    return replace(switch, at=at, next=named, site="", nth=0)


# Trying all schedules with few preemptions.


@dataclass(frozen=True)
class BoundedSearch:
    """The outcome of running all schedules with at most so many preemptions."""

    program: str
    wanted: int
    """The number of preemptions that was asked for."""
    complete: int
    """With at most so many preemptions, all schedules were run; -1 if not even those without."""
    failed: int | None
    """The number of preemptions of the first schedule that failed; None if none did."""
    runs: int
    seconds: float
    explanation: Explanation | None
    problems: tuple[str, ...] = ()
    """Why schedules did not come to their ends, one line for each of them."""


def search_all(
    raced: RacedProgram, preemptions: int, tests: int | None, seconds: float
) -> BoundedSearch:
    """Run all schedules of a program with few preemptions, in a process of its own."""
    try:
        return in_fork(
            lambda: _search_here(raced, preemptions, tests, seconds), seconds + _EXTRA_SECONDS
        )
    except NoAnswer as error:
        raise UserError(f"{raced.reference}: {error}") from None


def _search_here(
    raced: RacedProgram, preemptions: int, tests: int | None, seconds: float
) -> BoundedSearch:
    racer = Racer(raced)
    begin = time.monotonic()
    first, _ = racer.systematic(())
    if first.problem:
        raise UserError(f"{raced.reference}: {first.problem}")
    if first.tasks > 1 and first.tasks == first.threads:
        raise UserError(
            f"{raced.reference}: --preemptions is for threads; the order of tasks of asyncio and "
            "late timers are not tried systematically"
        )

    def is_over(runs: int) -> bool:
        return time.monotonic() - begin > seconds or (tests is not None and runs >= tests)

    problems: list[str] = []

    def fails(ran: RunOutcome) -> bool:
        problems.extend([ran.problem] if ran.problem else [])
        return ran.fault is not None

    searched = search_schedules(racer.systematic, fails, preemptions, is_over)
    explanation = None
    if searched.found is not None and searched.found.fault is not None:
        found = searched.found
        explanation = explain_schedule(racer, found.schedule, searched.found.fault)[1]
    return BoundedSearch(
        raced.reference,
        preemptions,
        searched.complete,
        None if searched.found is None else searched.preemptions,
        searched.runs,
        time.monotonic() - begin,
        explanation,
        tuple(problems),
    )
