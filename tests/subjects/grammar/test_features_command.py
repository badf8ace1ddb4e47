"""``swarmtest features``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from swarmtest.core.errors import UserError
from swarmtest.ui.commands.features import features

EXAMPLES = Path(__file__).parents[3] / "examples"


def told(*words: str) -> str:
    done = CliRunner().invoke(features, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_grammars_features_are_listed_with_what_they_mean(tmp_path: Path) -> None:
    file = tmp_path / "calls.lark"
    file.write_text('start: "x" | "call" ["(" arg ")"] -> call\narg: "1" | start\n')
    lines = told(str(file)).splitlines()
    assert lines[0].split() == ["feature", "only", "within", "enables", "ways", "to", "it"]
    assert [line.split() for line in lines[2:7]] == [
        ["start:x", "0", "2"],
        ["call", "3", "2"],
        ["call?(arg)", "call", "2", "1"],
        ["arg:1", "call,", "call?(arg)", "0", "1"],
        ["arg:start", "call,", "call?(arg)", "0", "1"],
    ]
    assert "5 features" in lines[-1]


def test_json_has_every_name(tmp_path: Path) -> None:
    file = tmp_path / "g.lark"
    file.write_text('start: "x" | "y" [start]\n')
    data = json.loads(told(str(file), "--json"))
    assert [one["feature"] for one in data["implications"]] == [
        *("start:x", "start:y-start?", "start?start"),
    ]
    assert data["implications"][2]["within"] == ["start:y-start?"]
    assert data["space"]["constraints"]


def test_a_machines_features_are_listed_too(tmp_path: Path) -> None:
    file = tmp_path / "files_machine.py"
    file.write_text(
        "from swarmtest import Integer, Machine, action\n\n\n"
        "class Files(Machine):\n"
        "    dimensions = [Integer('limit', 1, 64)]\n\n"
        "    @action(group='files')\n    def open(self): pass\n\n"
        "    @action(requires=['open'], rate=0.25)\n    def close(self): pass\n"
    )
    lines = told(str(file)).splitlines()
    assert lines[0].split() == ["feature", "group", "rate", "requires"]
    assert lines[2].split() == ["open", "files"]
    assert lines[3].split() == ["close", "0.25", "open"]
    assert lines[4] == "setting limit: 1 to 64"


def test_a_bad_grammar_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "g.lark"
    file.write_text("start: nothing\n")
    with pytest.raises(UserError, match="used but not defined"):
        told(str(file))


def test_a_grammar_may_start_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "flies.lark"
    file.write_text('sentence: noun "flies"\nnoun: "fruit" | "time"\n')
    assert "noun:fruit" in told(str(file), "--start", "sentence")
    with pytest.raises(UserError, match="--start is for grammar files"):
        told(str(EXAMPLES / "sql.py"), "--start", "sentence")
