"""Configurations for one aim: triggers in, suppressors out, whatever the space demands."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest import Feature, Flag, Space, UserError, at_least_one_of, requires
from swarmtest.strategies import Stream
from swarmtest.strategies.directed.aim import RUNGS, SINGLES, Aim, Goal, fitted, propose

NAMES = tuple("abcdefgh")
EIGHT = Space(NAMES)
GOAL = (Goal("line:cart.py:12"),)
examples = settings(derandomize=True, deadline=None, max_examples=60)


def aim(triggers="", suppressors=""):
    return Aim(GOAL, frozenset(triggers), frozenset(suppressors))


def drawn(single, target, space=EIGHT, trials=40):
    return [propose(single, target, space, Stream(3, trial)) for trial in range(trials)]


def included(single, target, space=EIGHT, trials=40):
    return [set(p.configuration.included) for p in drawn(single, target, space, trials)]


def notes(single, target, space):
    return fitted(single, target.triggers, target.suppressors, space).notes


@st.composite
def aims(draw):
    roles = draw(st.lists(st.sampled_from("tsi"), min_size=8, max_size=8))
    return aim(
        [n for n, role in zip(NAMES, roles, strict=True) if role == "t"],
        [n for n, role in zip(NAMES, roles, strict=True) if role == "s"],
    )


@st.composite
def constrained_spaces(draw):
    """Spaces with random demands that can be met."""
    chosen = st.lists(st.sampled_from(NAMES), max_size=2)
    features = [
        Feature(name, requires=draw(chosen), mandatory=draw(st.integers(0, 9)) == 0)
        for name in NAMES
    ]
    groups = draw(st.lists(st.sets(st.sampled_from(NAMES), min_size=1, max_size=3), max_size=2))
    return Space(features, [at_least_one_of(*sorted(group)) for group in groups])


@examples
@given(aims(), st.sampled_from(SINGLES), st.integers(0, 99))
def test_without_constraints_all_triggers_and_no_suppressor_are_in(target, single, trial):
    features = set(propose(single, target, EIGHT, Stream(0, trial)).configuration.included)
    assert target.triggers <= features
    if target.suppressors != set(NAMES):
        assert not features & target.suppressors


@examples
@given(constrained_spaces(), aims(), st.sampled_from(RUNGS[:-1]), st.integers(0, 99))
def test_a_suppressor_is_in_only_where_it_was_said_to_be_unavoidable(space, target, kind, trial):
    plan = fitted(kind, target.triggers, target.suppressors, space)
    configuration = propose(kind, target, space, Stream(0, trial)).configuration
    assert not space.violated(configuration.bits)
    for name in target.suppressors & set(configuration.included):
        assert any(note.startswith("suppressors stay in") and name in note for note in plan.notes)


@examples
@given(constrained_spaces(), aims())
def test_a_suppressor_is_given_up_only_when_no_configuration_is_without_the_others_and_it(
    space, target
):
    out = sum(1 << NAMES.index(name) for name in target.suppressors)
    some_are_free_of_all = any(not bits & out and not space.violated(bits) for bits in range(256))
    given_up = [n for n in notes("half-swarm", target, space) if n.startswith("suppressors")]
    assert bool(given_up) != some_are_free_of_all


@examples
@given(constrained_spaces(), aims(), st.integers(0, 20))
def test_a_trigger_is_in_unless_it_was_said_to_stay_out(space, target, trial):
    features = set(propose("half-swarm", target, space, Stream(0, trial)).configuration.included)
    told = " ".join(notes("half-swarm", target, space))
    for name in target.triggers - features:
        assert name in told.partition("triggers stay out")[2]


def test_half_swarm_tosses_a_fair_coin_for_the_rest():
    counts = Counter(
        n for names in included("half-swarm", aim("a", "b"), trials=2000) for n in names
    )
    assert counts["a"] == 2000
    assert counts["b"] == 0
    for name in "cdefgh":  # 5 standard deviations of 2000 fair coins: 112
        assert abs(counts[name] - 1000) < 112


def test_a_features_own_rate_goes_before_the_coin():
    space = Space([Feature("a"), Feature("b"), Feature("c", rate=0.9), Feature("d", rate=0.1)])
    counts = Counter(
        n for names in included("half-swarm", aim("a", "b"), space, 1000) for n in names
    )
    assert counts["c"] > 850
    assert counts["d"] < 150


def test_no_suppressors_is_everything_else():
    assert included("no-suppressors", aim("a", "bc")) == [set("adefgh")] * 40


def test_no_suppressors_does_not_toss_for_features_with_a_rate_of_their_own():
    space = Space([Feature("a"), Feature("b", rate=0.1)])
    assert included("no-suppressors", aim("a"), space) == [{"a", "b"}] * 40


def test_triggers_only_is_the_triggers():
    assert included("triggers-only", aim("ac", "b")) == [{"a", "c"}] * 40


def test_triggers_only_brings_what_its_triggers_require_and_nothing_else():
    space = Space([Feature("a", requires=["b"]), Feature("b", requires=["c"]), *"cde"])
    assert included("triggers-only", aim("a", "e"), space) == [{"a", "b", "c"}] * 40


def test_triggers_only_without_triggers_is_half_swarm_and_says_so():
    assert included("triggers-only", aim("", "b")) == included("half-swarm", aim("", "b"))
    assert "no triggers" in notes("triggers-only", aim("", "b"), EIGHT)[0]


def test_a_trigger_that_needs_a_suppressor_stays_out_with_it():
    space = Space([Feature("a", requires=["b"]), *"bcd"])
    for names in included("half-swarm", aim("a", "b"), space):
        assert not names & {"a", "b"}
    assert notes("half-swarm", aim("a", "b"), space) == (
        "triggers stay out, excluded or not without a suppressor: a",
    )


def test_a_mandatory_suppressor_is_given_up_and_the_others_are_not():
    space = Space([Feature("a", mandatory=True), *"bcd"])
    for names in included("half-swarm", aim("c", "ab"), space):
        assert "a" in names
        assert "b" not in names
    assert notes("half-swarm", aim("c", "ab"), space) == (
        "suppressors stay in, the space cannot do without: a",
    )


def test_a_suppressor_that_all_else_requires_is_given_up():
    space = Space(NAMES, [requires(name, "a") for name in NAMES[1:]])
    assert "a" in notes("half-swarm", aim("b", "a"), space)[0]


def test_no_coin_can_bring_in_a_suppressor_by_what_it_requires():
    space = Space([Feature("a", requires=["h"]), Feature("b", requires=["a"]), *"cdefgh"])
    for single in SINGLES:
        assert not any("h" in names for names in included(single, aim("c", "h"), space, 200))


def test_when_everything_suppresses_the_aim_the_configuration_still_is_not_empty():
    assert all(included("half-swarm", aim("", NAMES)))
    assert notes("half-swarm", aim("", NAMES), EIGHT)


def test_propensities_are_one_zero_or_the_coins_rate():
    assert drawn("half-swarm", aim("a", "b"))[0].propensities == (1, 0) + (0.5,) * 6
    assert drawn("no-suppressors", aim("a", "b"))[0].propensities == (1, 0) + (1,) * 6
    assert drawn("triggers-only", aim("a", "b"))[0].propensities == (1, 0) + (0,) * 6
    assert drawn("coin-without-suppressors", aim("a", "b"))[0].propensities == (0.5, 0) + (0.5,) * 6


def test_a_feature_draws_the_same_as_in_undirected_swarm_testing():
    directed = included("half-swarm", aim("a", "b"))
    undirected = included("coin", aim("a", "b"))
    for one, other in zip(directed, undirected, strict=True):
        if one != {"a"}:  # then the undirected draw may have been empty, and drawn once more
            assert one & set("cdefgh") == other & set("cdefgh")


def test_settings_are_drawn_too():
    space = Space([*"ab", Flag("fsync")])
    for single in SINGLES:
        values = {p.configuration["fsync"] for p in drawn(single, aim("a", "b"), space)}
        assert values == {False, True}


def test_the_origin_is_kept():
    assert propose("half-swarm", aim("a"), EIGHT, Stream(), "half-swarm 3").origin == "half-swarm 3"


@pytest.mark.parametrize("single", RUNGS)
def test_a_feature_that_the_space_does_not_have_is_refused(single):
    with pytest.raises(UserError, match="does not have: 'pussh'; did you mean 'push'"):
        propose(single, Aim(GOAL, {"pussh"}), Space(["push", "pop"]), Stream())


def test_an_unknown_strategy_is_refused():
    with pytest.raises(UserError, match="did you mean 'half-swarm'"):
        propose("half-swam", aim("a"), EIGHT, Stream())
