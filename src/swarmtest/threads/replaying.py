"""Replaying a schedule, also for code that has changed since."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from swarmtest.threads.running import Run, controlled_run, text_of_step
from swarmtest.threads.schedule import Schedule, Switch
from swarmtest.threads.schedulers.replay import Replay
from swarmtest.threads.trace import TraceStep

_FEW = 20


def replay(function: Callable[[], object], schedule: Schedule, **options: Any) -> Run:
    """Run a function by a schedule; `options` are those of `controlled_run`.

    If the code has changed since, switches are made where their threads do what they did then, as
    far as that is found; the run's notes say so. In feasible mode, `Run.missed` tells how many
    switches this interpreter cannot make.
    """
    scheduler = Replay(schedule)
    run = controlled_run(function, scheduler, **options)
    if options.get("feasible") or not (scheduler.stale or run.missed):
        return run
    found = _found_again(function, schedule.switches, options)
    again = controlled_run(function, Replay(Schedule(found)), **options)
    note = (
        "the code has changed since the schedule was recorded: "
        f"{len(found)} of its {len(schedule)} switches were found again by what their threads do"
    )
    return replace(again, notes=(*again.notes, note), missed=len(schedule) - len(found))


def numbered(function: Callable[[], object], schedule: Schedule, **options: Any) -> Schedule:
    """A schedule whose switches also say for the how manieth time their threads did that."""
    steps = controlled_run(function, Replay(schedule), **{**options, "traced": True}).trace
    return Schedule(
        tuple(
            replace(one, nth=_times(one, steps) + 1 if one.site else 0) for one in schedule.switches
        )
    )


def _times(switch: Switch, steps: Iterable[TraceStep]) -> int:
    """How often a thread had done what it does at a switch."""
    return sum(
        step.thread == switch.thread and step.at < switch.at and text_of_step(step) == switch.site
        for step in steps
    )


def _found_again(
    function: Callable[[], object], switches: Iterable[Switch], options: dict[str, Any]
) -> tuple[Switch, ...]:
    """Each switch after those before it, as long as they are few: what a thread does depends on
    them."""
    found: tuple[Switch, ...] = ()
    traced = {**options, "traced": True}
    steps: tuple[TraceStep, ...] = ()
    for i, switch in enumerate(switches):
        if i < _FEW:
            steps = controlled_run(function, Replay(Schedule(found)), **traced).trace
        at = _place(switch, steps)
        if at:
            found = (*found, replace(switch, at=at))
    return found


def _place(switch: Switch, steps: Iterable[TraceStep]) -> int:
    """At which probe a thread now does what it did at a switch; 0 if it does not."""
    own = [step for step in steps if step.thread == switch.thread]
    if switch.site == "end":
        return own[-1].at if own else 0
    same = [step.at for step in own if text_of_step(step) == switch.site]
    if not same:
        return 0
    if switch.nth:
        return same[min(switch.nth, len(same)) - 1]
    return min(same, key=lambda at: abs(at - switch.at))
