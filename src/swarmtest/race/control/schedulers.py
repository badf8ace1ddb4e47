"""Schedules, and the schedulers that make or follow them.

A schedule lists where a run switched from one thread to another. A thread continues until the
schedule says otherwise. If it cannot (it waits, or has ended) and the schedule says nothing, the
thread that was started first continues. So a schedule is short, and nothing in it depends on
addresses, hashes, times or the Python version.
"""

from __future__ import annotations

import functools
import json
import math
import random
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from swarmtest.core.errors import UserError
from swarmtest.race.control.tasks import ThreadTask
from swarmtest.race.weaving.sites import SITES

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Switch:
    """One switch: before the n-th probe of a thread, or because the thread could not continue.

    >>> print(Switch("main.1", 3, "main.2", site="shop.py sell write seats"))
    main.1 before 3 -> main.2 (shop.py sell write seats)
    """

    thread: str
    """The thread that stops: ``main``, ``main.1`` (the first thread that main started),
    ``main.1.2``."""
    at: int
    """The number of the thread's own probe before which it stops."""
    next: str
    """The thread that continues."""
    forced: bool = False
    """Whether the thread could not continue: it waits (in its n-th probe) or has ended."""
    site: str = ""
    """What the thread was about to do, so that the place is found again if the code has changed."""
    nth: int = 0
    """How many times it has done so, this time included; 0 if that is not known."""
    step: bool = False
    """Whether `thread` is a task of an event loop, and `at` the number of its step: it was its
    turn, but `next` runs first."""
    late: float = 0.0
    """The seconds by which a timer is late: `at` is its number among those of `thread`."""

    def __str__(self) -> str:
        place = f" ({self.site})" if self.site else ""
        if self.late:
            return f"timer {self.at} of {self.thread} is {self.late:.4g} s late{place}"
        if self.step:
            return f"{self.next} runs before step {self.at} of {self.thread}{place}"
        when = f"cannot go on after {self.at}" if self.forced else f"before {self.at}"
        return f"{self.thread} {when} -> {self.next}" + (f" ({self.site})" if self.site else "")


@dataclass(frozen=True)
class Schedule:
    """The switches of a run, in their order.

    >>> schedule = Schedule((Switch("main.1", 3, "main.2", site="shop.py sell write seats"),))
    >>> Schedule.from_json(schedule.to_json()) == schedule
    True
    """

    switches: tuple[Switch, ...] = ()
    library: bool = False
    """Whether lines of code without probes count as probes of their threads."""
    feasible: bool = False
    """Whether switches are made only where the interpreter can switch threads."""

    def with_switches(self, switches: Iterable[Switch]) -> Schedule:
        """Return a schedule of other switches for runs of the same kind."""
        return replace(self, switches=tuple(switches))

    def to_plain(self) -> dict[str, Any]:
        """Return the schedule as plain data."""
        switches = [
            {  # asdict() takes twenty times as long, and long runs have many switches
                "thread": switch.thread,
                "at": switch.at,
                "next": switch.next,
                "forced": switch.forced,
                "site": switch.site,
                "nth": switch.nth,
                **({"step": True} if switch.step else {}),
                **({"late": switch.late} if switch.late else {}),
            }
            for switch in self.switches
        ]
        plain: dict[str, Any] = {"version": _VERSION, "switches": switches}
        for name in ("library", "feasible"):
            if getattr(self, name):
                plain[name] = True
        return plain

    def to_json(self) -> str:
        """Return the schedule as JSON text."""
        return json.dumps(self.to_plain())

    @classmethod
    def from_plain(cls, plain: Any) -> Schedule:
        """Return the schedule that `to_plain` gave."""
        try:
            if plain["version"] != _VERSION:
                raise UserError(
                    f"the schedule has version {plain['version']}; this swarmtest reads {_VERSION}"
                )
            switches = tuple(_switch_from_plain(switch) for switch in plain["switches"])
            return cls(switches, bool(plain.get("library")), bool(plain.get("feasible")))
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"this is not a schedule: {error!r}") from None

    @classmethod
    def from_json(cls, text: str) -> Schedule:
        """Return the schedule that `to_json` gave.

        >>> Schedule.from_json("[]")
        Traceback (most recent call last):
        ...
        swarmtest.UserError: this is not a schedule: a list where an object belongs
        """
        try:
            plain = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UserError(f"this is not a schedule: {error}") from None
        if not isinstance(plain, dict):
            raise UserError(
                f"this is not a schedule: a {type(plain).__name__} where an object belongs"
            )
        return cls.from_plain(plain)

    def __len__(self) -> int:
        return len(self.switches)

    def __str__(self) -> str:
        return "\n".join(map(str, self.switches))


