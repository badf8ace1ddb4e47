"""A native program with threads as what a campaign tests."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from thread_programs import DEADLOCK, SEATS, Build

from swarmtest.core.errors import UserError
from swarmtest.core.result import Verdict
from swarmtest.race.native.subject import NativeThreadsSubject, NoiseTest, load_native_threads
from swarmtest.subjects.loading import SubjectReference

Run = Callable[..., subprocess.CompletedProcess[str]]
OVERSOLD = "exit status 1: sold # of # seats"


def failing_test(subject: NativeThreadsSubject) -> Any:
    """The first test that fails; with sleeps, more than one run of six does."""
    noise = subject.space.configuration({"sleep": 1, "yield": 1, "predecessors": 1})
    results = (subject.execute(noise, seed) for seed in range(80))
    return next(result.test for result in results if result.verdict is Verdict.FAILED)


def test_a_saved_test_shows_its_fault_again(build: Build) -> None:
    subject = NativeThreadsSubject([build(SEATS)])
    result = subject.replay(failing_test(subject))
    assert result.fault is not None
    assert result.fault.signature == OVERSOLD
    assert 1 <= result.measures["runs"] <= 20


def test_a_test_is_reduced_to_the_noise_that_it_needs(build: Build) -> None:
    subject = NativeThreadsSubject([build(SEATS)])
    test = failing_test(subject)
    assert subject.size(test) == 3
    small = subject.reduced(test, lambda one: "sleep" in NoiseTest.from_json(one).settings.kinds)
    assert NoiseTest.from_json(small).parts == ("sleep",)


def test_a_test_prints_as_a_line_that_runs_without_us(build: Build) -> None:
    subject = NativeThreadsSubject([build(SEATS)])
    noise = subject.space.configuration({"sleep": 1})
    lines = [subject.code(subject.test_of(noise, seed)) for seed in range(80)]
    runs = (subprocess.run(["sh", "-c", line], capture_output=True) for line in lines)
    assert b"of 10 seats" in next(run.stderr for run in runs if run.returncode)


def test_a_program_is_named_as_on_the_command_line(build: Build) -> None:
    build(SEATS)
    subject = SubjectReference("race --seconds 2.5 --expect 0,1 -- ./prog 'two words'").load()
    assert isinstance(subject, NativeThreadsSubject)
    assert subject.program.seconds == 2.5
    assert subject.program.command[1:] == ("two words",)
    assert subject.execute(subject.space.default(), 1).verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("race ./prog", "is named race -- PROGRAM ARGS"),
        ("race -- ", "is named race -- PROGRAM ARGS"),
        ("race --second 2 -- ./prog", "no option --second"),
        ("race --seconds soon -- ./prog", "takes numbers, not 'soon'"),
        ("race --seconds 0 -- /bin/true", "a time limit above 0"),
    ],
)
def test_a_name_that_means_nothing(text: str, problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        load_native_threads(text)


def test_a_campaign_finds_the_deadlock_and_what_the_threads_reached(
    build: Build, tmp_path: Path, swarmtest: Run, rows: Callable[..., list[dict[str, Any]]]
) -> None:
    build(DEADLOCK)
    done = swarmtest("run", "race -- ./prog", "-n", 100, "--no-reduce", cwd=tmp_path)
    assert "deadlock of 2 threads: lock in first, lock in second" in done.stdout
    assert done.returncode == 1
    tests = rows(tmp_path / ".swarmtest/swarmtest.db")
    assert len(tests) == 100
    growth = swarmtest("growth", cwd=tmp_path).stdout.splitlines()
    assert {"fault", "pair", "sync"} <= {line.split()[0] for line in growth if line}


def test_a_broken_test_says_so() -> None:
    with pytest.raises(UserError, match="not a saved test of native threads"):
        NoiseTest.from_json({"format": "another"})
