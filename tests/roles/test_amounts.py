"""Amounts of features against known truths: tests are played step by step, some end early."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from simulated_campaigns import SIGMAS, propose, record, space_of, weights_of

from swarmtest import open_store
from swarmtest.roles import amounts
from swarmtest.roles.amounts import Amount
from swarmtest.roles.study import Study

STEPS = 30
COUNT = 6


def played(weights, seed, steps=STEPS):
    """Tests by steps: which feature each took, chosen in proportion to the weights."""
    odds = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    draws = np.random.default_rng(seed).random((len(weights), steps))
    return (draws[:, :, None] > odds[:, None, :]).sum(axis=2).clip(max=weights.shape[1] - 1)


def counted(chosen, length):
    """How often each feature was used in the first `length` steps."""
    executed = np.arange(chosen.shape[1]) < np.asarray(length)[:, None]
    return np.stack([((chosen == f) & executed).sum(axis=1) for f in range(COUNT)], axis=1)


def by_luck(chance: float, stops: bool, feature: int | None = 0):
    """Each step of a feature (None: of any) hits with a chance, and perhaps ends the test."""

    def play(weights, seed):
        chosen = played(weights, seed)
        lucky = np.random.default_rng(seed + 1).random(chosen.shape) < chance
        happens = lucky if feature is None else lucky & (chosen == feature)
        first = np.where(happens.any(axis=1), happens.argmax(axis=1), STEPS)
        length = np.minimum(first + 1, STEPS) if stops else np.full(len(weights), STEPS)
        return counted(chosen, length), happens.any(axis=1)

    return play


def at_the_start(weights, seed):
    """Whatever follows; and tests are of random length."""
    random = np.random.default_rng(seed + 1)
    used = counted(played(weights, seed), random.integers(1, STEPS + 1, len(weights)))
    return used, random.random(len(weights)) < 0.3


def deep_stack(weights, seed):
    """Eight more of the first than of the second, which never goes below nothing."""
    chosen = played(weights, seed, 60)
    depth, highest = np.zeros(len(chosen)), np.zeros(len(chosen))
    for step in chosen.T:
        depth = np.maximum(depth + (step == 0) - 1.0 * (step == 1), 0)
        highest = np.maximum(highest, depth)
    return counted(chosen, np.full(len(chosen), 60)), highest >= 8


def amounts_of(strategy: str, play, seed: int, tests: int = 500) -> list[Amount]:
    space = space_of(COUNT)
    used, hit = play(weights_of(propose(strategy, space, tests, seed), space), seed)
    store = open_store(":memory:")
    campaign = record(store, space, strategy, tests, seed, [lambda _: hit.astype(float)], used)
    study = Study(store, [campaign])
    return study.amounts(study.find("event:0"))


def claimed(strategy: str, play, irrelevant: Sequence[int], seeds: int = 10):
    """Per seed: the share of irrelevant features with a role, and with one after correction."""
    rows = []
    for seed in range(seeds):
        every = amounts_of(strategy, play, seed)
        found = [every[i] for i in irrelevant]
        roles = [amount.role in ("trigger", "suppressor") for amount in found]
        rows.append((np.mean(roles), any(amount.is_discovery() for amount in found)))
    return np.array(rows, float).T


def excess(shares, nominal=0.05):
    """In standard errors; where nothing was claimed at all, as if one seed in all had."""
    spread = max(shares.std(ddof=1), 1 / math.sqrt(len(shares)) / COUNT)
    error = spread / math.sqrt(len(shares))
    return (shares.mean() - nominal) / error


PLAYS = {
    "fails rarely": by_luck(0.02, stops=True),
    "fails often": by_luck(0.3, stops=True),
    "goes on": by_luck(0.05, stops=False),
}


@pytest.mark.parametrize("strategy", ["all-on", "coin", "layered"])
@pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS)
def test_steps_that_do_nothing_get_no_role_from_those_that_do(strategy, play):
    """Shares add up to one, and the last step of a failing test is always the failing one."""
    raw, listed = claimed(strategy, play, range(1, COUNT))
    assert excess(raw) < SIGMAS
    assert excess(listed) < SIGMAS


@pytest.mark.parametrize("strategy", ["all-on", "coin", "layered"])
@pytest.mark.parametrize(
    "play", [at_the_start, by_luck(0.03, stops=True, feature=None)], ids=["start", "any step"]
)
def test_what_has_nothing_to_do_with_features_has_no_amounts(strategy, play):
    raw, listed = claimed(strategy, play, range(COUNT))
    assert excess(raw) < SIGMAS
    assert excess(listed) < SIGMAS


@pytest.mark.parametrize("strategy", ["all-on", "activation:renormalise=yes", "layered"])
@pytest.mark.parametrize("play", PLAYS.values(), ids=PLAYS)
def test_more_of_the_step_that_hits_is_a_trigger(strategy, play):
    found = [amounts_of(strategy, play, seed, 1000)[0] for seed in range(2)]
    assert all(amount.role == "trigger" and amount.is_discovery() for amount in found)


def test_with_the_default_configuration_pushes_trigger_and_pops_suppress_a_deep_stack():
    push, pop, *_ = amounts_of("all-on", deep_stack, 1)
    assert (push.role, pop.role) == ("trigger", "suppressor")
    assert push.low > 0 > pop.high
    assert push.share_in_hits > push.share_in_others
    assert push.is_discovery()
    assert pop.is_discovery()


def test_too_few_hits_are_insufficient_data():
    found = amounts_of("all-on", by_luck(1e-4, stops=False), 2)
    assert {amount.role for amount in found} == {"insufficient data"}


def test_a_target_that_all_tests_hit_has_nothing_to_compare():
    found = amounts_of("all-on", by_luck(1.0, stops=False, feature=None), 1)
    assert {amount.role for amount in found} <= {"insufficient data", "no variation"}


RARE_TESTS = 6_000
TRUTH = 0.01
"""How much the chance of `rare_amounts` rises if the first feature takes a tenth more steps."""


@functools.cache
def rare_amounts(seed: int, most_others: int) -> list[Amount]:
    """Return the amounts of a target that 1.7% of the tests hit: more of the first, more hits.

    If more than `most_others` tests missed it, a sample of them is compared.
    """
    space = space_of(COUNT)
    weights = weights_of(propose("all-on", space, RARE_TESTS, seed), space)
    used = counted(played(weights, seed), np.full(RARE_TESTS, STEPS))
    hit = np.random.default_rng(seed + 1).random(RARE_TESTS) < 10 * TRUTH * used[:, 0] / STEPS
    store = open_store(":memory:")
    campaign = record(store, space, "all-on", RARE_TESTS, seed, [lambda _: hit.astype(float)], used)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(amounts, "_MOST_OTHERS", most_others)
        study = Study(store, [campaign])
        return study.amounts(study.find("event:0"))


def error_of(amount: Amount) -> float:
    return (amount.high - amount.low) / 2 / 1.96


def test_a_sample_of_the_tests_that_missed_says_what_all_of_them_say():
    """With 20 for each hit the result is about the same, and hardly less certain."""
    for seed in range(4):
        sampled, everything = rare_amounts(seed, 1_000), rare_amounts(seed, RARE_TESTS)
        assert sampled != everything
        for one, other in zip(sampled, everything, strict=True):
            assert (one.hits, one.others) == (other.hits, other.others)
            assert one.share_in_hits == pytest.approx(other.share_in_hits)
            assert one.share_in_others == pytest.approx(other.share_in_others, abs=0.01)
            # A twentieth more variance, and the luck of the sample.
            assert error_of(one) < 1.2 * error_of(other) or not error_of(other)


@pytest.mark.parametrize("most_others", [1_000, RARE_TESTS], ids=["sample", "all"])
def test_effects_of_rare_hits_are_the_truth_within_their_intervals(most_others):
    runs = [rare_amounts(seed, most_others) for seed in range(8)]
    first = [run[0] for run in runs]
    mean_error = np.mean(list(map(error_of, first))) / math.sqrt(len(first))
    assert abs(np.mean([amount.effect for amount in first]) - TRUTH) < SIGMAS * mean_error
    # Of 40 effects that are 0, about two lie outside of their 95% intervals.
    outside = sum(not a.low <= 0 <= a.high for run in runs for a in run[1:])
    assert outside <= 2 + SIGMAS * math.sqrt(40 * 0.05 * 0.95)
