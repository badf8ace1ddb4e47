"""Covering arrays are small, complete, allowed, and judged by a checker that cannot be fooled."""

import hashlib
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest.strategies.covering.arrays import covering_array
from swarmtest.strategies.covering.check import (
    count_uncovered,
    is_covering,
    uncovered,
    violating_rows,
)
from swarmtest.strategies.covering.constructions import STARTERS


@st.composite
def feature_clauses(draw, features=7):
    """A few random clauses of one to three literals."""
    literal = st.integers(1, features).flatmap(lambda f: st.sampled_from([f, -f]))
    clause = st.lists(literal, min_size=1, max_size=3, unique_by=abs).map(tuple)
    return draw(st.lists(clause, min_size=1, max_size=6))


def allowed_rows(features, clauses):
    """All full rows that satisfy the clauses, by brute force."""
    return [
        row
        for row in product((0, 1), repeat=features)
        if all(any(row[abs(x) - 1] == (x > 0) for x in clause) for clause in clauses)
    ]


def combinations_in(rows, features, t):
    return {
        tuple((f + 1) * (1 if row[f] else -1) for f in chosen)
        for row in rows
        for chosen in combinations(range(features), t)
    }


@given(features=st.integers(1, 9), t=st.integers(1, 6))
@settings(max_examples=15, deadline=None)
def test_every_combination_of_t_features_is_in_some_row(features, t):
    rows = covering_array(features, t)
    assert set(np.unique(rows)) <= {0, 1}
    t = min(t, features)
    assert len(combinations_in(rows, features, t)) == comb(features, t) * 2**t


@pytest.mark.parametrize(("features", "t"), [(12, 2), (30, 3), (50, 3), (25, 4), (60, 4), (30, 5)])
def test_sizes_between_the_well_known_ones_are_covered_too(features, t):
    rows = covering_array(features, t)
    assert rows.shape[1] == features
    assert is_covering(rows, t)


@pytest.mark.parametrize("t", [2, 3, 4, 5, 6])
def test_hundreds_of_features_work_at_every_strength(t):
    rows = covering_array(300, t)
    assert rows.shape[1] == 300
    assert is_covering(rows, t, sample=3000)


def test_fewer_features_than_the_strength_give_all_rows_there_are():
    assert sorted(covering_array(3, 5).tolist()) == [list(row) for row in product((0, 1), repeat=3)]


def test_one_feature_is_once_on_and_once_off():
    assert sorted(covering_array(1, 2).tolist()) == [[0], [1]]


@pytest.mark.parametrize(("features", "t"), [(0, 2), (3, 0)])
def test_no_features_or_no_strength_is_an_error(features, t):
    with pytest.raises(ValueError, match="at least one"):
        covering_array(features, t)


@pytest.mark.parametrize(
    ("features", "t", "at_most"),
    [
        (7, 2, 6), (23, 2, 8), (43, 2, 9), (171, 2, 11),
        (7, 3, 12), (23, 3, 21), (43, 3, 26), (171, 3, 43),
        (7, 4, 24), (23, 4, 46), (43, 4, 67),
        (7, 5, 42), (23, 5, 136), (43, 5, 136),
        (7, 6, 64), (23, 6, 368),
    ],
)  # fmt: skip
def test_arrays_are_as_small_as_promised(features, t, at_most):
    rows = covering_array(features, t)
    assert len(rows) <= at_most
    assert is_covering(rows, t)


@pytest.mark.parametrize(("features", "t", "at_most"), [(171, 4, 134), (171, 5, 346), (43, 6, 516)])
def test_large_arrays_are_as_small_as_promised_and_cover_what_is_sampled(features, t, at_most):
    rows = covering_array(features, t)
    assert len(rows) <= at_most
    assert is_covering(rows, t, sample=20_000)


@pytest.mark.parametrize(("features", "clauses"), [(1000, []), (171, [(1, 2)])])
def test_what_is_too_large_is_refused_with_a_reason(features, clauses):
    with pytest.raises(ValueError, match=f"{features} features"):
        covering_array(features, 5, clauses=clauses)


