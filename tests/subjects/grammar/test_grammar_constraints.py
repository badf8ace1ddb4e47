"""The constraints that keep configurations to those from which texts can be made."""

from __future__ import annotations

import itertools
import pickle
import random
from pathlib import Path

from hypothesis import assume, given, settings
from random_grammars import finished_rules, lark_texts, possible_features

from swarmtest.core.sampling import rates_for, toss
from swarmtest.core.seeds import Stream
from swarmtest.core.space import Space
from swarmtest.subjects.grammar.feature_constraints import implications, start_constraints
from swarmtest.subjects.grammar.generator import load_grammar
from swarmtest.subjects.grammar.model import SizeTables

EXAMPLES = Path(__file__).parents[3] / "examples"


@settings(max_examples=80, deadline=None)
@given(lark_texts())
def test_configurations_are_those_in_which_every_feature_can_appear(text: str) -> None:
    generator = load_grammar(text)
    names = generator.grammar.features
    assume(0 < len(names) <= 9)
    space = Space(generator.features, generator.constraints)
    for bits in range(1, 1 << len(names)):
        on = {name for place, name in enumerate(names) if bits >> place & 1}
        works = 0 in finished_rules(generator.grammar, on)
        canonical = works and possible_features(generator.grammar, on) == on
        assert (not space.violated(bits)) == canonical, (on, space.violated(bits))


@settings(max_examples=80, deadline=None)
@given(lark_texts())
def test_without_effective_only_the_start_has_to_be_finished(text: str) -> None:
    generator = load_grammar(text, effective=False)
    names = generator.grammar.features
    assume(0 < len(names) <= 9)
    space = Space(generator.features, generator.constraints)
    assert start_constraints(generator.graph)[1]
    for bits in range(1, 1 << len(names)):
        on = {name for place, name in enumerate(names) if bits >> place & 1}
        works = 0 in finished_rules(generator.grammar, on)
        assert (not space.violated(bits)) == works, on


@settings(max_examples=60, deadline=None)
@given(lark_texts())
def test_what_a_feature_needs_is_what_cannot_be_taken_away(text: str) -> None:
    generator = load_grammar(text)
    names = set(generator.grammar.features)
    for found in implications(generator.graph):
        needed = {
            other
            for other in names - {found.feature}
            if found.feature not in possible_features(generator.grammar, names - {other})
        }
        assert needed == {*found.within, *found.brings}


def test_a_cut_that_would_need_too_many_sets_says_so() -> None:
    ways = " | ".join(f"a{i} b{i} c{i}" for i in range(8))
    rules = [f'{x}{i}: "{x}" | "{x}{x}"' for i in range(8) for x in "abc"]
    generator = load_grammar("\n".join([f"start: {ways}", *rules]) + "\n", effective=False)
    constraints, exact = start_constraints(generator.graph)
    assert not exact
    assert [len(constraint.on) for constraint in constraints] == [8]


def test_drawn_configurations_always_make_texts() -> None:
    text = """
    start: (p | q)+
    p: "a" r | "b" p
    q: r "c" [q]
    r: "x" s | "y" q
    s: "1" | "2" s | "(" r ")"
    """
    generator = load_grammar(text)
    space = Space(generator.features, generator.constraints)
    for trial in range(300):
        drawn = toss(space, rates_for(space, 0.3), Stream(1, trial)).configuration
        tree = generator.grown(drawn.weights, trial)
        assert set(generator.used(tree)) <= set(drawn.included)
        assert generator.graph.effective(drawn.bits) == drawn.bits


def test_what_a_part_stands_within_and_brings_along_is_told() -> None:
    generator = load_grammar(
        'start: "x" | "call" name ["(" arg ")"]\nname: "f"\narg: "1" | start\n'
    )
    found = {one.feature: one for one in implications(generator.graph)}
    part = found["start?(arg)"]
    assert part.within == ("start:call-name((arg))?",) or len(part.within) == 1
    assert found["arg:1"].within == (*part.within, "start?(arg)")
    assert set(found["start?(arg)"].enables) == {"arg:1", "arg:start"}
    assert found["start:x"].ways == ("start", "arg:start")


@settings(max_examples=80, deadline=None)
@given(lark_texts())
def test_compiled_sizes_are_those_of_the_tables(text: str) -> None:
    tables = SizeTables(load_grammar(text).grammar)
    count = tables.alternatives
    for bits in itertools.islice(itertools.cycle(range(1 << min(count, 7))), 140):
        # The last alternatives are on and off in turns of 7.
        on = [bool(bits >> number % 7 & 1) for number in range(count)]
        assert tables.sizes(on) == tables.sizes_by_tables(on)


def test_compiled_sizes_of_a_large_grammar_are_those_of_the_tables() -> None:
    generator = load_grammar(EXAMPLES / "sql.lark")
    tables = SizeTables(generator.grammar)
    dice = random.Random(4)
    for _ in range(200):
        share = dice.random()
        on = [dice.random() < share for _ in range(tables.alternatives)]
        assert tables.sizes(on) == tables.sizes_by_tables(on)


def test_a_generator_can_be_copied_to_another_process_after_many_texts() -> None:
    generator = load_grammar('start: "x" | "(" start ")" | "[" start "]"')
    weights = [(1.0, a / 20, 1.0) for a in range(1, 20)]
    texts = [generator.text(generator.grown(each, 3)) for each in weights]
    again = pickle.loads(pickle.dumps(generator))
    assert [again.text(again.grown(each, 3)) for each in weights] == texts
