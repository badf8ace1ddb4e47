"""Run a function whose threads run freely, with noise, a recording or nothing, within a time limit.

A thread that has not ended after its run has been decided is in code without probes: it is
interrupted, and if that does not help, it is left behind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from swarmtest.core.result import Fault
from swarmtest.core.targets import Hits
from swarmtest.processes.tree import end_strays
from swarmtest.race.control.runner import SECONDS, call_to_the_end
from swarmtest.race.control.stuck import fault_of_stuck
from swarmtest.race.control.watchdog import (
    GRACE_SECONDS,
    interrupt_thread,
    overdue_text,
    time_limit,
)
from swarmtest.race.coverage.coverage import ConcurrencyCoverage
from swarmtest.race.free.policy import FreePolicy
from swarmtest.race.primitives.patches import installed
from swarmtest.race.primitives.policy import policy_on, raw_monotonic, thread_join


@dataclass(frozen=True)
class FreeRun:
    """The outcome of a free run."""

    fault: Fault | None
    problem: str
    """Why the run says nothing about the program, in one line; empty if it does."""
    threads: int
    """The number of threads; 1 if the program started none."""
    hits: Hits | None
    """The targets that the run covered; None without coverage."""
    seconds: float
    notes: tuple[str, ...] = ()


def free_run(
    function: Callable[[], object],
    policy: FreePolicy | None = None,
    *,
    coverage: ConcurrencyCoverage | None = None,
    seconds: float = SECONDS,
) -> FreeRun:
    """Call a function whose threads run freely, disturbed or watched by a policy.

    A policy (`Noise`, `Recording`, or None) serves one run. Threads that wait for each other are a
    fault at once. In any case the run ends after the given number of seconds.

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
            with time_limit(seconds, partial(_ask_to_end, policy), partial(_interrupt, policy)):
                call_to_the_end(function, policy)
            end_threads(policy)
        for task in policy.tasks:
            for lock in task.held:
                lock.free()
        end_strays()
    return FreeRun(
        None if policy.problem else policy.fault,
        policy.problem,
        len(policy.tasks),
        None if coverage is None else coverage.take(),
        raw_monotonic() - begin,
        tuple(policy.notes),
    )


# The time limit.


def _ask_to_end(policy: FreePolicy) -> None:
    """Decide what an unfinished run shows: threads that wait for each other, or nothing."""
    if not policy.ended:
        waiting = [t for t in policy.tasks if t.waiting is not None and t.deadline is None]
        fault = fault_of_stuck(waiting, policy.log) if waiting else None
        if fault is not None and fault.kind == "deadlock":
            policy.fail(fault)
        else:
            running = [t for t in policy.tasks if not t.done and t not in waiting]
            policy.problem = overdue_text(running[-1] if running else policy.main)
    policy.end()


def _interrupt(policy: FreePolicy) -> bool:
    policy.interrupted = True
    interrupt_thread(policy.main)
    return True


def end_threads(policy: FreePolicy) -> None:
    """Wait for the threads of a decided run, and leave behind those that do not end."""
    deadline = raw_monotonic() + GRACE_SECONDS
    left = [task for task in policy.tasks[1:] if task.thread is not None and task.ident]
    for last in (False, True):
        for task in left:
            assert task.thread is not None
            thread_join(task.thread, max(deadline - raw_monotonic(), 0.0))
        left = [task for task in left if not task.done]
        if left and not last:
            for task in left:
                interrupt_thread(task)
            deadline = raw_monotonic() + GRACE_SECONDS
    for task in left:
        policy.note(f"{task.name} could not be ended and was left behind")
