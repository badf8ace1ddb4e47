"""Tests stream by in blocks: neither their size nor numba changes a result, and memory stays small.

Numbers are those of the whole at once, computed here in the plainest way.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_campaigns import record, space_of

from swarmtest import open_store
from swarmtest.analysis import bit_counts, hit_blocks, role_cells
from swarmtest.analysis.bit_counts import Bits, count_bits, packed
from swarmtest.analysis.block_reading import TargetClasses
from swarmtest.analysis.hit_blocks import HitBlock, blocks_of_tests
from swarmtest.growth.growth import measure_growth
from swarmtest.roles import counting
from swarmtest.roles.study import Study
from swarmtest.store.blocks import TrialBlock, features_of
from swarmtest.store.blocks.hits import invert_hits
from swarmtest.store.sqlite.store import SqliteStore


def needs_first(weights):
    return np.where(weights[:, 0] > 0, 0.5, 0.02)


def without_second(weights):
    return np.where(weights[:, 1] > 0, 0.01, 0.3)


def rarely(weights):
    return np.full(len(weights), 0.05)


def nearly_always(weights):
    return np.full(len(weights), 0.9)


TRUTHS = (needs_first, without_second, rarely, nearly_always)


def everything(store, campaigns):
    """All that a study can say, as plain data."""
    study = Study(store, campaigns)
    table = study.table("event")
    said = {
        "hits": table.hits,
        "informative": table.counted.informative,
        "containing": table.counted.containing,
        "base": table.counted.base,
        "alone": table.counted.alone,
        "codes": table.codes,
        "adjusted": table.adjusted,
    }
    for target in table.targets:
        for name in ("roles", "effects", "pairs", "amounts"):
            found = [one.to_json() for one in getattr(study, name)(target)]
            said[f"{name} of {target}"] = _numbers(found)
    said["growth"] = _numbers(measure_growth(store, campaigns[:1]).to_json())
    return said


def _numbers(plain):
    """The numbers and words in plain data, in order."""
    if isinstance(plain, dict):
        return [one for value in plain.values() for one in _numbers(value)]
    if isinstance(plain, list | tuple):
        return [one for value in plain for one in _numbers(value)]
    return [plain]


def same(one, other):
    for name, value in one.items():
        words = [[one for one in said if isinstance(one, str)] for said in (value, other[name])]
        numbers = [
            np.array([one for one in said if not isinstance(one, str)], float)
            for said in (value, other[name])
        ]
        assert words[0] == words[1], name
        assert np.allclose(numbers[0], numbers[1], rtol=1e-5, atol=1e-9, equal_nan=True), name


def in_small_blocks(store, campaign, *, after=-1, hits=True):
    """Yield blocks of a few trials, whose bits do not end with a word."""
    features = features_of(store.campaign(campaign).space)
    trials = list(store.trials(campaign, after=after))
    for start in range(0, len(trials), 37):
        yield TrialBlock.from_records(trials[start : start + 37], features)


@pytest.mark.parametrize("strategies", [("coin",), ("layered", "coin:n=20"), ("activation",)])
def test_the_size_of_blocks_changes_no_result(strategies, monkeypatch):
    space = space_of(7)
    store = open_store(":memory:")
    used = np.random.default_rng(3).integers(0, 400, (700, 7))
    ids = [
        record(store, space, strategy, 700, seed, TRUTHS, used=used)
        for seed, strategy in enumerate(strategies)
    ]
    usual = everything(store, ids)
    monkeypatch.setattr(bit_counts, "ROWS", 64)
    monkeypatch.setattr(hit_blocks, "MOST_TESTS", 100)
    monkeypatch.setattr(hit_blocks, "_FLAGS", 1000)
    monkeypatch.setattr(role_cells, "CELLS", 5)
    monkeypatch.setattr(counting, "GROUP_BYTES", 100)
    monkeypatch.setattr(counting, "SEGMENT_BYTES", 100)
    monkeypatch.setattr(counting, "PIECE_CELLS", 1)
    monkeypatch.setattr(bit_counts, "_GATHERED", 10)
    monkeypatch.setattr(bit_counts, "_TARGETS", 1)
    monkeypatch.setattr(bit_counts, "_WORDS_PER_SUM", 2)
    monkeypatch.setattr(SqliteStore, "blocks", in_small_blocks)
    same(usual, everything(store, ids))
    for many in (0.0, 2.0):
        monkeypatch.setattr(bit_counts, "_MANY", many)
        same(usual, everything(store, ids))


def test_machine_code_says_the_same(monkeypatch):
    pytest.importorskip("numba")
    store = open_store(":memory:")
    ids = [record(store, space_of(70), "activation", 900, 0, TRUTHS)]
    usual = everything(store, ids)
    monkeypatch.setattr(bit_counts, "_WORTH_COMPILING", 0)
    for many in (0.0, 2.0):
        monkeypatch.setattr(bit_counts, "_MANY", many)
        same(usual, everything(store, ids))


def block_of(hits) -> HitBlock:
    (block,) = blocks_of_tests([np.flatnonzero(column) for column in hits.T], len(hits))
    return block


@given(st.integers(1, 200), st.integers(1, 5), st.integers(1, 130), st.floats(0, 1), st.integers(0))
@settings(deadline=None, max_examples=60)
def test_rows_of_bits_add_up(tests, targets, columns, density, seed):
    random = np.random.default_rng(seed)
    hits = random.random((tests, targets)) < density
    has = random.random((tests, columns)) < 0.5
    block = block_of(hits)
    expected = hits.T.astype(int) @ has.astype(int)
    counts = np.ones((targets, columns), np.int32)
    bit_counts._add_rows(block.starts, block.tests, np.arange(targets), Bits.of(has).words, counts)
    assert np.array_equal(counts, 1 + expected)
    words = packed(has)
    for many in (0.0, 0.5, 2.0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bit_counts, "_MANY", many)
            counted = count_bits(block.starts, block.tests, block.chosen, words)
        assert np.array_equal(counted, expected)


def test_more_hits_than_a_few_planes_hold_are_counted_in_machine_code():
    pytest.importorskip("numba")
    tests = 40_000
    block = block_of(np.ones((tests, 1), bool))
    has = np.random.default_rng(1).random((tests, 66)) < [[0.5] * 65 + [1.0]]
    counts = np.zeros((1, 66), np.int32)
    compiled = bit_counts._compiled()
    assert compiled
    compiled.add_rows(block.starts, block.tests, np.arange(1), Bits.of(has).words, counts)
    assert np.array_equal(counts[0], has.sum(axis=0))


@given(st.lists(st.sets(st.integers(0, 12)), max_size=30))
def test_targets_are_alike_if_the_same_tests_hit_them(hits):
    target_classes = TargetClasses()
    for block in (hits[:7], hits[7:]):
        inverted = invert_hits([sorted(ids) for ids in block])
        target_classes.add(inverted.targets, inverted.classes)
    classes = target_classes.classes()
    by_hand = {id: frozenset(t for t, ids in enumerate(hits) if id in ids) for id in range(13)}
    reached = [id for id in by_hand if by_hand[id]]
    assert target_classes.reached().tolist() == reached
    for one in reached:
        for other in reached:
            assert (classes[one] == classes[other]) == (by_hand[one] == by_hand[other])


def test_bits_are_read_like_the_array_they_hold():
    has = np.random.default_rng(2).random((150, 70)) < 0.4
    held = Bits.of(has)
    some = np.array([3, 149, 3])
    assert np.array_equal(held, has)
    assert np.array_equal(held[some], has[some])
    assert np.array_equal(held[10:90], has[10:90])
    assert np.array_equal(held[:, 69], has[:, 69])
    assert np.array_equal(held[some, [0, 64]], has[some][:, [0, 64]])
    assert held[some, []].shape == (3, 0)
    assert np.array_equal(held.sizes(), has.sum(axis=1))


MEASURE = Path(__file__).parents[2] / "benchmarks" / "scale_memory.py"


def peak_of(tests: int) -> int:
    words = [sys.executable, str(MEASURE), str(tests), "40", "2000", "300"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_memory_does_not_grow_with_the_hits_of_more_tests():
    """What may grow: packed columns. Bools of tests by targets would be 2,000 bytes a test."""
    few, many = 5_000, 13_000  # one block, and three
    packed = 40 // 8 + 40 + 8 * 8 + 16
    margin = 2 * packed + 100
    assert peak_of(many) - peak_of(few) < margin * (many - few)
