"""ANTLR v4 grammars, read by grammarinator."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from swarmtest.core.errors import UserError
from swarmtest.subjects.grammar.generator import load_grammar

# Not imported here: that takes as long as to collect hundreds of tests.
pytestmark = pytest.mark.skipif(
    find_spec("grammarinator") is None, reason="pip install 'swarmtest[antlr]'"
)

CALC = r"""
grammar Calc;
prog: stat+ EOF;
stat: expr ';' # printed | ID '=' expr ';' # assigned | 'say' STRING? ';' # said ;
expr: expr ('*'|'/') expr | expr '+' expr | INT | ID | '(' expr ')' ;
ID: [a-z_] [a-z_0-9]*;
INT: DIGIT+;
fragment DIGIT: '0'..'9';
STRING: '"' ( ~["\\] | '\\' . )* '"';
COMMENT: '/*' .*? '*/' -> skip;
WS: [ \t\r\n]+ -> channel(HIDDEN);
"""


def test_alternatives_labels_and_parts_are_features(tmp_path: Path) -> None:
    (tmp_path / "Calc.g4").write_text(CALC)
    generator = load_grammar(tmp_path / "Calc.g4")
    assert generator.grammar.features == (
        "Printed",
        "Assigned",
        "Said",
        "Said?STRING",
        "expr:expr(*|/)expr",
        "expr:expr+expr",
        "expr:INT",
        "expr:ID",
        "expr:(expr)",
        "expr:*",
        "expr:/",
    )


def test_texts_are_made_of_the_grammars_tokens(tmp_path: Path) -> None:
    (tmp_path / "Calc.g4").write_text(CALC)
    generator = load_grammar(tmp_path / "Calc.g4")
    weights = dict.fromkeys(generator.grammar.features, 1.0)
    token = re.compile(r'\s*(say\b|[a-z_][a-z_0-9]*|[0-9]+|"(?:[^"\\]|\\.)*"|[-+*/()=;])', re.S)
    for seed in range(50):
        text = generator.text(generator.generate(weights, seed))
        place = 0
        while place < len(text):
            found = token.match(text, place)
            assert found, text[place:]
            place = found.end()


def test_a_parser_grammar_finds_its_lexer_beside_it(tmp_path: Path) -> None:
    (tmp_path / "TLexer.g4").write_text("lexer grammar TLexer;\nA: 'a';\nN: [0-9]+;\n")
    (tmp_path / "TParser.g4").write_text(
        "parser grammar TParser;\noptions { tokenVocab=TLexer; }\nlist: A | N list;\n"
    )
    generator = load_grammar(tmp_path / "TParser.g4")
    assert generator.grammar.features == ("list:a", "list:N-list")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("grammar bad;\na: nope ';';\n", r":2: the rule 'nope' is used but not defined"),
        ("grammar bad;\na: : ;\n", r":2: no viable alternative"),
        ("grammar bad;\na: 'x' a;\n", r":2: the rule 'a' can never end"),
        ("grammar bad;\na: X | 'y';\nX: 'a' X?;\n", r"the lexer rule X refers to itself"),
        ("lexer grammar bad;\nX: 'a';\n", r"has no parser rule to start from"),
        ("grammar bad;\ntokens { T }\na: T;\n", r"the token T has no lexer rule"),
        (
            "parser grammar bad;\noptions { tokenVocab=No; }\na: A;\n",
            r"lexer grammar is missing: No.g4",
        ),
    ],
)
def test_a_bad_grammar_is_one_line(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.g4"
    file.write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        load_grammar(file)
    assert "\n" not in str(caught.value)


def test_reduction_works_alike(tmp_path: Path) -> None:
    (tmp_path / "Calc.g4").write_text(CALC)
    generator = load_grammar(tmp_path / "Calc.g4", length=(60, 90))
    weights = dict.fromkeys(generator.grammar.features, 1.0)
    tree = generator.generate(weights, seed=3)
    reduced = generator.reduced(tree, lambda tree: "+" in generator.text(tree))
    assert generator.text(reduced) in ("0 + 0;", "a + a;", "0 + a;", "a + 0;")


def test_the_first_parser_rule_is_the_start_also_after_tokens(tmp_path: Path) -> None:
    file = tmp_path / "Late.g4"
    file.write_text("grammar Late;\nSTAR: '*';\nWS: [ ]+ -> skip;\nall: one+;\none: STAR | 'x';\n")
    assert load_grammar(file).grammar.rules[0].name == "all"


def test_tokens_for_indentation_become_spaces(tmp_path: Path) -> None:
    file = tmp_path / "Trees.g4"
    file.write_text(
        "grammar Trees;\ntokens { INDENT, DEDENT }\n"
        "tree: NAME NEWLINE (INDENT tree DEDENT)?;\n"
        "NAME: [a-z];\nNEWLINE: '\\r'? '\\n' [ \\t]*;\n"
    )
    generator = load_grammar(file, length=(6, 20))
    (feature,) = generator.grammar.features
    text = generator.text(generator.generate({feature: 1.0}, seed=1))
    for level, line in enumerate(text.splitlines()):
        assert re.fullmatch(rf" {{{4 * level}}}[a-z]", line)
    assert text.count("\n") > 1