def _switch_from_plain(plain: Any) -> Switch:
    switch = Switch(**plain)
    texts = switch.thread, switch.next, switch.site
    numbers = switch.at, switch.nth, switch.forced, switch.step
    if not isinstance(switch.late, int | float):
        raise ValueError(f"a switch of {plain}")
    if not all(isinstance(n, int) for n in numbers) or not all(isinstance(t, str) for t in texts):
        raise ValueError(f"a switch of {plain}")
    return switch


# Schedulers.


class Step(Protocol):
    """A step of a task that an event loop could run now."""

    name: str
    """The name of the task."""
    steps: int
    """How many steps the task has made."""


class LoopScheduler:
    """What decides about the tasks of an event loop: asyncio's own order, and no timer is late.

    A task never overtakes a plain callback: the loop asks only about the tasks before the next
    callback. Timers keep their order.
    """

    def choose(self, ready: Sequence[Step]) -> int:
        """Return the position of the task that runs next; the first is the one whose turn it is."""
        return 0

    def lateness(self, timer: tuple[str, int]) -> float:
        """Return the seconds by which the next timer is late: the n-th one of a task."""
        return 0.0


FIRST_COME = LoopScheduler()
_SHARES = (0.0, 0.1, 0.3, 1.0)
_LEAST_LATE, _MOST_LATE = 1e-4, 1.0


class RandomOrder(LoopScheduler):
    """A random walk over the tasks that are ready, with timers that are late by random amounts.

    How often it deviates from asyncio's order is drawn for each run, and so is how often timers are
    late. With `reorders` off, it keeps asyncio's order, and only timers are late.
    """

    def __init__(self, seed: int, reorders: bool = True) -> None:
        self._random = random.Random(f"{seed} tasks").random
        self._reorder = _SHARES[int(self._random() * len(_SHARES))] if reorders else 0.0
        shares = _SHARES[0 if self._reorder else 1 :]  # without either, the run would be plain
        self._late = shares[int(self._random() * len(shares))]

    def choose(self, ready: Sequence[Step]) -> int:
        """Return any position."""
        return int(self._random() * len(ready)) if self._random() < self._reorder else 0

    def lateness(self, timer: tuple[str, int]) -> float:
        """Return a time between a tenth of a millisecond and a second, small ones more often."""
        if self._random() >= self._late:
            return 0.0
        low, high = math.log(_LEAST_LATE), math.log(_MOST_LATE)
        return round(math.exp(low + (high - low) * self._random()), 4)


class LoopReplay(LoopScheduler):
    """What decides about tasks as a schedule says; where it says nothing, as asyncio does."""

    def __init__(self, switches: Iterable[Switch]) -> None:
        self._order: dict[tuple[str, int], deque[str]] = defaultdict(deque)
        self._late: dict[tuple[str, int], float] = {}
        self.missed = 0
        for switch in switches:
            if switch.late:
                self._late[switch.thread, switch.at] = switch.late
            elif switch.step:
                self._order[switch.thread, switch.at].append(switch.next)

    def choose(self, ready: Sequence[Step]) -> int:
        """Return the position of the task that the schedule names."""
        names = self._order.get((ready[0].name, ready[0].steps + 1))
        if not names:
            return 0
        name = names.popleft()
        for position, step in enumerate(ready):
            if step.name == name:
                return position
        self.missed += 1
        return 0

    def lateness(self, timer: tuple[str, int]) -> float:
        """Return how late the schedule says a timer is."""
        return self._late.pop(timer, 0.0)


NEVER = 1 << 60
"""More probes than any run has."""


class ThreadScheduler:
    """The base class of schedulers, which choose the next thread; create one for each run.

    It is asked when the running thread comes to a probe (`asks` probes after the last time, or
    earlier when other threads became able to run), and when the running thread cannot continue.
    """

    loop: LoopScheduler = FIRST_COME
    """What decides which task of an event loop runs next."""

    asks: int = 1
    """The number of probes after which it wants to be asked again."""

    is_replay: bool = False
    """Whether it must be asked at every probe at which it wants to be asked."""

    library: bool = False
    """Whether lines of code without probes have to be reported to it."""

    feasible: bool = False
    """Whether it wants threads to be switched only where the interpreter can."""

    wakes: bool = False
    """Whether it may choose a sleeping thread, as if the threads that are able to run were slow."""

    def choose(self, running: ThreadTask, able: Sequence[ThreadTask], step: int) -> ThreadTask:
        """Return one of the threads that are able to run, listed in the order of their start.

        `running` is before a probe. `step` is the number of probes that the run has passed.
        """
        raise NotImplementedError

    def choose_next(self, running: ThreadTask, able: Sequence[ThreadTask], step: int) -> ThreadTask:
        """Return the next thread when the running one has to wait or has ended.

        `able` may contain that thread: it waited for the clock, which has been advanced.
        """
        return self.choose(running, able, step)

    def wakes_now(self) -> bool:
        """Return whether sleeping threads may be chosen this time."""
        return False

    def stops_again(self, task: ThreadTask) -> bool:
        """Return whether a resumed thread is to be stopped once more at the same place."""
        return False

    def gave_way(self, task: ThreadTask) -> None:
        """React to a thread that ran for so long that another one had to run."""

    def notes(self) -> tuple[str, ...]:
        """Return what a user should know about the run, one line each."""
        return ()

    @property
    def missed(self) -> int:
        """The number of switches that it wanted and that could not be made."""
        return 0


