"""Counting bits in three ways: with numpy, with numba, and one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest.analysis import bit_counts as counting
from swarmtest.analysis.bit_counts import cooccurrence, packed


def columns(tests: int, count: int, seed: int, density: float = 0.3) -> np.ndarray:
    return np.random.default_rng(seed).random((tests, count)) < density


def by_hand(targets: np.ndarray, features: np.ndarray) -> np.ndarray:
    return np.asarray(targets.T.astype(int) @ features.astype(int))


@given(st.integers(1, 300), st.integers(0, 7), st.integers(0, 9), st.integers(0, 2**32))
@settings(deadline=None)
def test_counts_are_those_of_counting_one_by_one(tests, targets, features, seed):
    hit, has = columns(tests, targets, seed), columns(tests, features, seed + 1)
    assert np.array_equal(cooccurrence(packed(hit), packed(has)), by_hand(hit, has))


@pytest.mark.parametrize("tests", [1, 63, 64, 65, 127, 128, 1000])
def test_machine_code_counts_what_numpy_counts(tests, monkeypatch):
    pytest.importorskip("numba")
    hit, has = columns(tests, 12, 1), columns(tests, 5, 2)
    plain = cooccurrence(packed(hit), packed(has))
    monkeypatch.setattr(counting, "_WORTH_COMPILING", 0)
    assert np.array_equal(cooccurrence(packed(hit), packed(has)), plain)
    assert np.array_equal(plain, by_hand(hit, has))


def test_without_numba_numpy_counts_however_much_there_is(monkeypatch):
    monkeypatch.setattr(counting, "_WORTH_COMPILING", 0)
    monkeypatch.setattr(counting, "_compiled", lambda: None)
    hit, has = columns(200, 12, 1), columns(200, 5, 2)
    assert np.array_equal(cooccurrence(packed(hit), packed(has)), by_hand(hit, has))


def test_small_counts_do_not_wait_for_a_compiler(monkeypatch):
    def refuse() -> None:
        raise AssertionError("numba was started")

    monkeypatch.setattr(counting, "_compiled", refuse)
    hit, has = columns(1000, 100, 1), columns(1000, 20, 2)
    assert np.array_equal(cooccurrence(packed(hit), packed(has)), by_hand(hit, has))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40))
@settings(deadline=None)
def test_targets_hit_by_the_same_tests_get_the_same_counts(choice):
    few = columns(100, 4, 3)
    hit, has = few[:, choice], columns(100, 6, 4)
    assert np.array_equal(cooccurrence(packed(hit), packed(has)), by_hand(hit, has))


def test_a_target_hit_by_every_test_counts_all_bits_and_no_padding():
    always = np.ones((65, 1), bool)
    assert cooccurrence(packed(always), packed(always)).tolist() == [[65]]


def test_counts_above_what_sixteen_bits_hold_are_right():
    always = np.ones((70_000, 1), bool)
    assert cooccurrence(packed(always), packed(always)).tolist() == [[70_000]]
