"""Coin tosses and weights over a space: allowed, never empty, at the odds that are logged."""

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest import (
    Feature,
    Flag,
    Integer,
    Space,
    UserError,
    at_least_one_of,
    excludes,
    mandatory,
    requires,
)
from swarmtest.core.batches import toss_many
from swarmtest.core.sampling import settled
from swarmtest.strategies import Stream, rates_for, toss, weigh

examples = settings(derandomize=True, deadline=None, max_examples=60)
TRIALS = 5000


def logged(proposal, space):
    """One propensity per feature: a single one is shared by all."""
    odds = proposal.propensities
    return list(odds) if len(odds) == len(space.features) else list(odds) * len(space.features)


def tosses(space, rates, trials=TRIALS, seed=0):
    return [toss(space, rates, Stream(seed, trial)) for trial in range(trials)]


def frequencies(proposals, space):
    return [
        sum(p.configuration.bits >> i & 1 for p in proposals) / len(proposals)
        for i in range(len(space.features))
    ]


def five_sigma(p, trials=TRIALS):
    """A binomial frequency is further from p once in two million times."""
    return 5 * math.sqrt(p * (1 - p) / trials)


def assert_logged_odds_are_true(proposals, space):
    """What was logged, on average over the trials, is how often each feature was included.

    Each trial's inclusion has its logged mean and variance q(1 - q), so the standard deviation of
    the difference is computed from the log itself. Where a feature is alone in a space without
    constraints, the other outcome would have been the empty configuration, which is never run:
    those trials are left aside.
    """
    for i, name in enumerate(space.feature_names):
        rows = [p for p in proposals if space.clauses or p.configuration.bits & ~(1 << i)]
        odds = [logged(p, space)[i] for p in rows]
        included = sum(p.configuration.bits >> i & 1 for p in rows)
        sigma = math.sqrt(sum(q * (1 - q) for q in odds))
        assert abs(included - sum(odds)) <= 5 * sigma, name


def test_features_come_at_their_rates():
    rates = [0.05, 0.3, 0.5, 0.9]
    space = Space(["a", "b", "c", "d"])
    found = frequencies(tosses(space, rates), space)
    empty = 0.95 * 0.7 * 0.5 * 0.1
    for frequency, rate in zip(found, rates, strict=True):
        expected = rate / (1 - empty)  # an empty configuration is tossed again
        assert abs(frequency - expected) < five_sigma(expected)


@pytest.mark.parametrize("rates", [[0.5] * 3, [0.1] * 4, [0.1, 0.02, 0.3], [0.7]])
def test_logged_odds_are_exact_though_empty_configurations_are_tossed_again(rates):
    space = Space([f"f{i}" for i in range(len(rates))])
    proposals = tosses(space, rates)
    assert_logged_odds_are_true(proposals, space)
    assert all(logged(proposal, space) == rates for proposal in proposals)


CONSTRAINED = {
    "a chain": Space([Feature("a"), Feature("b", requires=["a"]), Feature("c", requires=["b"])]),
    "a rival": Space([Feature("a", mandatory=True), Feature("b", excludes=["c"]), Feature("c")]),
    "one of three": Space(["a", "b", "c", "free"], [at_least_one_of("a", "b", "c")]),
    "a knot": Space(
        ["a", "b", "c", "d"],
        [at_least_one_of("a", "b"), excludes("a", "b"), requires("c", "a"), requires("d", "b")],
    ),
}


@pytest.mark.parametrize("name", CONSTRAINED)
@pytest.mark.parametrize("p", [0.2, 0.5])
def test_logged_odds_are_true_on_average_under_constraints(name, p):
    space = CONSTRAINED[name]
    assert_logged_odds_are_true(tosses(space, rates_for(space, p), 3000), space)


def test_logged_odds_of_free_features_beside_constrained_ones_know_of_the_second_toss():
    space = Space([Feature("free"), Feature("b", excludes=["c"]), Feature("c")])
    proposals = tosses(space, [0.1, 0.1, 0.1], 3000)
    assert_logged_odds_are_true(proposals, space)


