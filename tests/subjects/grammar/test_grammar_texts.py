"""Random texts of grammars: in the language, as large as asked for, by weight, reproducible."""

from __future__ import annotations

import random
from collections.abc import Sequence

import lark
import pytest
from hypothesis import given, settings
from random_grammars import lark_texts, possible_features

from swarmtest.core.errors import UserError
from swarmtest.subjects.grammar.generator import GrammarGenerator, load_grammar
from swarmtest.subjects.grammar.growth import Tree, tokens_of
from swarmtest.subjects.grammar.model import (
    NEVER,
    Grammar,
    Repeat,
    Sizes,
    SizeTables,
    Terminal,
    base_of,
    needed_rules,
)

EXPRESSIONS = """
start: (statement ";")+
statement: NAME "=" expr | "print" expr | "if" expr "then" statement ["else" statement]
?expr: NAME | INT | expr "+" expr | expr "++" | "-" expr | "(" expr ")" | NAME "(" [list] ")"
list: expr ("," expr)*
NAME: /[a-z]+/
INT: /[0-9]+/
%ignore /[ \\n]+/
%ignore /\\/\\/[^\\n]*/
"""


def everything(generator: GrammarGenerator) -> dict[str, float]:
    return dict.fromkeys(generator.grammar.features, 1.0)


def depth_of(tree: Tree) -> int:
    inner = max((depth_of(child) for child in tree if isinstance(child, list)), default=0)
    return inner + int(tree[0] >= 0)


def test_every_text_is_one_of_the_grammar() -> None:
    generator = load_grammar(EXPRESSIONS, length=(1, 40))
    parser = lark.Lark(EXPRESSIONS, parser="earley", lexer="basic")
    for seed in range(150):
        parser.parse(generator.text(generator.generate(everything(generator), seed)))


@settings(max_examples=60, deadline=None)
@given(lark_texts())
def test_texts_of_random_grammars_parse_and_use_only_what_is_on(text: str) -> None:
    generator = load_grammar(text, length=(1, 15))
    parser = lark.Lark(text, parser="earley", ambiguity="resolve")
    names = generator.grammar.features
    for seed in range(4):
        on = {name for name in names if random.Random(f"{seed}{name}").random() < 0.7}
        weights = {name: float(name in on) for name in names}
        try:
            tree = generator.generate(weights, seed)
        except UserError:
            assert not possible_features(generator.grammar, on)
            continue
        parser.parse(generator.text(tree))
        assert set(generator.used(tree)) <= possible_features(generator.grammar, on)


@settings(max_examples=40, deadline=None)
@given(lark_texts())
def test_depth_is_kept_whatever_the_grammar(text: str) -> None:
    generator = load_grammar(text, length=60, depth=9)
    least = 9
    for seed in range(5):
        tree = generator.generate(everything(generator), seed)
        assert depth_of(tree) <= least


def test_lengths_spread_over_the_range_and_stay_within_it() -> None:
    generator = load_grammar(EXPRESSIONS, length=(5, 80))
    weights = everything(generator)
    sizes = sorted(generator.size(generator.generate(weights, seed)) for seed in range(400))
    assert sizes[-1] <= 80
    assert sizes[100] < 30 < sizes[200] < 60 < sizes[-20]


def test_a_longer_budget_gives_longer_texts() -> None:
    short, long = (load_grammar(EXPRESSIONS, length=n) for n in (10, 200))
    weights = everything(short)
    assert sum(long.size(long.generate(weights, s)) for s in range(50)) > 8 * sum(
        short.size(short.generate(weights, s)) for s in range(50)
    )


def test_the_same_weights_and_seed_give_the_same_text() -> None:
    one, other = load_grammar(EXPRESSIONS), load_grammar(EXPRESSIONS)
    for seed in range(20):
        assert one.generate(everything(one), seed) == other.generate(everything(other), seed)


def test_an_alternative_is_taken_in_proportion_to_its_weight() -> None:
    generator = load_grammar('start: item+\nitem: "a" -> a | "b" -> b\n', length=2000)
    used = generator.used(generator.generate({"a": 0.25, "b": 1.0}, seed=1))
    total = sum(used.values())
    # Binomial with p = 0.2: six standard deviations.
    assert abs(used["a"] - 0.2 * total) < 6 * (0.2 * 0.8 * total) ** 0.5


