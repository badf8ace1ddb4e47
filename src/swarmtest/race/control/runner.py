"""Run a function under control, and replay or minimise the schedule of a run."""

from __future__ import annotations

import functools
import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from swarmtest.core.errors import UserError
from swarmtest.core.faults import fault_of_exception
from swarmtest.core.result import Fault
from swarmtest.core.targets import Hits
from swarmtest.processes.tree import end_strays
from swarmtest.race.control.baton_scheduler import BatonPolicy, Handover, Where
from swarmtest.race.control.control import ControlPolicy, place_text, shown
from swarmtest.race.control.minimal import Extent, minimal_switches
from swarmtest.race.control.schedulers import Schedule, ScheduleReplay, Switch, ThreadScheduler
from swarmtest.race.control.stuck import fault_of_stuck
from swarmtest.race.control.tasks import ThreadTask
from swarmtest.race.control.watchdog import (
    interrupt_thread,
    is_main_thread,
    overdue_text,
    time_limit,
)
from swarmtest.race.control.worker_threads import give_back
from swarmtest.race.coverage.coverage import ConcurrencyCoverage
from swarmtest.race.coverage.trace import Tracer, TraceStep
from swarmtest.race.primitives.frames import user_frame
from swarmtest.race.primitives.locks import Lock
from swarmtest.race.primitives.patches import installed
from swarmtest.race.primitives.policy import policy_on, thread_join
from swarmtest.race.unwinding import Unwound
from swarmtest.race.weaving.sites import SITES
from swarmtest.race.weaving.weaver import use_events

MOST_PROBES = 100_000
SECONDS = 10.0


@dataclass(frozen=True)
class ControlledRun:
    """The outcome of a controlled run."""

    fault: Fault | None
    problem: str
    """Why the run says nothing about the program, in one line; empty if it does."""
    steps: int
    """The number of probes that its threads passed."""
    threads: int
    """The number of threads; 1 if the program started none."""
    notes: tuple[str, ...]
    missed: int
    """The number of switches of a replayed schedule that could not be made."""
    trace: tuple[TraceStep, ...]
    clock: float
    """The duration of the run by its own clock, in seconds."""
    _handovers: list[Handover | Switch] = field(repr=False, compare=False)
    hits: Hits | None = field(default=None, compare=False)
    """The targets that the run covered; None without coverage."""
    library_lines: int = field(default=0, compare=False)
    """The number of lines of code without probes that threads could be switched at."""
    unwatched: Counter[str] = field(default_factory=Counter, compare=False)
    """How many of these lines belong to each package outside of the standard library."""
    task_steps: dict[str, int] = field(default_factory=dict, compare=False)
    """How many steps each task of an event loop made."""
    tasks: int = 0
    """The number of tasks of event loops."""
    _library: bool = field(default=False, repr=False, compare=False)
    _feasible: bool = field(default=False, repr=False, compare=False)

    @functools.cached_property
    def schedule(self) -> Schedule:
        """The schedule: where the run switched threads."""
        switches = tuple(_switches_of(self._handovers))
        return Schedule(switches, self._library, self._feasible)