def test_what_the_constraints_decide_is_logged_as_certain():
    space = Space([Feature("main", mandatory=True), Feature("never", excludes=["never"])])
    assert toss(space, [0.5, 0.5], Stream()).propensities == (1.0, 0.0)


def test_a_long_chain_of_requirements_is_no_obstacle():
    names = [f"f{i}" for i in range(40)]
    space = Space(names, [requires(later, first) for first, later in pairwise(names)])
    sizes = {len(p.configuration.included) for p in tosses(space, [0.5] * 40, 60)}
    assert len(sizes) > 5


def test_constrained_features_all_come_on_and_off():
    space = CONSTRAINED["a knot"]
    seen = {p.configuration.bits for p in tosses(space, [0.5] * 4, 300)}
    assert seen == {bits for bits in range(1, 16) if not space.violated(bits)}


def test_rates_that_let_no_feature_come_are_an_error_not_an_endless_loop():
    space = Space([Feature("a", rate=0.0), Feature("b", rate=0.0)])
    with pytest.raises(UserError, match="rates are 0"):
        toss(space, rates_for(space, 0.5), Stream())
    with pytest.raises(UserError, match="rates are 0"):
        toss_many(space, rates_for(space, 0.5), [0, 1], 0)


@examples
@given(
    st.lists(st.floats(0.05, 1), min_size=1, max_size=63),
    st.integers(-5, 5),
    st.lists(st.integers(0, 10**12), max_size=8),
)
def test_tossing_many_is_tossing_each(rates, seed, trials):
    space = Space([f"f{i}" for i in range(len(rates))])
    many = toss_many(space, tuple(rates), trials, seed)
    assert many == [toss(space, rates, Stream(seed, trial)) for trial in trials]


@pytest.mark.parametrize("rates", [(0.02, 0.02), (0.5,), (0.3, 0.001, 0.1)])
def test_tossing_many_tosses_empty_configurations_again_in_the_same_way(rates):
    space = Space([f"f{i}" for i in range(len(rates))])
    many = toss_many(space, rates, range(300), 9)
    assert many == [toss(space, rates, Stream(9, trial)) for trial in range(300)]


@pytest.mark.parametrize(
    "space",
    [
        Space([Feature("a", mandatory=True), "b"]),
        Space(["a", Flag("f"), Integer("size", 0, 40, step=10)]),
        Space([Feature("a", excludes=["b"]), "b", "c", Flag("f")]),
        Space(map(str, range(64))),
        Space(map(str, range(200))),
    ],
    ids=["requirements", "settings", "both, and an exclusion", "64 features", "200 features"],
)
def test_tossing_many_keeps_constraints_settings_and_many_features(space):
    rates = (0.3,) * len(space.features)
    many = toss_many(space, rates, range(700), 4)
    assert many == [toss(space, rates, Stream(4, trial)) for trial in range(700)]


def test_settings_are_uniform_over_their_values():
    space = Space(["a", Integer("size", 0, 40, step=10), Flag("fsync")])
    proposals = tosses(space, [0.5])
    for value in (0, 10, 20, 30, 40):
        found = sum(p.configuration["size"] == value for p in proposals) / TRIALS
        assert abs(found - 0.2) < five_sigma(0.2)
    found = sum(p.configuration["fsync"] for p in proposals) / TRIALS
    assert abs(found - 0.5) < five_sigma(0.5)


def test_a_features_own_rate_goes_before_the_common_one():
    space = Space([Feature("push", rate=0.9), Feature("pop")])
    assert rates_for(space, 0.3) == (0.9, 0.3)
    assert rates_for(space, {"pop": 0.1}) == (0.9, 0.1)
    assert rates_for(space, [0.2, 0.4]) == (0.2, 0.4)


def test_a_rate_for_an_unknown_feature_is_an_error():
    with pytest.raises(UserError, match="did you mean 'push'"):
        rates_for(Space(["push"]), {"psuh": 0.1})


