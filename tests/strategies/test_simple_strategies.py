"""all-on, sized, complete and activation: strategies that need no table and keep no memory."""

import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

from swarmtest import Feature, Flag, Space, UserError, at_least_one_of
from swarmtest.strategies import (
    Activation,
    Complete,
    Default,
    Sized,
    Stream,
    parse_strategy,
    strategy_names,
)

SIX = Space([f"f{i}" for i in range(6)])
FILES = Space(
    [
        Feature("open"),
        Feature("read", requires=["open"]),
        Feature("pipe", excludes=["open"]),
        "stat",
    ]
)


def asked(strategy, space, trials, seed=0):
    return [strategy.ask(space, trial, Stream(seed, trial)) for trial in range(trials)]


def five_sigma(p, trials):
    return 5 * math.sqrt(p * (1 - p) / trials)


def test_all_on_has_every_feature_in_every_test():
    proposals = asked(Default(), SIX, 10)
    assert {q.configuration for q in proposals} == {SIX.default()}
    assert proposals[0].propensities == (1.0,)


def test_all_on_draws_the_settings():
    space = Space(["write", Flag("fsync")])
    assert {q.configuration["fsync"] for q in asked(Default(), space, 30)} == {False, True}


def test_all_on_says_so_when_not_all_features_go_together():
    with pytest.raises(UserError, match="'pipe' excludes 'open'"):
        Default().ask(FILES, 0, Stream())


def test_sized_makes_every_size_equally_likely_and_every_feature_too():
    trials = 3000
    proposals = asked(Sized(), SIX, trials)
    sizes = Counter(len(q.configuration.included) for q in proposals)
    for size in range(1, 7):
        assert abs(sizes[size] / trials - 1 / 6) < five_sigma(1 / 6, trials)
    mean = sum(range(1, 7)) / 36
    for name in SIX.feature_names:
        found = sum(name in q.configuration for q in proposals) / trials
        assert abs(found - mean) < five_sigma(mean, trials)


def test_sized_stays_between_its_bounds():
    sizes = {len(q.configuration.included) for q in asked(Sized(2, 4), SIX, 200)}
    assert sizes == {2, 3, 4}


def test_sized_logs_the_odds_of_a_feature_given_the_others():
    for proposal in asked(Sized(), SIX, 50):
        size = len(proposal.configuration.included)
        odds = proposal.propensities * (6 if size == 6 else 1)
        for i, chance in enumerate(odds):
            others = size - (proposal.configuration.bits >> i & 1)
            # With all sizes equally likely this comes out as the rule of succession.
            assert chance == pytest.approx((others + 1) / 7)
        assert proposal.origin == f"size {size}"


EVERY_WAY = [n for n in strategy_names() if n not in ("mixture", "all-on", "covering")]


@pytest.mark.parametrize("name", [*EVERY_WAY, "coin:p=random", "coin:p=0.2", "sized:low=2"])
@pytest.mark.parametrize("count", [2, 4])
def test_the_logged_odds_are_those_of_a_feature_given_the_others(name, count):
    """For every choice of the other features, not only on average.

    Each inclusion has its logged mean q and variance q(1 - q), so the margin comes from the log.
    """
    space = Space([f"f{i}" for i in range(count)])
    surplus: defaultdict[Any, float] = defaultdict(float)
    variance: defaultdict[Any, float] = defaultdict(float)
    for proposal in asked(parse_strategy(name), space, 6000):
        bits = proposal.configuration.bits
        odds = proposal.propensities
        for i in range(count) if odds else ():
            q = odds[i % len(odds)]
            others = bits & ~(1 << i)
            if not others:
                continue  # the other outcome would have been the empty configuration
            group = (i, others, proposal.origin if name == "layered" else "")
            surplus[group] += (bits >> i & 1) - q
            variance[group] += q * (1 - q)
    assert surplus
    for group, total in surplus.items():
        assert abs(total) <= 5 * math.sqrt(variance[group]) + 1, group


RATED = Space([Feature("push", rate=0.9), Feature("pop", rate=0.1), *"abcd"])
ALL_RATED = Space([Feature("push", rate=0.9), Feature("pop", rate=0.1), Feature("top", rate=0.3)])
FOLLOW_RATES = [
    "coin",
    "coin:p=random",
    "activation",
    "layered",
    "layered:renormalise=no",
    "mixture:coin=0.5,layered=0.5",
]


