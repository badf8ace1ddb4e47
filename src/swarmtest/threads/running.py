"""Running a function under control, and replaying what was seen."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from swarmtest.instrument.scope import shown_path
from swarmtest.result import Fault
from swarmtest.targets import Hits
from swarmtest.threads.calling import call_to_the_end
from swarmtest.threads.control import USES_ASYNCIO, Control
from swarmtest.threads.coverage import ConcurrencyCoverage
from swarmtest.threads.covered_control import CoveredControl
from swarmtest.threads.feasible import use_events
from swarmtest.threads.handing import Handing, Handover, Where
from swarmtest.threads.patches import installed
from swarmtest.threads.policy import policy_on
from swarmtest.threads.raw import thread_join
from swarmtest.threads.schedule import Schedule, Switch
from swarmtest.threads.schedulers.scheduler import Scheduler
from swarmtest.threads.sites import SITES
from swarmtest.threads.trace import Tracer, TraceStep
from swarmtest.threads.watchdog import watched
from swarmtest.threads.workers import give_back

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

    >>> from swarmtest.threads import RandomWalk
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

    >>> from swarmtest.threads import RandomWalk
    >>> nothing_to_schedule(controlled_run(lambda: None, RandomWalk(seed=1)))
    'the program starts no thread: there is nothing to schedule'
    """
    if run.threads > 1:
        return ""
    if USES_ASYNCIO in run.notes:
        return "the program uses asyncio only and starts no thread: there is nothing to schedule"
    return "the program starts no thread: there is nothing to schedule"
