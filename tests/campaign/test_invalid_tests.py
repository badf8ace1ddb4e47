"""A generator that fails by itself: its tests are invalid, never faults of the subject."""

from __future__ import annotations

import math

import pytest
from picky import BUG, Picky

from swarmtest import Budget, Campaign, UserError
from swarmtest.campaign.recorder import HOPELESS, PATIENCE
from swarmtest.store import open_store
from swarmtest.strategies.strategy import parse_strategy


@pytest.fixture
def store():
    with open_store(":memory:") as opened:
        yield opened


def run(store, strategy, tests=400, subject=None, workers=1):
    campaign = Campaign(subject or Picky(), strategy, Budget(tests=tests), 1, workers, store)
    return campaign.run()


def valid_and_not(store, campaign=1):
    trials = list(store.trials(campaign))
    return [t for t in trials if t.verdict != 2], [t for t in trials if t.verdict == 2]


def test_an_invalid_test_is_no_fault_and_says_why(store):
    outcome = run(store, "coin", tests=100)
    assert [fault.signature for fault in outcome.faults] == [BUG.signature]
    _, invalid = valid_and_not(store)
    assert len(invalid) == outcome.progress.invalid > 0
    assert {trial.missing for trial in invalid} == {"the generator cannot do b"}
    assert all(trial.fault is None for trial in invalid)
    share = f"{len(invalid)} of 100 tests were invalid: the generator cannot do b ({len(invalid)})"
    assert share in outcome.notes


def test_of_a_fixed_swarm_the_useless_configurations_are_retired_and_the_others_get_their_tests(
    store,
):
    outcome = run(store, "complete", tests=700, workers=0)
    valid, invalid = valid_and_not(store)
    assert len(valid) + len(invalid) == 700
    # Four of the seven configurations have b. Batches have 8 tests, then at most 32 and 128: after
    # these 168 tests each configuration was met 24 times, and what has b is retired.
    assert 4 * PATIENCE <= len(invalid) <= 4 * 24
    assert len({trial.configuration for trial in invalid}) == 4
    retired = [note for note in outcome.notes if note.startswith("retired")]
    assert len(retired) == 3
    assert "and 1 more retired" in outcome.notes
    assert "a b" in " ".join(retired)


def test_trials_that_run_are_the_same_whether_others_were_retired_or_not(store):
    run(store, "complete", tests=300)
    run(store, "complete", tests=300, subject=Picky(refused=frozenset()))
    everything = {trial.trial: trial for trial in store.trials(2)}
    valid, _ = valid_and_not(store, 1)
    common = [trial for trial in valid if trial.trial in everything]
    assert len(common) > 50
    for trial in common:
        other = everything[trial.trial]
        assert (trial.configuration, trial.seed, trial.fault) == (
            (other.configuration, other.seed, other.fault)
        )


def test_a_resumed_campaign_remembers_what_was_retired(store):
    run(store, "complete", tests=400)
    _, before = valid_and_not(store)
    campaign = Campaign(Picky(), "complete", Budget(tests=900), 1, 1, store)
    campaign._number = 1
    campaign.run()
    _, after = valid_and_not(store)
    assert len(after) == len(before)


def test_a_configuration_with_some_valid_tests_is_never_retired(store):
    class Moody(Picky):
        def execute(self, configuration, seed):
            if seed % 2:
                return super().execute(self.space.configuration(["b"]), seed)
            return self.replay(self.test_of(self.space.configuration(["a"]), seed))

    outcome = run(store, "all-on", tests=600, subject=Moody())
    assert outcome.progress.tests == 600
    assert outcome.progress.invalid > 200
    assert not [note for note in outcome.notes if note.startswith("retired")]


def test_when_every_configuration_is_retired_the_campaign_ends(store):
    outcome = run(store, "all-on", tests=5_000)
    assert outcome.reason == "every configuration gives only invalid tests"
    assert PATIENCE <= outcome.progress.tests < 200


def test_a_campaign_without_any_valid_test_ends_whatever_the_strategy(store):
    outcome = run(store, "coin", tests=5_000, subject=Picky(refused=frozenset("abc")))
    assert outcome.reason.startswith("none of ")
    assert "the generator cannot do" in outcome.reason
    assert HOPELESS <= outcome.progress.tests < 2_000


def test_invalid_tests_hide_no_role(store):
    """They count as tests that hit nothing: c is the trigger, whatever b does to tests."""
    from swarmtest.roles import Study

    run(store, "coin", tests=600)
    study = Study(store, [1])
    roles = {role.feature: role.role for role in study.roles(study.faults[0])}
    assert roles["c"] == "trigger"
    assert roles["b"] == "suppressor"
    assert roles["a"] == "irrelevant"


def test_weights_are_refused_where_features_can_only_be_on_or_off(store):
    with pytest.raises(
        UserError, match=r"layered gives features weights.*use a strategy like coin"
    ):
        run(store, "layered")


def test_the_default_strategy_is_one_that_the_subject_can_honour():
    campaign = Campaign(Picky(), budget=10, store=":memory:", workers=0)
    assert type(campaign.strategy) is type(parse_strategy("coin"))


def test_the_chance_to_retire_by_mistake_is_what_the_docs_say():
    assert math.isclose(0.5**PATIENCE, 1 / 256)
