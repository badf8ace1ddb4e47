"""What holds for all commands: names of options, help pages, narrow terminals, completion."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete, ZshComplete
from terminals import in_terminal

from swarmtest.ui.cli import group

NARROW = 60
ACTS = {
    "init": "writes a file",
    "learn": "writes a file",
    "report": "writes a file",
    "reproduce": "writes a report and a script",
    "export": "writes a file, in a format of its own",
    "search export": "writes a file, in a format of its own",
    "search plot": "writes a picture",
    "dashboard": "serves pages",
    "delete": "deletes",
    "copy": "copies",
    "import-coverage": "imports",
    "cc": "is a compiler",
}
"""The commands that show nothing, so that they need no --json."""


def commands(parent: click.Group = group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield every command, also those of groups, with the words that name it."""
    context = click.Context(parent)
    for name in parent.list_commands(context):
        command = parent.get_command(context, name)
        assert command is not None
        words = f"{path} {name}".strip()
        if isinstance(command, click.Group):
            yield from commands(command, words)
        else:
            yield words, command


ALL = dict(commands())


def options_of(command: click.Command) -> dict[str, click.Option]:
    options = [option for option in command.params if isinstance(option, click.Option)]
    return {name: option for option in options for name in option.opts}


def context_of(path: str, width: int) -> click.Context:
    context = click.Context(group, info_name="swarmtest", terminal_width=width)
    for word in path.split():
        assert isinstance(context.command, click.Group)
        command = context.command.get_command(context, word)
        assert command is not None
        context = click.Context(command, context, info_name=word, terminal_width=width)
    return context


@pytest.mark.parametrize("width", [NARROW, 80])
@pytest.mark.parametrize("path", ["", "search", *ALL])
def test_no_line_of_a_help_page_is_wider_than_the_terminal(path, width):
    lines = context_of(path, width).get_help().splitlines()
    assert [line for line in lines if len(line) > width] == []


def test_every_command_that_shows_something_has_json():
    assert {path for path, command in ALL.items() if "--json" not in options_of(command)} == {*ACTS}


def test_one_name_means_one_option_everywhere():
    for path, command in ALL.items():
        options = options_of(command)
        assert "--kinds" not in options, path
        for long, short in {"--output": "-o", "--quiet": "-q", "--workers": "-j"}.items():
            if long in options:
                assert short in options[long].opts, (path, long)
        if "-o" in options:
            assert "--output" in options["-o"].opts, path


# In a terminal of 60 columns.

MACHINE = """
from swarmtest import Machine, action

class ACupboardWithALongName(Machine):
    def start(self):
        self.cups = []

    @action
    def put_one_cup_into_the_cupboard(self):
        self.cups.append("cup")
        assert len(self.cups) < 20, "the cupboard is full, and the cups fall out"

    @action
    def take_all_cups_out(self):
        self.cups.clear()
"""


