"""A failing test goes into Hypothesis's example database: the next pytest run replays it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import state_machines
from hypothesis import settings
from hypothesis.database import DirectoryBasedExampleDatabase
from pytest_processes import pytest_words

from swarmtest.core.result import Fault
from swarmtest.languages.user_objects import load_object
from swarmtest.subjects.hypothesis.subject import RuleBasedSubject
from swarmtest.subjects.hypothesis.test import RuleTest

# Only what the database has can fail: nothing is generated.
REPLAYS = """

from hypothesis import settings, Phase
{name}Test = {name}.TestCase
{name}Test.settings = settings({name}Test.settings, phases=[{phases}])
"""
SOURCE = Path(state_machines.__file__).read_text()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with a test file."""
    tests = SOURCE + "".join(
        REPLAYS.format(name=name, phases=phases)
        for name, phases in (("Stack", "Phase.reuse, Phase.shrink"), ("Files", "Phase.reuse"))
    )
    # A module's name is taken once it was loaded.
    (tmp_path / f"test_{tmp_path.name}.py").write_text(tests)
    return tmp_path


def file_of(project: Path) -> Path:
    return project / f"test_{project.name}.py"


def subject_for(project: Path, name: str) -> RuleBasedSubject:
    subject = RuleBasedSubject(load_object(f"{file_of(project)}:{name}", "machine"))
    # Where it would be if this process had been started in the project.
    database = DirectoryBasedExampleDatabase(project / ".hypothesis" / "examples")
    subject.settings = settings(subject.settings, database=database)
    return subject


def failing(subject: RuleBasedSubject, count: int = 1) -> list[Any]:
    found = (subject.execute(subject.space.default(), seed) for seed in range(2000))
    results = (result for result in found if result.fault)
    return [next(results) for _ in range(count)]


def pytest_run(project: Path, name: str) -> subprocess.CompletedProcess[str]:
    command = pytest_words("-q", "-p", "no:cacheprovider")
    return subprocess.run(
        [*command, f"{file_of(project).name}::{name}"], cwd=project, capture_output=True, text=True
    )


def test_the_next_pytest_run_replays_it(project: Path) -> None:
    assert "1 skipped" in pytest_run(project, "FilesTest").stdout
    subject = subject_for(project, "FilesTest")
    (result,) = failing(subject)
    handed = subject.hand_over(result.test, result.fault)
    assert (handed.saved, handed.why) == (True, "")
    ran = pytest_run(project, "FilesTest")
    assert ran.returncode == 1
    assert "def few(self)" in ran.stdout
    opened = sum(step.rule == "open" for step in RuleTest.from_json(result.test).steps)
    assert ran.stdout.count("= state.open(") == opened


def test_the_next_pytest_run_shrinks_it(project: Path) -> None:
    subject = subject_for(project, "StackTest")
    (result,) = failing(subject)
    assert result.steps > 9
    assert subject.hand_over(result.test, result.fault).saved
    assert pytest_run(project, "StackTest").stdout.count("state.push(value=0)") == 9


def test_every_failing_test_of_a_rich_machine_can_be_handed_over(project: Path) -> None:
    subject = subject_for(project, "Files")
    for result in failing(subject, 12):
        assert subject.hand_over(result.test, result.fault).why == ""


@pytest.mark.parametrize("name", ["Forcing", "Single"])
def test_what_hypothesis_does_not_ask_does_not_shift_the_answers(project: Path, name: str) -> None:
    subject = subject_for(project, name)
    for result in failing(subject, 8):
        assert subject.hand_over(result.test, result.fault).why == ""


def test_what_the_program_prints_meanwhile_is_not_shown(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    subject = subject_for(project, "Forcing")
    (result,) = failing(subject)
    assert "adding" in capfd.readouterr().out
    assert subject.hand_over(result.test, result.fault).saved
    assert capfd.readouterr().out == ""


def test_hypothesis_shrinks_it_at_once_when_asked(project: Path) -> None:
    subject = subject_for(project, "Stack")
    (result,) = failing(subject)
    handed = subject.hand_over(result.test, result.fault, shrink=True)
    assert handed.example.count("state.push(value=0)") == 9
    assert "state.pop" not in handed.example


def test_a_test_with_more_steps_than_hypothesis_runs_is_not_handed_over(project: Path) -> None:
    subject = subject_for(project, "Stack")
    long = RuleBasedSubject(subject.machine, steps=2000)
    found = (long.execute(long.space.default(), seed) for seed in range(99))
    result = next(r for r in found if r.fault and r.steps > 50)
    assert result.fault is not None
    handed = subject.hand_over(result.test, result.fault)
    assert not handed.saved
    assert "more steps than stateful_step_count" in handed.why


def test_a_test_that_does_not_fail_is_not_handed_over(project: Path) -> None:
    subject = subject_for(project, "Stack")
    passing = RuleTest.from_json(subject.test_of(subject.space.configuration(["clear"]), 1))
    handed = subject.hand_over(passing.to_json(), Fault("exception", "AssertionError: overflow"))
    assert handed.why == "it does not fail in the same way under Hypothesis"


def test_a_crash_is_not_handed_over(project: Path) -> None:
    subject = subject_for(project, "Stack")
    (result,) = failing(subject)
    handed = subject.hand_over(result.test, Fault("signal", "SIGSEGV"))
    assert handed.why == "a signal would end the process of Hypothesis as well"


def test_without_a_database_nothing_is_handed_over(project: Path) -> None:
    subject = subject_for(project, "Stack")
    (result,) = failing(subject)
    subject.settings = settings(subject.settings, database=None)
    assert "no example database" in subject.hand_over(result.test, result.fault).why
