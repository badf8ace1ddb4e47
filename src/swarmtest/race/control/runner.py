"""Running a function under control, and replaying what was seen."""

from __future__ import annotations

import functools
import gc
import os
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from swarmtest.core.errors import UserError
from swarmtest.core.faults import fault_of_exception
from swarmtest.core.result import Fault
from swarmtest.core.targets import Hits
from swarmtest.coverage.scope import shown_path
from swarmtest.processes.tree import end_strays
from swarmtest.race.control.baton_scheduler import Handing, Handover, Where
from swarmtest.race.control.control import USES_ASYNCIO, Control
from swarmtest.race.control.schedulers import Replay, Schedule, Scheduler, Switch
from swarmtest.race.control.tasks import Task, Unwound
from swarmtest.race.control.watchdog import watched
from swarmtest.race.control.worker_threads import give_back
from swarmtest.race.coverage.coverage import ConcurrencyCoverage
from swarmtest.race.coverage.trace import Tracer, TraceStep
from swarmtest.race.primitives.frames import user_frame
from swarmtest.race.primitives.locks import Lock
from swarmtest.race.primitives.originals import thread_join
from swarmtest.race.primitives.patches import installed
from swarmtest.race.primitives.policy import policy_on
from swarmtest.race.weaving.sites import SITES
from swarmtest.race.weaving.weaver import use_events
from swarmtest.reducer.reducer import minimised

# -------------------------------------------------------------------------------------------------
# Calling the function of a run: whatever it does, the run comes to its end.


class _Ends(Protocol):
    interrupted: bool
    """Whether it is us who interrupted the main thread, because its time was up."""

    def fail(self, fault: Fault) -> None: ...
    def end(self) -> None: ...
    def outlive(self) -> None: ...


def call_to_the_end(function: Callable[[], object], run: _Ends) -> None:
    """Call a function, and let the threads that it started end; a user's interrupt goes on."""
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
        _leave_fork()
    while True:
        try:
            run.outlive()
            break
        except KeyboardInterrupt as error:
            by_user = by_user or (None if run.interrupted else error)
            run.end()
    if by_user is not None:
        raise by_user


def _leave_fork() -> None:
    """End a child process that the program forked and that would go on as if it were us."""
    print(
        "swarmtest: a process that the program forked came back from the run; it ends here "
        "(a child should end by os._exit)",
        file=sys.stderr,
    )
    sys.stderr.flush()
    os._exit(1)


# -------------------------------------------------------------------------------------------------
# A controlled run whose concurrency coverage is taken.


class CoveredControl(Control):
    """Tells the coverage what its threads do."""

    def __init__(
        self,
        scheduler: Scheduler,
        sites: Collection[int] | None,
        most_probes: int,
        feasible: bool,
        tracer: Tracer | None,
        coverage: ConcurrencyCoverage,
    ) -> None:
        super().__init__(scheduler, sites, most_probes, feasible, tracer)
        coverage.reset()
        self._coverage = coverage
        self._begun = 1
        self.access = coverage.watching(self.access)  # type: ignore[method-assign]

    def changed(self) -> None:
        """Who is able to run has changed; perhaps because there is a new thread."""
        super().changed()
        for task in self.tasks[self._begun :]:
            self._begun += 1
            self._coverage.began(task.ident)

    def _counted(self, task: Task, kind: str, obj: Any) -> None:
        super()._counted(task, kind, obj)
        frame = user_frame(sys._getframe(1))
        if frame is not None:
            self._coverage.visits(kind, frame)

    def _take(self, task: Task, lock: Lock, blocking: bool, timeout: float) -> bool:
        taken = super()._take(task, lock, blocking, timeout)
        if taken:
            self._coverage.takes(lock)
        return taken

    def block(self, task: Task, waiting: Any, deadline: float | None) -> None:
        """The running thread waits."""
        self._coverage.waits(task.doing, waiting)
        super().block(task, waiting, deadline)

    def wake(self, waited_for: Any) -> None:
        """The running thread lets others run on: what it has made, they may know."""
        self._coverage.gives()
        super().wake(waited_for)


# -------------------------------------------------------------------------------------------------