_WAKE_PROBABILITY = 0.1
"""The probability that a random walk may choose a sleeping thread although others are able to
run."""


class RandomWalk(ThreadScheduler):
    """A scheduler that chooses each thread that is able to run with the same probability.

    `rate` is the share of probes at which it chooses; 1 means all. A long run with few switches is
    much cheaper, and shows races that need one thread to get far while another one is stopped.
    """

    wakes = True

    def __init__(self, seed: int, rate: float = 1.0) -> None:
        self.loop = RandomOrder(seed)
        self._random = random.Random(seed).random
        # The gaps between choices are geometrically distributed with this rate.
        self._scale = math.log1p(-rate) if rate < 1 else 0.0
        self.asks = self._gap()

    def choose(self, running: ThreadTask, able: Sequence[ThreadTask], step: int) -> ThreadTask:
        """Return any of the threads."""
        if self._scale:
            self.asks = self._gap()
        return able[int(self._random() * len(able))]

    def wakes_now(self) -> bool:
        """Return True now and then: a sleeping thread usually wakes after the others got far."""
        return self._random() < _WAKE_PROBABILITY

    def _gap(self) -> int:
        """Return the number of probes until the next choice."""
        if not self._scale:
            return 1
        return 1 + int(math.log1p(-self._random()) / self._scale)


class LateTimers(ThreadScheduler):
    """A scheduler that keeps each thread running, and asyncio's own order of tasks.

    Only timers are late, so what it shows can happen to a program as it is.
    """

    def __init__(self, seed: int) -> None:
        self.loop = RandomOrder(seed, reorders=False)
        self.asks = NEVER

    def choose(self, running: ThreadTask, able: Sequence[ThreadTask], step: int) -> ThreadTask:
        """Return the running thread, or the one that was started first."""
        return running if running in able else able[0]


class PCT(ThreadScheduler):
    """A scheduler by priorities: the running thread's drops at `depth` - 1 random steps.

    Burckhardt, Kothari, Musuvathi, Nagarakatte: "A randomized scheduler with probabilistic
    guarantees of finding bugs", ASPLOS 2010. With n threads and k steps, a bug that needs d
    orderings is found with a probability of at least 1 / (n * k^(d-1)). `steps` is about the number
    of probes of a run (`Run.steps` of an earlier run).
    """

    def __init__(self, seed: int, depth: int = 3, steps: int = 200) -> None:
        self.loop = RandomOrder(seed)
        self._random = random.Random(seed)
        draws = (self._random.randrange(max(1, steps)) + 1 for _ in range(max(0, depth - 1)))
        self._changes = sorted(draws, reverse=True)
        self._lowest = 0.0
        self._priorities: dict[int, float] = {}

    def choose(self, running: ThreadTask, able: Sequence[ThreadTask], step: int) -> ThreadTask:
        """Return the thread with the highest priority."""
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

    def gave_way(self, task: ThreadTask) -> None:
        """Give a thread the lowest priority."""
        self._lowest -= 1.0
        self._priorities[task.index] = self._lowest


class POS(ThreadScheduler):
    """A scheduler that runs the thread whose next event has the highest random priority.

    Priorities of events that race with the chosen one are drawn again. Yuan, Yang, Gu: "Partial
    order aware concurrency sampling", CAV 2018. Orders of events that touch different variables are
    equivalent; POS spends its choices on the others.
    """

    def __init__(self, seed: int) -> None:
        self.loop = RandomOrder(seed)
        self._random = random.Random(seed).random
        self._priorities: dict[int, float] = {}

    def choose(self, running: ThreadTask, able: Sequence[ThreadTask], step: int) -> ThreadTask:
        """Return the thread with the highest priority; draw again for those that race with it."""
        priorities, draw = self._priorities, self._random
        priorities[running.index] = draw()  # it has reached another event
        best, highest = running, -1.0
        for task in able:
            priority = priorities.get(task.index)
            if priority is None:
                priority = priorities[task.index] = draw()
            if priority > highest:
                best, highest = task, priority
        obj = best.obj
        for task in able:
            if task.obj is obj and task is not best and _steps_race(task.site, best.site, obj):
                priorities[task.index] = draw()
        return best


