"""The candidates of a large campaign are its shortest tests, found here in the plainest way."""

from __future__ import annotations

import random

import pytest
from pyroaring import BitMap
from store_examples import CAMPAIGN, trial

from swarmtest.core.targets import Target, pack_hits
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.store.records import TrialRecord
from swarmtest.suite import candidates, suite
from swarmtest.suite.candidates import thin_campaign

SHORTEST, RICHEST = 4, 4


def campaign_of(store: Store, tests: int, seed: int) -> tuple[int, list[TrialRecord]]:
    """A campaign in blocks of 300 tests, in which some targets are hit by most and some by few."""
    rng = random.Random(seed)
    number = store.add_campaign(CAMPAIGN)
    ids = store.target_ids([Target("event", str(i)) for i in range(60)])
    records = []
    for n in range(tests):
        hits = [id for i, id in enumerate(ids) if rng.random() < 1 / (1 + i * i / 4)]
        fault = rng.choice((None, None, None, "f", "g"))
        records.append(
            trial(
                n,
                hits=pack_hits(hits) if rng.random() < 0.95 else None,
                steps=rng.randrange(40),
                verdict=2 if n % 97 == 5 else int(fault is not None),
                fault=None if n % 97 == 5 else fault,
                wall_ns=rng.randrange(3) * 10**6,
            )
        )
    for start in range(0, tests, 300):
        store.record(number, records[start : start + 300])
    return number, records


@pytest.mark.parametrize("looked_at", [candidates._LOOKED_AT, 20])
def test_candidates_are_the_shortest_tests_of_each_target_and_the_richest(
    looked_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "_LOOKED_AT", looked_at)
    with open_store(":memory:") as store:
        number, records = campaign_of(store, 1000, 4)
        thinned = thin_campaign(store, number, [17], ["g"])
    valid = [record for record in records if record.verdict != 2]
    usable = [record for record in valid if record.fault != "g"]
    hits = {r.trial: BitMap.deserialize(r.hits) if r.hits else BitMap() for r in usable}
    expected = {17}
    for failing in (False, True):
        group = [record for record in usable if (record.fault is not None) == failing]
        group.sort(key=lambda record: (record.steps, record.trial))
        for target in BitMap.union(*hits.values()):
            expected |= {r.trial for r in [r for r in group if target in hits[r.trial]][:SHORTEST]}
    for start in range(0, 1000, 300):
        block = [r for r in usable if start <= r.trial < start + 300 and r.fault is None]
        block.sort(key=lambda record: -len(hits[record.trial]))
        expected |= {record.trial for record in block[:RICHEST]}
    assert thinned.trials.tolist() == sorted(expected)
    assert thinned.tests == len(valid)
    seconds = sum(max((r.wall_ns or r.cpu_ns) / 1e9, 1e-6) for r in valid)
    assert thinned.seconds == pytest.approx(seconds)


def test_a_large_campaign_keeps_every_target_and_claims_no_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with open_store(":memory:") as store:
        number, _ = campaign_of(store, 900, 5)
        whole = suite.read_table(store, number)
        monkeypatch.setattr(suite, "MANY", 500)
        some = suite.read_table(store, number)
    assert some.targets == whole.targets
    assert some.trials == whole.trials
    assert some.all_seconds == pytest.approx(whole.all_seconds)
    assert len(some.tests) < len(whole.tests)
    assert some.thinned
    assert not whole.thinned
    assert f"of {whole.trials:,}" in some.notes[-1]
