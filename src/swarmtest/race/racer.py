"""Run one program many times, in this process or each time in a process of its own.

A `Racer` loads the program once, runs it under control or with noise, and returns a `RunOutcome`
for each run, which holds plain data only, so that it can be sent from a child process.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from swarmtest.core.result import Fault
from swarmtest.core.targets import Catalogue, Hits, MovingHits
from swarmtest.coverage.file_probes import WrittenFile
from swarmtest.coverage.watch import installed_coverage
from swarmtest.processes.fork import NoAnswer, in_fork
from swarmtest.race.control.runner import (
    ControlledRun,
    controlled_run,
    nothing_to_schedule,
    number_switches,
    replay,
)
from swarmtest.race.control.schedulers import (
    PCT,
    POS,
    RandomWalk,
    Schedule,
    ScheduleReplay,
    ThreadScheduler,
)
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
from swarmtest.reducer.reducer import minimised

Answer = TypeVar("Answer")

_EXTRA_SECONDS = 2.0
"""Seconds that a child process gets beyond the time limit of its run."""
_EMPTY_SCHEDULE = Schedule()
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
            run.threads,
            run.notes,
            run.missed,
            rows_of(run.trace, stuck),
            lengths=tuple(lengths.items()),
        )

    @classmethod
    def of_free(cls, run: FreeRun, noise: Noise) -> RunOutcome:
        """Return the outcome of a free run, which has no schedule."""
        problem = run.problem
        if not problem and run.fault is None and run.threads == 1:
            problem = "the program starts no thread: there is nothing to disturb"
        seen = tuple(noise.places) if run.fault else ()
        return cls(run.fault, problem, threads=run.threads, notes=run.notes, seen=seen)


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
        self._steps = 0

    @property
    def program(self) -> Program:
        """The program that is run; loaded on first use."""
        if self._program is None:
            self._program = load_program(self._raced, self._stack)
        return self._program

    def run(self, settings: RunSettings, seed: int) -> RunOutcome:
        """Run the program once, under control or with noise."""
        if isinstance(settings, NoiseSettings):
            return self._run_with_noise(settings, seed)
        sites = self.shared_numbers() if settings.shared else None
        scheduler = self._scheduler(settings, seed)

        def call(program: Program) -> tuple[RunOutcome, Hits | None]:
            run = controlled_run(
                program, scheduler, sites=sites, seconds=self._seconds, coverage=self._coverage
            )
            return RunOutcome.of(run), run.hits

        return self._run_and_take_hits(call)

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

    def follow(self, schedule: Schedule, **options: Any) -> RunOutcome:
        """Run the program once by a schedule.

        If the code has changed since the schedule was recorded, the schedule is followed as far as
        its places are found again.
        """
        options.setdefault("seconds", self._seconds)
        return self._run_or_problem(lambda p: RunOutcome.of(replay(p, schedule, **options)))

    def minimal(self, schedule: Schedule, fault: Fault) -> Schedule:
        """Return the fewest switches that still show a fault."""

        def shows(switches: Iterable[Any]) -> bool:
            return self.scheduled(ScheduleReplay(Schedule(tuple(switches)))).fault == fault

        smallest = Schedule(tuple(minimised(schedule.switches, shows)))
        return self._call(lambda p: number_switches(p, smallest, seconds=self._seconds))

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
        program = self.program
        if not self._isolated:
            return call(program)
        return in_fork(lambda: call(program), self._seconds + _EXTRA_SECONDS)

    def _scheduler(self, settings: ControlSettings, seed: int) -> ThreadScheduler:
        if settings.policy == "pct":
            return PCT(seed, settings.depth, self._typical_steps())
        if settings.policy == "pos":
            return POS(seed)
        rate = settings.switches / self._typical_steps() if settings.switches else 1.0
        return RandomWalk(seed, rate)

    def _typical_steps(self) -> int:
        if not self._steps:
            self._steps = max(self.scheduled(RandomWalk(0)).steps, 1)
        return self._steps


def _with_hits(ran: RunOutcome, hits: Hits | None) -> RunOutcome:
    return ran if hits is None else replace(ran, hits=hits)


def _unfinished(error: NoAnswer) -> RunOutcome:
    return RunOutcome(None, f"the program was not run to its end: {error}")
