"""Directed swarm testing as a strategy: turns, notes, the ladder, plans."""

import copy
import json
import pickle
from collections import Counter

import pytest

from swarmtest import Campaign, Feature, Machine, Space, UserError, action, open_store
from swarmtest.core.result import Result, Verdict
from swarmtest.roles.study import Study
from swarmtest.strategies import LearningStrategy, Stream, strategy_text
from swarmtest.strategies.directed.adaptive import ENOUGH, rungs_of
from swarmtest.strategies.directed.aim import SINGLES, Aim, Goal
from swarmtest.strategies.directed.directed import Directed
from swarmtest.strategies.directed.merging import MERGES

SIX = Space(tuple("abcdef"))


def aim(name, triggers="", suppressors=""):
    return Aim((Goal(name),), frozenset(triggers), frozenset(suppressors))


THREE = (aim("line:x:1", "a", "b"), aim("line:x:2", "b", "c"), aim("line:x:3", "d", "b"))


def ask(strategy, trial, space=SIX):
    return strategy.ask(space, trial, Stream(5, trial))


def tell(strategy, trial, verdict=Verdict.INVALID, why=""):
    strategy.tell(Result(verdict, trial=trial, missing=why))


def run(strategy, trials, verdict_of, space=SIX):
    """Ask and tell one by one; the origins."""
    origins = []
    for trial in trials:
        proposal = ask(strategy, trial, space)
        origins.append(proposal.origin)
        tell(strategy, trial, verdict_of(proposal))
    return origins


def invalid(_proposal):
    return Verdict.INVALID


class Stack(Machine):
    """Full only when pushes are not undone."""

    def start(self):
        self.items = []

    @action
    def push(self):
        self.items.append(1)
        if len(self.items) > 15:
            raise OverflowError("full")

    @action
    def pop(self):
        if self.items:
            self.items.pop()

    @action
    def clear(self):
        self.items.clear()

    @action
    def peek(self):
        assert self.items is not None


def test_aims_take_turns():
    directed = Directed(THREE, "no-suppressors")
    assert [ask(directed, trial).origin for trial in range(7)] == [
        f"no-suppressors {trial % 3}" for trial in range(7)
    ]


@pytest.mark.parametrize("single", SINGLES)
@pytest.mark.parametrize("merge", MERGES)
def test_all_nine_keep_suppressors_out_and_triggers_in(single, merge):
    directed = Directed(THREE, single, merge)
    for trial in range(60):
        chosen = directed.merging.aims[trial % len(directed.merging.aims)]
        included = set(ask(directed, trial).configuration.included)
        assert chosen.triggers <= included
        assert not chosen.suppressors & included
    assert strategy_text(directed) == f"directed:single={single},merge={merge}"


def test_merging_gives_each_target_more_of_the_tests():
    assert len(Directed(THREE, merge="round-robin").merging.aims) == 3
    assert len(Directed(THREE, merge="aggressive").merging.aims) == 2


def test_it_is_a_learning_strategy_that_wants_to_know_no_hits():
    assert isinstance(Directed(THREE), LearningStrategy)
    assert Directed(THREE).wants == frozenset()


def test_only_invalid_tests_lead_down_the_whole_ladder_to_plain_swarm_testing():
    directed = Directed([aim("line:x:12", "a", "b")], "triggers-only")
    origins = run(directed, range(6 * ENOUGH), invalid)
    assert Counter(origin.removesuffix(" 0") for origin in origins) == {
        "triggers-only": ENOUGH,
        "half-swarm": ENOUGH,
        "no-suppressors": ENOUGH,
        "coin-without-suppressors": ENOUGH,
        "coin": 2 * ENOUGH,
    }
    assert origins == sorted(origins, key=origins.index)


def test_going_down_is_said_once_with_the_reason():
    directed = Directed([aim("line:x:12", "a", "b")], "triggers-only")
    for trial in range(ENOUGH + 2):
        ask(directed, trial)
        tell(directed, trial, why="no statement can be made")
    assert directed.notes == [
        "line:x:12: triggers-only gave only invalid tests (no statement can be made); "
        "half-swarm instead"
    ]


def test_one_valid_test_and_an_aim_stays_on_its_rung():
    directed = Directed([aim("line:x:12", "a", "b")], "triggers-only")
    run(directed, range(ENOUGH - 1), invalid)
    run(directed, [ENOUGH - 1], lambda _: Verdict.FAILED)
    assert set(run(directed, range(ENOUGH, 50), invalid)) == {"triggers-only 0"}
    assert directed.notes == []


