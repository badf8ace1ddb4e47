"""Run one program many times, in this process or each time in a process of its own.

A `Racer` loads the program once, runs it under control or with noise, and returns a `RunOutcome`
for each run, which holds plain data only, so that it can be sent from a child process.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from swarmtest.core.result import Fault
from swarmtest.core.targets import Catalogue, Hits, MovingHits
from swarmtest.coverage.file_probes import WrittenFile
from swarmtest.coverage.watch import installed_coverage
from swarmtest.processes.fork import NoAnswer, in_fork
from swarmtest.processes.tree import cpu_ns
from swarmtest.race.control.minimal import MOST_RUNS, Extent, minimal_switches
from swarmtest.race.control.runner import (
    ControlledRun,
    controlled_run,
    extent_of,
    nothing_to_schedule,
    number_switches,
    replay,
)
from swarmtest.race.control.schedulers import (
    PCT,
    POS,
    LateTimers,
    RandomWalk,
    Schedule,
    ScheduleReplay,
    Switch,
    ThreadScheduler,
)
from swarmtest.race.control.systematic import Decision, Deviations, SystematicScheduler
from swarmtest.race.control.watchdog import OVERDUE
from swarmtest.race.coverage.coverage import ConcurrencyCoverage
from swarmtest.race.coverage.shared_variables import AccessRecording, shared_sites
from swarmtest.race.free.noise import Noise
from swarmtest.race.free.runner import FreeRun, free_run
from swarmtest.race.noise_settings import NoiseSettings
from swarmtest.race.programs import Program, load_program
from swarmtest.race.race_test import ControlSettings, RunSettings
from swarmtest.race.raced_program import RacedProgram
from swarmtest.race.timeline import STUCK, TimelineRow, rows_of
from swarmtest.race.weaving.sites import SITES, Site

Answer = TypeVar("Answer")

_uncontrolled: set[str] = set()
"""The programs whose threads cannot be controlled; forked workers know them, too."""

_EXTRA_SECONDS = 60.0
"""Seconds that a child process gets beyond the time limit of its run, which it keeps itself.

A busy machine may take long to start it."""
_EMPTY_SCHEDULE = Schedule()
_MOST_ISOLATED_RUNS = 40
"""The number of runs to make a schedule minimal if each has a process of its own."""
_MINIMAL_SECONDS = 40.0
"""Seconds of work to make a schedule minimal."""
_WAITING_FACTOR = 10.0
_MOST_PACKAGES = 3
_SOON = 1.0
"""The seconds after which a controlled run that does no work is known to wait."""
_LITTLE_WORK = 0.1
"""The share of CPU time that such a run may take."""
_MOST_OVERDUE = 2
"""The number of controlled runs that may be overdue before noise takes the place of control."""
_PROFILING_RUNS = 3
"""Number of runs that are used to find the shared variables."""


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of one run, as data that can be sent to another process."""

    fault: Fault | None
    problem: str
    schedule: Schedule = _EMPTY_SCHEDULE
    steps: int = 0
    threads: int = 1
    notes: tuple[str, ...] = ()
    missed: int = 0
    rows: tuple[TimelineRow, ...] = ()
    """The rows of the timeline, if the run was traced."""
    hits: Hits | None = None
    """The concurrency targets that the run reached."""
    lengths: tuple[tuple[str, int], ...] = ()
    """The number of probes that each thread passed, if the run was traced."""
    library_lines: int = 0
    """The number of lines of code without probes at which threads could be switched."""
    tasks: int = 0
    """The number of tasks of event loops."""
    unwatched: tuple[tuple[str, int], ...] = ()
    """The packages without probes, with the number of lines that they executed."""
    seen: tuple[tuple[str, int], ...] = ()
    """The disturbed threads, each with the number of its probe, if a run with noise failed."""

    @classmethod
    def of(cls, run: ControlledRun) -> RunOutcome:
        """Return the outcome of a controlled run without the objects of its process."""
        stuck = run.fault is not None and run.fault.kind in STUCK
        lengths: dict[str, int] = {}
        for step in run.trace:
            lengths[step.thread] = max(step.at, lengths.get(step.thread, 0))
        problem = run.problem or ("" if run.fault else nothing_to_schedule(run))
        return cls(
            run.fault,
            problem,
            run.schedule if run.fault or run.trace else _EMPTY_SCHEDULE,
            run.steps,
            max(run.threads, run.tasks),
            run.notes,
            run.missed,
            rows_of(run.trace, stuck),
            lengths=tuple(lengths.items()),
            library_lines=run.library_lines,
            tasks=run.tasks,
            unwatched=tuple(run.unwatched.most_common(_MOST_PACKAGES)),
        )

    @classmethod
    def of_free(cls, run: FreeRun, noise: Noise) -> RunOutcome:
        """Return the outcome of a free run, which has no schedule."""
        problem = run.problem
        if not problem and run.fault is None and run.threads == 1:
            problem = "the program starts no thread: there is nothing to disturb"
        seen = tuple(noise.places) if run.fault else ()
        return cls(run.fault, problem, threads=run.threads, notes=run.notes, seen=seen)


