"""The solver behind the constraints, against brute force over all sets of features."""

from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest import Constraint
from swarmtest.core.constraints import Clause, conflict, propagate, solve

examples = settings(derandomize=True, deadline=None, max_examples=100)
FEATURES = 5
EVERY_SET = range(1 << FEATURES)


@st.composite
def clauses(draw, most=12):
    """Random clauses over five features: some on, some off, no feature both."""
    found = []
    for number in range(draw(st.integers(0, most))):
        literals = draw(
            st.dictionaries(st.integers(0, FEATURES - 1), st.booleans(), min_size=1, max_size=3)
        )
        on = sum(1 << f for f, positive in literals.items() if positive)
        off = sum(1 << f for f, positive in literals.items() if not positive)
        found.append(Clause(on, off, Constraint((), (), f"rule {number}")))
    return found


def models(rules):
    return [bits for bits in EVERY_SET if all(rule.holds(bits) for rule in rules)]


@examples
@given(clauses())
def test_a_solution_is_found_exactly_when_there_is_one(rules):
    found = solve(rules)
    if models(rules):
        assert found in models(rules)
    else:
        assert found is None


@examples
@given(clauses(most=6), st.integers(0, 31), st.integers(0, 31))
def test_a_solution_respects_what_was_already_decided(rules, true, false):
    false &= ~true
    possible = [bits for bits in models(rules) if bits & true == true and not bits & false]
    found = solve(rules, true, false)
    assert found in possible if possible else found is None


@examples
@given(clauses(most=6), st.integers(0, 31), st.integers(0, 31))
def test_propagation_adds_only_what_follows(rules, true, false):
    false &= ~true
    possible = [bits for bits in models(rules) if bits & true == true and not bits & false]
    known = propagate(rules, true, false)
    if known is None:
        assert not possible
    else:
        on, off = known
        assert on & true == true
        assert off & false == false
        assert all(bits & on == on and not bits & off for bits in possible)


@examples
@given(clauses(most=16))
def test_a_conflict_is_impossible_and_nothing_in_it_can_be_spared(rules):
    core = conflict(rules)
    assert bool(core) == (not models(rules))
    named = [rule for rule in rules if rule.constraint in core]
    for spared in named:
        assert models([rule for rule in named if rule is not spared])
    if core:
        assert not models(named)


@examples
@given(st.lists(st.tuples(st.integers(0, 31), st.integers(0, 31)), max_size=6))
def test_a_rule_that_names_a_feature_both_on_and_off_always_holds(masks):
    rules = [Clause(on, off, Constraint((), (), "rule")) for on, off in masks]
    assert (solve(rules) is None) == (not models(rules))
