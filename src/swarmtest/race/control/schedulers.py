"""Schedules: where a run switched from one thread to another.

A thread goes on until the schedule says otherwise. When it cannot (it waits, or has ended) and the
schedule says nothing, the thread that was started first goes on. So a schedule is short, and
nothing in it depends on addresses, hashes, times or the Python version.
"""

from __future__ import annotations

import functools
import json
import math
import random
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.race.control.tasks import Task
from swarmtest.race.weaving.sites import SITES

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Switch:
    """One hand-over: before a thread's own n-th probe, or because it could not go on.

    >>> print(Switch("main.1", 3, "main.2", site="shop.py sell write seats"))
    main.1 before 3 -> main.2 (shop.py sell write seats)
    """

    thread: str
    """Who stops: ``main``, ``main.1`` (the first thread that main started), ``main.1.2``."""
    at: int
    """Before which of its own probes..."""
    next: str
    """...and who goes on."""
    forced: bool = False
    """Whether it stopped because it could not go on: it waits (in its n-th probe) or has ended."""
    site: str = ""
    """What it was about to do, so that the place is found again when the code has changed..."""
    nth: int = 0
    """...and for the how manieth time; 0 if that is not known."""

    def __str__(self) -> str:
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

    def to_plain(self) -> dict[str, Any]:
        """The schedule as plain data."""
        switches = [
            {  # asdict takes twenty times as long, and long runs have many switches
                "thread": switch.thread,
                "at": switch.at,
                "next": switch.next,
                "forced": switch.forced,
                "site": switch.site,
                "nth": switch.nth,
            }
            for switch in self.switches
        ]
        return {"version": _VERSION, "switches": switches}

    def to_json(self) -> str:
        """The schedule as text."""
        return json.dumps(self.to_plain())

    @classmethod
    def from_plain(cls, plain: Any) -> Schedule:
        """The schedule that `to_plain` gave."""
        try:
            if plain["version"] != _VERSION:
                raise UserError(
                    f"the schedule has version {plain['version']}; this swarmtest reads {_VERSION}"
                )
            return cls(tuple(_switch(one) for one in plain["switches"]))
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"this is not a schedule: {error!r}") from None

    @classmethod
    def from_json(cls, text: str) -> Schedule:
        """The schedule that `to_json` gave.

        >>> Schedule.from_json("[]")
        Traceback (most recent call last):
        ...
        swarmtest.UserError: this is not a schedule: a list where an object belongs
        """
        try:
            plain = json.loads(text)
        except ValueError as error:
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


def _switch(plain: Any) -> Switch:
    switch = Switch(**plain)
    texts = switch.thread, switch.next, switch.site
    numbers = switch.at, switch.nth, switch.forced
    if not all(isinstance(n, int) for n in numbers) or not all(isinstance(t, str) for t in texts):
        raise ValueError(f"a switch of {plain}")
    return switch


# -------------------------------------------------------------------------------------------------
# What decides which thread goes on.

NEVER = 1 << 60
"""More probes than any run has."""


class Scheduler:
    """Chooses the thread that goes on; one object per run.

    It is asked when the running thread comes to a probe (`asks` probes after the last time, or
    earlier when others became able to run), and when the running thread cannot go on.
    """

    asks: int = 1
    """After how many probes it wants to be asked again."""

    is_replay: bool = False
    """Whether it has to be asked at every probe that it wants to be asked at."""

    wakes: bool = False
    """Whether it may choose a thread that sleeps: as if those that are able to run were slow."""

    def choose(self, running: Task, able: Sequence[Task], step: int) -> Task:
        """One of those that are able to run, in the order in which they were started.

        `running` is before a probe. `step`: how many probes were passed.
        """
        raise NotImplementedError

    def choose_next(self, running: Task, able: Sequence[Task], step: int) -> Task:
        """The same, when the thread that ran had to wait or has ended.

        It may be among the others: it waited for the clock, which has been set on.
        """
        return self.choose(running, able, step)

    def wakes_now(self) -> bool:
        """Whether those that sleep are among those it chooses from, this time."""
        return False

    def stops_again(self, task: Task) -> bool:
        """Whether a thread that goes on is to be stopped once more at the same place."""
        return False

    def gave_way(self, task: Task) -> None:
        """A thread ran for so long that another one had to have its turn."""

    def notes(self) -> tuple[str, ...]:
        """What a user should know of the run, one line each."""
        return ()

    @property
    def missed(self) -> int:
        """How many switches it wanted that could not be made."""
        return 0


# -------------------------------------------------------------------------------------------------
# The random walk: each thread that is able to run is as likely as the others.

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


# -------------------------------------------------------------------------------------------------
# PCT: priorities, and few points at which the thread that runs gets the lowest.
#
# Burckhardt, Kothari, Musuvathi, Nagarakatti: "A randomized scheduler with probabilistic
# guarantees
# of finding bugs", ASPLOS 2010. A bug that needs d orderings is found with a chance of at least
# 1 / (n * k^(d-1)), of n threads and k steps.


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


# -------------------------------------------------------------------------------------------------
# POS: a random priority for each coming event, drawn anew for events that race with one that ran.
#
# Yuan, Yang, Gu: "Partial order aware concurrency sampling", CAV 2018. Orders of events that do
# not
# touch the same variable are all alike; POS spends its choices on those that are not.


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


# -------------------------------------------------------------------------------------------------
# Replay: a schedule that is known, thread by thread and probe by probe.
#
# It notices when the code has changed since; `swarmtest.race.stale` finds the places again.


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