def test_each_aim_has_a_ladder_of_its_own():
    directed = Directed(THREE, "triggers-only")

    def only_the_second_fails(proposal):
        return Verdict.INVALID if proposal.origin.endswith(" 1") else Verdict.PASSED

    run(directed, range(3 * ENOUGH), only_the_second_fails)
    origins = [ask(directed, trial).origin for trial in range(99, 102)]
    assert origins == ["triggers-only 0", "half-swarm 1", "triggers-only 2"]


def test_late_results_of_a_rung_that_was_left_do_not_count_for_the_next():
    directed = Directed([aim("line:x:12", "a", "b")], "triggers-only")
    for trial in range(3 * ENOUGH):
        ask(directed, trial)
    for trial in range(3 * ENOUGH):
        tell(directed, trial)
    assert ask(directed, 99).origin == "half-swarm 0"


def test_what_was_told_decides_alone():
    one, other = (Directed(THREE, "triggers-only") for _ in range(2))
    assert run(one, range(50), invalid) == run(other, range(50), invalid)
    assert one.notes == other.notes


def test_a_resumed_campaign_tells_what_nobody_asked_for():
    resumed = Directed([aim("line:x:12", "a", "b")], "triggers-only")
    resumed.prepare(SIX)
    for trial in range(ENOUGH):
        tell(resumed, trial)
    assert ask(resumed, ENOUGH).origin == "half-swarm 0"


def test_rungs_that_come_to_the_same_are_one():
    assert rungs_of("half-swarm", aim("x"), SIX) == ("half-swarm", "no-suppressors")
    assert rungs_of("half-swarm", aim("x", "a"), SIX) == (
        "half-swarm",
        "no-suppressors",
        "coin-without-suppressors",
    )


def test_what_a_space_does_not_allow_is_noted_once_for_all_aims_that_it_concerns():
    space = Space([Feature("b", mandatory=True), *"acdef"])
    directed = Directed(THREE)
    directed.prepare(space)
    ask(directed, 0, space)
    assert directed.notes == [
        "line:x:1 and 1 more: suppressors stay in, the space cannot do without: b"
    ]


def test_triggers_only_without_triggers_starts_a_rung_lower_and_says_so():
    directed = Directed([aim("line:x:9", "", "b")], "triggers-only")
    assert ask(directed, 0).origin == "half-swarm 0"
    assert directed.notes == [
        "line:x:9: triggers-only would be empty: it has no triggers; half-swarm instead"
    ]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_goes_on_where_the_original_stands(copied):
    directed = Directed(THREE, "triggers-only", "aggressive")
    run(directed, range(13), invalid)
    twin = copied(directed)
    assert run(twin, range(13, 60), invalid) == run(directed, range(13, 60), invalid)
    assert twin.notes == directed.notes


def test_a_plan_is_json_and_makes_the_same_strategy_without_merging_again():
    directed = Directed(THREE, "no-suppressors", "aggressive")
    plan = json.loads(json.dumps(directed.to_plan()))
    again = Directed.from_plan(plan)
    assert again.aims == directed.aims
    assert again.merging == directed.merging
    assert strategy_text(again) == strategy_text(directed)
    assert [ask(again, t) for t in range(20)] == [ask(directed, t) for t in range(20)]


def share_that_overflows(strategy):
    store = open_store(":memory:")
    outcome = Campaign(Stack, strategy, 400, store=store, workers=0, seed=3).run()
    study = Study(store, [outcome.campaign])
    return study.hit(study.find("fault")).mean()


@pytest.mark.parametrize("single", SINGLES)
def test_a_campaign_hits_its_target_more_often(single):
    full = Aim((Goal("fault:overflow"),), {"push"}, {"pop", "clear"})
    directed, undirected = (
        share_that_overflows(Directed([full], single)),
        share_that_overflows("coin"),
    )
    # Of undirected tests about 2 in 15 have push and neither pop nor clear; of directed ones all.
    assert undirected < 0.25
    assert directed > 3 * undirected


def test_nothing_to_aim_at_is_refused():
    with pytest.raises(UserError, match="no aim is given"):
        Directed([])


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"single": "half-swam"}, "did you mean 'half-swarm'"),
        ({"single": "coin"}, "single is one of half-swarm, no-suppressors, triggers-only"),
        ({"merge": "subsume"}, "merge is one of round-robin, subsumption, aggressive"),
    ],
)
def test_bad_parameters_get_one_clear_line(parameters, says):
    with pytest.raises(UserError, match=says) as refused:
        Directed(THREE, **parameters)
    assert "\n" not in str(refused.value)


def test_a_feature_that_the_space_does_not_have_is_found_before_the_first_test():
    with pytest.raises(UserError, match="the space does not have: 'd'"):
        Directed(THREE).prepare(Space(["a", "b", "c"]))
