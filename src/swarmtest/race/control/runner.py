"""Run a function under control, and replay or minimise the schedule of a run."""

from __future__ import annotations

import functools
import gc
import os
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from swarmtest.core.errors import UserError
from swarmtest.core.faults import fault_of_exception
from swarmtest.core.result import Fault
from swarmtest.core.targets import Hits
from swarmtest.coverage.scope import shown_path
from swarmtest.processes.tree import end_strays
from swarmtest.race.control.baton_scheduler import BatonPolicy, Handover, Where
from swarmtest.race.control.control import USES_ASYNCIO, ControlPolicy
from swarmtest.race.control.schedulers import Schedule, ScheduleReplay, Switch, ThreadScheduler
from swarmtest.race.control.tasks import ThreadTask, Unwound
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
from swarmtest.race.weaving.sites import SITES
from swarmtest.race.weaving.weaver import use_events
from swarmtest.reducer.reducer import minimised

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
    _handovers: list[Handover] = field(repr=False, compare=False)
    hits: Hits | None = field(default=None, compare=False)
    """The targets that the run covered; None without coverage."""

    @functools.cached_property
    def schedule(self) -> Schedule:
        """The schedule: where the run switched threads."""
        return Schedule(tuple(_switches_of(self._handovers)))


def controlled_run(
    function: Callable[[], object],
    scheduler: ThreadScheduler,
    *,
    sites: Collection[int] | None = None,
    feasible: bool = False,
    most_probes: int = MOST_PROBES,
    seconds: float = SECONDS,
    traced: bool = False,
    coverage: ConcurrencyCoverage | None = None,
) -> ControlledRun:
    """Call a function; the scheduler decides which of the threads it starts runs, and when.

    With `sites`, threads are switched only before these accesses and at synchronisation. With
    `feasible`, they are switched only where this interpreter can switch. The function should leave
    nothing behind, since it is called many times.

    >>> from swarmtest.race.control.schedulers import RandomWalk
    >>> controlled_run(lambda: None, RandomWalk(seed=1)).threads
    1
    """
    tracer = Tracer() if traced else None
    use_events(feasible)
    with installed():
        control = (
            ControlPolicy(scheduler, sites, most_probes, feasible, tracer)
            if coverage is None
            else CoveredControlPolicy(scheduler, sites, most_probes, feasible, tracer, coverage)
        )
        collects = gc.isenabled()
        gc.disable()  # finalizers would run at a different time in each run
        ask_to_end, interrupt = partial(_ask_to_end, control), partial(_interrupt, control)
        try:
            with policy_on(control), time_limit(seconds, ask_to_end, interrupt):
                call_to_the_end(function, control)
        finally:
            _clean_up(control)
            end_strays()
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
    )


def _ask_to_end(control: BatonPolicy) -> None:
    """Ask a run that takes too long to stop at its next probe."""
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


def _switches_of(handovers: list[Handover]) -> list[Switch]:
    return [
        Switch(task.name, at, chosen.name, forced, _place_text(where))
        for task, at, chosen, forced, where in handovers
    ]


def _place_text(where: Where) -> str:
    if isinstance(where, int):
        return SITES[where].text
    doing, code = where
    if not doing:
        return ""  # an event of feasible mode has no place of its own
    return f"{_shown_path(code.co_filename)} {code.co_qualname} {doing}" if code else doing


def text_of_step(step: TraceStep) -> str:
    """Return the text that names a step's place in a schedule."""
    if step.site >= 0:
        return SITES[step.site].text
    return f"{_shown_path(step.path)} {step.function} {step.kind}"


@functools.cache
def _shown_path(path: str) -> str:
    return shown_path(path)


def nothing_to_schedule(run: ControlledRun) -> str:
    """Return why no schedule could matter, in one line; empty if there were threads.

    >>> from swarmtest.race.control.schedulers import RandomWalk
    >>> nothing_to_schedule(controlled_run(lambda: None, RandomWalk(seed=1)))
    'the program starts no thread: there is nothing to schedule'
    """
    if run.threads > 1:
        return ""
    if USES_ASYNCIO in run.notes:
        return "the program uses asyncio only and starts no thread: there is nothing to schedule"
    return "the program starts no thread: there is nothing to schedule"


# Minimising a schedule to the switches that matter.


def minimised_schedule(
    function: Callable[[], object], schedule: Schedule, fault: Fault, **options: Any
) -> Schedule:
    """Return the fewest switches that still show a fault: each of them is needed.

    `options` are those of `controlled_run`.
    """

    def shows(switches: Sequence[Switch]) -> bool:
        run = controlled_run(function, ScheduleReplay(Schedule(tuple(switches))), **options)
        return run.fault == fault

    if not shows(schedule.switches):
        raise UserError(
            f"the schedule does not show {fault.signature!r} again: the function depends on more "
            "than the order of its threads (random numbers, time, files, what earlier calls left)"
        )
    smallest = minimised(schedule.switches, shows)
    return number_switches(function, Schedule(tuple(smallest)), **options)


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
    if options.get("feasible") or not (scheduler.stale or run.missed):
        return run
    switches = _relocated(function, schedule.switches, options)
    again = controlled_run(function, ScheduleReplay(Schedule(switches)), **options)
    note = (
        "the code has changed since the schedule was recorded: "
        f"{len(switches)} of its {len(schedule)} switches were found again by what their threads do"
    )
    return replace(again, notes=(*again.notes, note), missed=len(schedule) - len(switches))


def number_switches(function: Callable[[], object], schedule: Schedule, **options: Any) -> Schedule:
    """Return the schedule with each switch numbered by how often its thread had done the same."""
    steps = controlled_run(function, ScheduleReplay(schedule), **{**options, "traced": True}).trace
    return Schedule(
        tuple(
            replace(switch, nth=_times_before(switch, steps) + 1 if switch.site else 0)
            for switch in schedule.switches
        )
    )


def _times_before(switch: Switch, steps: Iterable[TraceStep]) -> int:
    """Return how often a thread had done what it does at a switch."""
    return sum(
        step.thread == switch.thread and step.at < switch.at and text_of_step(step) == switch.site
        for step in steps
    )


def _relocated(
    function: Callable[[], object], switches: Iterable[Switch], options: dict[str, Any]
) -> tuple[Switch, ...]:
    """Find the new places of switches.

    What a thread does depends on the switches before it, so the run is traced again for each
    switch, up to a limit.
    """
    relocated: tuple[Switch, ...] = ()
    traced = {**options, "traced": True}
    steps: tuple[TraceStep, ...] = ()
    for i, switch in enumerate(switches):
        if i < _MAX_TRACED_SWITCHES:
            steps = controlled_run(function, ScheduleReplay(Schedule(relocated)), **traced).trace
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
        coverage: ConcurrencyCoverage,
    ) -> None:
        super().__init__(scheduler, sites, most_probes, feasible, tracer)
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
