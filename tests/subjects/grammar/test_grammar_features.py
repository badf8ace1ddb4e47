"""What the features of a grammar are, and what they are called."""

from __future__ import annotations

from pathlib import Path

from swarmtest.subjects.grammar.generator import load_grammar

JSON = """
?start: value
?value: object | array | STRING | NUMBER -> number | "true" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: STRING ":" value
STRING: /"[a-z]*"/
NUMBER: /[0-9]+/
%ignore " "
"""


def features(text: str, **options: object) -> tuple[str, ...]:
    return load_grammar(text, **options).grammar.features  # type: ignore[arg-type]


def test_alternatives_and_parts_that_may_be_left_out_are_features() -> None:
    assert features(JSON) == (
        "value:object",
        "value:array",
        "value:STRING",
        "number",
        "value:true",
        "value:null",
        "object?pair(COMMA-pair)*",
        "array?value(COMMA-value)*",
        "object*COMMA-pair",
        "array*COMMA-value",
    )


def test_parts_are_no_features_if_the_user_says_so() -> None:
    assert not any("?" in name or "*" in name for name in features(JSON, optional_features=False))


def test_a_rule_with_one_alternative_is_no_feature() -> None:
    assert features('start: one "a"+\none: "b"\n') == ()


def test_what_stands_in_a_named_alternative_is_named_after_it() -> None:
    assert features('start: "a" ["b"] -> first | "c" ("d" | "e") -> second\n') == (
        "first",
        "first?b",
        "second",
        "second:d",
        "second:e",
    )


def test_the_same_alias_in_two_rules_is_told_apart_by_the_rule() -> None:
    names = features('start: p | "x" -> same\np: "y" -> same | "z"\n')
    assert names == ("start:p", "start.same", "p.same", "p:z")


def test_alternatives_that_look_alike_are_numbered() -> None:
    assert (
        features('start: "a" ["b"] "c" ["b"] | "d"\n')
        == (
            "start:ab?c-b?",
            "start?b",
            "start?b/2",
            "start:d",
        )
        or len(set(features('start: "a" ["b"] "c" ["b"] | "d"\n'))) == 4
    )


def test_a_name_has_no_spaces_and_no_commas() -> None:
    names = features('start: "a b" "," start | list{start, "x"}\nlist{p, q}: p | q\n')
    assert not any(" " in name or "," in name for name in names), names


def test_another_alternative_elsewhere_leaves_names_as_they_were() -> None:
    before = features('start: p | "x"\np: "y" | "z" [p]\n')
    after = features('start: p | "x" | "w"\np: "y" | "v" | "z" [p]\n')
    assert set(before) < set(after)


def test_imports_templates_and_overrides_are_as_lark_has_them(tmp_path: Path) -> None:
    (tmp_path / "base.lark").write_text('item: "one" | "two"\nN: "1"\n')
    (tmp_path / "main.lark").write_text(
        "%import .base.item\n"
        "%import common.INT\n"
        '%extend item: "three"\n'
        'start: sep{item, ";"} INT\n'
        "sep{x, s}: x (s x)*\n"
    )
    names = load_grammar(tmp_path / "main.lark").grammar.features
    assert {"item:one", "item:two", "item:three"} < set(names)


def test_a_terminals_alternatives_are_no_features() -> None:
    assert features('start: OP "x" | OP "y"\nOP: "+" | "-"\n') == ("start:OP-x", "start:OP-y")


def test_what_can_never_be_finished_is_left_out_and_said() -> None:
    generator = load_grammar('start: "a" | lost | "b"\nlost: lost "x"\n')
    assert generator.grammar.features == ("start:a", "start:b")
    assert any("<grammar>:2" in note and "lost" in note for note in generator.grammar.notes)