def controlled_run(
    function: Callable[[], object],
    scheduler: ThreadScheduler,
    *,
    sites: Collection[int] | None = None,
    feasible: bool = False,
    most_probes: int = MOST_PROBES,
    seconds: float = SECONDS,
    traced: bool = False,
    library: bool = False,
    coverage: ConcurrencyCoverage | None = None,
) -> ControlledRun:
    """Call a function; the scheduler decides which of the threads it starts runs, and when.

    With `sites`, threads are switched only before these accesses and at synchronisation. With
    `feasible`, they are switched only where this interpreter can switch. With `library`, they may
    also be switched at the lines of code without probes. The function should leave nothing behind,
    since it is called many times.

    >>> from swarmtest.race.control.schedulers import RandomWalk
    >>> controlled_run(lambda: None, RandomWalk(seed=1)).threads
    1
    """
    tracer = Tracer() if traced else None
    library, feasible = library or scheduler.library, feasible or scheduler.feasible
    use_events(feasible)
    with installed():
        control = (
            ControlPolicy(scheduler, sites, most_probes, feasible, tracer, library)
            if coverage is None
            else CoveredControlPolicy(
                scheduler, sites, most_probes, feasible, tracer, library, coverage
            )
        )
        collects = gc.isenabled()
        gc.disable()  # finalizers would run at a different time in each run
        gc.freeze()  # event loops collect what the run leaves, which is little then
        if control.library is not None:
            function = partial(control.library.calls, function)
        ask_to_end, interrupt = partial(_ask_to_end, control), partial(_interrupt, control)
        try:
            with policy_on(control), time_limit(seconds, ask_to_end, interrupt):
                call_to_the_end(function, control)
            control.loops.end()
        finally:
            _clean_up(control)
            end_strays()
            gc.unfreeze()
            if collects:
                gc.enable()
    return ControlledRun(
        None if control.problem else control.fault,
        control.problem,
        control.state[0],
        len(control.tasks),
        (*control.notes, *scheduler.notes()),
        scheduler.missed,
        tracer.steps() if tracer else (),
        control.clock,
        control.handovers,
        None if coverage is None else coverage.take(),
        control.library.passed if control.library is not None else 0,
        control.library.packages if control.library is not None else Counter(),
        dict(control.loops.steps),
        control.loops.tasks,
        library,
        feasible,
    )


def _ask_to_end(control: BatonPolicy) -> None:
    """Ask a run that takes too long to stop at its next probe; if all threads wait, it fails."""
    if not control.able and control.waits_for_io and not control.ended:
        fault = fault_of_stuck(control.tasks, control.log)
        if fault is not None:
            control.fail(fault)
            return
    control.problem = control.problem or overdue_text(control.running)
    control.end()


def _interrupt(control: BatonPolicy) -> bool:
    """Continue without the running thread, which passes no probe; tell whether it was main."""
    task = control.running
    control.abandon(task, control.problem)
    control.interrupted = is_main_thread(task)
    interrupt_thread(task)
    return control.interrupted


def _clean_up(control: BatonPolicy) -> None:
    """Release locks that are still held, and wait for threads that have not quite ended."""
    del control.access  # it and the run refer to each other
    for task in control.tasks:
        for lock in task.held:
            lock.free()
        if task.thread is None or not task.done or task in control.abandoned:
            continue
        if task.worker is not None:
            give_back(task.worker)
        else:
            thread_join(task.thread)


def _switches_of(handovers: Iterable[Handover | Switch]) -> list[Switch]:
    return [
        handover if isinstance(handover, Switch) else _switch_of(*handover)
        for handover in handovers
    ]


def _switch_of(task: ThreadTask, at: int, chosen: ThreadTask, forced: bool, where: Where) -> Switch:
    return Switch(task.name, at, chosen.name, forced, place_text(where))


def text_of_step(step: TraceStep) -> str:
    """Return the text that names a step's place in a schedule."""
    if step.site >= 0:
        return SITES[step.site].text
    return f"{shown(step.path)} {step.function} {step.kind}"


def nothing_to_schedule(run: ControlledRun) -> str:
    """Return why no schedule could matter, in one line; empty if there were threads.

    >>> from swarmtest.race.control.schedulers import RandomWalk
    >>> nothing_to_schedule(controlled_run(lambda: None, RandomWalk(seed=1)))
    'the program starts no thread: there is nothing to schedule'
    """
    if run.threads > 1 or run.tasks > 1:
        return ""
    if run.tasks:
        return "the program starts no thread, and one task of asyncio only: nothing to schedule"
    return "the program starts no thread: there is nothing to schedule"


# Minimising a schedule to the switches that matter.


