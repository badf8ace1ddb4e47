"""What is done with a schedule that shows a fault: replay it, make it small, explain it."""

from __future__ import annotations

import platform
import sys
import time

from swarmtest.errors import UserError
from swarmtest.result import Fault
from swarmtest.subjects.threads.racer import Racer, Ran
from swarmtest.subjects.threads.timeline import STUCK, Explanation
from swarmtest.threads import POS, RandomWalk, Schedule, Scheduler

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
