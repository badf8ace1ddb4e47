"""States of faults on the command line: new or known, marks, replays, and the exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from git_repository import Repository, needs_git, repository  # noqa: F401

from swarmtest.store import open_store
from swarmtest.store.fault_lives import fault_lives

Swarmtest = Callable[..., Any]

WRONG = """\
import random
from swarmtest import Machine, action

class Lamp(Machine):
    def start(self):
        self.on = 0

    @action
    def switch(self):
        self.on += 1
        assert self.on < 3, "burnt"

    @action
    def rest(self):
        self.on = 0
"""
RIGHT = WRONG.replace("self.on < 3", "self.on < 300")
OTHERWISE = WRONG.replace('assert self.on < 3, "burnt"', "{}[self.on - 3 if self.on > 2 else 0:]")
SKIPPING = WRONG.replace(
    "@action\n    def switch", "@action(when=lambda self: False)\n    def switch"
)
RARE = WRONG.replace("self.on < 3", "self.on < 7").replace(
    "    def start", "    steps = 12\n\n    def start"
)
RARE += """
    @action
    def look(self):
        pass

    @action
    def dust(self):
        pass
"""
SUBJECT = "lamp.py::Lamp"
RUN = ("run", "lamp.py", "-n", 60, "--no-why")


@pytest.fixture
def lamp(tmp_path: Path, swarmtest: Swarmtest) -> Callable[..., Any]:
    """Write a version of the lamp, and run a command on it."""

    def command(text: str, *words: object) -> Any:
        (tmp_path / "lamp.py").write_text(text)
        return swarmtest(*words, cwd=tmp_path)

    return command


def state(place: Path) -> tuple[str, bool]:
    """The state of the only fault, and whether it is flaky."""
    with open_store(place / ".swarmtest" / "swarmtest.db") as store:
        [life] = fault_lives(store, SUBJECT).values()
        return life.state, life.flaky


def test_only_the_first_campaign_calls_a_fault_new(lamp: Callable[..., Any]) -> None:
    first, second = lamp(WRONG, *RUN), lamp(WRONG, *RUN, "--seed", 1)
    assert "\nnew fault " in first.stdout
    assert "\nknown fault " in second.stdout
    assert ", still there: AssertionError: burnt" in second.stdout
    assert "new fault" not in second.stdout
    assert "  state: open, still there\n  seen: first " in second.stdout


@pytest.mark.parametrize(("words", "statuses"), [
    ((), [1, 1]),
    (("--fail-on", "any"), [1, 1]),
    (("--fail-on", "new"), [1, 0]),
    (("--fail-on", "never"), [0, 0]),
])  # fmt: skip
def test_fail_on_says_which_faults_count(
    lamp: Callable[..., Any], words: tuple[str, ...], statuses: list[int]
) -> None:
    done = [lamp(WRONG, *RUN, *words), lamp(WRONG, *RUN, *words)]
    assert [each.returncode for each in done] == statuses
    for each in done:
        assert ("without effect on the exit status" in each.stdout) == (each.returncode == 0)


def test_a_fault_that_is_back_counts_as_new(lamp: Callable[..., Any], tmp_path: Path) -> None:
    lamp(WRONG, *RUN)
    fixed = lamp(RIGHT, "replay", "--faults", "lamp.py")
    assert (fixed.returncode, state(tmp_path)) == (0, ("fixed", False))
    assert "is fixed (its test passed 3 times)" in fixed.stdout
    back = lamp(WRONG, *RUN, "--fail-on", "new")
    assert (back.returncode, state(tmp_path)) == (1, ("back again", False))
    assert "which was fixed, is seen again: " in back.stdout
    assert lamp(WRONG, *RUN, "--fail-on", "new").returncode == 0


def test_avoided_faults_that_show_all_the_same_do_not_fail(lamp: Callable[..., Any]) -> None:
    # Nearly all tests that show it have `switch` without `rest`; a few of seed 4 have both.
    run = ("run", "lamp.py", "-n", 1000, "-s", "coin", "--no-why", "--no-reduce")
    id = json.loads(lamp(RARE, *run, "--json").stdout.splitlines()[-1])["faults"][0]["id"]
    again = (*run, "--seed", 4, "--avoid")
    done = lamp(RARE, *again, "known")
    assert "no switch without rest" in done.stdout
    assert f"known fault {id}, still there: " in done.stdout
    assert done.returncode == 0
    assert f"1 fault without effect on the exit status: {id}" in done.stdout
    assert lamp(RARE, *again, id).returncode == 0
    assert lamp(RARE, *again, "known", "--fail-on", "any").returncode == 1


def test_replaying_one_fault_says_that_it_is_fixed(
    lamp: Callable[..., Any], tmp_path: Path
) -> None:
    found = lamp(WRONG, *RUN, "--json").stdout.splitlines()
    end = json.loads(found[-1])
    [fault] = end["faults"]
    assert (fault["new"], fault["life"]["state"]) == (True, "open")
    assert end["failing"] == [fault["id"]]
    shown = lamp(WRONG, "replay", fault["id"])
    assert shown.returncode == 1
    assert shown.stdout.rstrip().endswith("the same as recorded")
    done = lamp(RIGHT, "replay", fault["id"], "--times", 5)
    assert f"fault {fault['id']} is fixed (its test passed 5 times)" in done.stdout
    again = lamp(WRONG, "replay", fault["id"])
    assert f"fault {fault['id']} is back again" in again.stdout
    assert state(tmp_path)[0] == "back again"


@pytest.mark.parametrize(("text", "why"), [
    (OTHERWISE, "its test fails in another way"),
    (SKIPPING, "steps of its test could not run"),
    (WRONG.replace("def switch", "def press"), "stays open"),
])  # fmt: skip
def test_a_test_that_did_not_run_as_it_was_proves_no_fix(
    lamp: Callable[..., Any], tmp_path: Path, text: str, why: str
) -> None:
    lamp(WRONG, *RUN)
    done = lamp(text, "replay", "--faults", "lamp.py")
    assert why in done.stdout, done.stdout + done.stderr
    assert state(tmp_path) == ("open", False)


@needs_git
def test_a_fault_that_passes_in_the_version_that_showed_it_is_flaky(
    repository: Repository,  # noqa: F811
    swarmtest: Swarmtest,
) -> None:
    flaky = WRONG.replace(
        'self.on < 3, "burnt"', '__import__("os").path.exists("calm") or self.on < 3, "burnt"'
    )
    repository.write("lamp.py", flaky)
    commit = repository.commit("A lamp")[:12]
    assert swarmtest(*RUN, cwd=repository.place).returncode == 1
    repository.write("calm", "")
    done = swarmtest("replay", "--faults", "lamp.py", cwd=repository.place)
    assert "did not show in 3 runs: open, flaky" in done.stdout
    assert state(repository.place) == ("open", True)
    with open_store(".swarmtest/swarmtest.db") as store:
        [life] = fault_lives(store, SUBJECT).values()
    assert life.versions == [commit]


@needs_git
def test_an_old_commit_does_not_bring_a_fault_back(
    repository: Repository,  # noqa: F811
    swarmtest: Swarmtest,
) -> None:
    repository.write(".gitignore", ".swarmtest/\n__pycache__/\n")
    repository.write("lamp.py", WRONG)
    oldest = repository.commit("A lamp")
    repository.write("lamp.py", WRONG + "\n# brighter\n")
    repository.commit("A brighter lamp")
    swarmtest(*RUN, cwd=repository.place)
    repository.write("lamp.py", RIGHT)
    repository.commit("A lamp that lasts")
    swarmtest("replay", "--faults", "lamp.py", cwd=repository.place)
    repository.git("checkout", "-q", oldest)
    done = swarmtest(*RUN, "--fail-on", "new", cwd=repository.place)
    assert "AssertionError: burnt" in done.stdout
    assert (done.returncode, state(repository.place)[0]) == (0, "fixed")


def test_a_person_marks_a_fault_and_everything_shows_it(
    lamp: Callable[..., Any], tmp_path: Path
) -> None:
    lamp(WRONG, *RUN)
    done = lamp(WRONG, "faults", "--mark", "known", "--note", "issue\n 17")
    assert f"of {SUBJECT}: known: issue 17" in done.stdout
    id = done.stdout.split()[1]
    assert "state: known: issue 17" in lamp(WRONG, "faults").stdout
    assert " known " in lamp(WRONG, "show").stdout
    listed = json.loads(lamp(WRONG, "faults", "--all", "--json").stdout)
    assert (listed["id"], listed["state"], listed["note"]) == (id, "known", "issue 17")
    assert "marked as known" in lamp(WRONG, *RUN).stdout
    assert lamp(WRONG, "report", "-o", "report.html").returncode == 0
    assert "state: known: issue 17" in (tmp_path / "report.html").read_text()
    lamp(WRONG, "faults", id[:4], "--mark", "fixed")
    assert state(tmp_path)[0] == "fixed"


def test_bad_marks_get_one_line(lamp: Callable[..., Any], refused: Callable[..., str]) -> None:
    lamp(RIGHT, *RUN)
    refused(lamp(RIGHT, "faults", "--mark", "known"), "needs a fault", "campaign 1 has none")
    refused(lamp(RIGHT, "faults", "12ab", "--mark", "known"), "no fault '12ab'")
    refused(lamp(RIGHT, "faults", "--mark", "eaten"), "'eaten'")
    refused(lamp(RIGHT, "faults", "--note", "why"), "--note goes with --mark")
    refused(lamp(RIGHT, "faults", "1", "--all"), "name none")
    refused(lamp(RIGHT, "replay"), "name a test")
    refused(lamp(RIGHT, "replay", "--faults", "other.py"), "no campaign of other.py", SUBJECT)
    refused(lamp(RIGHT, "replay", "1#1", "--faults", "lamp.py"), "name no test")
    refused(lamp(RIGHT, "replay", "--faults", "lamp.py", "--pdb"), "--pdb is for one test")