class WorkTime:
    """A limit of CPU seconds, of this process and of its children that have ended.

    On a busy machine, the same work takes longer, but not more CPU time. For programs that wait,
    the clock counts, too: up to ten times as many seconds.

    >>> WorkTime(60).is_over, WorkTime(0).is_over
    (False, True)
    """

    def __init__(self, seconds: float) -> None:
        self._cpu_end = cpu_ns() + round(seconds * 1e9)
        self._end = time.monotonic() + seconds * _WAITING_FACTOR

    @property
    def is_over(self) -> bool:
        """Whether the limit is reached."""
        return cpu_ns() >= self._cpu_end or time.monotonic() >= self._end


class Racer:
    """A runner of one program, under control or with noise; it loads the program on first use.

    `program` is used if the program has been loaded already.
    """

    def __init__(self, raced: RacedProgram, program: Program | None = None) -> None:
        self._program = program
        self._raced = raced
        self._stack = ExitStack()
        self.close = weakref.finalize(self, self._stack.close)
        """Remove probes and replaced primitives; called automatically when the process ends."""
        self._isolated = program is None and (raced.isolated or raced.kind == "script")
        self._seconds = raced.seconds
        self._coverage = ConcurrencyCoverage(raced.coverage) if raced.coverage else None
        self._catalogue = Catalogue()
        """The targets that were reached by runs in child processes."""
        self._shared: frozenset[Site] | None = None
        self._numbers: frozenset[int] | None = None
        self._typical: dict[bool, RunOutcome] = {}
        self.on_run: Callable[[], None] = lambda: None
        """Called before each run."""
        self._overdue = 0
        """The number of controlled runs that did not end in time."""

    @property
    def program(self) -> Program:
        """The program that is run; loaded on first use."""
        return self._load()

    def _load(self) -> Program:
        if self._program is None:
            self._program = load_program(self._raced, self._stack)
        return self._program

    def run(self, settings: RunSettings, seed: int) -> RunOutcome:
        """Run the program once, under control or with noise.

        Noise does nothing to the tasks of an event loop; in its place, their timers are late.
        """
        if isinstance(settings, NoiseSettings):
            if self._has_only_tasks():
                return self.scheduled(LateTimers(seed))
            return self._run_with_noise(settings, seed)
        library = settings.library and self._calls_library()
        restricted = settings.shared and not library and not self._has_only_tasks()
        sites = self.shared_numbers() if restricted else None
        scheduler = self.scheduler(settings, seed, library)

        def call(program: Program) -> tuple[RunOutcome, Hits | None]:
            run = controlled_run(
                program,
                scheduler,
                sites=sites,
                seconds=self._seconds,
                library=library,
                coverage=self._coverage,
            )
            return RunOutcome.of(run), run.hits

        outcome = self._run_and_take_hits(call)
        self._overdue += is_overdue(outcome)
        return outcome

    def possible(self, settings: RunSettings) -> RunSettings:
        """Return settings of a run, with noise in place of control if control is not possible."""
        controlled = isinstance(settings, ControlSettings)
        if controlled and "noise" in self._raced.modes and self.cannot_be_controlled():
            return NoiseSettings()
        return settings

    def cannot_be_controlled(self) -> bool:
        """Return whether threads wait where they cannot be controlled, so that runs do not end."""
        name = str(self._raced)
        if name not in _uncontrolled:
            often = self._overdue >= _MOST_OVERDUE
            if not often and not self._blocks() and not is_overdue(self._typical_run(False)):
                return False
            _uncontrolled.add(name)
        return True

    def _blocks(self) -> bool:
        """Return whether a controlled run soon waits for something, without any work."""
        if False in self._typical:
            return False
        self._load()  # importing the program is work
        limit, begin = min(_SOON, self._seconds), cpu_ns()
        ran = self.scheduled(RandomWalk(0), seconds=limit)
        if not is_overdue(ran):
            self._typical[False] = ran
        return is_overdue(ran) and cpu_ns() - begin < _LITTLE_WORK * limit * 1e9

    def _run_with_noise(self, settings: NoiseSettings, seed: int) -> RunOutcome:
        shared = self.shared_numbers() if settings.shared_only or settings.one_variable else None

        def call(program: Program) -> tuple[RunOutcome, Hits | None]:
            noise = Noise(settings, seed, shared)
            run = free_run(program, noise, seconds=self._seconds, coverage=self._coverage)
            return RunOutcome.of_free(run, noise), run.hits

        return self._run_and_take_hits(call)

    def _run_and_take_hits(
        self, call: Callable[[Program], tuple[RunOutcome, Hits | None]]
    ) -> RunOutcome:
        """Run the program and return its hits with targets that are valid in this process."""
        if not self._isolated:
            return self._run_or_problem(lambda program: _with_hits(*call(program)))
        code, known_sources = installed_coverage(), frozenset(self._catalogue.sources)
        files = code.known_files if code is not None else ()

        def moved(program: Program) -> tuple[RunOutcome, MovingHits | None, list[WrittenFile]]:
            ran, hits = call(program)
            moving = hits.moving(known_sources) if hits is not None else None
            return ran, moving, code.written(files) if code is not None else []

        try:
            ran, moving, written = self._call(moved)
        except NoAnswer as error:
            return _unfinished(error)
        if code is not None:
            code.take_over(written)
        return _with_hits(ran, moving.arrived(self._catalogue) if moving is not None else None)

    def scheduled(self, scheduler: ThreadScheduler, **options: Any) -> RunOutcome:
        """Run the program once under a scheduler."""
        options.setdefault("seconds", self._seconds)
        return self._run_or_problem(
            lambda p: RunOutcome.of(controlled_run(p, scheduler, **options))
        )

    def systematic(self, deviations: Deviations) -> tuple[RunOutcome, Sequence[Decision]]:
        """Run the program with deviations from the plain schedule; return its decisions, too."""

        def call(program: Program) -> tuple[RunOutcome, Sequence[Decision]]:
            scheduler = SystematicScheduler(deviations)
            run = controlled_run(program, scheduler, seconds=self._seconds)
            return RunOutcome.of(run), scheduler.decisions

        try:
            return self._call(call)
        except NoAnswer as error:
            return _unfinished(error), ()

    def follow(self, schedule: Schedule, **options: Any) -> RunOutcome:
        """Run the program once by a schedule.

        If the code has changed since the schedule was recorded, the schedule is followed as far as
        its places are found again.
        """
        options.setdefault("seconds", self._seconds)
        return self._run_or_problem(lambda p: RunOutcome.of(replay(p, schedule, **options)))

    def minimal(self, schedule: Schedule, fault: Fault) -> Schedule:
        """Return the fewest switches that still show a fault."""

        def shows(switches: Iterable[Switch]) -> bool:
            replayed = ScheduleReplay(schedule.with_switches(switches))
            return self.scheduled(replayed).fault == fault

        def extent(switches: Iterable[Switch]) -> Extent:
            replayed = ScheduleReplay(schedule.with_switches(switches))
            return self._call(
                lambda p: extent_of(controlled_run(p, replayed, traced=True, seconds=self._seconds))
            )

        most_runs = _MOST_ISOLATED_RUNS if self._isolated else MOST_RUNS
        allowed = WorkTime(_MINIMAL_SECONDS)
        smallest = minimal_switches(
            schedule.switches,
            lambda switches: not allowed.is_over and shows(switches),
            extent,
            most_runs,
        )
        return self.numbered(schedule.with_switches(smallest))

    def numbered(self, schedule: Schedule) -> Schedule:
        """Return a schedule whose switches name their places, as often as they occur."""
        return self._call(lambda p: number_switches(p, schedule, seconds=self._seconds))

    @property
    def is_isolated(self) -> bool:
        """Whether each run has a process of its own, which makes runs expensive."""
        return self._isolated

    @property
    def shared(self) -> frozenset[Site]:
        """The accesses to variables that several threads share, found in a few profiling runs."""
        if self._shared is None:
            sites: set[Site] = set()
            for _ in range(_PROFILING_RUNS):
                sites.update(self._call(self._profile_shared_sites))
            self._shared = frozenset(sites)
        return self._shared

    def _profile_shared_sites(self, program: Program) -> list[Site]:
        recording = AccessRecording()
        free_run(program, recording, seconds=self._seconds)
        return [SITES[number] for number in shared_sites([recording])]

    def shared_numbers(self) -> frozenset[int]:
        """Return the sites of `shared` as their numbers in this process."""
        if self._numbers is None:
            self._numbers = frozenset(SITES.number(site) for site in self.shared)
        return self._numbers

    def _run_or_problem(self, call: Callable[[Program], RunOutcome]) -> RunOutcome:
        try:
            return self._call(call)
        except NoAnswer as error:
            return _unfinished(error)

    def _call(self, call: Callable[[Program], Answer]) -> Answer:
        self.on_run()
        program = self.program
        if not self._isolated:
            return call(program)
        return in_fork(lambda: call(program), self._seconds + _EXTRA_SECONDS)

    def scheduler(
        self, settings: ControlSettings, seed: int, library: bool = False
    ) -> ThreadScheduler:
        """Return the scheduler of a run under control."""
        if settings.policy == "pct":
            return PCT(seed, settings.depth, self._typical_run(library).steps)
        if settings.policy == "pos":
            return POS(seed)
        if not settings.switches:
            return RandomWalk(seed)
        return RandomWalk(seed, settings.switches / max(self._typical_run(library).steps, 1))

    def _calls_library(self) -> bool:
        """Return whether the program executes lines of code without probes."""
        return self._typical_run(True).library_lines > 0

    def _has_only_tasks(self) -> bool:
        """Return whether the program has tasks of an event loop and no other threads."""
        if str(self._raced) in _uncontrolled:
            return False
        typical = self._typical_run(False)
        return typical.tasks > 1 and typical.threads == typical.tasks

    def _typical_run(self, library: bool) -> RunOutcome:
        """Return the outcome of one run, which tells how long runs are."""
        if library not in self._typical:
            self._typical[library] = self.scheduled(RandomWalk(0), library=library)
        return self._typical[library]


def note_uncontrolled(raced: RacedProgram) -> None:
    """Note that the threads of a program cannot be controlled."""
    _uncontrolled.add(str(raced))


def is_overdue(ran: RunOutcome) -> bool:
    """Return whether a run did not end in time."""
    return ran.problem.startswith(OVERDUE)


def _with_hits(ran: RunOutcome, hits: Hits | None) -> RunOutcome:
    return ran if hits is None else replace(ran, hits=hits)


def _unfinished(error: NoAnswer) -> RunOutcome:
    return RunOutcome(None, f"the program was not run to its end: {error}")
