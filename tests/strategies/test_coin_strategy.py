"""Coin tosses: a fresh configuration per test, a random bias, or a fixed swarm that takes turns."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from swarmtest import Feature, Result, Space, UserError, Verdict
from swarmtest.core.seeds import key_of, named_of_trials
from swarmtest.strategies import Coin, CoinByTime, Stream, parse_strategy

NINE = Space([f"f{i}" for i in range(9)])


def asked(strategy, space, trials, seed=0):
    return [strategy.ask(space, trial, Stream(seed, trial)) for trial in range(trials)]


def five_sigma(p, trials):
    return 5 * math.sqrt(p * (1 - p) / trials)


@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
def test_each_feature_is_in_with_probability_p(p):
    proposals = asked(Coin(p), NINE, 3000)
    expected = p / (1 - (1 - p) ** 9)
    for i in range(9):
        found = sum(q.configuration.bits >> i & 1 for q in proposals) / 3000
        assert abs(found - expected) < five_sigma(expected, 3000)


def test_a_features_own_rate_goes_before_p():
    space = Space([Feature("push", rate=0.9), Feature("pop", rate=0.1), Feature("add")])
    proposals = asked(Coin(0.5), space, 3000)
    some = 1 - 0.1 * 0.9 * 0.5
    for name, rate in (("push", 0.9), ("pop", 0.1), ("add", 0.5)):
        found = sum(name in q.configuration for q in proposals) / 3000
        assert abs(found - rate / some) < five_sigma(rate / some, 3000)


def test_with_p_at_one_every_feature_is_in():
    assert {q.configuration for q in asked(Coin(1), NINE, 20)} == {NINE.default()}


def test_asking_for_a_batch_is_asking_for_each():
    assert Coin(0.3).ask_many(NINE, range(200), 5) == asked(Coin(0.3), NINE, 200, seed=5)


@pytest.mark.parametrize("strategy", [Coin("random"), Coin(n=3)])
def test_what_cannot_be_asked_in_a_batch_is_asked_one_by_one(strategy):
    assert strategy.ask_many(NINE, [0, 1], 0) is None


def test_a_random_p_makes_all_sizes_about_equally_likely():
    trials, features = 4000, 9
    sizes = Counter(len(q.configuration.included) for q in asked(Coin("random"), NINE, trials))
    # Uniform on 0..9 before empty ones are tossed again; their tenth goes to someone.
    for size in range(1, features + 1):
        found = sizes[size] / trials
        margin = five_sigma(1 / (features + 1), trials)
        assert 1 / (features + 1) - margin < found
        assert found < 2 / (features + 1) + margin
    fair = Counter(len(q.configuration.included) for q in asked(Coin(0.5), NINE, trials))
    assert fair[9] / trials < 1 / 512 + five_sigma(1 / 512, trials)


def test_the_odds_logged_with_a_random_p_are_true_on_average():
    space = Space(["a", "b", "c"])
    proposals = asked(Coin("random"), space, 4000)
    for i, name in enumerate(space.feature_names):
        with_others = [q for q in proposals if q.configuration.bits & ~(1 << i)]
        odds = [q.propensities[0] for q in with_others]
        found = sum(name in q.configuration for q in with_others)
        assert abs(found - sum(odds)) < 5 * math.sqrt(sum(q * (1 - q) for q in odds))


def test_a_random_p_close_to_zero_still_gives_a_configuration():
    biases = named_of_trials(0, range(1_000_000), [key_of("*p")])[:, 0]
    for trial in np.argsort(biases)[:3].tolist():
        proposal = Coin("random").ask(Space(["push", "pop"]), trial, Stream(0, trial))
        assert proposal.configuration.included


def test_a_fixed_swarm_takes_turns_so_that_each_member_gets_equally_many_tests():
    proposals = asked(Coin(n=7), NINE, 700)
    assert set(Counter(q.origin for q in proposals).values()) == {100}
    assert [q.configuration for q in proposals[:7]] * 100 == [q.configuration for q in proposals]


def test_members_of_a_fixed_swarm_differ_and_another_seed_has_another_swarm():
    swarm = {q.configuration for q in asked(Coin(n=20), NINE, 20)}
    assert len(swarm) > 15
    assert swarm != {q.configuration for q in asked(Coin(n=20), NINE, 20, seed=1)}


def test_a_larger_swarm_begins_like_a_smaller_one():
    small, large = asked(Coin(n=5), NINE, 5), asked(Coin(n=50), NINE, 5)
    assert [q.configuration for q in small] == [q.configuration for q in large]


def test_a_fixed_swarm_can_have_a_random_p():
    proposals = asked(Coin("random", n=30), NINE, 60)
    assert proposals[:30] == proposals[30:]
    assert len({len(q.configuration.included) for q in proposals}) > 4


class Clock:
    """Runs what a strategy asks for: tests with many features take much longer."""

    def __init__(self, space):
        self.space = space
        self.spent: Counter[Any] = Counter()
        self.tests: Counter[Any] = Counter()

    def cost(self, configuration):
        return 0.001 * 2 ** len(configuration.included)

    def run(self, strategy, trials, at_once=1):
        for start in range(0, trials, at_once):
            batch = range(start, start + at_once)
            proposals = [strategy.ask(self.space, trial, Stream(0, trial)) for trial in batch]
            for trial, proposal in zip(batch, proposals, strict=True):
                configuration = proposal.configuration
                seconds = self.cost(configuration)
                self.spent[proposal.origin] += seconds
                self.tests[proposal.origin] += 1
                strategy.tell(
                    Result(
                        Verdict.PASSED,
                        trial=trial,
                        configuration=configuration,
                        cpu_seconds=seconds,
                    )
                )


@pytest.mark.parametrize("at_once", [1, 10])
def test_by_time_the_members_of_a_swarm_get_equal_cpu_time(at_once):
    clock = Clock(NINE)
    clock.run(CoinByTime(n=5), 3000, at_once)
    dearest = clock.cost(NINE.default())
    assert len(clock.spent) == 5
    assert max(clock.spent.values()) - min(clock.spent.values()) <= at_once * dearest
    assert max(clock.tests.values()) > 2 * min(clock.tests.values())


def test_by_time_results_that_never_come_do_not_hold_up_the_swarm():
    strategy = CoinByTime(n=3)
    origins = {q.origin for q in asked(strategy, NINE, 30)}
    assert origins == {"member 0", "member 1", "member 2"}


def test_by_time_inside_a_mixture_the_members_get_equal_cpu_time_too():
    clock = Clock(NINE)
    mixture = parse_strategy("mixture:coin(n=5,by=time)=0.5,coin(p=0.9)=0.5")
    clock.run(mixture, 4000)
    spent = {origin: seconds for origin, seconds in clock.spent.items() if "member" in origin}
    assert len(spent) == 5
    assert max(spent.values()) - min(spent.values()) <= clock.cost(NINE.default())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("coin:p=0", "p is above 0"),
        ("coin:p=1.5", "1.5"),
        ("coin:p=nan", "nan"),
        ("coin:p=often", "'often'"),
        ("coin:n=-1", "-1"),
        ("coin:n=many", "'many'"),
        ("coin:n=2.5", "2.5"),
        ("coin:by=luck", "'tests' or 'time'"),
        ("coin:by=time", "set n"),
    ],
)
def test_bad_parameters_get_one_clear_line(text, says):
    with pytest.raises(UserError) as refused:
        parse_strategy(text)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
