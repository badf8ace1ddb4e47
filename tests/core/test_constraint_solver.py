"""The solver behind the constraints, against brute force over all sets of features."""

from functools import reduce
from time import process_time

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from swarmtest import Constraint, Feature, Space
from swarmtest.core.constraints import Clause, Solver, at_least_one_of, conflict, solve
from swarmtest.strategies import Stream, toss

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
    known = Solver([rule.masks for rule in rules], FEATURES).propagate(true, false)
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


@examples
@given(clauses(most=8), st.integers(0, 31), st.integers(0, 31))
def test_a_solution_takes_the_preferred_values_where_it_can(rules, true, preferred):
    """The features named most often come first."""
    solution = Solver([rule.masks for rule in rules], FEATURES).solve(true, preferred=preferred)
    named = [sum((r.on >> i & 1) + (r.off >> i & 1) for r in rules) for i in range(FEATURES)]
    order = sorted(range(FEATURES), key=named.__getitem__, reverse=True)
    possible = [bits for bits in models(rules) if bits & true == true]
    nearest = min(
        possible, key=lambda bits: [(bits ^ preferred) >> i & 1 for i in order], default=None
    )
    assert solution == nearest


# What follows from a decision.

COUNT = 7
MASKS = st.integers(0, (1 << COUNT) - 1)
CLAUSES = st.lists(st.tuples(MASKS, MASKS).filter(any), max_size=12)


def models_of_masks(pairs):
    return [
        bits
        for bits in range(1 << COUNT)
        if all(bits & on or ~bits & off & ((1 << COUNT) - 1) for on, off in pairs)
    ]


@given(CLAUSES, st.permutations(range(COUNT)), st.lists(st.booleans(), min_size=7, max_size=7))
def test_a_decision_is_possible_exactly_if_some_configuration_agrees_with_all(pairs, order, wishes):
    possible = models_of_masks(pairs)
    assume(possible)
    solver = Solver(pairs, COUNT)
    decisions = solver.start
    for i, wish in zip(order, wishes, strict=True):
        assert decisions.witness in possible
        assert decisions.true & ~reduce(lambda a, b: a & b, possible) == 0
        assert decisions.false & reduce(lambda a, b: a | b, possible) == 0
        for on in (False, True):
            agreeing = [bits for bits in possible if bool(bits >> i & 1) == on]
            assert (solver.decide(decisions, 1 << i, on) is not None) == bool(agreeing)
            assert solver.is_possible(decisions, 1 << i, on) == bool(agreeing)
        on = wish if any(bool(bits >> i & 1) == wish for bits in possible) else not wish
        decided = solver.decide(decisions, 1 << i, on)
        assert decided
        decisions = decided
        possible = [bits for bits in possible if bool(bits >> i & 1) == on]
    assert possible == [decisions.true] == [decisions.witness]


def test_a_space_as_large_as_a_grammars_is_drawn_from_in_little_time():
    """150 features, each of which needs another, and alternatives of which one has to be there.

    A draw takes 0.5 ms of CPU time on a machine with nothing else to do.
    """
    features = [Feature(f"f{i}", requires=[f"f{i // 3}"] if i > 5 else []) for i in range(150)]
    groups = [at_least_one_of(*(f"f{j}" for j in range(i, i + 3))) for i in range(0, 150, 3)]
    space = Space(features, groups)
    rates = [0.5] * 150
    toss(space, rates, Stream(0, 0))
    start = process_time()
    for trial in range(20):
        proposal = toss(space, rates, Stream(0, trial))
        assert not space.violated(proposal.configuration.bits)
    assert (process_time() - start) / 20 < 0.05
