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
from swarmtest.analysis import bit_counts, role_cells, trial_columns
from swarmtest.analysis.bit_counts import Bits
from swarmtest.analysis.role_cells import HitBlock, blocks_of_bools
from swarmtest.analysis.trial_columns import TargetClasses
from swarmtest.growth.growth import measure_growth
from swarmtest.roles import counting
from swarmtest.roles.study import Study


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
    monkeypatch.setattr(role_cells, "BLOCK_HITS", 40)
    monkeypatch.setattr(trial_columns, "_ROWS", 100)
    monkeypatch.setattr(role_cells, "CELLS", 5)
    monkeypatch.setattr(counting, "GROUP_BYTES", 100)
    monkeypatch.setattr(bit_counts, "_GATHERED", 10)
    same(usual, everything(store, ids))
    monkeypatch.setattr(counting, "_DENSE", 2.0)
    same(usual, everything(store, ids))


def test_machine_code_says_the_same(monkeypatch):
    pytest.importorskip("numba")
    store = open_store(":memory:")
    ids = [record(store, space_of(70), "activation", 900, 0, TRUTHS)]
    usual = everything(store, ids)
    monkeypatch.setattr(bit_counts, "_WORTH_COMPILING", 0)
    monkeypatch.setattr(counting, "_DENSE", 2.0)
    same(usual, everything(store, ids))


def block_of(hits) -> HitBlock:
    (block,) = blocks_of_bools(hits)
    return block


@given(st.integers(1, 200), st.integers(1, 5), st.integers(1, 130), st.floats(0, 1), st.integers(0))
@settings(deadline=None, max_examples=60)
def test_rows_of_bits_add_up(tests, targets, columns, density, seed):
    random = np.random.default_rng(seed)
    hits = random.random((tests, targets)) < density
    has = random.random((tests, columns)) < 0.5
    block = block_of(hits)
    for compiled in (False, True):
        counts = np.ones((targets, columns), np.int32)
        chosen = np.arange(targets)
        rows = Bits.of(has).words
        if compiled:
            bit_counts._add_rows(block.starts, block.tests, chosen, rows, counts)
        else:
            bit_counts.add_rows(block.starts, block.tests, chosen, rows, counts)
        assert np.array_equal(counts, 1 + hits.T.astype(int) @ has.astype(int))


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
    for test, ids in enumerate(hits):
        target_classes.add(test, np.array(sorted(ids), int))
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
    few, many = 1_000, 6_000
    packed = 40 // 8 + 40 + 8 * 8 + 16
    margin = 2 * packed + 100
    assert peak_of(many) - peak_of(few) < margin * (many - few)
