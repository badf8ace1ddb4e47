"""After a campaign the faults of a state machine are in Hypothesis's example database."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from pytest_processes import pytest_words

from swarmtest import Machine, action
from swarmtest.reduce.hypothesis_export import hand_over_faults
from swarmtest.store.records import FaultRecord
from swarmtest.subjects import MachineSubject

SOURCE = """
import os
from hypothesis import Phase, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

class Stack(RuleBasedStateMachine):
    size = 0
    @rule(value=st.integers(0, 9))
    def push(self, value):
        self.size += 1
        assert self.size < 9, "overflow"
    @rule()
    def pop(self):
        self.size = max(0, self.size - 1)
    @rule(by=st.integers(0, 50))
    def die(self, by):
        if by == 7 and self.size > 3: os.abort()

StackTest = Stack.TestCase
StackTest.settings = settings(StackTest.settings, phases=[Phase.reuse])
"""


def test_a_plain_pytest_run_replays_what_a_campaign_found(
    tmp_path: Path, swarmtest: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    (tmp_path / "test_abc.py").write_text(SOURCE)
    command = pytest_words("-q", "-p", "no:cacheprovider", "test_abc.py")
    before = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "1 skipped" in before.stdout
    ran = swarmtest("run", "test_abc.py::StackTest", "--tests", "300", cwd=tmp_path)
    assert ran.stdout.count("is in Hypothesis's example database: pytest test_abc.py") == 1
    assert "is not in Hypothesis's example database: a signal would end" in ran.stdout
    after = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "AssertionError: overflow" in after.stdout
    assert after.returncode == 1
    assert os.path.isdir(tmp_path / ".hypothesis" / "examples")


def test_the_file_is_named_that_pytest_is_to_run(
    tmp_path: Path, swarmtest: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "stack_machine.py").write_text(SOURCE)
    (tmp_path / "tests" / "test_it.py").write_text("from stack_machine import StackTest\n")
    ran = swarmtest("run", "tests/test_it.py::StackTest", "--tests", "300", cwd=tmp_path)
    assert "is in Hypothesis's example database: pytest tests/test_it.py" in ran.stdout


def test_on_a_ci_machine_the_reason_why_there_is_no_database_is_told(
    tmp_path: Path, swarmtest: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    (tmp_path / "test_abc.py").write_text(SOURCE)
    ran = swarmtest("run", "test_abc.py::StackTest", "--tests", "300", cwd=tmp_path, CI="true")
    assert "where the variable CI is set, Hypothesis uses none" in ran.stdout


def test_other_subjects_hand_nothing_over() -> None:
    class Lamp(Machine):
        @action
        def switch(self) -> None: ...

    fault = FaultRecord("1", "exception", "x", "", 0, 0, 1, "{}", 1)
    assert hand_over_faults(MachineSubject(Lamp), [fault], {}) == []