# With a random p, all others are often left out, and that no test is empty changes the rates.
@pytest.mark.parametrize("text", [text for text in FOLLOW_RATES if "random" not in text])
def test_a_feature_with_a_rate_is_in_as_often_as_that(text):
    trials = 3000
    proposals = asked(parse_strategy(text), RATED, trials)
    for name, rate in (("push", 0.9), ("pop", 0.1)):
        found = sum(name in q.configuration for q in proposals) / trials
        assert abs(found - rate) < five_sigma(rate, trials)


@pytest.mark.parametrize("text", FOLLOW_RATES)
def test_where_all_features_have_rates_no_test_is_empty(text):
    trials = 3000
    proposals = asked(parse_strategy(text), ALL_RATED, trials)
    some = 1 - 0.1 * 0.9 * 0.7
    for name, rate in (("push", 0.9), ("pop", 0.1), ("top", 0.3)):
        found = sum(name in q.configuration for q in proposals) / trials
        assert abs(found - rate / some) < five_sigma(rate / some, trials)


@pytest.mark.parametrize("text", ["coin", "coin:p=random", "activation", "layered"])
@pytest.mark.parametrize("space", [RATED, ALL_RATED], ids=["some", "all"])
def test_with_rates_the_logged_odds_are_those_of_a_feature_given_the_others(text, space):
    count = len(space.features)
    surplus: defaultdict[Any, float] = defaultdict(float)
    variance: defaultdict[Any, float] = defaultdict(float)
    for proposal in asked(parse_strategy(text), space, 6000):
        bits, odds = proposal.configuration.bits, proposal.propensities
        for i in range(count) if odds else ():
            q, others = odds[i % len(odds)], bits & ~(1 << i)
            if others:
                group = (i, others, proposal.origin if text == "layered" else "")
                surplus[group] += (bits >> i & 1) - q
                variance[group] += q * (1 - q)
    assert surplus
    for group, total in surplus.items():
        assert abs(total) <= 5 * math.sqrt(variance[group]) + 1, group


def test_a_weight_does_not_depend_on_the_toss_of_its_feature():
    weights = [q.configuration["pop"] for q in asked(Activation(), RATED, 6000)]
    inside = [weight for weight in weights if weight]
    assert abs(np.mean(inside) - 0.5) < 5 * math.sqrt(1 / 12 / len(inside))


@pytest.mark.parametrize("text", ["layered", "activation"])
def test_rates_and_constraints_go_together(text):
    space = Space([Feature("open"), Feature("read", rate=0.8, requires=["open"]), "stat", "seek"])
    for proposal in asked(parse_strategy(text), space, 200):
        assert not space.violated(proposal.configuration.bits)
        assert proposal.propensities == ()


@pytest.mark.parametrize("text", ["sized", "complete", "covering", "mixture:coin=0.5,sized=0.5"])
def test_a_strategy_that_cannot_follow_a_rate_refuses_it_in_one_line(text):
    with pytest.raises(UserError, match=r"cannot follow the rate of feature 'push': use coin") as e:
        asked(parse_strategy(text), RATED, 10)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("strategy", [Sized(1, 1), Sized()])
def test_sized_keeps_constraints(strategy):
    for proposal in asked(strategy, FILES, 300):
        assert not FILES.violated(proposal.configuration.bits)


def test_complete_has_each_subset_once_per_cycle():
    proposals = asked(Complete(), SIX, 126)
    assert sorted(q.configuration.bits for q in proposals[:63]) == list(range(1, 64))
    assert proposals[63:] == proposals[:63]


def test_complete_has_an_order_for_each_seed():
    orders = [[q.configuration.bits for q in asked(Complete(), SIX, 63, seed)] for seed in range(9)]
    assert len({*map(tuple, orders)}) == 9
    assert {tuple(sorted(order)) for order in orders} == {tuple(range(1, 64))}
    assert orders[3] == [q.configuration.bits for q in asked(Complete(), SIX, 63, 3)]


def test_complete_has_no_favourites_when_it_ends_before_a_full_cycle():
    space = Space([f"f{i}" for i in range(10)])
    tests = 300
    proposals = asked(Complete(), space, tests)
    for i in range(10):
        found = sum(q.configuration.bits >> i & 1 for q in proposals) / tests
        assert abs(found - 512 / 1023) < five_sigma(0.5, tests)


