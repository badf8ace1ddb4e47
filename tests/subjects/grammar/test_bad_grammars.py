"""Grammars that cannot be used: one clear line, with file and line, when they are loaded."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest

from swarmtest.core.errors import UserError
from swarmtest.core.result import Verdict
from swarmtest.subjects.grammar.generator import load_grammar
from swarmtest.subjects.grammar.subject import GrammarSubject

BAD = [
    ('start: a\na: "x" a\n', r":1: the rule 'start' can never end.*start needs a needs a"),
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
    ("\n%import nowhere.X\nstart: X\n", r":2: %import finds no file .*nowhere.lark"),
    ('start: "a"\n%ignore NOPE\n', r":2: .*NOPE.* were not defined"),
    ('start: "a"\n%override foo: "c"\n', r":2: Cannot override a nonexisting rule foo"),
    ('start: X\nX: "a" q\nq: "b"\n', r":2: Rules aren't allowed inside terminals"),
    ('start: X\nX: "a".."zz"\n', r"Lark does not accept this range"),
    ('start: "b"\n  | "a"~5..2\n', r":2: a part cannot come 5 to 2 times"),
    (f'start: {"(" * 400}"a"{")" * 400}\n', r"nested too deeply to be read"),
    ("start: X\nX: /\\p{L}/\n", r":2: .*is one of the package regex, not of re"),
    ("start: _INDENT\n%declare _INDENT\n", r"has none for the end of a line"),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=[text[:60] for text, _ in BAD])
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


def chain(end: str) -> str:
    """A grammar whose rules need each other, 300 in a row; each may end like `end`."""
    rules = (f"r{n}: r{n + 1}{end}" for n in range(300))
    return "\n".join(["start: r0", *rules, 'r300: "a" | "b"'])


def test_a_grammar_that_always_nests_too_deeply_is_refused() -> None:
    with pytest.raises(UserError, match=r"<grammar>: .*every text has 302 nested rules, and 250"):
        load_grammar(chain(""))


def test_a_configuration_that_nests_too_deeply_makes_an_invalid_test() -> None:
    subject = GrammarSubject(chain(' | "c"'), len)
    deep = [name for name in subject.space.feature_names if not name.endswith(":c")]
    result = subject.execute(subject.space.configuration(deep), seed=1)
    assert result.verdict is Verdict.INVALID
    assert "nested rules" in str(result.missing)


@pytest.mark.parametrize("nothing", ["", 5, None])
def test_what_is_no_grammar_at_all_is_refused(nothing: Any) -> None:
    with pytest.raises(UserError, match=f"a grammar is the path of a file.*not {nothing!r}"):
        load_grammar(nothing)
    with pytest.raises(UserError, match=f"a grammar is the path of a file.*not {nothing!r}"):
        GrammarSubject(nothing, print)


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
