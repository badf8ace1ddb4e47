"""`swarmtest reduce`, `swarmtest check`, and tests named by their fault, as a user sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

MACHINE = """
from swarmtest import Machine, action

class Door(Machine):
    steps = 40

    def start(self):
        self.open, self.locked = False, False

    @action
    def push(self):
        self.open = not self.locked

    @action
    def lock(self):
        assert not self.open, "locked while open"
        self.locked = True

    @action
    def knock(self):
        pass
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory, swarmtest) -> Path:
    place: Path = tmp_path_factory.mktemp("door")
    (place / "door.py").write_text(MACHINE)
    done = swarmtest("run", "door.py", "-n", "300", "-s", "coin", "--seed", "3", cwd=place)
    assert done.returncode == 1, done.stderr
    return place


@pytest.fixture(scope="module")
def fault(place, swarmtest) -> Any:
    return json.loads(swarmtest("faults", "--json", cwd=place).stdout.splitlines()[0])


def test_a_fault_is_reduced_to_the_steps_it_needs(place, fault, swarmtest):
    done = swarmtest("reduce", fault["id"], "-o", "small.json", cwd=place)
    assert done.returncode == 0, done.stderr
    code = done.stdout
    assert [line for line in code.splitlines() if line.startswith("machine.")] == (
        ["machine.start()", "machine.push()", "machine.lock()"]
    )
    assert "nothing more can go" in code
    assert f"fault {fault['id']}" in code
    again = swarmtest("replay", "small.json", cwd=place)
    assert again.returncode == 1
    assert fault["id"] in again.stdout


def test_any_failing_trial_of_a_fault_can_be_reduced(place, fault, rows, swarmtest):
    trials = [row for row in rows(place / ".swarmtest" / "swarmtest.db") if row["verdict"] == 1]
    longest = max(trials, key=lambda row: row["steps"])
    done = swarmtest("reduce", f"1#{longest['trial']}", "-q", cwd=place)
    assert done.returncode == 0, done.stderr
    assert f"from {longest['steps']} steps to 2, in " in done.stdout


def test_a_test_can_be_saved_as_code(place, fault, swarmtest):
    done = swarmtest("reduce", fault["id"], "-o", "small.py", cwd=place)
    assert done.returncode == 0
    assert "machine.lock()" in (place / "small.py").read_text()


def test_a_fault_names_its_shortest_test(place, fault, swarmtest):
    by_fault = swarmtest("replay", fault["id"], cwd=place)
    by_trial = swarmtest("replay", f"1#{fault['trial']}", cwd=place)
    assert by_fault.stdout == by_trial.stdout
    assert by_fault.returncode == 1


def test_what_cannot_be_reduced_is_one_clear_line(place, rows, swarmtest):
    trials = rows(place / ".swarmtest" / "swarmtest.db")
    passing = next(row["trial"] for row in trials if not row["verdict"])
    done = swarmtest("reduce", f"1#{passing}", cwd=place)
    assert done.returncode == 2
    told = f"swarmtest: 1#{passing} passed: say what to keep, like --keep coverage=90\n"
    assert done.stderr == told
    unknown = swarmtest("reduce", "01234567", cwd=place)
    assert unknown.returncode == 2
    assert " has no test of a fault 01234567: `swarmtest faults` lists them" in unknown.stderr


def test_check_says_when_nothing_is_wrong(place, swarmtest):
    done = swarmtest("check", "door.py", cwd=place)
    assert (done.returncode, done.stdout) == (0, "door.py::Door: 3 features: nothing wrong\n")


def test_check_says_what_is_wrong(place, swarmtest):
    (place / "clash.py").write_text(
        MACHINE.replace(
            "    @action\n    def knock", "    @action(requires=['nock'])\n    def knock"
        )
    )
    done = swarmtest("check", "clash.py", cwd=place)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "'nock'" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sub.toml", "--coverage", "line"], "say cover = true in its step"),
        (["sub.toml::name"], "a TOML file describes one subject: name it as sub.toml"),
        (["sub.toml", "--api"], "--api is for Python classes"),
        (["sub.toml", "--steps", "5"], "its generator decides how long a test is"),
        (["sub.txt"], "a subject is a Python file (.py), a module, or a TOML file (.toml)"),
    ],
)
def test_options_that_do_not_fit_a_toml_file_are_refused(place, swarmtest, words, said):
    toml = """
[generate]
command = "echo {seed} {features}"
[features]
a = "-a"
[[steps]]
run = "cat {test}"
"""
    for name in ("sub.toml", "sub.txt"):
        (place / name).write_text(toml)
    done = swarmtest("run", *words, cwd=place)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


def test_check_reads_grammars_too(place, swarmtest):
    (place / "good.lark").write_text('start: "a" | "b" start\n')
    (place / "endless.lark").write_text('start: again\nagain: "x" again\n')
    good = swarmtest("check", "good.lark", cwd=place)
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.startswith("good.lark: 2 features")
    endless = swarmtest("check", "endless.lark", cwd=place)
    assert endless.returncode == 2
    assert endless.stderr.count("\n") == 1
    assert "endless.lark" in endless.stderr
    ran = swarmtest("run", "good.lark", cwd=place)
    assert ran.returncode == 2
    assert "[generate] grammar" in ran.stderr


def test_what_a_program_prints_is_not_mixed_with_the_result(tmp_path, swarmtest):
    (tmp_path / "door.py").write_text(
        MACHINE.replace(
            "def knock(self):\n        pass", "def knock(self):\n        print('knock')"
        )
    )
    steps = [["knock", []], ["push", []], ["lock", []]]
    test = {"format": "swarmtest machine test 1", "subject": "door.py::Door", "steps": steps}
    (tmp_path / "test.json").write_text(json.dumps(test))
    done = swarmtest("reduce", "test.json", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
