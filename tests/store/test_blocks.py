"""Blocks of trials give back what they were made from, and count as rows do."""

from __future__ import annotations

import itertools
import random
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from swarmtest.core.configuration import Configuration
from swarmtest.core.dimensions import Choice, Feature
from swarmtest.core.seeds import seed_of_test
from swarmtest.core.space import Space
from swarmtest.core.targets import pack_hits, unpack_hits
from swarmtest.store.block_tables import add_blocks
from swarmtest.store.blocks import TrialBlock, unpacked
from swarmtest.store.blocks.codec import (
    _pack_weights,
    pack_block,
    unpack_block,
    unpack_features,
    unpack_hit_summary,
    unpack_hits_of_block,
    unpack_whole,
)
from swarmtest.store.blocks.joining import join_blocks
from swarmtest.store.loose_blocks import (
    BlockLayout,
    DamagedBlockError,
    loose_records,
    pack_loose,
)
from swarmtest.store.records import TrialRecord, pack_counts, pack_floats, unpack_counts
from swarmtest.strategies.layered import Layered

SPACE = Space([*(Feature(f"f{i}") for i in range(11)), Choice("level", ("-O0", "-O2"))])
NAMES = SPACE.feature_names
PLAIN = Space([f"f{i}" for i in range(11)])
BOTH = pytest.mark.parametrize("space", [SPACE, PLAIN])


def record(number: int, dice: random.Random, space: Space = SPACE) -> TrialRecord:
    """A trial as campaigns make them."""
    some: dict[str, Any] = {name: 1.0 for name in NAMES if dice.random() < 0.5}
    if dice.random() < 0.2:
        some[NAMES[3]] = dice.random()
    if space is SPACE:
        some["level"] = dice.choice(["-O0", "-O2"])
    configuration = space.configuration(some)
    verdict = dice.randrange(3)
    reached = {*dice.choices(range(40), k=5), *range(dice.randrange(40), 40)}
    return TrialRecord(
        number,
        configuration.to_bytes(),
        pack_floats(dice.choice([(), (0.5,), (0.25,) * 11])),
        dice.choice(["", "coin"]),
        dice.getrandbits(63),
        verdict,
        dice.choice(["f", "g"]) if verdict == 1 else None,
        dice.randrange(50),
        dice.randrange(2),
        pack_counts([dice.choice([0, 3, dice.randrange(300)]) for _ in NAMES]),
        dice.choice([pack_hits(reached), pack_hits(reached), None, pack_hits([])]),
        dice.randrange(10**9),
        dice.randrange(10**9),
        dice.choice(["", "", "it died"]),
    )


def campaign(size: int, seed: int = 1, space: Space = SPACE) -> list[TrialRecord]:
    dice = random.Random(seed)
    numbers = sorted(dice.sample(range(3 * size), size))
    return [record(number, dice, space) for number in numbers]


@BOTH
@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 500])
def test_a_block_gives_back_its_trials(size: int, space: Space) -> None:
    records = campaign(size, space=space)
    assert list(TrialBlock.from_records(records, 11).records()) == records


