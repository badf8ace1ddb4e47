"""Making a schedule smaller: only the switches that matter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from swarmtest.errors import UserError
from swarmtest.reduction import minimised
from swarmtest.result import Fault
from swarmtest.threads.replaying import numbered
from swarmtest.threads.running import controlled_run
from swarmtest.threads.schedule import Schedule, Switch
from swarmtest.threads.schedulers.replay import Replay


def minimised_schedule(
    function: Callable[[], object], schedule: Schedule, fault: Fault, **options: Any
) -> Schedule:
    """The fewest switches that still show a fault: without any one of them it does not show.

    `options` are those of `controlled_run`.
    """

    def shows(switches: Sequence[Switch]) -> bool:
        run = controlled_run(function, Replay(Schedule(tuple(switches))), **options)
        return run.fault == fault

    if not shows(schedule.switches):
        raise UserError(
            f"the schedule does not show {fault.signature!r} again: the function depends on more "
            "than the order of its threads (random numbers, time, files, what earlier calls left)"
        )
    kept = minimised(schedule.switches, shows)
    return numbered(function, Schedule(tuple(kept)), **options)
