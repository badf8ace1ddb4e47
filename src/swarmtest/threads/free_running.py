"""Running a function with threads that run freely, under noise, a recording, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from swarmtest.result import Fault
from swarmtest.targets import Hits
from swarmtest.threads.calling import call_to_the_end
from swarmtest.threads.coverage import ConcurrencyCoverage
from swarmtest.threads.free_policy import FreePolicy
from swarmtest.threads.patches import installed
from swarmtest.threads.policy import policy_on
from swarmtest.threads.raw import raw_monotonic
from swarmtest.threads.running import SECONDS
from swarmtest.threads.time_limit import ended_or_left, time_limit


@dataclass(frozen=True)
class FreeRun:
    """What came of a free run."""

    fault: Fault | None
    problem: str
    """Why the run says nothing about the program, in one line; empty if it does."""
    threads: int
    """How many threads there were; 1 if the program started none."""
    hits: Hits | None
    """What the run covered; None if nobody looked."""
    seconds: float
    notes: tuple[str, ...] = ()


def free_run(
    function: Callable[[], object],
    policy: FreePolicy | None = None,
    *,
    coverage: ConcurrencyCoverage | None = None,
    seconds: float = SECONDS,
) -> FreeRun:
    """Call a function; the threads it starts run as they like, disturbed or watched by a policy.

    A policy (`Noise`, `Recording`; None: nothing) is good for one run. Threads that wait for each
    other are a fault at once; the run is over after so many seconds, whatever happens.

    >>> free_run(lambda: None).threads
    1
    """
    if policy is None:
        policy = FreePolicy()
    begin = raw_monotonic()
    with installed():
        if coverage is not None:
            coverage.reset()
        policy.enter(coverage)
        with policy_on(policy), policy.fast_locks():
            with time_limit(policy, seconds):
                call_to_the_end(function, policy)
            ended_or_left(policy)
        for task in policy.tasks:
            for lock in task.held:
                lock.free()
    return FreeRun(
        None if policy.problem else policy.fault,
        policy.problem,
        len(policy.tasks),
        None if coverage is None else coverage.take(),
        raw_monotonic() - begin,
        tuple(policy.notes),
    )
