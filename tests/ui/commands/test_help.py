"""Help pages, suggestions for misspelt commands, and what `swarmtest` alone says."""

from __future__ import annotations

import inspect
from pathlib import Path

import click
import pytest

from swarmtest.ui.cli import COMMAND_GROUPS, COMMANDS, group
from swarmtest.ui.help import COMMON, HelpfulCommand
from swarmtest.ui.next_steps import next_steps

SCREEN = 40
"""Lines of a terminal window of a usual size."""


def context_of(name: str) -> click.Context:
    parent = click.Context(group, info_name="swarmtest", terminal_width=80)
    command = group.get_command(parent, name)
    assert command
    return click.Context(command, parent, info_name=name)


def help_page(name: str) -> str:
    return context_of(name).get_help()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_page_fits_on_a_screen_and_begins_with_examples(name):
    lines = help_page(name).splitlines()
    assert len(lines) <= SCREEN
    assert max(map(len, lines)) <= 80
    assert all(line.startswith("  swarmtest ") for line in lines[2:4])
    assert name != "search" or not any(line.endswith("...") for line in lines[2:])


def test_a_former_name_of_an_option_is_accepted_but_not_after_two_dashes():
    context = context_of("replay")
    context.command.parse_args(context, ["1#2", "--save", "t.py"])
    assert context.params["save"] == "t.py"
    context = context_of("replay")
    context.command.parse_args(context, ["-o", "t.py", "--", "--save"])
    assert (context.params["save"], context.params["test"]) == ("t.py", "--save")


@pytest.mark.parametrize("name", COMMON)
def test_common_options_are_options_of_their_command(name):
    first, _, second = name.partition(" ")
    context = context_of(first)
    command = context.command
    if second:
        assert isinstance(command, click.Group)
        command = command.commands[second]
    known = {word for option in command.params for word in option.opts}
    assert set(COMMON[name].split()) <= known


@pytest.mark.parametrize("name", ["run", "focus", "race"])
def test_the_complete_help_has_every_option_and_every_example(name):
    context = context_of(name)
    assert isinstance(context.command, HelpfulCommand)
    formatter = context.make_formatter()
    context.command.write_help(context, formatter, complete=True)
    page = formatter.getvalue()
    for option in context.command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert option.opts[0] in page
    words = inspect.cleandoc(context.command.help or "").split()
    assert {word for word in words if word.startswith("--")} <= set(page.split())
    assert "--help-all" in help_page(name)


def test_the_list_of_commands_fits_80_columns():
    page = click.Context(group, info_name="swarmtest", terminal_width=80).get_help()
    assert max(map(len, page.splitlines())) <= 80
    assert all(f"\n{title}:\n" in page for title in COMMAND_GROUPS)
    assert all(f"\n  {name} " in page for name in COMMANDS)
    assert "..." not in page.partition("\nStart:")[2]


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        ("rnu", "there is no command 'rnu'; did you mean 'run'? (see `swarmtest --help`)"),
        ("stack.py", "'stack.py' is no command: did you mean `swarmtest run stack.py`?"),
    ],
)
def test_a_misspelt_command_is_answered_with_the_nearest(word, answer, swarmtest, tmp_path):
    done = swarmtest(word, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, f"swarmtest: {answer}\n")


def test_swarmtest_alone_names_the_machines_that_are_here(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "rules.py").write_text(
        "import hypothesis.stateful as s\nclass Rules(s.RuleBasedStateMachine): pass\n"
    )
    (tmp_path / "broken.py").write_text("class Machine(:\n")
    (tmp_path / "helper.py").write_text("raise SystemExit('nothing may import me')  # Machine\n")
    (tmp_path / "stack.py").write_text("class Stack(Machine): pass\n")
    assert [step.command for step in next_steps(tmp_path)] == [
        "swarmtest run stack.py",
        "swarmtest run deep/rules.py",
    ]


def test_swarmtest_alone_shows_its_help_where_nothing_is_to_be_tested(swarmtest, tmp_path):
    assert swarmtest(cwd=tmp_path).stdout.startswith("Usage: ")


def test_swarmtest_alone_points_at_the_newest_faults(swarmtest, tmp_path):
    (tmp_path / "fails.py").write_text(
        "from swarmtest import Machine, action\n"
        "class Fails(Machine):\n"
        "    @action\n"
        "    def fail(self): assert False\n"
    )
    swarmtest("run", "fails.py", "-n", 3, "-j", 0, "-q", cwd=tmp_path)
    out = swarmtest(cwd=tmp_path).stdout
    assert "swarmtest faults" in out
    assert "1 fault of fails.py::Fails" in out
    assert "swarmtest run fails.py" in out