@functools.cache
def _sites_race(number: int, other_number: int) -> tuple[bool, bool]:
    """Return whether two sites race if they touch the same object, and if there is no object."""
    first, second = SITES[number], SITES[other_number]
    if first.kind == second.kind == "read" or first.what != second.what:
        return False, False
    if first.what == "subscript":
        return True, True
    same = first.name == second.name
    return same, same and first.path == second.path


def _steps_race(site: int, other_site: int, obj: Any) -> bool:
    """Return whether the order of what two threads are about to do to one object may matter."""
    if site < 0 or other_site < 0:
        return site == other_site and obj is not None
    return _sites_race(site, other_site)[obj is None]


class ScheduleReplay(ThreadScheduler):
    """A scheduler that follows a schedule; where that names no thread, the running one continues.

    It notices that the code has changed; `swarmtest.race.control.runner.replay` then finds the
    places of the switches again.
    """

    is_replay = True
    wakes = True

    def __init__(self, schedule: Schedule) -> None:
        self._ahead: dict[str, deque[Switch]] = defaultdict(deque)
        self._forced: dict[str, deque[Switch]] = defaultdict(deque)
        self.loop: LoopReplay = LoopReplay(schedule.switches)
        for switch in schedule.switches:
            if switch.step or switch.late:
                continue
            (self._forced if switch.forced else self._ahead)[switch.thread].append(switch)
        self.library, self.feasible = schedule.library, schedule.feasible
        self._missed = 0
        self.stale = False
        """Whether a thread did something else where the schedule has a switch."""

    def choose(self, running: ThreadTask, able: Sequence[ThreadTask], step: int) -> ThreadTask:
        """Return the thread that the schedule names, or the running one if it names none."""
        return self._with_next_stop(self._chosen_at_probe(running, able))

    def choose_next(self, running: ThreadTask, able: Sequence[ThreadTask], step: int) -> ThreadTask:
        """Return the thread that the schedule names, or the one that was started first."""
        return self._with_next_stop(self._chosen_when_forced(running, able))

    def wakes_now(self) -> bool:
        """Return True, since a schedule may name a sleeping thread."""
        return True

    def _with_next_stop(self, chosen: ThreadTask) -> ThreadTask:
        ahead = self._ahead.get(chosen.name)
        self.asks = max(1, ahead[0].at - chosen.count) if ahead else NEVER
        return chosen

    def stops_again(self, task: ThreadTask) -> bool:
        """Return whether the schedule has another switch before the same probe.

        In feasible mode there may be several places for a switch before one probe.
        """
        ahead = self._ahead.get(task.name)
        return ahead is not None and bool(ahead) and ahead[0].at == task.count

    def _chosen_at_probe(self, running: ThreadTask, able: Sequence[ThreadTask]) -> ThreadTask:
        ahead = self._ahead.get(running.name)
        while ahead and ahead[0].at < running.count:
            ahead.popleft()
            self._missed += 1
        if not ahead or ahead[0].at != running.count:
            return running
        switch = ahead.popleft()
        self.stale = self.stale or _has_moved(switch, running)
        return self._task_named(switch, able) or running

    def _chosen_when_forced(self, running: ThreadTask, able: Sequence[ThreadTask]) -> ThreadTask:
        forced = self._forced.get(running.name)
        while forced and forced[0].at < running.count:
            forced.popleft()
            self._missed += 1
        if not forced or forced[0].at != running.count:
            return able[0]
        return self._task_named(forced.popleft(), able) or able[0]

    def _task_named(self, switch: Switch, able: Sequence[ThreadTask]) -> ThreadTask | None:
        for task in able:
            if task.name == switch.next:
                return task
        self._missed += 1
        return None

    @property
    def missed(self) -> int:
        """The number of switches of the schedule that could not be made."""
        left = sum(map(len, (*self._ahead.values(), *self._forced.values())))
        return self._missed + left + self.loop.missed


def _has_moved(switch: Switch, task: ThreadTask) -> bool:
    """Return whether a thread is about to do something else than when the switch was recorded."""
    if task.site >= 0:
        return bool(switch.site) and SITES[task.site].text != switch.site
    return not switch.site.endswith(task.doing)