def test_a_part_with_a_small_weight_is_seldom_there() -> None:
    generator = load_grammar('start: item+\nitem: "a" ["b"]\n', length=400)
    counts = [
        sum(
            generator.used(generator.generate({"item?b": weight}, seed)).get("item?b", 0)
            for seed in range(40)
        )
        for weight in (0.0, 0.1, 1.0)
    ]
    assert counts[0] == 0 < counts[1] * 4 < counts[2]


def test_what_is_off_never_appears() -> None:
    generator = load_grammar(EXPRESSIONS)
    weights = everything(generator) | {"expr:expr++": 0.0, "statement?else-statement": 0.0}
    texts = [generator.text(generator.generate(weights, seed)) for seed in range(100)]
    assert not any("++" in text or "else" in text for text in texts)


def test_a_choice_that_leaves_nothing_is_refused_with_its_reason() -> None:
    generator = load_grammar('start: "(" start ")" | "x" start "y" | "z"\n')
    with pytest.raises(UserError, match=r"every way to write 'start' needs it again.*start:z"):
        generator.generate({"start:(start)": 1.0}, seed=1)
    with pytest.raises(UserError, match="'start' needs one of"):
        generator.generate({}, seed=1)


def test_an_unknown_feature_is_refused_with_the_nearest() -> None:
    generator = load_grammar('start: "a" | "b"\n')
    with pytest.raises(UserError, match="did you mean 'start:a'"):
        generator.generate({"start:aa": 1.0}, seed=1)


def test_dead_rules_are_not_entered() -> None:
    generator = load_grammar('start: p | q\np: "a" r\nr: "x" | "y"\nq: "b"\n')
    weights = everything(generator) | {"r:x": 0.0, "r:y": 0.0}
    texts = {generator.text(generator.generate(weights, seed)) for seed in range(20)}
    assert texts == {"b"}


def test_tokens_that_would_run_together_are_kept_apart() -> None:
    generator = load_grammar('start: "a" "b" "(" "-" "-" "c" ")" "," "d"\n%ignore " "\n')
    assert generator.text(generator.generate({}, seed=1)) == "a b (- - c), d"


def test_nothing_is_put_between_tokens_where_nothing_may_be() -> None:
    generator = load_grammar('start: "a" "b" "c"\n')
    assert generator.text(generator.generate({}, seed=1)) == "abc"


def test_a_bracket_is_kept_apart_where_it_would_start_a_comment() -> None:
    text = 'start: "(" "*" ")"\n%ignore " "\n%ignore /\\(\\*[^)]*/\n'
    generator = load_grammar(text)
    assert generator.text(generator.generate({}, seed=1)) == "( *)"


def test_names_are_never_keywords() -> None:
    generator = load_grammar('start: (NAME | "a")+\nNAME: /[a-f]/\n%ignore " "\n', length=50)
    tree = [generator.generate({"start:NAME": 1.0}, seed) for seed in range(40)]
    assert set(" ".join(map(generator.text, tree)).split()) == {*"bcdef"}


def test_a_deep_chain_of_rules_takes_the_depth_it_needs() -> None:
    rules = [f"r{i}: r{i + 1} | r{i + 1} r{i + 1}" for i in range(60)]
    generator = load_grammar("\n".join(["start: r0", *rules, 'r60: "x"']) + "\n", depth=10)
    tree = generator.generate(everything(generator), seed=1)
    assert depth_of(tree) == 62


@pytest.mark.parametrize("wrong", [0, (5, 2), "10", (0, 3)])
def test_a_length_that_is_none_is_refused(wrong: object) -> None:
    with pytest.raises(UserError, match="length is a number of tokens"):
        load_grammar('start: "a"\n', length=wrong)  # type: ignore[arg-type]


def test_a_depth_that_is_none_is_refused() -> None:
    with pytest.raises(UserError, match="depth is a number of nested rules"):
        load_grammar('start: "a"\n', depth=0)


