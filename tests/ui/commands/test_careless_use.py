"""What a careless user asks for is answered with what is the matter."""

from __future__ import annotations

from pathlib import Path

import pytest

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
