"""A threaded program as a subject: each test is one run, with settings of its own."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.processes.fork import NoAnswer, in_fork
from swarmtest.race.accelerator import accelerator_status
from swarmtest.race.control.schedulers import RandomWalk
from swarmtest.race.explanation import explained, message_of_fault, replayable
from swarmtest.race.free.noise import NoiseSettings
from swarmtest.race.programs import Program
from swarmtest.race.race_test import RaceTest, features_of, race_space, settings_of
from swarmtest.race.racer import Racer, Ran
from swarmtest.race.replay import replay_code
from swarmtest.race.target import REFERENCE, Target

_LOADING = 20.0
"""Seconds for importing the program."""
_REPLAYS = 20
_EXPLAINING = 60.0
"""Seconds in which a schedule is replayed, made small and explained."""


class ThreadsSubject:
    """Runs a function, a test of pytest or a script once per test, under control or with noise.

    Its settings are features: which policies may choose the thread that goes on, which kinds of
    noise may be made, and whether that is before shared variables only. So a swarm leaves some out
    of each run, and roles tell which bring a fault out.

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
    ['AssertionError [count_to_two]']
    """

    def __init__(self, target: str | Target, program: Program | None = None) -> None:
        """`program`: what the target names, if it is loaded already, with probes in its code."""
        if isinstance(target, str):
            target = Target.parse(target if target.startswith(REFERENCE) else REFERENCE + target)
        self.target = target
        self.name = str(target)
        self.space = race_space(target.engines)
        self.interruptible = True
        self.keep_tests = False
        self.journal: Callable[[Any], None] | None = None
        self.part = "switch"
        self.suffix = ".py"
        self.loads_late = True
        self.harness = target.path if Path(target.path).is_file() else ""
        self.weighted = False
        self.seconds: float | None = (
            4 * target.seconds
        )  # the first run may need three others before it
        self.notes: tuple[str, ...] = ()
        """What a user should know of its runs: that it forks, and the like; `check` finds out."""
        self._racer = Racer(target, program) if program is not None else None

    @property
    def racer(self) -> Racer:
        """Who runs the program, in this process; it is loaded when it first runs."""
        if self._racer is None:
            self._racer = Racer(self.target)
        return self._racer

    def check(self, thorough: bool = False) -> list[str]:
        """Whether it can be run and starts threads; one run, in a process of its own."""
        try:
            ran = in_fork(
                lambda: self.racer.scheduled(RandomWalk(0)), _LOADING + 2 * self.target.seconds
            )
        except NoAnswer as error:
            return [f"{self.target.reference}: {error}"]
        self.notes = (*ran.notes, *self._slow_coverage())
        problem = ran.problem
        if ran.fault is not None and ran.threads == 1:
            arguments = " (it is run without arguments)" if self.target.kind == "script" else ""
            problem = (
                f"it fails before it starts a thread{arguments}: {message_of_fault(ran.fault)}"
            )
        return [f"{self.target.reference}: {problem}"] if problem else []

    def _slow_coverage(self) -> tuple[str, ...]:
        which, _, why = accelerator_status().partition(": ")
        if not self.target.coverage or which == "C":
            return ()
        return (f"coverage is taken without the accelerator, which is slower: {why}",)

    def execute(self, configuration: Configuration, seed: int) -> Result:
        """Run the program once."""
        test = self._drawn(configuration, seed)
        if self.journal is not None:
            self.journal(test.to_json())
        return self._result(test, self.racer.run(test.settings, test.seed))

    def result_of_journal(
        self, told: Sequence[Any], configuration: Configuration, fault: Fault
    ) -> Result:
        """What came of a run that ended its process."""
        return Result(Verdict.FAILED, fault, test=told[-1] if told else None)

    def test_of(self, configuration: Configuration, seed: int) -> Any:
        """The settings that a configuration and a seed give (JSON data)."""
        return self._drawn(configuration, seed).to_json()

    def replay(self, test: Any) -> Result:
        """Run a saved test again: by its schedule if it has one.

        With noise, what the system makes of it differs: it is run until it fails, at most 20 times.
        """
        whole = RaceTest.from_json(test)
        if whole.schedule is not None:
            ran = self.racer.follow(whole.schedule)
            result = self._result(whole, ran)
            if ran.problem:
                return result
            kept = None if result.test is None else test
            return result._replace(test=kept, missing="; ".join(ran.notes))
        runs = _REPLAYS if isinstance(whole.settings, NoiseSettings) else 1
        for _ in range(runs):
            ran = self.racer.run(whole.settings, whole.seed)
            if ran.fault is not None:
                break
        return self._result(whole, ran)

    def reduced(self, test: Any, interesting: Callable[[Any], bool]) -> Any:
        """The same test with the fewest switches that still show its fault, and explained."""
        try:
            small = in_fork(lambda: self.explained(RaceTest.from_json(test)), _EXPLAINING)
        except NoAnswer as error:
            raise UserError(f"the schedule could not be made small: {error}") from None
        data = small.to_json()
        return data if interesting(data) else test

    def explained(self, test: RaceTest) -> RaceTest:
        """A failing test with as few switches as possible, and what happens at them.

        A test with noise has no schedule: controlled ones are tried until one shows its fault.
        """
        ran = self._controlled(test)
        assert ran.fault is not None
        schedule, explanation = explained(self.racer, ran.schedule, ran.fault)
        return replace(test, schedule=schedule, explanation=explanation)

    def _controlled(self, test: RaceTest) -> Ran:
        """A controlled run that shows the test's fault."""
        if test.schedule is not None:
            ran = self.racer.follow(test.schedule)
        elif isinstance(test.settings, NoiseSettings):
            return replayable(self.racer, test)
        else:
            ran = self.racer.run(test.settings, test.seed)
        if ran.fault is None:
            raise UserError(f"the test of {self.target.reference} passes: nothing to explain")
        return ran

    def size(self, test: Any) -> int:
        """How many switches a test has."""
        return RaceTest.from_json(test).size

    def code(self, test: Any) -> str:
        """A test of pytest that replays the schedule, with its timeline."""
        return replay_code(self.target, RaceTest.from_json(test))

    def _drawn(self, configuration: Configuration, seed: int) -> RaceTest:
        settings = settings_of(configuration, seed)
        return RaceTest(self.name, settings, random.Random(seed).randrange(1 << 31))

    def _result(self, test: RaceTest, ran: Ran) -> Result:
        if ran.problem:
            return Result(Verdict.INVALID, missing=ran.problem)
        on = features_of(test.settings)
        used = tuple(int(name in on) for name in self.space.feature_names)
        covered = (ran.hits,) if ran.hits is not None else ()
        if ran.fault is None:
            told = test.to_json() if self.keep_tests else None
            return Result(Verdict.PASSED, None, used, test=told, covered=covered)
        schedule = None if isinstance(test.settings, NoiseSettings) else ran.schedule
        kept = replace(test, schedule=schedule, fault=ran.fault.id, seen=ran.seen)
        return Result(
            Verdict.FAILED,
            ran.fault,
            used,
            steps=kept.size,
            test=kept.to_json(),
            covered=covered,
        )
