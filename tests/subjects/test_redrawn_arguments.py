"""Arguments that no saved test can hold are drawn again, from the trial's seed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from swarmtest.core.result import Result
from swarmtest.languages.user_objects import load_object
from swarmtest.subjects.machine.subject import MachineSubject

MACHINE = """
import os
from swarmtest import Machine, action, integers, sampled_from

class Token:
    def __init__(self, number): self.number = number
    def __repr__(self): return f"<Token {self.number}>"

TOKENS = [Token(n) for n in range(5)]

class Shop(Machine):
    def start(self): self.seen = []
    @action(token=lambda rng: Token(rng.randrange(1000)), count=integers(0, 9))
    def give(self, token, count):
        self.seen.append(token.number)
        token.number = -1  # the program changes what it was given
        assert not (len(self.seen) > 3 and self.seen[-1] > 900 and count > 4)
    @action(token=sampled_from(TOKENS))
    def pick(self, token): self.seen.append(token.number)
    @action
    def look(self): pass

class Fragile(Shop):
    @action(token=lambda rng: Token(rng.randrange(9)))
    def crash(self, token):
        if token.number == 7: os.abort()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / f"shop_{tmp_path.name.replace('-', '_')}.py"
    path.write_text(MACHINE)
    return path


def subject_in(file: Path, name: str = "Shop") -> MachineSubject:
    return MachineSubject(load_object(f"{file}::{name}", "machine"))


def first_failure(subject: MachineSubject) -> Result:
    results = (subject.execute(subject.space.default(), seed) for seed in range(100))
    return next(result for result in results if result.fault)


def saved(test: Any) -> Any:
    return json.loads(json.dumps(test))


def test_a_test_with_objects_fails_again_when_it_is_run(file: Path) -> None:
    subject = subject_in(file)
    failure = first_failure(subject)
    assert failure.fault is not None
    assert "$drawn" in json.dumps(failure.test)
    assert "$option" in json.dumps(failure.test)
    for _ in range(2):  # each run draws new objects
        again = subject.run(saved(failure.test))
        assert again.fault is not None
        assert again.fault.id == failure.fault.id
        assert again.skipped == 0


def test_it_can_be_reduced_and_other_arguments_become_simple(file: Path) -> None:
    subject = subject_in(file)
    failure = first_failure(subject)
    wanted = failure.fault

    def fails(test: Any) -> bool:
        fault = subject.run(saved(test)).fault
        return fault is not None and wanted is not None and fault.id == wanted.id

    reduced = subject.reduced(saved(failure.test), fails)
    assert [step[0] for step in reduced["steps"]].count("look") == 0
    assert len(reduced["steps"]) == 4
    assert reduced["steps"][-1][1][1] == 5
    assert fails(reduced)


def test_the_printed_test_runs_on_its_own_and_fails(file: Path) -> None:
    subject = subject_in(file)
    code = subject.code(saved(first_failure(subject).test))
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=file.parent, capture_output=True, text=True
    )
    assert "AssertionError" in ran.stderr, ran.stderr


def test_a_test_that_ended_its_process_is_drawn_again_up_to_the_last_draw(file: Path) -> None:
    subject = subject_in(file, "Fragile")
    program = f"""
import json, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_redrawn_arguments import subject_in
from pathlib import Path
subject = subject_in(Path({str(file)!r}), "Fragile")
subject.journal = lambda entry: print(json.dumps(entry), flush=True)
for seed in range(50):
    print("null", flush=True)
    subject.execute(subject.space.configuration(["crash", "look"]), seed)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == -6
    entries = [json.loads(line) for line in ran.stdout.rpartition("null")[2].split("\n") if line]
    configuration = subject.space.configuration(["crash", "look"])
    test = subject._test_of_journal(entries, configuration)
    assert test.origin
    code = subject.code(saved(test.to_json()))
    again = subprocess.run([sys.executable, "-c", code], cwd=file.parent, capture_output=True)
    assert again.returncode == -6


def test_a_test_without_its_origin_says_so(file: Path) -> None:
    from swarmtest import UserError

    subject = subject_in(file)
    test = saved(first_failure(subject).test)
    del test["origin"]
    with pytest.raises(UserError, match="does not say from which seed"):
        subject.run(test)
