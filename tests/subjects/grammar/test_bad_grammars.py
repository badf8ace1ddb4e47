"""Grammars that cannot be used: one clear line, with file and line, when they are loaded."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest

from swarmtest.errors import UserError
from swarmtest.subjects.grammar import GrammarSubject, load_grammar

BAD = [
    ('start: a\na: "x" a\n', r":1: the rule 'start' can never be finished.*start needs a needs a"),
    ("start: nothing\n", r":1: Rule 'nothing' used but not defined \(in rule start\)"),
    ('start: "x"\n\nother: TERM\n', r":3: Rule 'TERM' used but not defined|:3: .*TERM"),
    ('start: ("a"\n', r":1: the line ends too early"),
    ('start: "a" )\n', r":1: unexpected '\)'"),
    ('start: "a"\nX: /[/\nb: X\n', r"."),
    ("start: X\n\nX: /[/\n", r":3: X /\[/ is not a regular expression"),
    ("start: X\nX: /a(?=b)/\n", r":2: X /a\(\?=b\)/ cannot be generated"),
    ("start: X\n%declare X\n", r":2: X is only declared"),
    ('begin: "a"\n', r"has no rule 'start' to start from; known: begin"),
    ('start: "a"\nstart: "b"\n', r":1: Rule 'start' defined more than once"),
    ("%import common.NUMBRE\nstart: NUMBRE\n", r":2: .*NUMBRE.*not defined"),
    ("%import nowhere.X\nstart: X\n", r"No such file.*nowhere.lark"),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=[text for text, _ in BAD])
def test_a_bad_grammar_is_one_line(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.lark"
    file.write_text(text)
    if message == ".":
        load_grammar(file)  # what is not used is not looked at
        return
    with pytest.raises(UserError, match=message) as caught:
        load_grammar(file)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(file))


def test_a_file_that_is_not_there_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "grammar.lark").write_text('start: "a"\n')
    with pytest.raises(UserError, match=r"no such grammar: .*did you mean 'grammar.lark'"):
        load_grammar(tmp_path / "gramar.lark")


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "grammar.txt").write_text('start: "a"\n')
    with pytest.raises(UserError, match=r"a grammar is a .lark file, or a .g4 file"):
        load_grammar(tmp_path / "grammar.txt")


def test_a_grammar_without_choices_is_no_subject() -> None:
    with pytest.raises(UserError, match="there are no features to choose"):
        GrammarSubject('start: "a"\n', print)


@pytest.mark.parametrize(
    ("suffix", "module", "extra"), [("lark", "lark", "grammar"), ("g4", "grammarinator", "antlr")]
)
def test_a_missing_package_says_how_to_install_it(
    suffix: str, module: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / f"any.{suffix}"
    file.write_text('start: "a"\n')
    found = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == module:
            raise ImportError(name)
        return found(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr("importlib.import_module", without)
    with pytest.raises(UserError, match=rf"pip install 'swarmtest\[{extra}\]'"):
        load_grammar(file)