def test_complete_leaves_out_what_the_constraints_forbid():
    space = Space(["a", "b", "c"], [at_least_one_of("a", "b")])
    cycle = [q.configuration.bits for q in asked(Complete(), space, 6)]
    assert sorted(cycle) == [bits for bits in range(1, 8) if bits & 0b011]


def test_complete_logs_a_coin_toss_where_a_feature_could_have_been_in_or_out():
    for proposal in asked(Complete(), FILES, 40):
        bits = proposal.configuration.bits
        for i, chance in enumerate(proposal.propensities):
            other = bits ^ 1 << i
            free = not other or not FILES.violated(other)
            assert chance == (0.5 if free else float(bits >> i & 1))


def test_complete_takes_sixteen_features_and_refuses_more_with_a_better_idea():
    assert asked(Complete(), Space(map(str, range(16))), 1)[0].configuration.included
    with pytest.raises(UserError, match=r"17 features have 131,071.*at most 16.*covering"):
        Complete().ask(Space(map(str, range(17))), 0, Stream())


def test_activation_draws_every_weight_uniformly():
    trials = 4000
    weights = np.array([q.configuration.weights for q in asked(Activation(), SIX, trials)])
    bound = math.sqrt(math.log(2e9) / (2 * trials)) + 1 / 65535  # Dvoretzky-Kiefer-Wolfowitz
    for column in np.sort(weights, axis=0).T:
        assert np.abs(column - np.arange(trials) / trials).max() < bound
    correlation = np.corrcoef(weights.T) - np.eye(6)
    assert np.abs(correlation).max() < 6 / math.sqrt(trials)


def test_activation_says_in_the_configuration_how_weights_are_meant():
    spends = Activation().ask(SIX, 0, Stream()).configuration
    renormalised = Activation(renormalise=True).ask(SIX, 0, Stream()).configuration
    assert not spends.renormalised
    assert renormalised.renormalised
    assert spends.weights == renormalised.weights


def test_activation_keeps_constraints_and_logs_true_odds():
    proposals = asked(Activation(), FILES, 2000)
    assert not any(FILES.violated(q.configuration.bits) for q in proposals)
    for i, name in enumerate(FILES.feature_names):
        found = sum(name in q.configuration for q in proposals) / len(proposals)
        odds = [(q.propensities * 4)[i] for q in proposals if q.propensities]
        if odds:  # a strategy may say that it does not know
            mean = sum(odds) / len(odds)
            assert abs(found - mean) <= 5 * math.sqrt(0.25 / len(odds)), name


@pytest.mark.parametrize("name", [n for n in strategy_names() if n != "mixture"])
def test_every_strategy_can_be_asked_for_a_space_of_settings_alone(name):
    space = Space([Flag("fsync"), Flag("sync")])
    seen = {str(q.configuration) for q in asked(parse_strategy(name), space, 40)}
    assert len(seen) == 4


@pytest.mark.parametrize("name", [n for n in strategy_names() if n != "mixture"])
def test_every_strategy_can_be_asked_for_a_single_feature(name):
    for proposal in asked(parse_strategy(name), Space(["only"]), 30):
        assert proposal.configuration.included == ("only",)


@pytest.mark.parametrize("name", strategy_names())
def test_every_strategy_but_all_on_keeps_the_constraints(name):
    text = "mixture:coin=0.5,sized=0.5" if name == "mixture" else name
    if name != "all-on":
        for proposal in asked(parse_strategy(text), FILES, 150):
            assert not FILES.violated(proposal.configuration.bits)


@pytest.mark.parametrize("name", strategy_names())
def test_every_strategy_answers_the_same_when_asked_again_and_in_another_order(name):
    text = "mixture:coin=0.5,covering=0.5" if name == "mixture" else name
    forward = asked(parse_strategy(text), SIX, 30)
    strategy = parse_strategy(text)
    backward = [strategy.ask(SIX, trial, Stream(0, trial)) for trial in reversed(range(30))]
    assert forward == backward[::-1]


@pytest.mark.parametrize("text", ["sized:low=0", "sized:low=4,high=2", "sized:low=1.5"])
def test_sized_refuses_bounds_that_make_no_sense(text):
    with pytest.raises(UserError, match="sized"):
        parse_strategy(text)
