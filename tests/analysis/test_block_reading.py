"""Sums over blocks against the same sums over trials, one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from swarmtest import Space, open_store
from swarmtest.analysis.block_reading import configuration_keys, count_hits, known_hit_summary
from swarmtest.analysis.discovery import discovery, halves
from swarmtest.core.targets import Target
from swarmtest.store.blocks import TrialBlock
from swarmtest.store.records import CampaignRecord, TrialRecord

SPACE = Space(["push", "pop"])
TARGETS = [Target("event", name) for name in "abcdef"]
trials = st.lists(st.tuples(st.sets(st.integers(0, 5)), st.booleans()), max_size=40)
"""For each trial what it hit, and whether its hits are known."""


def recorded(store, tests):
    """Record trials with every second number, in blocks of seven."""
    ids = store.target_ids(TARGETS)
    campaign = store.add_campaign(CampaignRecord("simulated", "coin", 1, SPACE.to_json()))
    records = [
        TrialRecord(
            2 * number,
            SPACE.configuration(["push"]).to_bytes(),
            hits=BitMap([ids[hit] for hit in hits]).serialize() if hits else None,
            missing="" if known else "killed",
            cpu_ns=1_000,
        )
        for number, (hits, known) in enumerate(tests)
    ]
    for start in range(0, len(records), 7):
        store.record(campaign, records[start : start + 7])
    return campaign, ids


@given(trials)
@settings(deadline=None, max_examples=60)
def test_hits_of_tests_without_coverage_are_not_counted(tests):
    with open_store(":memory:") as store:
        campaign, ids = recorded(store, tests)
        by_hand = {
            ids[target]: [
                2 * n for n, (hits, known) in enumerate(tests) if known and target in hits
            ]
            for target in range(len(TARGETS))
        }
        by_hand = {id: numbers for id, numbers in by_hand.items() if numbers}
        unknown = np.array([2 * n for n, (_, known) in enumerate(tests) if not known], np.int64)
        summary = known_hit_summary(store, campaign, unknown)
        assert summary.targets.tolist() == sorted(by_hand)
        assert summary.counts.tolist() == [len(by_hand[id]) for id in sorted(by_hand)]
        assert summary.first.tolist() == [by_hand[id][0] for id in sorted(by_hand)]
        targets, counts, missing = count_hits(store, campaign)
        assert dict(zip(targets.tolist(), counts.tolist(), strict=True)) == {
            id: len(numbers) for id, numbers in by_hand.items()
        }
        assert missing.total() == len(unknown)


@given(trials)
@settings(deadline=None, max_examples=60)
def test_a_half_has_what_its_own_tests_found(tests):
    with open_store(":memory:") as store:
        campaign, _ = recorded(store, tests)
        half, whole = halves(store, campaign)
        for found, count in ((half, len(tests) // 2), (whole, len(tests))):
            assert found.tests == count
            assert found.missing == sum(not known for _, known in tests[:count])
            assert {(each.target.name, each.hits, each.first) for each in found.found} == {
                (target.name, len(numbers), numbers[0])
                for place, target in enumerate(TARGETS)
                if (
                    numbers := [
                        n
                        for n, (hits, known) in enumerate(tests[:count])
                        if known and place in hits
                    ]
                )
            }
        some = discovery(store, campaign, cpu_seconds=4.5e-6)
        assert some.tests == min(len(tests), 4)


@given(
    st.lists(st.tuples(st.sampled_from([0, 0.25, 1]), st.sampled_from([0.25, 0.5, 1])), min_size=2)
)
@settings(deadline=None)
def test_configurations_have_equal_keys_if_they_are_equal(weights):
    configurations = [
        SPACE.configuration({"push": one, "pop": other}).to_bytes() for one, other in weights
    ]
    records = [TrialRecord(n, packed) for n, packed in enumerate(configurations)]
    keys = configuration_keys(TrialBlock.from_records(records, 2)).tolist()
    for one, key in zip(configurations, keys, strict=True):
        for other, other_key in zip(configurations, keys, strict=True):
            assert (one == other) == (key == other_key)
