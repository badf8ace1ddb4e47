"""After a fix: schedules near the one that showed a fault.

A neighbour keeps most switches of the old schedule, each at its place or some probes before or
after, perhaps to another thread, and may have a few more. Neighbours are drawn independently, so
what is seen in n of them bounds the chance of a failure in the next.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from swarmtest.errors import UserError
from swarmtest.subjects.threads.explaining import explained
from swarmtest.subjects.threads.forking import NoAnswer, in_fork
from swarmtest.subjects.threads.racer import Racer
from swarmtest.subjects.threads.target import Target
from swarmtest.subjects.threads.timeline import Explanation
from swarmtest.threads import Replay, Schedule, Switch

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