def minimised_schedule(
    function: Callable[[], object], schedule: Schedule, fault: Fault, **options: Any
) -> Schedule:
    """Return the fewest switches that still show a fault, as late as possible.

    `options` are those of `controlled_run`.
    """

    def shows(switches: Sequence[Switch]) -> bool:
        replayed = schedule.with_switches(switches)
        return controlled_run(function, ScheduleReplay(replayed), **options).fault == fault

    if not shows(schedule.switches):
        raise UserError(
            f"the schedule does not show {fault.signature!r} again: the function depends on more "
            "than the order of its threads (random numbers, time, files, what earlier calls left)"
        )

    def extent(switches: Sequence[Switch]) -> Extent:
        replayed = ScheduleReplay(schedule.with_switches(switches))
        return extent_of(controlled_run(function, replayed, **{**options, "traced": True}))

    smallest = minimal_switches(schedule.switches, shows, extent)
    return number_switches(function, schedule.with_switches(smallest), **options)


def extent_of(run: ControlledRun) -> Extent:
    """Return how far the threads of a traced run came."""
    lengths: dict[str, int] = {}
    for step in run.trace if run.threads > 1 else ():
        lengths[step.thread] = max(step.at, lengths.get(step.thread, 0))
    forced = tuple(switch for switch in run.schedule.switches if switch.forced)
    return Extent(lengths, forced, run.task_steps)


# Replaying a schedule, also on code that has changed since.

_MAX_TRACED_SWITCHES = 20


def replay(function: Callable[[], object], schedule: Schedule, **options: Any) -> ControlledRun:
    """Run a function by a schedule; `options` are those of `controlled_run`.

    If the code has changed since, switches are made where the threads do what they did when the
    schedule was recorded, as far as these places are found; the run's notes say so. In feasible
    mode, `ControlledRun.missed` is the number of switches that this interpreter cannot make.
    """
    scheduler = ScheduleReplay(schedule)
    run = controlled_run(function, scheduler, **options)
    if options.get("feasible") or schedule.feasible or not (scheduler.stale or run.missed):
        return run
    switches = _relocated(function, schedule, options)
    again = controlled_run(function, ScheduleReplay(schedule.with_switches(switches)), **options)
    note = (
        "the code has changed since the schedule was recorded: "
        f"{len(switches)} of its {len(schedule)} switches were found again by what their threads do"
    )
    return replace(again, notes=(*again.notes, note), missed=len(schedule) - len(switches))


def number_switches(function: Callable[[], object], schedule: Schedule, **options: Any) -> Schedule:
    """Return the schedule with each switch numbered by how often its thread had done the same."""
    steps = controlled_run(function, ScheduleReplay(schedule), **{**options, "traced": True}).trace
    placed = [_placed(switch, steps) for switch in schedule.switches]
    return schedule.with_switches(
        replace(switch, nth=_times_before(switch, steps) + 1)
        if switch.site and not switch.step
        else switch
        for switch in placed
    )


def _placed(switch: Switch, steps: Iterable[TraceStep]) -> Switch:
    """Return a switch with the place of the probe that follows it, if it has none."""
    if switch.site or switch.forced or switch.step or switch.late:
        return switch
    following = (s for s in steps if s.thread == switch.thread and s.at == switch.at)
    return replace(switch, site=next(map(text_of_step, following), ""))


def _times_before(switch: Switch, steps: Iterable[TraceStep]) -> int:
    """Return how often a thread had done what it does at a switch."""
    return sum(
        step.thread == switch.thread and step.at < switch.at and text_of_step(step) == switch.site
        for step in steps
    )


def _relocated(
    function: Callable[[], object], schedule: Schedule, options: dict[str, Any]
) -> tuple[Switch, ...]:
    """Find the new places of switches.

    What a thread does depends on the switches before it, so the run is traced again for each
    switch, up to a limit.
    """
    relocated: tuple[Switch, ...] = ()
    traced = {**options, "traced": True}
    steps: tuple[TraceStep, ...] = ()
    for i, switch in enumerate(schedule.switches):
        if i < _MAX_TRACED_SWITCHES:
            known = ScheduleReplay(schedule.with_switches(relocated))
            steps = controlled_run(function, known, **traced).trace
        at = _probe_of(switch, steps)
        if at:
            relocated = (*relocated, replace(switch, at=at))
    return relocated


