"""Hedged swarms: families at their shares, ladders, tests that skip steps, known propensities."""

import math
from itertools import pairwise

import pytest

from swarmtest import Feature, Flag, Integer, Space, at_least_one_of
from swarmtest.strategies import Hedged, Stream, parse_strategy
from swarmtest.strategies.hedged import HEDGED_FAMILIES, LEAST_SPENT
from swarmtest.strategies.layered import FLOOR, chances_of

TRIALS = 3000
SIX = Space([f"f{i}" for i in range(6)])


@pytest.fixture(scope="module")
def proposals():
    return Hedged().ask_many(SIX, range(TRIALS), 0)


def weights_of(proposals, family):
    return [q.configuration.weights for q in proposals if q.origin == family]


def test_hedged_can_be_named():
    assert parse_strategy("hedged") == Hedged()


def test_the_shares_make_one_and_every_family_is_reached_at_its_share(proposals):
    assert math.fsum(share for _, share, _ in HEDGED_FAMILIES) == pytest.approx(1)
    for family, share, _ in HEDGED_FAMILIES:
        found = len(weights_of(proposals, family)) / TRIALS
        assert abs(found - share) < 5 * math.sqrt(share * (1 - share) / TRIALS), family


def test_weights_are_proportions_of_the_largest_where_they_do_not_skip_steps(proposals):
    for proposal in proposals:
        skips = proposal.origin in Hedged.spending
        fractional = proposal.configuration.fractional
        assert proposal.configuration.renormalised == (bool(fractional) and not skips)
        assert skips or max(proposal.configuration.weights) == 1.0


def test_a_ladder_ranks_its_features_in_every_order(proposals):
    assert {w.index(1.0) for w in weights_of(proposals, "ladder")} == set(range(6))


def test_each_rung_of_a_ladder_is_the_same_share_of_the_one_before(proposals):
    for weights in weights_of(proposals, "ladder"):
        ranked = sorted(filter(None, weights), reverse=True)
        factors = [low / high for high, low in pairwise(ranked) if low > FLOOR + 1e-4]
        assert max(factors, default=0) - min(factors, default=0) < 1e-3


def test_a_member_of_a_ladder_is_never_lost_below_the_floor():
    space = Space([f"f{i}" for i in range(60)])
    asked = Hedged().ask_many(space, range(1500), 1)
    assert asked is not None
    sizes = sorted(len(q.configuration.included) for q in asked if q.origin == "ladder")
    assert sizes[0] <= 3
    assert sizes[-1] >= 58


def test_weights_that_skip_steps_have_all_features_in(proposals):
    for weights in weights_of(proposals, "spent"):
        assert min(weights) >= LEAST_SPENT - 1 / 65535


def test_a_short_test_may_skip_nearly_all_of_its_steps_or_none(proposals):
    found = weights_of(proposals, "short")
    assert {len(set(weights)) for weights in found} == {1}
    assert min(weights[0] for weights in found) < 0.03
    assert max(weights[0] for weights in found) > 0.9


def test_all_features_are_in_groups_and_beside_a_dominant_one(proposals):
    for family in ("whole-groups", "whole-dominant", "spent", "short", "equal"):
        found = [q for q in proposals if q.origin == family]
        assert {q.configuration.bits for q in found} == {0b111111}
        assert {q.propensities for q in found} == {(1.0,)}


def test_only_uniform_has_unknown_propensities(proposals):
    assert {q.origin for q in proposals if not q.propensities} == {"uniform"}


@pytest.mark.parametrize("family", ["ladder", "biased-coin"])
def test_logged_propensities_are_the_shares_of_tests_with_a_feature(proposals, family):
    # Given which others are in, a feature is in as often as its propensity says.
    surplus = variance = 0.0
    for proposal in proposals:
        if proposal.origin == family:
            bits = proposal.configuration.bits
            chances = chances_of(family, 6, bits)
            chance = chances[0]
            included = bits & 1
            if bits & ~1:  # otherwise the other outcome would be an empty test
                surplus += included - chance
                variance += chance * (1 - chance)
    assert abs(surplus) < 4 * math.sqrt(variance)


SPACES = {
    "one feature": Space(["a"]),
    "six": SIX,
    "seventy": Space([f"f{i}" for i in range(70)]),
    "groups": Space([Feature(f"f{i}", group=f"g{i % 3}") for i in range(9)]),
    "settings": Space(["a", "b", Flag("fast"), Integer("size", 0, 9)]),
    "constraints": Space(["a", Feature("b", requires=["a"]), "c"], [at_least_one_of("b", "c")]),
}


@pytest.mark.parametrize("renormalise", [True, False])
@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_a_batch_is_what_its_trials_are_one_by_one(space, renormalise):
    strategy = Hedged(renormalise)
    trials = range(5, 455)
    many = strategy.ask_many(space, trials, 3)
    assert many == [strategy.ask(space, trial, Stream(3, trial)) for trial in trials]


def test_a_feature_with_a_rate_of_its_own_is_in_as_often_as_it_says():
    space = Space([Feature("a", rate=0.9), "b", "c"])
    asked = [Hedged().ask(space, trial, Stream(2, trial)) for trial in range(1500)]
    found = sum(q.configuration["a"] > 0 for q in asked) / 1500
    assert abs(found - 0.9) < 5 * math.sqrt(0.09 / 1500)
