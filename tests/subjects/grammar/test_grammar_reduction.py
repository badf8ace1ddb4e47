"""Reduction of trees: smaller, still in the grammar, and nothing left that could go."""

from __future__ import annotations

import lark
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from random_grammars import lark_texts

from swarmtest.core.errors import UserError
from swarmtest.subjects.grammar.generator import GrammarGenerator, load_grammar

PROGRAMS = """
start: statement*
statement: NAME "=" expr ";" | "if" expr block ["else" block] | "print" "(" [list] ")" ";"
list: expr ("," expr)*
block: "{" statement* "}"
?expr: NAME | INT | expr OP expr | "(" expr ")" | NAME "(" expr ")" -> call
OP: "+" | "*" | "/"
NAME: /[a-z]+/
INT: /[0-9]+/
%ignore " "
"""


def program(generator: GrammarGenerator, word: str) -> list[object]:
    """A tree whose text has a word."""
    weights = dict.fromkeys(generator.grammar.features, 1.0)
    trees = (generator.generate(weights, seed) for seed in range(400))
    return next(t for t in trees if word in generator.text(t) and generator.size(t) > 60)


@pytest.mark.parametrize(
    ("word", "tokens"),
    [("/", 6), ("else", 7), ("print", 4), ("99", 4)],
    ids=["a = a / a;", "if a { } else { }", "print ();", "a = 99;"],
)
def test_a_program_becomes_what_it_takes(word: str, tokens: int) -> None:
    generator = load_grammar(PROGRAMS, length=(80, 120))
    asked = []

    def interesting(tree: list[object]) -> bool:
        asked.append(tree)
        return word in generator.text(tree)

    reduced = generator.reduced(program(generator, word), interesting)
    assert generator.size(reduced) == tokens
    assert len(asked) < 400


def test_the_first_of_a_list_can_go_too() -> None:
    generator = load_grammar(PROGRAMS, length=(80, 120))
    weights = dict.fromkeys(generator.grammar.features, 1.0)
    tree = next(
        tree
        for tree in (generator.generate(weights, seed) for seed in range(400))
        if ", " in generator.text(tree)
    )
    reduced = generator.reduced(tree, lambda tree: "print (" in generator.text(tree))
    assert generator.text(reduced) == "print ();"


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much]
)  # most grammars do not have the word
@given(lark_texts(), st.integers(0, 1000), st.sampled_from(["a", "b", "(", "c"]))
def test_what_is_left_is_in_the_grammar_and_cannot_be_reduced(
    text: str, seed: int, word: str
) -> None:
    generator = load_grammar(text, length=(5, 30))
    tree = generator.generate(dict.fromkeys(generator.grammar.features, 1.0), seed)
    assume(word in generator.text(tree))

    def interesting(tree: list[object]) -> bool:
        return word in generator.text(tree)

    reduced = generator.reduced(tree, interesting)
    assert interesting(reduced)
    assert generator.size(reduced) <= generator.size(tree)
    lark.Lark(text, parser="earley", ambiguity="resolve").parse(generator.text(reduced))
    assert generator.reduced(reduced, interesting) == reduced


def test_nothing_is_asked_about_twice() -> None:
    generator = load_grammar(PROGRAMS, length=(80, 120))
    texts = []

    def interesting(tree: list[object]) -> bool:
        texts.append(generator.text(tree))
        return "/" in texts[-1]

    generator.reduced(program(generator, "/"), interesting)
    assert len(texts) == len(set(texts))


def test_a_tree_of_another_grammar_is_refused() -> None:
    one, other = load_grammar('start: "a" | "b" start\n'), load_grammar('start: "a"+\n')
    tree = one.generate({"start:a": 1.0, "start:b-start": 1.0}, seed=1)
    for broken in (tree, [0], ["a"], [99], None, [0, [-1, 7]]):
        with pytest.raises(UserError, match="does not fit the grammar"):
            other.reduced(broken, lambda tree: True)  # type: ignore[arg-type]
