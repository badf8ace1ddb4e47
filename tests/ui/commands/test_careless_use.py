"""What a careless user asks for is answered with what is the matter."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarmtest.store import open_store

QUIET = """
from swarmtest import Machine, action

class Quiet(Machine):
    steps = 5
    @action
    def go(self): ...
    @action
    def stay(self): ...
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory, swarmtest) -> Path:
    """A campaign without faults and without coverage."""
    place: Path = tmp_path_factory.mktemp("careless")
    (place / "quiet.py").write_text(QUIET)
    assert swarmtest("run", "quiet.py", "-n", 30, "-q", cwd=place).returncode == 0
    return place


def test_lines_that_were_not_watched_are_not_called_not_hit(place, swarmtest, refused) -> None:
    done = swarmtest("roles", "line:quiet.py:7", cwd=place)
    refused(done, "campaign 1 has no coverage of kind 'line': run it with --coverage line")


def test_roles_of_nothing_say_what_to_do(place, swarmtest, refused) -> None:
    done = swarmtest("roles", cwd=place)
    refused(done, "found no fault, and nothing else was watched: run it with --coverage line")


def test_a_campaign_that_is_complete_says_that_nothing_was_run(place, swarmtest) -> None:
    told = "note: nothing was run, the budget is used up: give a larger one, like -n N"
    assert told in swarmtest("resume", cwd=place).stdout
    assert told not in swarmtest("resume", "-n", 40, cwd=place).stdout


IDLE = """
from swarmtest import Machine, action

class IdleMachine(Machine):
    @action(when=lambda self: False)
    def go(self): raise ValueError("never")
"""


@pytest.mark.parametrize("options", [(), ("--allow-unused",)])
def test_tests_in_which_nothing_ran_are_no_success(options, tmp_path, swarmtest, refused) -> None:
    (tmp_path / "idle.py").write_text(IDLE)
    done = swarmtest("run", "idle.py", "-n", 3, "-q", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert "no action ran in 3 tests, so nothing was tested" in done.stderr


def test_an_empty_name_is_not_taken_for_the_current_directory(place, swarmtest, refused) -> None:
    for words in (("replay", ""), ("replay", "", "--no-run"), ("reduce", "")):
        refused(swarmtest(*words, cwd=place), "name a test: CAMPAIGN#TRIAL")


def test_options_that_have_no_effect_are_refused(place, swarmtest, refused) -> None:
    checked = swarmtest("check", "quiet.py", "--start", "rule", cwd=place)
    refused(checked, "--start is for grammar files")
    reduced = swarmtest("reduce", "1#0", "--parts", "words", cwd=place)
    refused(reduced, "--parts words is for a plain file")


def test_a_suite_of_targets_that_nothing_matches_is_refused(tmp_path, swarmtest, refused) -> None:
    (tmp_path / "fails.py").write_text(QUIET.replace("def stay(self): ...", "def stay(self): 1/0"))
    swarmtest("run", "fails.py", "-n", 30, "-q", cwd=tmp_path)
    done = swarmtest("suite", "1", "--target", "nope:*", cwd=tmp_path)
    refused(done, "campaign 1 has hit nothing that nope:* match")


def test_check_tries_the_guards_of_a_machine(tmp_path, swarmtest, refused) -> None:
    (tmp_path / "idle.py").write_text(IDLE)
    (tmp_path / "typo.py").write_text(IDLE.replace("False", "self.itmes"))
    refused(swarmtest("check", "idle.py", cwd=tmp_path), "no action ran in 5 tests")
    refused(
        swarmtest("check", "typo.py", cwd=tmp_path), "the guard (when=) of 'go' raised", "typo.py:5"
    )
    assert swarmtest("check", "idle.py", "--quick", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("words", [("run", "nothing.py"), ("run", "quiet.py", "-s", "nope")])
def test_a_command_that_is_refused_leaves_no_store(words, tmp_path, swarmtest) -> None:
    (tmp_path / "quiet.py").write_text(QUIET)
    assert swarmtest(*words, cwd=tmp_path).returncode == 2
    assert [path.name for path in tmp_path.iterdir() if path.name != "__pycache__"] == ["quiet.py"]


def test_a_store_that_another_command_has_open_is_not_removed(tmp_path, swarmtest) -> None:
    with open_store(tmp_path / "x.db") as store:
        assert swarmtest("run", "nothing.py", "--store", "x.db", cwd=tmp_path).returncode == 2
        assert store.campaigns() == []
    assert (tmp_path / "x.db").exists()
