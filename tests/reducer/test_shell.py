"""A shell command as a criterion."""

from __future__ import annotations

import time

import pytest

from swarmtest.core.errors import UserError
from swarmtest.reducer.criteria import ShellCommand
from swarmtest.reducer.reducer import NotInteresting, Reducer


def test_lines_are_reduced_to_what_the_command_wants():
    lines = [f"line {i}\n" for i in range(30)]
    found = Reducer(lines, ShellCommand("grep -q 'line 17'")).run()
    assert found.parts == ("line 17\n",)


def test_the_file_is_where_the_braces_are():
    assert ShellCommand("cat {} | grep -q b", name="it.txt")([b"a", b"b"])


def test_each_run_has_a_directory_of_its_own():
    fresh = ShellCommand("test $(ls | wc -l) = 1 && touch left behind && test -f")
    assert fresh([b"x"])
    assert fresh([b"x"])


def test_a_command_that_hangs_is_ended_with_its_children():
    begun = time.monotonic()
    assert not ShellCommand("sleep 1000 & sleep 1000; true", seconds=0.2)([b"x"])
    assert time.monotonic() - begun < 60


@pytest.mark.parametrize(
    ("command", "seconds", "told"),
    [
        ("exit 3;", 60, "ends with status 3, not 0"),
        ("no-such-program", 60, "was not found"),
        ("sleep 1000;", 0.2, "takes more than 0.2 s"),
    ],
)
def test_why_the_original_is_not_interesting(command, seconds, told):
    with pytest.raises(NotInteresting, match=told):
        Reducer([b"x"], ShellCommand(command, seconds=seconds)).run()


@pytest.mark.parametrize("name", ["", "a/b", ".."])
def test_the_file_stays_in_its_directory(name):
    with pytest.raises(UserError, match="no name for the file"):
        ShellCommand("true", name=name)


def test_an_empty_command_is_refused():
    with pytest.raises(UserError, match="is empty"):
        ShellCommand(" ")