def test_a_comment_that_is_a_token_does_not_swallow_the_next() -> None:
    grammar = """
    start: (COMMENT | "stop" | NAME "!")+
    COMMENT: /#[^\\n]+/
    NAME: /[a-z]+/
    %ignore /[ \\n]+/
    """
    generator = load_grammar(grammar, length=(1, 20))
    parser = lark.Lark(grammar, parser="lalr")
    for seed in range(100):
        tree = generator.generate(everything(generator), seed)
        tokens = [str(token) for token in parser.lex(generator.text(tree))]
        assert tokens == tokens_of(tree)


def test_what_can_be_empty_does_not_go_on_and_on():
    """Empty parts take nothing from the budget of tokens, so rules are counted, too."""
    generator = load_grammar('start: q | "x"\nq: q*\n', length=30)
    weights = dict.fromkeys((feature.name for feature in generator.features), 1.0)

    def rules(tree):
        return 1 + sum(rules(child) for child in tree if isinstance(child, list))

    for seed in range(60):
        assert rules(generator.generate(weights, seed)) < 200 * 30


@pytest.mark.parametrize(("levels", "said"), [(30, "1,073,741,824 tokens"), (60, "too long")])
def test_a_grammar_whose_smallest_text_is_huge_is_refused(levels: int, said: str) -> None:
    rules = "".join(f"r{i}: r{i + 1}~2\n" for i in range(levels))
    text = f'start: r0\n{rules}r{levels}: "x" | "y"\n'
    with pytest.raises(UserError, match=said):
        generate_from(text)


def generate_from(text: str) -> None:
    generator = load_grammar(text, length=30)
    generator.generate(everything(generator), seed=1)


def least_sizes(grammar: Grammar, on: list[bool]) -> Sizes:
    """The same as `SizeTables.sizes`, in rounds over everything until nothing changes."""
    tokens, depth = [NEVER] * len(grammar.alternatives), [NEVER] * len(grammar.alternatives)
    rule_tokens, rule_depth = [NEVER] * len(grammar.rules), [NEVER] * len(grammar.rules)
    for _ in range(len(grammar.rules) + 1):
        for alternative in filter(lambda a: on[a.number], grammar.alternatives):
            needed = list(needed_rules(alternative))
            own = sum(
                item.low if isinstance(item, Repeat) else 1
                for item in alternative.items
                if isinstance(base_of(item), Terminal)
            )
            size = own + sum(rule_tokens[rule] for rule in needed)
            level = 1 + max([rule_depth[rule] for rule in needed], default=0)
            tokens[alternative.number], depth[alternative.number] = size, level
            rule = alternative.rule
            rule_tokens[rule] = min(rule_tokens[rule], size)
            rule_depth[rule] = min(rule_depth[rule], level)
    return Sizes(rule_tokens, rule_depth, tokens, depth)


def finite(sizes: Sequence[int]) -> list[int | None]:
    """Sizes by number, without those of what cannot be finished."""
    return [size if size < NEVER else None for size in sizes]


def test_the_least_sizes_of_a_part_of_a_grammar_are_those_of_plain_rounds():
    grammar = load_grammar(
        """
        start: list | pair
        list: "[" start* "]" | "[" word "," start "]"
        pair: start ":" start | word | "(" pair pair ")"
        word: "a" | "b" word | number number number
        number: "1" | "2" list | word "!"
        """
    ).grammar
    tables, rng = SizeTables(grammar), random.Random(5)
    for _ in range(200):
        on = [rng.random() < 0.6 for _ in grammar.alternatives]
        found, expected = tables.sizes(on), least_sizes(grammar, on)
        assert finite(found.rule_tokens) == finite(expected.rule_tokens)
        assert finite(found.rule_depth) == finite(expected.rule_depth)
        assert finite(found.tokens) == finite(expected.tokens)
        assert finite(found.depth) == finite(expected.depth)


def test_a_grammar_whose_shortest_texts_nest_deeply_is_grown_in_few_rules() -> None:
    generator = load_grammar(
        'start: p | "c"?\np: start+ "a"* start | start+ q+ p\nq: start+ "a"* start | start+ q+ p\n',
        length=(5, 30),
    )
    weights = dict.fromkeys(generator.grammar.features, 1.0)
    for seed in range(20):  # most of them took minutes
        assert nodes(generator.generate(weights, seed)) < 100_000


def nodes(tree: object) -> int:
    return 1 + sum(map(nodes, tree)) if isinstance(tree, list) else 1
