"""Runs in processes of their own: for tests that may kill the process, hang, or leave a mess.

`IsolatedRun` is one that is under way; several may be. `run_isolated` waits for one. A run never
outlives whoever looks after it: `end` kills it with all that it started. `answering.py` has the
process, and runs that share one.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from swarmtest.campaign.executors.child import limit_memory
from swarmtest.campaign.executors.fork_pool import Asked, Process
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.subjects.subject import Subject

# -------------------------------------------------------------------------------------------------
# A limit of memory for tests that run in a process each.


class WithinMemory:
    """A subject whose tests may hold so much memory; they run in processes of their own."""

    def __init__(self, subject: Subject, memory: int) -> None:
        vars(self).update(_subject=subject, _memory=memory)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._subject, name)
        return self._limited(found) if name in ("replay", "told_again") else found

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._subject, name, value)

    def _limited(self, run: Callable[[Any], Result]) -> Callable[[Any], Result]:
        def limited(test: Any) -> Result:
            if self._memory:
                limit_memory(self._memory)
            return run(test)

        return limited


# -------------------------------------------------------------------------------------------------

Answer = TypeVar("Answer")

_LOOK_SECONDS = 0.02
"""A process that the program forked may hold the pipe open after the end, so look often."""


class IsolatedRun(Asked[Answer]):
    """A function that runs in a process of its own.

    `quiet`: what it prints is of no use to anybody.

    >>> run = IsolatedRun(lambda: 6 * 7, seconds=5)
    >>> wait_for_any([run])
    >>> run.over, run.outcome()
    (True, 42)
    """

    def __init__(
        self, run: Callable[[], Answer], seconds: float, memory: int = 0, *, quiet: bool = False
    ) -> None:
        super().__init__(Process(lambda _: run(), memory, quiet=quiet, most=1), None, seconds)


def wait_for_any(runs: Collection[Asked[Any]], until: float | None = None) -> None:
    """Wait until one of the runs is over, or the (monotonic) time `until` has come."""
    going = [run for run in runs if not run.over]
    while going and all(not run.over for run in going):
        ready, _, _ = select.select(going, [], [], _LOOK_SECONDS)
        for run in going:
            run.advance(run in ready)
        if until is not None and time.monotonic() >= until:
            return


def run_isolated(
    run: Callable[[], Result], seconds: float, memory: int = 0, *, quiet: bool = False
) -> Result:
    """What `run` answers; or, if it ends its process or takes too long, the fault it showed.

    `quiet`: what it prints is of no use to anybody.

    >>> import os
    >>> run_isolated(lambda: os._exit(3), seconds=5).fault.signature
    'the program ended its process with exit status 3'
    """
    isolated = IsolatedRun(run, seconds, memory, quiet=quiet)
    try:
        wait_for_any([isolated])
    finally:
        isolated.end()
    outcome = isolated.outcome()
    return Result(Verdict.FAILED, outcome) if isinstance(outcome, Fault) else outcome