blobs = st.binary(max_size=12) | st.binary(min_size=2, max_size=2).map(lambda two: b"\0" + two)
texts = st.text(max_size=3)
longs = st.integers(-(2**63), 2**63 - 1)
hit_sets = st.sets(st.integers(0, 200) | st.integers(0, 2**32 - 1), max_size=9).map(pack_hits)
any_record = st.builds(
    TrialRecord, st.integers(0, 99), blobs, blobs, texts, longs, st.integers(0, 2),
    st.none() | texts, st.integers(0, 2**40), st.integers(0, 9), blobs,
    st.none() | blobs | hit_sets, longs, longs, texts,
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(
    records=st.lists(any_record, min_size=1, max_size=9, unique_by=lambda each: each.trial),
    features=st.integers(0, 12),
)
def test_a_block_gives_back_any_trials_also_as_bytes(
    records: list[TrialRecord], features: int
) -> None:
    block = TrialBlock.from_records(records, features)
    ordered = sorted(records, key=lambda each: each.trial)
    assert list(block.records()) == ordered
    assert list(packed_and_unpacked(block, 7).records()) == ordered


def packed_and_unpacked(block: TrialBlock, seed: int) -> TrialBlock:
    layout = BlockLayout(block.features, seed)
    packed = pack_block(block, layout)
    return unpack_whole(packed, layout)


@BOTH
@pytest.mark.parametrize("size", [1, 64, 700])
def test_bytes_give_back_the_block(size: int, space: Space) -> None:
    records = campaign(size, space=space)
    again = packed_and_unpacked(TrialBlock.from_records(records, 11), 7)
    assert list(again.records()) == records
    whole = TrialBlock.from_records(records, 11).hits
    for name in ("targets", "classes", "starts", "positions"):
        assert np.array_equal(getattr(again.hits, name), getattr(whole, name))


@pytest.mark.parametrize("count", [1, 15, 16, 18, 70])
@pytest.mark.parametrize("values", [1, 2, 4, 5, 40])
def test_weights_of_few_values_and_of_many_are_given_back(count: int, values: int) -> None:
    dice = random.Random(10 * count + values)
    space = Space([f"f{i}" for i in range(count)])
    some = [dice.random() for _ in range(values)]
    records = []
    for number in range(60):
        # Every other row has a value that shows only at its end, after all the others.
        weights = [dice.choice(some) for _ in range(count)]
        weights[-1] = dice.choice([0.5, weights[-1]])
        configuration = space.configuration(dict(zip(space.feature_names, weights, strict=True)))
        records.append(TrialRecord(number, configuration.to_bytes()))
    block = TrialBlock.from_records(records, count)
    assert len(block.weight_rows) > 1
    read = unpack_block(pack_block(block, BlockLayout(count, 7)).columns, BlockLayout(count, 7))
    assert read.weight_rows.tolist() == block.weight_rows.tolist()
    assert [*read.records()] == records


def test_weights_of_many_values_take_less_space_than_any_repetitions_in_them_would_save() -> None:
    space = Space([f"f{i}" for i in range(300)])
    proposals = Layered().ask_many(space, range(600), 1) or []
    rows = np.array(
        [[round(65535 * w) for w in p.configuration.weights] for p in proposals], np.uint16
    )
    many = np.array([row for row in rows if len(set(row.tolist())) > 4])
    planes = (many - many.min()).view(np.uint8).reshape(-1, 2).T
    usual = sum(len(zlib.compress(plane.tobytes(), 1)) for plane in planes)
    assert len(_pack_weights(many)) < usual


def test_seeds_that_follow_from_the_campaign_take_no_space() -> None:
    records = [TrialRecord(n, b"\0\1\0", seed=seed_of_test(2**70, n)) for n in range(3, 900, 2)]
    block = TrialBlock.from_records(records, 11)
    derived, stored = (len(pack_block(block, BlockLayout(11, seed)).columns) for seed in (2**70, 1))
    assert stored - derived > 8 * len(records)
    assert list(packed_and_unpacked(block, 2**70).records()) == records


def test_totals_and_faults_are_those_of_the_trials() -> None:
    records = campaign(300)
    packed = pack_block(TrialBlock.from_records(records, 11), BlockLayout(11, 7))
    totals = packed.totals
    assert (totals.first, totals.last) == (records[0].trial, records[-1].trial)
    assert totals.trials == len(records)
    verdicts = [each.verdict for each in records]
    assert totals[3:6] == tuple(verdicts.count(v) for v in range(3))
    for name in ("steps", "skipped", "cpu_ns", "wall_ns"):
        assert getattr(totals, name) == sum(getattr(each, name) for each in records)
    shown = {f: [t.trial for t in records if t.fault == f] for f in ("f", "g")}
    assert set(packed.faults) == {(f, len(trials), trials[0]) for f, trials in shown.items()}


def test_summaries_are_those_of_the_trials() -> None:
    records = campaign(300)
    block = TrialBlock.from_records(records, 11)
    packed = pack_block(block, BlockLayout(11, 7))
    sums, features = unpack_hit_summary(packed.targets), unpack_features(packed.features)
    for target, count, first in zip(sums.targets, sums.counts, sums.first, strict=True):
        trials = [t.trial for t in records if t.hits and target in unpack_hits(t.hits)]
        assert (count, first) == (len(trials), trials[0])
    weights = np.array([weights_of(t) for t in records])
    used = np.array([unpack_counts(t.used) for t in records])
    assert features.enabled.tolist() == (weights > 0).sum(axis=0).tolist()
    assert features.steps.tolist() == used.sum(axis=0).tolist()
    assert features.used.tolist() == (used > 0).sum(axis=0).tolist()
    assert features.known == 300


@pytest.mark.parametrize("part", ["features", "columns", "targets", "hits"])
def test_a_changed_byte_is_noticed(part: str) -> None:
    block = TrialBlock.from_records(campaign(50), 11)
    layout = BlockLayout(11, 7)
    packed = pack_block(block, layout)
    parts = packed._asdict()
    data = bytearray(parts[part])
    data[len(data) // 2] ^= 16
    parts[part] = bytes(data)

    def read() -> None:
        unpack_features(parts["features"])
        unpack_block(parts["columns"], layout)
        unpack_hits_of_block(parts["targets"], parts["hits"], 50)

    with pytest.raises(DamagedBlockError, match="checksum"):
        read()


@settings(max_examples=100, deadline=None)
@given(
    records=st.lists(any_record, max_size=9, unique_by=lambda each: each.trial),
    features=st.integers(0, 12),
    flags=st.lists(st.booleans(), min_size=9, max_size=9),
)
def test_some_trials_of_a_block_are_a_block(
    records: list[TrialRecord], features: int, flags: list[bool]
) -> None:
    block = TrialBlock.from_records(records, features)
    positions = np.flatnonzero(flags[: len(records)])
    whole = list(block.records())
    assert list(block.take(positions).records()) == [whole[i] for i in positions]


@settings(max_examples=100, deadline=None)
@given(
    records=st.lists(any_record, min_size=1, max_size=9, unique_by=lambda each: each.trial),
    features=st.integers(0, 12),
    cuts=st.sets(st.integers(1, 8)),
)
def test_blocks_can_be_joined(records: list[TrialRecord], features: int, cuts: set[int]) -> None:
    ordered = sorted(records, key=lambda each: each.trial)
    bounds = [0, *sorted(cut for cut in cuts if cut < len(records)), len(records)]
    parts = [
        TrialBlock.from_records(ordered[start:end], features)
        for start, end in itertools.pairwise(bounds)
    ]
    joined = join_blocks(parts)
    assert list(joined.records()) == ordered
    whole = TrialBlock.from_records(ordered, features).hits
    assert joined.hits.counts.tolist() == whole.counts.tolist()
    assert len(joined.hits.starts) == len(whole.starts)
    assert list(packed_and_unpacked(joined, 7).records()) == ordered


def test_columns_say_what_the_trials_say() -> None:
    records = campaign(200)
    block = TrialBlock.from_records(records, 11)
    weights = block.weights()
    propensities = block.propensities()[block.propensity_index]
    for i, trial in enumerate(records):
        assert [*map(float, weights[:, i])] == pytest.approx(weights_of(trial))
        if unpack_counts(trial.used):
            assert tuple(block.used[:, i]) == unpack_counts(trial.used)
        assert block.hits_known[i] == trial.hits_are_known
        known = {4: (0.5,) * 11, 44: (0.25,) * 11}.get(len(trial.propensities))
        assert known == tuple(propensities[i]) if known else np.isnan(propensities[i]).all()
    enabled = unpacked(block.enabled, block.size)
    assert np.array_equal(enabled, weights > 0)


def weights_of(trial: TrialRecord) -> list[float]:
    return list(Configuration.from_bytes(SPACE, trial.configuration).weights)


def test_hits_by_target_count_as_hits_by_trial_do() -> None:
    records = campaign(300)
    block = TrialBlock.from_records(records, 11)
    by_trial = [set(unpack_hits(trial.hits)) if trial.hits else set() for trial in records]
    hits = block.hits
    assert hits.targets.tolist() == sorted(set().union(*by_trial))
    bits = hits.class_bits()
    for target, number, count, first in zip(
        hits.targets.tolist(), hits.classes, hits.counts, hits.first, strict=True
    ):
        trials = [i for i, reached in enumerate(by_trial) if target in reached]
        assert hits.members(number).tolist() == trials
        assert (count, first) == (len(trials), trials[0])
        assert np.flatnonzero(unpacked(bits[number], block.size)).tolist() == trials
    assert np.array_equal(hits.class_bits([3, 1]), bits[[3, 1]])


def test_targets_that_the_same_trials_hit_share_a_class() -> None:
    packed = [pack_hits([1, 2, 70_000, 9]), pack_hits([9]), pack_hits([2, 1, 70_000])]
    records = [TrialRecord(n, b"", hits=hits) for n, hits in enumerate(packed)]
    hits = TrialBlock.from_records(records, 0).hits
    assert hits.targets.tolist() == [1, 2, 9, 70_000]
    assert hits.classes[0] == hits.classes[1] == hits.classes[3] != hits.classes[2]
    assert len(hits.starts) == 3


def test_more_targets_than_sixteen_bits_are_inverted_too() -> None:
    sets = [range(70_000), range(1, 80_000, 2)]
    records = [TrialRecord(n, b"", hits=pack_hits(ids)) for n, ids in enumerate(sets)]
    block = TrialBlock.from_records(records, 0)
    assert list(block.records()) == records
    assert block.hits.counts.sum() == 70_000 + 40_000


# Loose blocks: a few trials without hits, without numpy.


@settings(max_examples=100, deadline=None)
@example(records=[TrialRecord(0, b"", used=b"\4" + bytes(9))], features=0)
@example(records=[TrialRecord(0, b"", used=b"\4" + bytes(8))], features=2)
@given(
    records=st.lists(any_record, min_size=1, max_size=9, unique_by=lambda each: each.trial),
    features=st.integers(0, 12),
)
def test_a_loose_block_is_read_like_any_other(records: list[TrialRecord], features: int) -> None:
    ordered = [each._replace(hits=None) for each in sorted(records, key=lambda each: each.trial)]
    layout = BlockLayout(features, 7)
    loose = pack_loose(ordered, layout)
    usual = pack_block(TrialBlock.from_records(ordered, features), layout)
    assert loose_records(loose.columns) == ordered
    assert list(unpack_whole(loose, layout).records()) == ordered
    assert (loose.totals, set(loose.faults)) == (usual.totals, set(usual.faults))
    sums, same = unpack_features(loose.features), unpack_features(usual.features)
    for name in ("enabled", "offered", "used", "steps"):
        assert getattr(sums, name).tolist() == getattr(same, name).tolist()
    assert sums.known == same.known


def test_a_changed_byte_of_a_loose_block_is_noticed() -> None:
    packed = pack_loose([TrialRecord(0, b"")], BlockLayout(0, 7))
    changed = bytearray(packed.columns)
    changed[5] ^= 1
    with pytest.raises(DamagedBlockError, match="checksum"):
        loose_records(bytes(changed))


def test_the_database_is_asked_once_for_all_blocks_of_a_batch() -> None:
    asked = []

    def execute(query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        if query.lstrip().startswith("SELECT"):
            asked.append(values)
        return []

    records = [TrialRecord(n, b"\0\1") for n in range(400)]
    layout = BlockLayout(1, 7)
    blocks = [
        pack_block(TrialBlock.from_records(records[start : start + 100], 1), layout)
        for start in (200, 0, 300, 100)
    ]
    add_blocks(execute, 1, layout, blocks)
    assert asked == [(1, 399, 1, 0, 0)]
