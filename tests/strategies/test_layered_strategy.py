"""Swarms all the way down: every family is reached, at its share, with weights that can be run."""

import math
from collections import Counter

import numpy as np
import pytest

from swarmtest import Feature, Flag, Integer, Space, at_least_one_of, requires
from swarmtest.strategies import Layered, Stream
from swarmtest.strategies._layered_batches import near_a_limit, samples_of_five
from swarmtest.strategies.layered import FAMILIES, FLOOR, settled

TRIALS = 4000
SIX = Space([f"f{i}" for i in range(6)])
FILES = Space(
    [
        Feature("open"),
        Feature("read", requires=["open"]),
        Feature("pipe", excludes=["open"]),
        "stat",
    ]
)


def asked(space, trials=TRIALS, strategy=None):
    strategy = strategy or Layered()
    return [strategy.ask(space, trial, Stream(0, trial)) for trial in range(trials)]


@pytest.fixture(scope="module")
def proposals():
    return asked(SIX)


def weights_of(proposals, family):
    return [q.configuration.weights for q in proposals if q.origin == family]


def test_the_shares_of_the_families_make_one():
    assert math.fsum(share for _, share, _ in FAMILIES) == pytest.approx(1)


@pytest.mark.parametrize(("family", "share"), [(name, share) for name, share, _ in FAMILIES])
def test_every_family_is_reached_at_its_share(proposals, family, share):
    found = sum(q.origin == family for q in proposals) / TRIALS
    assert abs(found - share) < 5 * math.sqrt(share * (1 - share) / TRIALS)


def test_weights_are_from_zero_to_one_and_the_largest_is_one(proposals):
    for proposal in proposals:
        weights = proposal.configuration.weights
        assert max(weights) == 1.0
        assert all(weight == 0.0 or FLOOR - 1 / 65535 <= weight <= 1.0 for weight in weights)


@pytest.mark.parametrize("count", [1, 2, 40])
def test_small_and_large_spaces_never_give_an_empty_configuration(count):
    space = Space([f"f{i}" for i in range(count)])
    assert all(q.configuration.included for q in asked(space, 500))


def test_equal_has_everything_on(proposals):
    assert set(weights_of(proposals, "equal")) == {(1.0,) * 6}


def test_coins_are_on_or_off(proposals):
    for family in ("coin", "biased-coin"):
        assert {w for weights in weights_of(proposals, family) for w in weights} == {0.0, 1.0}


def test_a_biased_coin_reaches_nearly_empty_and_nearly_full_configurations():
    space = Space([f"f{i}" for i in range(20)])
    sizes = Counter(
        len(q.configuration.included) for q in asked(space) if q.origin == "biased-coin"
    )
    assert min(sizes) <= 2
    assert max(sizes) >= 19


def test_groups_stand_at_whole_ratios(proposals):
    whole = {low / high for high in range(1, 6) for low in range(high + 1)}
    for weights in weights_of(proposals, "groups"):
        assert len(set(weights) - {0.0}) <= 3
        assert all(min(abs(w - ratio) for ratio in whole) < 1 / 65535 for w in weights)


def test_three_features_half_as_common_as_three_others_come_up(proposals):
    halves = [
        w for w in weights_of(proposals, "groups") if sorted(w)[2] == pytest.approx(0.5, abs=1e-4)
    ]
    assert any(sorted(w)[0] == pytest.approx(0.5, abs=1e-4) and sorted(w)[3] == 1.0 for w in halves)


def test_one_feature_dominates_the_rest(proposals):
    for weights in weights_of(proposals, "dominant"):
        others = sorted(weights)[:-1]
        assert len(set(others) - {0.0}) <= 1
        assert max(others) <= 0.5 + 1 / 65535


def test_each_feature_dominates_in_its_turn(proposals):
    assert {w.index(1.0) for w in weights_of(proposals, "dominant")} == set(range(6))


def test_a_power_law_ranks_the_features_in_every_order(proposals):
    firsts = {w.index(max(w)) for w in weights_of(proposals, "power") if w.count(1.0) == 1}
    assert firsts == set(range(6))