NAMES = ("a", "b", "c", "d", "e")
pairs = st.lists(st.sampled_from(NAMES), min_size=2, max_size=2, unique=True)
rules = st.lists(
    pairs.map(lambda two: requires(*two))
    | pairs.map(lambda two: excludes(*two))
    | st.sampled_from(NAMES).map(mandatory)
    | st.lists(st.sampled_from(NAMES), min_size=1, unique=True).map(lambda n: at_least_one_of(*n)),
    max_size=6,
)


def allowed(constraints):
    """Every set of features that is not empty and keeps all rules, by brute force."""
    found = set()
    for bits in range(1, 1 << len(NAMES)):
        on = {name for i, name in enumerate(NAMES) if bits >> i & 1}
        if all(on & set(c.on) or set(c.off) - on for c in constraints):
            found.add(bits)
    return found


@examples
@given(rules)
def test_a_space_is_refused_exactly_when_no_configuration_is_allowed(constraints):
    if allowed(constraints):
        Space(NAMES, constraints)
    else:
        with pytest.raises(UserError, match="cannot all be met"):
            Space(NAMES, constraints)


@examples
@given(rules.filter(allowed), st.floats(0.1, 1), st.integers(0, 10**6))
def test_a_toss_is_always_allowed_and_never_empty(constraints, p, seed):
    space = Space(NAMES, constraints)
    possible = allowed(constraints)
    for trial in range(5):
        assert toss(space, [p] * 5, Stream(seed, trial)).configuration.bits in possible


some_weights = st.lists(st.sampled_from([0, 0, 1, 0.25]), min_size=5, max_size=5).filter(any)


@examples
@given(rules.filter(allowed), some_weights, st.integers(0, 10**6))
def test_weights_become_an_allowed_configuration_that_is_never_empty(constraints, weights, seed):
    space = Space(NAMES, constraints)
    possible = allowed(constraints)
    for trial in range(5):
        assert weigh(space, weights, Stream(seed, trial)).configuration.bits in possible


@examples
@given(rules, some_weights, st.integers(0, 10**6))
def test_weights_that_keep_all_rules_stay_as_they_are(constraints, weights, seed):
    wanted = sum(1 << i for i, weight in enumerate(weights) if weight)
    if wanted in allowed(constraints):
        space = Space(NAMES, constraints)
        given_back = weigh(space, weights, Stream(seed)).configuration
        assert given_back.weights == pytest.approx(weights, abs=1 / 65535)


def test_a_wanted_feature_brings_what_it_requires():
    space = Space([Feature("open"), Feature("close", requires=["open"])])
    for trial in range(50):
        assert str(weigh(space, [0, 1], Stream(0, trial)).configuration) == "open close"


def test_all_weights_at_zero_are_refused():
    with pytest.raises(UserError, match="empty"):
        weigh(Space(["a", "b"]), [0, 0], Stream())


def test_what_is_settled_off_goes_before_what_is_settled_on():
    space = Space([Feature("a", requires=["b"]), Feature("b"), Feature("c")])
    known = settled(space, off=0b010, on=0b001)
    assert (known.true, known.false) == (0b100, 0b011)


def test_what_cannot_be_settled_as_wanted_is_settled_the_other_way():
    space = Space([Feature("a", mandatory=True, excludes=["b"]), Feature("b"), Feature("c")])
    known = settled(space, off=0b001, on=0b010)
    assert (known.true, known.false) == (0b001, 0b010)


def test_no_toss_can_change_what_was_settled():
    space = Space([Feature("a", requires=["b"]), *"bcd"])
    known = settled(space, off=0b0010, on=0b1000)
    proposals = [toss(space, [0.5] * 4, Stream(0, trial), after=known) for trial in range(200)]
    assert {p.configuration.bits for p in proposals} == {0b1000, 0b1100}
    assert {p.propensities for p in proposals} == {(0.0, 0.0, 0.5, 1.0)}
