"""Base rates: what strategies logged, what constraints leave open, what nobody said."""

from __future__ import annotations

import math

import numpy as np
import pytest
from simulated_campaigns import SIGMAS, record, space_of, study_of

from swarmtest import Feature, Space, open_store
from swarmtest.core.sampling import Proposal, toss
from swarmtest.roles.study import Study

CHAIN = Space(["f0", Feature("f1", excludes=["f0", "f2"]), "f2", *(f"f{i}" for i in range(3, 10))])
"""f0 and f2 know of each other through f1 only."""
NEEDS = Space(["f0", Feature("f1", requires=["f0"]), "f2", "f3"])


def needs(feature):
    return lambda weights: (weights[:, feature] > 0).astype(float)


def test_odds_that_were_logged_are_taken_as_they_are():
    study = study_of(["coin:p=0.3"], [needs(0)], 50, 1, space_of(4))
    assert np.unique(study.chances.values) == pytest.approx([0.3])
    assert study.notes == ()


def test_each_test_of_a_mixture_keeps_its_own_odds():
    study = study_of(["mixture:coin=0.5,coin(p=0.9)=0.5"], [needs(0)], 100, 1, space_of(4))
    found, counts = np.unique(study.chances.values, return_counts=True)
    assert found == pytest.approx([0.5, 0.9])
    members = [origin.startswith("coin:p=0.9") for origin in study.evidence.origins]
    assert counts[1] == 4 * np.array(members)[study.evidence.origin].sum()


def test_a_feature_that_had_to_be_in_tells_nothing():
    study = study_of(["mixture:all-on=0.5,coin=0.5"], [needs(0)], 100, 1, space_of(4))
    everything = study.evidence.origin == study.evidence.origins.index("all-on")
    assert 0 < everything.sum() < 100
    assert np.array_equal(study.chances.telling, ~everything)


def test_the_base_rate_of_a_random_bias_is_its_mean_over_the_hits():
    """Hits of what f0 is needed for have p larger than most: 2/3 in the mean, not 1/2."""
    study = study_of(["coin:p=random"], [needs(0)], 3000, 1, space_of(12))
    other = study.roles(study.find("event:0"))[5]
    # p given f0 has the density 2p: variance 1/18, over about 1500 hits.
    assert other.base == pytest.approx(2 / 3, abs=SIGMAS * math.sqrt(1 / 18 / 1400))
    assert other.share == pytest.approx(2 / 3, abs=SIGMAS * math.sqrt(2 / 9 / 1400))


def test_chances_of_features_tied_through_a_third_are_those_of_the_draw():
    """Over the six orders of tossing f0, f1 and f2, f2 is in 10 of 19 tests that have f0.

    It is in 19 of 34 tests without f1, and f0 excludes f1: that would be the wrong base rate.
    """
    exact, tempting = 10 / 19, 19 / 34
    study = study_of(["coin"], [needs(0)], 16_000, 3, CHAIN)
    role = study.roles(study.find("event:0"))[2]
    error = math.sqrt(exact * (1 - exact) / role.hits)
    assert exact + SIGMAS * error < tempting
    assert role.share == pytest.approx(exact, abs=SIGMAS * error)
    assert role.base == pytest.approx(exact, abs=SIGMAS * error)


def test_a_required_feature_is_judged_only_where_it_could_be_missing():
    """f0 is in all tests with f1 because it has to: those say nothing about f0."""
    study = study_of(["coin"], [needs(1)], 500, 1, NEEDS)
    required, *_ = study.roles(study.find("event:0"))
    assert (required.role, required.hits) == ("no variation", 0)


def test_a_tied_feature_that_is_a_trigger_is_found():
    study = study_of(["coin"], [needs(0), needs(1)], 500, 1, NEEDS)
    assert study.roles(study.find("event:0"))[0].role == "trigger"
    assert study.roles(study.find("event:1"))[1].role == "trigger"


class Silent:
    """A strategy of the user's own: sizes vary, odds are not told."""

    def ask(self, space, trial, rng):
        p = 0.2 if rng.named("*own") < 0.5 else 0.8
        proposal = toss(space, [p] * len(space.features), rng)
        return Proposal(proposal.configuration, (), "own")


def test_without_odds_base_rates_come_from_the_tests_and_a_note_says_so():
    study = study_of([Silent()], [needs(0)], 3000, 1, space_of(10))
    assert "logs no odds" in " ".join(study.notes)
    other = study.roles(study.find("event:0"))[5]
    # Of the tests with f0 four in five have p = 0.8: the mean is 0.68, over about 1500 hits.
    error = math.sqrt(0.68 * 0.32 / 1400)
    assert other.base == pytest.approx(0.68, abs=SIGMAS * error)
    assert other.share == pytest.approx(0.68, abs=SIGMAS * error)


def test_a_silent_part_of_a_campaign_is_left_out_and_a_note_says_how_much():
    study = study_of(["layered"], [needs(0)], 2000, 1, space_of(6))
    [note] = study.notes
    logged = ~np.isnan(study.evidence.odds[study.evidence.odds_row]).any(axis=1)
    assert f"{1 - logged.mean():.0%} of the tests" in note
    assert not study.chances.telling[~logged].any()


def test_campaigns_with_other_constraints_are_each_judged_by_their_own():
    store = open_store(":memory:")
    free = Space(list(NEEDS.feature_names))
    ids = [
        record(store, space, "coin", 400, seed, [needs(1)])
        for seed, space in enumerate((NEEDS, free))
    ]
    study = Study(store, ids)
    told = ~np.isnan(study.chances.values[:, 0])
    assert told[400:].all()
    assert not told[:400][study.evidence.enabled[:400, 1]].any()


def _above(feature):
    """A feature and what it requires, in a space where f20 requires f6, which requires f2."""
    found = {feature}
    while feature > 5:
        feature //= 3
        found.add(feature)
    return found


@pytest.mark.parametrize("strategy", ["coin", "layered", "coin:p=random", "sized"])
def test_in_a_space_as_large_as_a_grammars_ties_make_no_roles_and_hide_none(strategy):
    """70 features, more than a fit takes: only near ones are looked at one by one."""
    space = Space([Feature(f"f{i}", requires=[f"f{i // 3}"] if i > 5 else []) for i in range(70)])
    causes = [20, 40, 60, 9]
    truths = [lambda weights, i=i: np.where(weights[:, i] > 0, 0.3, 0.02) for i in causes]
    study = study_of((strategy,), truths, 3000, 1, space)
    for number, cause in enumerate(causes):
        roles = study.roles(study.find(f"event:{number}"))
        listed = {int(role.feature[1:]): role.role for role in roles if role.is_discovery()}
        assert listed.pop(cause) == "trigger"
        # What requires the cause, or is required by it, is seldom free to be without it.
        assert all(i in _above(cause) or cause in _above(i) for i in listed), listed