def test_no_feature_is_favoured(proposals):
    sums = [sum(q.configuration.weights[i] for q in proposals) for i in range(6)]
    mean = sum(sums) / 6 / TRIALS
    variance = sum((w - mean) ** 2 for q in proposals for w in q.configuration.weights) / (
        6 * TRIALS
    )
    for total in sums:
        assert abs(total / TRIALS - mean) < 5 * math.sqrt(variance / TRIALS)


def test_weights_are_proportions_unless_steps_are_to_be_spent():
    for strategy, means in ((Layered(), True), (Layered(renormalise=False), False)):
        fractional = [
            q.configuration for q in asked(SIX, 100, strategy) if q.configuration.fractional
        ]
        assert fractional
        assert {c.renormalised for c in fractional} == {means}


@pytest.mark.parametrize(
    "space",
    [FILES, Space(["a", "b", "c"], [at_least_one_of("a", "b")])],
    ids=["files", "one of two"],
)
def test_constraints_are_kept(space):
    for proposal in asked(space, 1000):
        assert not space.violated(proposal.configuration.bits)


def test_every_allowed_set_of_features_comes_up():
    allowed = {bits for bits in range(1, 16) if not FILES.violated(bits)}
    assert {q.configuration.bits for q in asked(FILES, 1000)} == allowed


def test_a_weight_below_the_floor_is_a_feature_left_out():
    assert settled(["a", "b", "c"], {"a": 64.0, "b": 2.0, "c": 1.9}) == [1.0, FLOOR, 0.0]


BATCHES = {
    "one feature": Space(["a"]),
    "six": SIX,
    "seventy": Space([f"f{i}" for i in range(70)]),
    "groups": Space([Feature(f"f{i}", group=f"g{i % 3}") for i in range(9)]),
    "settings": Space(["a", "b", Flag("fast"), Integer("size", 0, 9)]),
    "constraints": FILES,
    "requirements": Space(["a", "b", "c", "d"], [at_least_one_of("a", "b"), requires("c", "d")]),
}


@pytest.mark.parametrize("renormalise", [True, False])
@pytest.mark.parametrize("space", BATCHES.values(), ids=BATCHES)
def test_a_batch_is_what_its_trials_are_one_by_one(space, renormalise):
    strategy = Layered(renormalise)
    trials = range(5, 1205)
    many = strategy.ask_many(space, trials, 3)
    assert many == [strategy.ask(space, trial, Stream(3, trial)) for trial in trials]


def test_a_batch_of_wide_configurations_is_what_its_trials_are_one_by_one():
    space = Space([f"f{i}" for i in range(300)])
    many = Layered().ask_many(space, range(150), 8)
    assert many is not None
    assert {proposal.origin for proposal in many} == {family for family, _, _ in FAMILIES}
    assert many == [Layered().ask(space, trial, Stream(8, trial)) for trial in range(150)]


def test_a_few_trials_are_not_worth_a_batch():
    assert Layered().ask_many(SIX, range(8), 0) is None


@pytest.mark.parametrize(
    ("weights", "is_doubtful"),
    [
        ([1.0, 0.4], False),
        ([1.0, FLOOR * (1 + 1e-12)], True),  # in or out, by the last bit
        ([1.0, 1000.5 / 65535], False),  # far below the floor
        ([1.0, 30000.5 / 65535], True),  # between two steps
    ],
)
def test_a_trial_that_the_last_bit_of_a_logarithm_decides_is_left_to_ask(weights, is_doubtful):
    assert near_a_limit(np.array([weights]), 1.0).tolist() == [is_doubtful]


def test_samples_of_five_are_those_of_the_streams():
    streams = [Stream(4, trial) for trial in range(3000)]
    counts = [2 + trial % 2 for trial in range(3000)]
    keys = np.array([stream.key for stream in streams], np.uint64)
    samples = samples_of_five(keys, np.array(counts)).tolist()
    for stream, count, sample in zip(streams, counts, samples, strict=True):
        assert sample == stream.sample(range(1, 6), count) + [0] * (3 - count)
