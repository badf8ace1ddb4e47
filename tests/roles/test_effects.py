"""How often with a feature and how often without: estimates against truths."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from simulated_campaigns import SIGMAS, space_of, study_of

from swarmtest.roles.effects import FeatureEffect, HittingRate, hitting_rate


def needs_first(weights):
    return 0.3 * (weights[:, 0] > 0)


def effects_of(strategies, seed, tests=600, truth=needs_first):
    study = study_of(strategies, [truth], tests, seed, space_of(8))
    return study.effects(study.find("event:0"))


@pytest.mark.parametrize(
    "strategies",
    [("coin",), ("coin:p=0.2",), ("coin:p=random",), ("sized",), ("layered",), ("coin", "sized")],
    ids=" and ".join,
)
def test_a_feature_that_does_nothing_has_the_same_hitting_fraction_with_it_and_without(strategies):
    pairs = [effects_of(strategies, seed)[5] for seed in range(12)]
    differences = np.array([e.with_it.value - e.without_it.value for e in pairs])
    error = differences.std(ddof=1) / math.sqrt(len(differences))
    assert abs(differences.mean()) < SIGMAS * error


@pytest.mark.parametrize("strategy", ["coin", "coin:p=random", "sized", "layered"])
def test_the_needed_feature_has_the_true_fraction_with_it_and_none_without(strategy):
    first = [effects_of([strategy], seed)[0] for seed in range(8)]
    values = np.array([effect.with_it.value for effect in first])
    error = values.std(ddof=1) / math.sqrt(len(values))
    assert values.mean() == pytest.approx(0.3, abs=SIGMAS * error)
    assert {effect.without_it.value for effect in first} == {0.0}
    assert {effect.ratio for effect in first} == {math.inf}


@pytest.mark.parametrize("strategy", ["coin", "coin:p=random"])
def test_intervals_hold_the_true_fraction_as_often_as_they_say(strategy):
    seeds = 30
    held = [
        effect.low <= 0.3 <= effect.high
        for seed in range(seeds)
        if (effect := effects_of([strategy], 100 + seed, 250)[0].with_it)
    ]
    assert np.mean(held) > 0.95 - SIGMAS * math.sqrt(0.95 * 0.05 / seeds)


def test_intervals_know_that_tests_of_a_fixed_swarm_share_their_configurations():
    seeds = 40
    held = [
        effect.low <= 0.15 <= effect.high
        for seed in range(seeds)
        if (effect := effects_of(["coin:n=20"], 300 + seed, 1000)[5].with_it)
    ]
    assert np.mean(held) > 0.95 - SIGMAS * math.sqrt(0.95 * 0.05 / seeds)


def only_small(weights):
    """The rest matters: few features, and f1 hinders."""
    sizes = (weights > 0).sum(axis=1)
    return 0.7 * (sizes > 0) * (sizes <= 3) * np.where(weights[:, 1] > 0, 0.3, 1.0)


def with_size(weights):
    return 0.5 * (weights > 0).mean(axis=1) ** 2


POPULATIONS = [
    (("coin",), 150),
    (("layered",), 150),
    (("sized",), 150),
    (("coin:p=random",), 150),
    (("coin", "activation"), 150),
    (("coin:n=20",), 400),
    (("covering:t=3",), 400),
]


@functools.cache
def true_rates(strategies, truth, feature, alone):
    """The stated population, from many tests with luck of their own and the truth itself."""
    study = study_of(strategies, [], 8000, 777, space_of(8))
    weights, chance = study.evidence.weights(slice(None)), study.chances.values[:, feature]
    others = np.delete(weights, feature, axis=1).any(axis=1)
    # A draw without any other feature is seen only where this one is in, a share `chance` of them.
    open_toss = np.where(others, chance * (1 - chance), (1 - chance) if alone else 0.0)
    rates = []
    for weight in (1.0, 0.0):
        weights[:, feature] = weight
        rates.append(np.nansum(truth(weights) * open_toss) / np.nansum(open_toss))
    return rates


@pytest.mark.parametrize(("strategies", "tests"), POPULATIONS)
def test_intervals_hold_the_rates_of_the_stated_population(strategies, tests):
    """A feature that matters, and one that does not; with it, and without it."""
    truths, seeds, features = (needs_first, only_small, with_size), 25, (1, 5)
    fixed = {"coin:n=20", "covering:t=3"} & {*strategies}  # members and rows are coin tosses too
    held = np.zeros((len(truths), len(features), 2))
    for seed in range(seeds):
        study = study_of(strategies, truths, tests, 50 + seed, space_of(8))
        for at, truth in enumerate(truths):
            effects = study.effects(study.find(f"event:{at}"))
            for place, feature in enumerate(features):
                effect = effects[feature]
                drawn = ("coin",) if fixed else strategies
                expected = true_rates(drawn, truth, feature, effect.alone)
                rates = effect.with_it, effect.without_it
                for side, (rate, true) in enumerate(zip(rates, expected, strict=True)):
                    held[at, place, side] += bool(rate and rate.low <= true <= rate.high)
    assert (held / seeds).min() > 0.95 - SIGMAS * math.sqrt(0.95 * 0.05 / seeds)
    # All together are twelve times as many; they are not independent, so the margin counts seeds.
    assert held.mean() / seeds > 0.95 - 2 * math.sqrt(0.95 * 0.05 / seeds)


def test_intervals_of_independent_tests_are_no_wider_than_they_have_to_be():
    effect = effects_of(["coin"], 3, 2000)[0].with_it
    tests = 1000
    width = 2 * 1.96 * math.sqrt(effect.value * (1 - effect.value) / tests)
    assert effect.high - effect.low < 1.15 * width


def test_weights_decide_in_activation_so_there_is_no_rate_without_a_feature():
    assert all(e.with_it is None is e.without_it for e in effects_of(["activation"], 1))


def test_a_feature_that_is_always_in_has_no_fractions():
    effect = effects_of(["all-on"], 1)[0]
    assert effect.with_it is None
    assert effect.without_it is None
    assert math.isnan(effect.ratio)


def test_the_ratio_of_a_suppressor_is_below_one():
    effect = FeatureEffect("pop", HittingRate(0.01, 0, 0.1), HittingRate(0.5, 0.4, 0.6))
    assert effect.ratio == pytest.approx(0.02)


def test_never_with_it_and_never_without_it_has_no_ratio():
    assert math.isnan(FeatureEffect("pop", HittingRate(0, 0, 0.1), HittingRate(0, 0, 0.1)).ratio)


@pytest.mark.parametrize(
    "strategies",
    [("coin",), ("coin:n=6",), ("covering:t=2",), ("layered",), ("sized", "coin:n=6")],
    ids=" and ".join,
)
def test_sums_over_all_tests_give_what_looking_at_each_test_gives(strategies):
    study = study_of(strategies, [needs_first], 600, 3, space_of(8))
    target = study.find("event:0")
    hit, evidence = study.hit(target), study.evidence
    for i, effect in enumerate(study.effects(target)):
        inside, chance = evidence.enabled[:, i], study.chances.values[:, i].astype(float)
        single = evidence.sizes == 1
        informative = ~np.isnan(chance) & (effect.alone | ~(single & inside))
        with_it, without_it = informative & inside, informative & ~inside
        empty = 1 - chance[with_it & single]
        sides = (
            (hit[with_it], 1 - chance[with_it], evidence.clusters[with_it]),
            (
                np.concatenate([hit[without_it], np.zeros(len(empty), bool)]),
                np.concatenate([chance[without_it], empty]),
                np.concatenate([evidence.clusters[without_it], np.full(len(empty), -1)]),
            ),
        )
        for rate, side in zip((effect.with_it, effect.without_it), sides, strict=True):
            expected = hitting_rate(*side, study.chances.same_seed)
            assert (rate is None) == (expected is None)
            if rate and expected:
                assert (rate.value, rate.low, rate.high) == pytest.approx(
                    (expected.value, expected.low, expected.high)
                )
