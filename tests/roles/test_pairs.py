"""Features that matter together, against truths with and without an interplay."""

from __future__ import annotations

import math

import numpy as np
import pytest
from simulated_campaigns import SIGMAS, space_of, study_of

from swarmtest import Feature, Space
from swarmtest.roles.pairs import pairs

COUNT = 8


def on(weights, feature):
    return weights[:, feature] > 0


def flat(weights):
    return np.full(len(weights), 0.2)


def needs_first(weights):
    return 0.3 * on(weights, 0)


def multiplied(weights):
    return 0.08 * np.where(on(weights, 0), 3, 1) * np.where(on(weights, 1), 2, 1)


def needs_both(weights):
    return 0.4 * (on(weights, 0) & on(weights, 1))


def either(weights):
    return 0.3 * (on(weights, 0) | on(weights, 1))


def one_of_two(weights):
    return 0.3 * (on(weights, 0) ^ on(weights, 1))


def only_with(weights):
    return 0.05 + 0.4 * (on(weights, 0) & on(weights, 1))


def only_without(weights):
    return 0.05 + 0.4 * (on(weights, 0) & ~on(weights, 1))


def found_in(strategy, truth, seed, tests):
    study = study_of([strategy], [truth], tests, seed, space_of(COUNT))
    return study.pairs(study.find("event:0"))


STRATEGIES = [
    "coin",
    "coin:p=random",
    "sized",
    "layered",
    "coin:n=30",
    "covering:t=3",
    "mixture:all-on=0.2,coin=0.5,sized=0.3",
]


def too_many(strategy, truths, allowed=frozenset(), space=None, seeds=8):
    """By how many standard errors false pairs come more often than in one list of twenty."""
    false = []
    for seed in range(seeds):
        study = study_of([strategy], truths, 800, seed, space or space_of(COUNT))
        for number in range(len(truths)):
            found = study.pairs(study.find(f"event:{number}"))
            false.append(any({p.feature, p.other} != allowed for p in found))
    return (np.mean(false) - 0.05) / math.sqrt(0.05 * 0.95 / len(false))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_features_that_act_on_their_own_are_no_pairs(strategy):
    assert too_many(strategy, [flat, needs_first, multiplied]) < SIGMAS


@pytest.mark.parametrize("strategy", ["coin", "coin:p=random", "layered"])
def test_features_that_have_nothing_to_do_with_a_pair_are_not_in_one(strategy):
    truths = [either, one_of_two, only_with, only_without]
    assert too_many(strategy, truths, {"f0", "f1"}) < SIGMAS


@pytest.mark.parametrize("strategy", ["coin", "coin:p=random", "layered"])
def test_constraints_are_no_interplay(strategy):
    space = Space(
        [
            "f0",
            Feature("f1", excludes=["f0", "f2"]),
            "f2",
            "f3",
            Feature("f4", requires=["f5"]),
            "f5",
            "f6",
            "f7",
        ]
    )
    assert too_many(strategy, [flat, needs_first], space=space) < SIGMAS


@pytest.mark.parametrize(
    ("truth", "said"),
    [
        (either, {"f0 and f1 stand in for each other", "f1 and f0 stand in for each other"}),
        (
            only_with,
            {
                "f0 is a trigger with f1; without it, no effect was shown",
                "f1 is a trigger with f0; without it, no effect was shown",
            },
        ),
        (
            only_without,
            {
                "f0 is a trigger without f1; with it, no effect was shown",
                "f0 is a suppressor with f1 and a trigger without it",
            },
        ),
    ],
)
def test_an_interplay_is_told_in_words(truth, said):
    found = found_in("coin", truth, 1, tests=4000)
    assert found
    assert found[0].sentence() in said
    assert found[0].to_json()["sentence"] == found[0].sentence()


def test_one_of_two_but_not_both_is_not_told_as_one_or_the_other():
    [pair] = found_in("coin", one_of_two, 1, tests=3000)
    assert {pair.feature, pair.other} == {"f0", "f1"}
    assert "is enough" not in pair.sentence()


def test_what_needs_both_features_is_two_triggers_and_no_pair():
    study = study_of(["coin"], [needs_both], 2000, 1, space_of(COUNT))
    target = study.find("event:0")
    assert study.pairs(target) == []
    assert [role.role for role in study.roles(target)[:2]] == ["trigger", "trigger"]


def test_a_target_without_hits_has_no_pairs():
    study = study_of(["coin"], [needs_both], 100, 1, space_of(COUNT))
    assert pairs(study.evidence, study.chances, np.empty(0, np.intp)) == []


def test_few_hits_are_no_pairs():
    assert found_in("coin", lambda w: either(w) / 60, 1, tests=500) == []
