"""A threaded Python program as a subject: each test is one run with settings of its own."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.formatting import plural
from swarmtest.core.result import Result, Verdict
from swarmtest.processes.fork import NoAnswer, in_fork, last_answer
from swarmtest.race.accelerator import accelerator_status
from swarmtest.race.control.schedulers import RandomWalk
from swarmtest.race.explanation import (
    Explained,
    explain_schedule,
    find_schedule,
    message_of_fault,
)
from swarmtest.race.noise_settings import KIND_NAMES, NoiseSettings
from swarmtest.race.programs import Program
from swarmtest.race.race_test import POLICIES, RaceTest, features_of, race_space, settings_of
from swarmtest.race.raced_program import REFERENCE, RacedProgram
from swarmtest.race.racer import Racer, RunOutcome, is_overdue, note_uncontrolled
from swarmtest.race.regression_test import replay_code
from swarmtest.subjects.subject import Subject

_LOADING_SECONDS = 20.0
"""Seconds allowed for importing the program."""
_MANY_LINES = 50
"""The number of lines of a package without probes from which on it is named."""
_REPLAYS = 20
"""How often a test with noise is run again until it fails."""
_CONTROLLED_REPLAYS = 200
"""How many controlled runs look for the fault if none of these has shown it."""
_ISOLATED_REPLAYS = 20
"""The same for programs that need a process for each run."""
_SILENCE_SECONDS = 60.0
"""Seconds without a run after which the explanation of a schedule is given up."""
_SIGN_SECONDS = 1.0
_TRIES = 3
"""How often a schedule is followed if a run has not come to its end."""


class ThreadsSubject(Subject):
    """A function, pytest test or script that is run once per test, under control or with noise.

    Its settings are features: which policies may choose the next thread, which kinds of noise may
    be made, and whether both act only before accesses to shared variables. A swarm leaves some of
    them out of each run, and the roles of the features show which ones bring out a fault.

    >>> _ = Path("counter.py").write_text('''
    ... from threading import Thread
    ...
    ... def count_to_two():
    ...     def add():
    ...         nonlocal total
    ...         total += 1
    ...     total = 0
    ...     threads = [Thread(target=add), Thread(target=add)]
    ...     for thread in threads: thread.start()
    ...     for thread in threads: thread.join()
    ...     assert total == 2
    ... ''')
    >>> from swarmtest import Campaign
    >>> subject = ThreadsSubject("counter.py::count_to_two")
    >>> outcome = Campaign(subject, "coin", 100, workers=1, store=":memory:").run()
    >>> [fault.signature for fault in outcome.faults]
    ['AssertionError [count_to_two: assert total == 2]']
    """

    part = "switch"
    alternatives: Mapping[str, Sequence[str]] = {"scheduler": POLICIES, "noise": KIND_NAMES}
    suffix = ".py"
    loads_late = True

    def __init__(self, raced: str | RacedProgram, program: Program | None = None) -> None:
        """Create the subject; pass `program` if it is already loaded with probes."""
        if isinstance(raced, str):
            raced = RacedProgram.parse(raced if raced.startswith(REFERENCE) else REFERENCE + raced)
        self.raced = raced
        self.name = str(raced)
        self.space = race_space(raced.modes)
        self.harness = raced.path if Path(raced.path).is_file() else ""
        # The first run may need three profiling runs before it.
        self.seconds = 4 * raced.seconds
        self.notes: tuple[str, ...] = ()
        """What a user should know about the runs, such as that the program forks; set by
        `check`."""
        self._racer = Racer(raced, program) if program is not None else None

    @property
    def racer(self) -> Racer:
        """The object that runs the program in this process, which loads it on its first run."""
        if self._racer is None:
            self._racer = Racer(self.raced)
        return self._racer

    def check(self, thorough: bool = False) -> list[str]:
        """Return why the program cannot be raced; one run in a process of its own decides."""
        try:
            ran = in_fork(
                lambda: self.racer.scheduled(RandomWalk(0)),
                _LOADING_SECONDS + 2 * self.raced.seconds,
            )
        except NoAnswer as error:
            return [f"{self.raced.reference}: {error}"]
        self.notes = (*ran.notes, *self._slow_coverage_notes())
        problem = ran.problem
        if is_overdue(ran) and self._runs_freely():
            note_uncontrolled(self.raced)
            what = problem.partition("; ")[2].partition(":")[0]
            self.notes = (*self.notes, f"threads cannot be controlled: {what}; runs use noise")
            problem = ""
        elif not problem:
            self.notes = (*self.notes, *self._unwatched_notes())
        if ran.fault is not None and ran.threads == 1:
            arguments = " (it is run without arguments)" if self.raced.kind == "script" else ""
            problem = (
                f"it fails before it starts a thread{arguments}: {message_of_fault(ran.fault)}"
            )
        return [f"{self.raced.reference}: {problem}"] if problem else []

    def _runs_freely(self) -> bool:
        """Return whether the program comes to its end with noise, which the user allows."""
        if "noise" not in self.raced.modes:
            return False
        try:
            ran = in_fork(
                lambda: self.racer.run(NoiseSettings(), 0),
                _LOADING_SECONDS + 2 * self.raced.seconds,
            )
        except NoAnswer:
            return False
        return not ran.problem

    def _unwatched_notes(self) -> tuple[str, ...]:
        """Say which packages do a part of the work and have no probes."""

        def run_with_lines() -> RunOutcome:
            return self.racer.scheduled(RandomWalk(0), library=True)

        try:
            ran = in_fork(run_with_lines, _LOADING_SECONDS + 2 * self.raced.seconds)
        except NoAnswer:
            return ()
        busy = [(name, lines) for name, lines in ran.unwatched if lines >= _MANY_LINES]
        if not busy:
            return ()
        names = [name for name, _ in busy]
        lines = plural(sum(lines for _, lines in busy), "line")
        watched = self.raced.cover or (self.raced.path,)
        options = " ".join(f"--cover {name}" for name in (*watched, *names))
        return (
            f"no probes in {', '.join(names)} ({lines} in one run of its threads): threads are "
            f"seldom switched there; {options} gives them probes",
        )

    def _slow_coverage_notes(self) -> tuple[str, ...]:
        if not self.raced.coverage:
            return ()
        which, _, why = accelerator_status().partition(": ")
        if which == "C":
            return ()
        return (f"coverage is taken without the accelerator, which is slower: {why}",)

    def generate(self, configuration: Configuration, seed: int) -> Any:
        """Return the settings that a configuration and a seed give, as JSON data."""
        settings = settings_of(configuration, seed)
        race_seed = random.Random(seed).randrange(1 << 31)
        return RaceTest(self.name, settings, race_seed).to_json()

    def run(self, test: Any) -> Result:
        """Run the program once, with the settings of a test."""
        race_test = RaceTest.from_json(test)
        race_test = replace(race_test, settings=self.racer.possible(race_test.settings))
        return self._result(race_test, self.racer.run(race_test.settings, race_test.seed))

    def replay(self, test: Any) -> Result:
        """Run a saved test again, by its schedule if it has one.

        The operating system schedules a run with noise differently each time, so such a test is run
        until it fails, at most 20 times, and then under control near the places of its noise.
        """
        race_test = RaceTest.from_json(test)
        if race_test.schedule is not None:
            ran = self.racer.follow(race_test.schedule)
            result = self._result(race_test, ran)
            if ran.problem:
                return result
            kept_test = None if result.test is None else test
            return result._replace(test=kept_test, missing="; ".join(ran.notes))
        runs = _REPLAYS if isinstance(race_test.settings, NoiseSettings) else 1
        for _ in range(runs):
            ran = self.racer.run(race_test.settings, race_test.seed)
            if ran.fault is not None:
                return self._result(race_test, ran)
        if runs > 1 and race_test.fault:
            with suppress(UserError):
                most = _ISOLATED_REPLAYS if self.racer.is_isolated else _CONTROLLED_REPLAYS
                ran = find_schedule(self.racer, race_test, most)
        return self._result(race_test, ran)

    def reduced(self, test: Any, interesting: Callable[[Any], bool]) -> Any:
        """Return the test with the fewest switches that still show its fault, and explained.

        If the process that does the work ends or hangs, the best test so far counts.
        """

        def explain(send: Callable[[Any], None]) -> None:
            last = time.monotonic()

            def show_life() -> None:
                nonlocal last
                if time.monotonic() - last > _SIGN_SECONDS:
                    send(None)
                    last = time.monotonic()

            self.racer.on_run = show_life
            small = self.explained(RaceTest.from_json(test), lambda each: send(each.to_json()))
            send(small.to_json())

        try:
            reduced = last_answer(explain, _SILENCE_SECONDS)
        except NoAnswer as error:
            raise UserError(f"the schedule could not be minimised: {error}") from None
        return reduced if interesting(reduced) else test

    def explained(
        self, test: RaceTest, on_better: Callable[[RaceTest], None] = lambda better: None
    ) -> RaceTest:
        """Return a failing test with as few switches as possible and an explanation of them.

        A test with noise has no schedule, so controlled runs are tried until one shows its fault.
        `on_better` gets tests on the way, which have a schedule with more switches.
        """
        ran = self._failing_controlled_run(test)
        assert ran.fault is not None

        def with_explanation(explained: Explained) -> RaceTest:
            schedule, explanation = explained
            return replace(test, schedule=schedule, explanation=explanation)

        return with_explanation(
            explain_schedule(
                self.racer, ran.schedule, ran.fault, lambda e: on_better(with_explanation(e))
            )
        )

    def _failing_controlled_run(self, test: RaceTest) -> RunOutcome:
        """Return a controlled run that shows the test's fault."""
        if test.schedule is not None:
            for _ in range(_TRIES):
                ran = self.racer.follow(test.schedule)
                if not ran.problem:
                    break
        elif isinstance(test.settings, NoiseSettings):
            return find_schedule(self.racer, test)
        else:
            ran = self.racer.run(test.settings, test.seed)
        if ran.fault is None:
            raise UserError(f"the test of {self.raced.reference} passes: nothing to explain")
        return ran

    def size(self, test: Any) -> int:
        """Return the number of switches in a test."""
        return RaceTest.from_json(test).size

    def code(self, test: Any) -> str:
        """Return a pytest test that replays the schedule, with the timeline in its docstring."""
        return replay_code(self.raced, RaceTest.from_json(test))

    def _result(self, test: RaceTest, ran: RunOutcome) -> Result:
        if ran.problem:
            return Result(Verdict.INVALID, missing=ran.problem)
        features = features_of(test.settings)
        used = tuple(int(name in features) for name in self.space.feature_names)
        covered = (ran.hits,) if ran.hits is not None else ()
        if ran.fault is None:
            kept_test = test.to_json() if self.keep_tests else None
            return Result(Verdict.PASSED, None, used, test=kept_test, covered=covered)
        schedule = None if isinstance(test.settings, NoiseSettings) else ran.schedule
        failing = replace(test, schedule=schedule, fault=ran.fault.key, seen=ran.seen)
        return Result(
            Verdict.FAILED,
            ran.fault,
            used,
            steps=failing.size,
            test=failing.to_json(),
            covered=covered,
        )