def test_the_same_arguments_give_the_same_array():
    assert np.array_equal(covering_array(10, 3, seed=4), covering_array(10, 3, seed=4))


@given(clauses=feature_clauses(), t=st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_with_constraints_all_rows_are_allowed_and_all_that_is_possible_is_covered(clauses, t):
    rows = covering_array(7, t, clauses=clauses)
    allowed = allowed_rows(7, clauses)
    assert {tuple(row) for row in rows.tolist()} <= set(allowed)
    assert combinations_in(rows, 7, t) == combinations_in(allowed, 7, t)
    assert is_covering(rows, t, clauses)


def test_contradictory_constraints_leave_no_row():
    assert covering_array(4, 2, clauses=[(1,), (-1,)]).shape == (0, 4)


def test_exclusive_features_cost_few_more_rows_than_free_ones():
    never_together = list(combinations(range(-10, 0), 2))
    rows = covering_array(20, 2, clauses=never_together)
    assert is_covering(rows, 2, never_together)
    assert len(rows) <= 24


def test_a_constraint_on_an_unknown_feature_is_an_error():
    with pytest.raises(ValueError, match="no feature"):
        covering_array(4, 2, clauses=[(5, 1)])


def test_arrays_under_constraints_stay_the_same_from_release_to_release():
    """A campaign that is resumed goes on with the rows that it began with."""
    tree = [(-i, i // 2) for i in range(2, 13)]
    rows = covering_array(12, 2, clauses=[*tree, (-11, -12), (4, 5, 6)])
    digest = hashlib.sha256(rows.tobytes()).hexdigest()
    assert (rows.shape, digest[:16]) == ((9, 12), "2d9a6e8f3389b66b")


@pytest.mark.parametrize("starter", STARTERS, ids=lambda s: f"{s.strength}-{s.rows}x{s.columns}")
def test_every_stored_starter_has_the_strength_it_claims(starter):
    rows = starter.expand()
    assert rows.shape == (starter.rows, starter.columns)
    assert is_covering(rows, starter.strength, sample=4000)


def test_the_checker_names_what_a_removed_row_leaves_uncovered():
    rows = covering_array(11, 3)
    without = np.delete(rows, 5, axis=0)
    missing = uncovered(without, 3)
    assert missing
    assert not is_covering(without, 3)
    everything = combinations_in(rows, 11, 3)
    assert set(missing) == everything - combinations_in(without, 11, 3)


@given(seed=st.integers(0, 1000), t=st.integers(2, 4))
@settings(max_examples=25, deadline=None)
def test_the_checker_counts_exactly_what_random_rows_leave_open(seed, t):
    rows = np.random.default_rng(seed).integers(0, 2, (12, 7)).astype(np.int8)
    missing = comb(7, t) * 2**t - len(combinations_in(rows, 7, t))
    assert count_uncovered(rows, t) == len(uncovered(rows, t)) == missing


def test_the_checker_catches_a_flipped_entry():
    rows = covering_array(4, 3)
    rows[0, 0] ^= 1
    assert not is_covering(rows, 3)


def test_the_checker_finds_gaps_by_sampling_too():
    rows = np.delete(covering_array(23, 4), 0, axis=0)
    assert not is_covering(rows, 4, sample=5000)


def test_an_entry_left_open_covers_nothing():
    rows = np.array([[0, 0], [0, 1], [1, 0], [1, -1]], dtype=np.int8)
    assert uncovered(rows, 2) == [(1, 2)]


def test_the_checker_does_not_ask_for_what_constraints_forbid():
    rows = np.array([[0, 0], [0, 1], [1, 0]], dtype=np.int8)
    assert not is_covering(rows, 2)
    assert is_covering(rows, 2, [(-1, -2)])


def test_the_checker_rejects_rows_that_break_a_constraint():
    rows = np.array(list(product((0, 1), repeat=2)), dtype=np.int8)
    assert violating_rows(rows, [(-1, -2)]) == [3]
    assert not is_covering(rows, 2, [(-1, -2)])
