"""Runs of one program, in this process or each in one of its own."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from swarmtest.core.result import Fault
from swarmtest.core.targets import Catalogue, Hits, MovingHits
from swarmtest.coverage.file_probes import Written
from swarmtest.coverage.watch import installed_coverage
from swarmtest.processes.fork import NoAnswer, in_fork
from swarmtest.race.control.runner import Run, controlled_run, nothing_to_schedule, numbered, replay
from swarmtest.race.control.schedulers import PCT, POS, RandomWalk, Replay, Schedule, Scheduler
from swarmtest.race.coverage.coverage import ConcurrencyCoverage
from swarmtest.race.coverage.shared_variables import Recording, shared_sites
from swarmtest.race.free.noise import Noise, NoiseSettings
from swarmtest.race.free.runner import FreeRun, free_run
from swarmtest.race.programs import Program, load_program
from swarmtest.race.race_test import ControlSettings, RunSettings
from swarmtest.race.target import Target
from swarmtest.race.timeline import STUCK, Row, rows_of
from swarmtest.race.weaving.sites import SITES, Site
from swarmtest.reducer.reducer import minimised

Answer = TypeVar("Answer")

_PATIENCE = 2.0
"""How much longer a process of its own is waited for."""
_NOTHING = Schedule()
_RECORDED = 3
"""Runs that tell which variables are shared."""


@dataclass(frozen=True)
class Ran:
    """What came of a run, as data that can leave its process."""

    fault: Fault | None
    problem: str
    schedule: Schedule = _NOTHING
    steps: int = 0
    threads: int = 1
    notes: tuple[str, ...] = ()
    missed: int = 0
    rows: tuple[Row, ...] = ()
    """The picture of a traced run."""
    hits: Hits | None = None
    """What its threads did to each other."""
    lengths: tuple[tuple[str, int], ...] = ()
    """How many probes each thread of a traced run passed."""
    seen: tuple[tuple[str, int], ...] = ()
    """Of a run with noise that failed: who was disturbed, before which of its probes."""

    @classmethod
    def of(cls, run: Run) -> Ran:
        """All that is known of a run, but for the objects and numbers of its process."""
        stuck = run.fault is not None and run.fault.kind in STUCK
        lengths: dict[str, int] = {}
        for step in run.trace:
            lengths[step.thread] = max(step.at, lengths.get(step.thread, 0))
        problem = run.problem or ("" if run.fault else nothing_to_schedule(run))
        return cls(
            run.fault,
            problem,
            run.schedule if run.fault or run.trace else _NOTHING,
            run.steps,
            run.threads,
            run.notes,
            run.missed,
            rows_of(run.trace, stuck),
            lengths=tuple(lengths.items()),
        )

    @classmethod
    def of_free(cls, run: FreeRun, noise: Noise) -> Ran:
        """The same of a run without control; it has no schedule."""
        problem = run.problem
        if not problem and run.fault is None and run.threads == 1:
            problem = "the program starts no thread: there is nothing to disturb"
        seen = tuple(noise.places) if run.fault else ()
        return cls(run.fault, problem, threads=run.threads, notes=run.notes, seen=seen)


class Racer:
    """Runs a program under control or with noise; it is loaded when it is first needed.

    `program`: one that is loaded already, in place of the target's.
    """

    def __init__(self, target: Target, program: Program | None = None) -> None:
        self._program = program
        self._target = target
        self._stack = ExitStack()
        self.close = weakref.finalize(self, self._stack.close)
        """Take probes and primitives away; done by itself when the process ends."""
        self._isolated = program is None and (target.isolated or target.kind == "script")
        self._seconds = target.seconds
        self._coverage = ConcurrencyCoverage(target.coverage) if target.coverage else None
        self._arrived = Catalogue()
        """What runs reached in processes of their own."""
        self._shared: frozenset[Site] | None = None
        self._numbers: frozenset[int] | None = None
        self._steps = 0

    @property
    def program(self) -> Program:
        """What is run."""
        if self._program is None:
            self._program = load_program(self._target, self._stack)
        return self._program

    def run(self, settings: RunSettings, seed: int) -> Ran:
        """Run once, by a policy or with noise."""
        if isinstance(settings, NoiseSettings):
            return self._disturbed(settings, seed)
        sites = self.shared_numbers() if settings.shared else None
        scheduler = self._scheduler(settings, seed)

        def call(program: Program) -> tuple[Ran, Hits | None]:
            run = controlled_run(
                program, scheduler, sites=sites, seconds=self._seconds, coverage=self._coverage
            )
            return Ran.of(run), run.hits

        return self._reaching(call)

    def _disturbed(self, settings: NoiseSettings, seed: int) -> Ran:
        shared = self.shared_numbers() if settings.shared_only or settings.one_variable else None

        def call(program: Program) -> tuple[Ran, Hits | None]:
            noise = Noise(settings, seed, shared)
            run = free_run(program, noise, seconds=self._seconds, coverage=self._coverage)
            return Ran.of_free(run, noise), run.hits

        return self._reaching(call)

    def _reaching(self, call: Callable[[Program], tuple[Ran, Hits | None]]) -> Ran:
        """A run whose hits count here, also if it has a process of its own."""
        if not self._isolated:
            return self._ran(lambda program: _with_hits(*call(program)))
        code, known = installed_coverage(), frozenset(self._arrived.sources)
        files = code.known_files if code is not None else ()

        def moved(program: Program) -> tuple[Ran, MovingHits | None, list[Written]]:
            ran, hits = call(program)
            moving = hits.moving(known) if hits is not None else None
            return ran, moving, code.written(files) if code is not None else []

        try:
            ran, moving, written = self._call(moved)
        except NoAnswer as error:
            return _not_run(error)
        if code is not None:
            code.take_over(written)
        return _with_hits(ran, moving.arrived(self._arrived) if moving is not None else None)

    def scheduled(self, scheduler: Scheduler, **options: Any) -> Ran:
        """Run once, by a scheduler."""
        options.setdefault("seconds", self._seconds)
        return self._ran(lambda p: Ran.of(controlled_run(p, scheduler, **options)))

    def follow(self, schedule: Schedule, **options: Any) -> Ran:
        """Run once, by a schedule; one of changed code as far as its places are found again."""
        options.setdefault("seconds", self._seconds)
        return self._ran(lambda p: Ran.of(replay(p, schedule, **options)))

    def minimal(self, schedule: Schedule, fault: Fault) -> Schedule:
        """The fewest switches that show a fault."""

        def shows(switches: Iterable[Any]) -> bool:
            return self.scheduled(Replay(Schedule(tuple(switches)))).fault == fault

        kept = Schedule(tuple(minimised(schedule.switches, shows)))
        return self._call(lambda p: numbered(p, kept, seconds=self._seconds))

    @property
    def shared(self) -> frozenset[Site]:
        """The accesses to variables that several threads share, as a few runs tell."""
        if self._shared is None:
            found: set[Site] = set()
            for _ in range(_RECORDED):
                found.update(self._call(self._recorded))
            self._shared = frozenset(found)
        return self._shared

    def _recorded(self, program: Program) -> list[Site]:
        recording = Recording()
        free_run(program, recording, seconds=self._seconds)
        return [SITES[number] for number in shared_sites([recording])]

    def shared_numbers(self) -> frozenset[int]:
        """The same by their numbers in this process."""
        if self._numbers is None:
            self._numbers = frozenset(SITES.number(site) for site in self.shared)
        return self._numbers

    def _ran(self, call: Callable[[Program], Ran]) -> Ran:
        try:
            return self._call(call)
        except NoAnswer as error:
            return _not_run(error)

    def _call(self, call: Callable[[Program], Answer]) -> Answer:
        program = self.program
        if not self._isolated:
            return call(program)
        return in_fork(lambda: call(program), self._seconds + _PATIENCE)

    def _scheduler(self, settings: ControlSettings, seed: int) -> Scheduler:
        if settings.policy == "pct":
            return PCT(seed, settings.depth, self._usual_steps())
        if settings.policy == "pos":
            return POS(seed)
        rate = settings.switches / self._usual_steps() if settings.switches else 1.0
        return RandomWalk(seed, rate)

    def _usual_steps(self) -> int:
        if not self._steps:
            self._steps = max(self.scheduled(RandomWalk(0)).steps, 1)
        return self._steps


def _with_hits(ran: Ran, hits: Hits | None) -> Ran:
    return ran if hits is None else replace(ran, hits=hits)


def _not_run(error: NoAnswer) -> Ran:
    return Ran(None, f"the program was not run to its end: {error}")
