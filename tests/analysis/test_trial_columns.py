"""Tests as columns: what comes out of a store is what went in."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_campaigns import propose, record, space_of, weights_of

from swarmtest import Campaign, Machine, action, open_store
from swarmtest.analysis import hit_blocks
from swarmtest.analysis.trial_columns import read_evidence
from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.result import Verdict
from swarmtest.core.sampling import Proposal
from swarmtest.roles.study import Study
from swarmtest.store.records import CampaignRecord, FaultRecord, TrialRecord, pack_floats

SPACE = space_of(5)


def half(weights):
    return np.full(len(weights), 0.5)


def always(weights):
    return np.ones(len(weights))


def test_configurations_odds_and_origins_come_back_as_they_were_drawn():
    store = open_store(":memory:")
    campaign = record(store, SPACE, "layered", 200, 7)
    evidence, proposals = read_evidence(store, [campaign]), propose("layered", SPACE, 200, 7)
    assert np.array_equal(evidence.weights(slice(None)), weights_of(proposals, SPACE))
    assert np.array_equal(evidence.enabled, weights_of(proposals, SPACE) > 0)
    assert [evidence.origins[at] for at in evidence.origin] == [p.origin for p in proposals]
    for row, proposal in zip(evidence.odds[evidence.odds_row], proposals, strict=True):
        expected = np.broadcast_to(proposal.propensities or (np.nan,), 5)
        assert row == pytest.approx(expected, abs=1e-6, nan_ok=True)


def test_uses_steps_and_time_come_back():
    store = open_store(":memory:")
    used = np.arange(50).reshape(10, 5) * 100
    campaign = record(
        store, SPACE, "coin", 10, 1, used=used, steps=list(range(10)), cpu_ns=[10**9] * 10
    )
    evidence = read_evidence(store, [campaign])
    assert np.array_equal(evidence.used, used)
    assert evidence.steps.tolist() == list(range(10))
    assert evidence.cpu_seconds.tolist() == [1.0] * 10


def test_tests_of_several_campaigns_follow_each_other():
    store = open_store(":memory:")
    ids = [record(store, SPACE, "coin", n, seed) for seed, n in enumerate((3, 4))]
    evidence = read_evidence(store, ids)
    assert evidence.n == 7
    assert evidence.campaign.tolist() == [0] * 3 + [1] * 4
    assert evidence.trial.tolist() == [0, 1, 2, 0, 1, 2, 3]


def test_tests_of_a_fixed_swarm_are_clusters_and_others_are_not():
    store = open_store(":memory:")
    ids = [
        record(store, SPACE, strategy, 10, seed)
        for seed, strategy in enumerate(["coin:n=3", "coin", "mixture:coin(n=2)=1"])
    ]
    clusters = read_evidence(store, ids).clusters
    assert len(set(clusters[:10])) == 3
    assert np.array_equal(clusters[:3], clusters[3:6])
    assert set(clusters[10:20]) == {-1}
    assert len(set(clusters[20:])) == 2
    assert not set(clusters[:10]) & set(clusters[20:])


def test_equal_rows_of_covering_arrays_are_one_cluster_also_across_campaigns():
    store = open_store(":memory:")
    space = space_of(4)
    # Every array of strength three over four features has the same eight rows, in some order.
    ids = [record(store, space, "covering:t=3", 16, seed) for seed in range(3)]
    evidence = read_evidence(store, ids)
    configurations = evidence.configurations(slice(None)).tolist()
    assert len(set(evidence.members.tolist())) == 24
    assert len(set(evidence.clusters.tolist())) == len(set(configurations)) == 8
    assert len(set(zip(configurations, evidence.clusters.tolist(), strict=True))) == 8


def test_members_of_two_swarms_are_draws_of_their_own():
    store = open_store(":memory:")
    ids = [record(store, space_of(2), "coin:n=4", 8, seed) for seed in range(3)]
    assert len(set(read_evidence(store, ids).clusters.tolist())) == 12


def test_rows_with_open_entries_are_one_cluster_if_what_they_fix_is_the_same():
    store = open_store(":memory:")
    enabled = {7: ["0b0011", "0b0111"], 8: ["0b0111", "0b0011"], 9: ["0b1011", "0b1111"]}
    space = space_of(4)
    rows = [
        Proposal(Configuration(space, int(bits, 2)), (0.5,), "row 0")
        for seed in enabled
        for bits in enabled[seed]
    ]
    ids = []
    for number, seed in enumerate(enabled):
        trials = [
            TrialRecord(
                trial, proposal.configuration.to_bytes(), pack_floats((0.5,) * 4), proposal.origin
            )
            for trial, proposal in enumerate(rows[2 * number : 2 * number + 2])
        ]
        campaign = store.add_campaign(CampaignRecord("simulated", "own", seed, space.to_json()))
        store.record(campaign, trials)
        ids.append(campaign)
    first, _, second, _, third, _ = read_evidence(store, ids).clusters.tolist()
    assert first == second != third


@pytest.mark.parametrize("targets", [1, 3, 40])
def test_hits_turned_round_are_the_hits_of_each_test(targets):
    """Over two campaigns, of which the first does not end with a word of bits."""
    store = open_store(":memory:")
    ids = [record(store, SPACE, "coin", 150, seed, [half] * targets) for seed in range(2)]
    study = Study(store, ids)
    numbers = list(study.targets)
    columns = hit_blocks.hit_columns(study.evidence, numbers)
    turned = np.unpackbits(columns.view(np.uint8), axis=1, bitorder="little")[:, :300]
    rows = [set(map(int, _ids(trial))) for id in ids for trial in store.trials(id)]
    expected = np.array([[number in row for row in rows] for number in numbers])
    assert np.array_equal(turned.astype(bool), expected)
    counts = hit_blocks.hit_counts(study.evidence, numbers)
    assert np.array_equal(counts, expected.sum(axis=1))


def _ids(trial):
    from swarmtest.core.targets import unpack_hits

    return unpack_hits(trial.hits) if trial.hits else []


def test_a_campaign_that_goes_on_meanwhile_does_not_shift_the_hits_of_the_next():
    store = open_store(":memory:")
    ids = [record(store, SPACE, "coin", 100, seed, [half]) for seed in range(2)]
    study = Study(store, ids)
    target = study.find("event:0")
    before = study.hit(target)
    more = open_store(":memory:")
    late = list(more.trials(record(more, SPACE, "coin", 160, 0, [half])))[100:]
    store.record(ids[0], late)
    assert np.array_equal(study.hit(target), before)


def test_a_test_whose_coverage_is_missing_counts_as_unknown_not_as_a_miss():
    store = open_store(":memory:")
    lost = [""] * 30 + ["killed"] * 10
    campaign = record(store, SPACE, "coin", 40, 1, [always], missing=lost)
    study = Study(store, [campaign])
    assert study.evidence.hits_known.tolist() == [True] * 30 + [False] * 10
    target = study.find("event:0")
    assert study.hit(target).sum() == 30
    with_it = study.effects(target)[0].with_it
    assert with_it is not None
    assert with_it.value == 1.0


def test_an_invalid_test_hits_nothing():
    store = open_store(":memory:")
    verdicts = [int(Verdict.PASSED)] * 30 + [int(Verdict.INVALID)] * 10
    campaign = record(store, SPACE, "coin", 40, 1, verdict=verdicts)
    evidence = read_evidence(store, [campaign])
    assert evidence.n == 40
    assert evidence.invalid == 10


def test_faults_are_targets_with_their_signature():
    store = open_store(":memory:")
    campaign = store.add_campaign(CampaignRecord("simulated", "coin", 1, SPACE.to_json()))
    other = open_store(":memory:")
    trials = list(other.trials(record(other, SPACE, "coin", 6, 1)))
    failed = [t._replace(fault="abc" if t.trial % 2 else None) for t in trials]
    fault = FaultRecord("abc", "exception", "Error: boom", "", 1, 1, 3, None)
    store.record(campaign, failed, [fault])
    evidence = read_evidence(store, [campaign])
    assert evidence.fault.tolist() == [-1, 0, -1, 0, -1, 0]
    assert evidence.fault_target(0).name == "abc"
    assert evidence.fault_target(0).detail == "Error: boom"


def test_a_real_campaign_is_read_back():
    class Light(Machine):
        @action
        def on(self) -> None:
            self.event("lit")

        @action
        def off(self) -> None:
            pass

    with open_store(":memory:") as store:
        outcome = Campaign(Light, "coin", 40, store=store, workers=0, seed=3).run()
        study = Study(store, [outcome.campaign])
        lit, used = study.hit(study.find("event:lit")), study.evidence.used
    assert np.array_equal(lit, used[:, 0] > 0)
    assert np.array_equal(used.sum(axis=1), study.evidence.steps)
    assert not used[~study.evidence.enabled[:]].any()


def test_a_campaign_without_tests_has_nothing_to_tell():
    store = open_store(":memory:")
    campaign = store.add_campaign(CampaignRecord("simulated", "coin", 1, SPACE.to_json()))
    with pytest.raises(UserError, match="ran no tests yet"):
        read_evidence(store, [campaign])


def test_campaigns_of_other_subjects_are_not_mixed():
    store = open_store(":memory:")
    first = record(store, SPACE, "coin", 5, 1)
    second = store.add_campaign(CampaignRecord("another", "coin", 2, SPACE.to_json()))
    with pytest.raises(UserError, match="different subjects"):
        read_evidence(store, [first, second])


def test_campaigns_with_other_features_name_what_differs():
    store = open_store(":memory:")
    ids = [record(store, space_of(n), "coin", 5, n) for n in (5, 6)]
    with pytest.raises(UserError, match="different features: f5"):
        read_evidence(store, ids)


def test_campaigns_without_features_or_without_a_name_are_refused():
    store = open_store(":memory:")
    empty = store.add_campaign(CampaignRecord("simulated", "coin", 1, {"dimensions": []}))
    with pytest.raises(UserError, match="has no features"):
        read_evidence(store, [empty])
    with pytest.raises(UserError, match="name at least one"):
        read_evidence(store, [])