MOST_PROBES = 100_000
SECONDS = 10.0


@dataclass(frozen=True)
class Run:
    """What came of a controlled run."""

    fault: Fault | None
    problem: str
    """Why the run says nothing about the program, in one line; empty if it does."""
    steps: int
    """How many probes its threads passed."""
    threads: int
    """How many threads there were; 1 if the program started none."""
    notes: tuple[str, ...]
    missed: int
    """How many switches of a replayed schedule could not be made."""
    trace: tuple[TraceStep, ...]
    clock: float
    """How long it took by its own clock, in seconds."""
    _handovers: list[Handover] = field(repr=False, compare=False)
    hits: Hits | None = field(default=None, compare=False)
    """What the run covered; None if nobody looked."""

    @functools.cached_property
    def schedule(self) -> Schedule:
        """Where the run switched threads."""
        return Schedule(tuple(_switches(self._handovers)))


def controlled_run(
    function: Callable[[], object],
    scheduler: Scheduler,
    *,
    sites: Collection[int] | None = None,
    feasible: bool = False,
    most_probes: int = MOST_PROBES,
    seconds: float = SECONDS,
    traced: bool = False,
    coverage: ConcurrencyCoverage | None = None,
) -> Run:
    """Call a function; the scheduler decides which of the threads it starts goes on, and when.

    `sites`: switch only before these accesses, and at synchronisation. `feasible`: switch only
    where this interpreter can. The function should leave nothing behind: it is called many times.

    >>> from swarmtest.race.control.schedulers import RandomWalk
    >>> controlled_run(lambda: None, RandomWalk(seed=1)).threads
    1
    """
    tracer = Tracer() if traced else None
    use_events(feasible)
    with installed():
        control = (
            Control(scheduler, sites, most_probes, feasible, tracer)
            if coverage is None
            else CoveredControl(scheduler, sites, most_probes, feasible, tracer, coverage)
        )
        collects = gc.isenabled()
        gc.disable()  # what a collection calls would come at another time in each run
        try:
            with policy_on(control), watched(control, seconds):
                call_to_the_end(function, control)
        finally:
            _clear(control)
            end_strays()
            if collects:
                gc.enable()
    return Run(
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


def _clear(control: Handing) -> None:
    """Leave nothing behind: locks that are still held, threads that have not quite ended."""
    del control.access  # it knows the run, and the run knows it
    for task in control.tasks:
        for lock in task.held:
            lock.free()
        if task.thread is None or not task.done or task in control.abandoned:
            continue
        if task.worker is not None:
            give_back(task.worker)
        else:
            thread_join(task.thread)


def _switches(handovers: list[Handover]) -> list[Switch]:
    return [
        Switch(task.name, at, chosen.name, forced, _text(where))
        for task, at, chosen, forced, where in handovers
    ]


def _text(where: Where) -> str:
    if isinstance(where, int):
        return SITES[where].text
    doing, code = where
    if not doing:
        return ""  # where this interpreter may switch is no place of its own
    return f"{_shown(code.co_filename)} {code.co_qualname} {doing}" if code else doing


def text_of_step(step: TraceStep) -> str:
    """What names a step's place in a schedule."""
    if step.site >= 0:
        return SITES[step.site].text
    return f"{_shown(step.path)} {step.function} {step.kind}"


@functools.cache
def _shown(path: str) -> str:
    return shown_path(path)


def nothing_to_schedule(run: Run) -> str:
    """Why no schedule could matter, in one line; empty if there were threads.

    >>> from swarmtest.race.control.schedulers import RandomWalk
    >>> nothing_to_schedule(controlled_run(lambda: None, RandomWalk(seed=1)))
    'the program starts no thread: there is nothing to schedule'
    """
    if run.threads > 1:
        return ""
    if USES_ASYNCIO in run.notes:
        return "the program uses asyncio only and starts no thread: there is nothing to schedule"
    return "the program starts no thread: there is nothing to schedule"


# -------------------------------------------------------------------------------------------------
# Making a schedule smaller: only the switches that matter.


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


# -------------------------------------------------------------------------------------------------
# Replaying a schedule, also for code that has changed since.

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
