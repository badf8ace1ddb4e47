"""A small search for races in one test of pytest, in the process that calls it."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

from swarmtest.errors import UserError
from swarmtest.result import Verdict
from swarmtest.seeds import Stream, trial_key
from swarmtest.space import Proposal
from swarmtest.strategies import parse_strategy
from swarmtest.subjects.threads.pytest_program import item_program, torn_down
from swarmtest.subjects.threads.race_test import RaceTest
from swarmtest.subjects.threads.subject import ThreadsSubject
from swarmtest.subjects.threads.target import SECONDS, Target
from swarmtest.threads import RandomWalk


@dataclass(frozen=True)
class Found:
    """What came of it."""

    runs: int
    fault: str = ""
    """The id of the fault, if there was one..."""
    test: RaceTest | None = None
    """...and the smallest test that shows it, explained."""
    problem: str = ""
    """Why it said nothing, or could not explain; empty if it did."""


def race_item(item: pytest.Function, tests: int, seconds: float, seed: int) -> Found:
    """Run a test, whose fixtures are set up, by schedules until it fails or the time is up."""
    torn_down(item)
    path, _, name = item.nodeid.partition("::")
    target = Target(path, name, seconds=min(SECONDS, max(seconds, 1.0)))
    subject = ThreadsSubject(target, item_program(item))
    first = subject.racer.scheduled(RandomWalk(seed))
    if first.problem:
        return Found(1, problem=first.problem)
    strategy = parse_strategy("coin")
    until = time.monotonic() + seconds
    stream = Stream(seed)
    runs = 0
    while runs < tests and time.monotonic() < until:
        stream.rekey(trial_key(seed, runs))
        asked = strategy.ask(subject.space, runs, stream)
        configuration = asked.configuration if isinstance(asked, Proposal) else asked
        result = subject.execute(configuration, runs)
        runs += 1
        if result.verdict == Verdict.INVALID:
            return Found(runs, problem=result.missing)
        if result.fault is not None:
            try:
                small = subject.explained(RaceTest.from_json(result.test))
            except UserError as error:
                return Found(runs, problem=f"{result.fault.signature}: {error}")
            return Found(runs, result.fault.id, small)
    return Found(runs)