def _probe_of(switch: Switch, steps: Iterable[TraceStep]) -> int:
    """Return the probe at which a thread now does what it did at a switch; 0 if there is none."""
    own = [step for step in steps if step.thread == switch.thread]
    if switch.site == "end":
        return own[-1].at if own else 0
    same = [step.at for step in own if text_of_step(step) == switch.site]
    if not same:
        return 0
    if switch.nth:
        return same[min(switch.nth, len(same)) - 1]
    return min(same, key=lambda at: abs(at - switch.at))


# Calling the program.


class _EndableRun(Protocol):
    interrupted: bool
    """Whether the watchdog interrupted the main thread because its time was up."""

    def fail(self, fault: Fault) -> None: ...
    def end(self) -> None: ...
    def outlive(self) -> None: ...


def call_to_the_end(function: Callable[[], object], run: _EndableRun) -> None:
    """Call a function and let the threads that it started end; re-raise a user's interrupt."""
    pid = os.getpid()
    by_user: BaseException | None = None
    try:
        function()
    except Unwound:
        pass
    except SystemExit as error:
        if error.code:
            run.fail(fault_of_exception(error, "exit"))
    except Exception as error:
        run.fail(fault_of_exception(error))
    except BaseException as error:
        by_user = None if run.interrupted else error
        run.end()
    if os.getpid() != pid:
        _exit_fork()
    while True:
        try:
            run.outlive()
            break
        except KeyboardInterrupt as error:
            by_user = by_user or (None if run.interrupted else error)
            run.end()
    if by_user is not None:
        raise by_user


def _exit_fork() -> None:
    """End a child process that the program forked and that returned from the run."""
    print(
        "swarmtest: a process that the program forked came back from the run; it ends here "
        "(a child should end by os._exit)",
        file=sys.stderr,
    )
    sys.stderr.flush()
    os._exit(1)


# A controlled run with concurrency coverage.


class CoveredControlPolicy(ControlPolicy):
    """A controlled run that reports to concurrency coverage what its threads do."""

    def __init__(
        self,
        scheduler: ThreadScheduler,
        sites: Collection[int] | None,
        most_probes: int,
        feasible: bool,
        tracer: Tracer | None,
        library: bool,
        coverage: ConcurrencyCoverage,
    ) -> None:
        super().__init__(scheduler, sites, most_probes, feasible, tracer, library)
        coverage.reset()
        self._coverage = coverage
        self._known_tasks = 1
        self.access = coverage.watching(self.access)  # type: ignore[method-assign]

    def changed(self) -> None:
        """Update which threads are able to run, and report new threads."""
        super().changed()
        for task in self.tasks[self._known_tasks :]:
            self._known_tasks += 1
            self._coverage.began(task.ident)

    def _counted_point(self, task: ThreadTask, kind: str, obj: Any) -> None:
        super()._counted_point(task, kind, obj)
        frame = user_frame(sys._getframe(1))
        if frame is not None:
            self._coverage.visits(kind, frame)

    def _take(self, task: ThreadTask, lock: Lock, blocking: bool, timeout: float) -> bool:
        taken = super()._take(task, lock, blocking, timeout)
        if taken:
            self._coverage.takes(lock)
        return taken

    def block(self, task: ThreadTask, waiting: Any, deadline: float | None) -> None:
        """Report that the running thread waits, and make it wait."""
        self._coverage.waits(task.doing, waiting)
        super().block(task, waiting, deadline)

    def wake(self, waited_for: Any) -> None:
        """Report that other threads may see what the running thread has built, and wake them."""
        self._coverage.gives()
        super().wake(waited_for)