@pytest.fixture(scope="module")
def cupboard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a machine, and a store with a campaign that has found its fault."""
    directory = tmp_path_factory.mktemp("cupboard")
    (directory / "cupboard.py").write_text(MACHINE)
    in_terminal("run", "cupboard.py", "-n", 200, "-j", 0, "-q", cwd=directory, columns=80)
    return directory


LOOKING = [
    "list",
    "show",
    "faults",
    "faults --all",
    "roles",
    "roles --summary",
    "triage",
    "growth",
    "strategies",
    "features cupboard.py",
    "check cupboard.py",
    "doctor",
]


@pytest.mark.parametrize("words", LOOKING)
def test_a_narrow_terminal_breaks_no_table(words, cupboard):
    shown = in_terminal(*words.split(), cwd=cupboard, columns=NARROW)
    wide = [line for line in shown.splitlines() if len(line) > NARROW]
    # A command must be copied as it is, and a terminal may break a sentence where it likes.
    assert [line for line in wide if "swarmtest " not in line and "note: " not in line] == []
    assert shown


def test_what_does_not_fit_beside_is_shown_below(cupboard):
    shown = in_terminal("show", cwd=cupboard, columns=NARROW)
    words = " ".join(shown.split())
    assert (
        "the cupboard is full, and the cups fall out [ACupboardWithALongName.put_one_cup" in words
    )


def test_a_failure_is_shown_with_line_values_test_and_replay_on_a_screen(cupboard):
    shown = in_terminal("run", "cupboard.py", "-n", 200, "-j", 0, cwd=cupboard, columns=80)
    fault = shown[shown.index("\nfault ") :]
    assert len(fault.splitlines()) <= 40
    assert "\n  line: cupboard.py:11  assert len(self.cups) < 20" in fault
    assert "    len(self.cups) = 20\n" in fault
    assert "    for _ in range(20):\n        machine.put_one_cup_into_the_cupboard()\n" in fault
    assert "  replay: swarmtest replay " in fault


COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9\d|10\d)(?:;\d+)*m")


@pytest.mark.parametrize("env", [{}, {"NO_COLOR": "1"}])
def test_no_color_leaves_the_colours_out(env, cupboard):
    words = [
        "run",
        "cupboard.py",
        "-n",
        "30",
        "-j",
        "1",
        "--no-reduce",
        "--no-why",
        "--store",
        ":memory:",
    ]
    shown = in_terminal(*words, cwd=cupboard, columns=80, **env)
    assert "the cups fall out" in shown
    assert bool(COLOUR.search(shown)) is not bool(env)


# Completion.


def completed(args: list[str], incomplete: str) -> list[tuple[str, str]]:
    completion = BashComplete(group, {}, "swarmtest", "_SWARMTEST_COMPLETE")
    return [(item.type, item.value) for item in completion.get_completions(args, incomplete)]


def test_a_shell_completes_what_there_is(cupboard, monkeypatch):
    monkeypatch.setenv("SWARMTEST_STORE", str(cupboard / ".swarmtest" / "swarmtest.db"))
    assert completed([], "de") == [("plain", "delete")]
    assert completed(["run"], "cup") == [("file", "cup")]
    assert ("plain", "--no-reduce") in completed(["run"], "--no")
    assert completed(["run", "stack.py", "--strategy"], "al") == [("plain", "all-on")]
    assert ("plain", "latest") in completed(["show"], "")
    assert ("plain", "1") in completed(["delete"], "")
    ((kind, fault),) = completed(["why"], "")
    assert kind == "plain"
    assert re.fullmatch(r"[0-9a-f]{8}", fault)
    for words in (["run", "stack.py", "--avoid"], ["focus", "stack.py", "--fault"]):
        assert completed(words, fault[:3]) == [("plain", fault)]
    assert completed(["mutate", "--campaign"], "l") == [("plain", "latest")]
    assert completed(["replay"], "saved") == [("file", "saved")]


def test_completion_is_silent_without_a_store(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SWARMTEST_STORE", str(tmp_path / "none.db"))
    assert completed(["show"], "") == [("plain", "latest")]
    assert completed(["why"], "") == [("file", "")]
    assert capsys.readouterr() == ("", "")


def test_what_a_store_of_others_says_is_not_typed_into_the_shell(cupboard, tmp_path, monkeypatch):
    path = tmp_path / "theirs.db"
    monkeypatch.setenv("SWARMTEST_STORE", str(path))
    mine = sqlite3.connect(cupboard / ".swarmtest" / "swarmtest.db")
    with contextlib.closing(mine), contextlib.closing(sqlite3.connect(path)) as store, store:
        mine.backup(store)
        store.execute("PRAGMA foreign_keys = OFF")
        store.execute("UPDATE campaigns SET subject = 'a\nplain\n$(reboot)\x1b]0;x\x07'")
        for table, column in (("faults", "id"), ("reductions", "fault"), ("block_faults", "fault")):
            store.execute(f"UPDATE {table} SET {column} = '$(reboot)'")
    assert completed(["why"], "") == [("file", "")]
    completion = ZshComplete(group, {}, "swarmtest", "_SWARMTEST_COMPLETE")
    shown = [completion.format_completion(i) for i in completion.get_completions(["show"], "")]
    assert len(shown) > 1
    assert all(text.count("\n") == 2 and "\x1b" not in text for text in shown)


def test_completion_is_silent_with_a_damaged_store(tmp_path, monkeypatch, capsys):
    path = tmp_path / "damaged.db"
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    monkeypatch.setenv("SWARMTEST_STORE", str(path))
    assert completed(["show"], "") == [("plain", "latest")]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_printed(shell, tmp_path):
    shown = in_terminal(cwd=tmp_path, columns=80, _SWARMTEST_COMPLETE=f"{shell}_source")
    assert "_SWARMTEST_COMPLETE" in shown


# Names.


def test_a_former_name_of_an_option_is_accepted_but_not_shown():
    context = context_of("suite", 80)
    assert (
        context.command.make_context("suite", ["--kinds=line"], context.parent).params["kinds"]
        == "line"
    )
    assert "--kinds" not in context.get_help()


def test_campaigns_are_named_by_ranges_too(cupboard, swarmtest, refused):
    both = swarmtest("show", "1-1", "--json", cwd=cupboard)
    assert both.stdout == swarmtest("show", 1, "--json", cwd=cupboard).stdout
    assert (
        swarmtest("faults", "1-1", cwd=cupboard).stdout
        == swarmtest("faults", 1, cwd=cupboard).stdout
    )
    refused(swarmtest("suite", "1-2", cwd=cupboard), "several campaigns", "takes one")


def test_commands_that_had_no_json_have_it_now(cupboard, swarmtest):
    import json

    sound = json.loads(swarmtest("doctor", "--json", cwd=cupboard).stdout)
    assert sound["damage"] == []
    checked = json.loads(swarmtest("check", "cupboard.py", "--json", cwd=cupboard).stdout)
    assert checked["features"] == ["put_one_cup_into_the_cupboard", "take_all_cups_out"]
