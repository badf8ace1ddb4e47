"""Choosing tests: what is kept, how few, and what is proven."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmtest.analysis import set_cover as search
from swarmtest.analysis.set_cover import (
    Bools,
    CoverProblem,
    greedy,
    greedy_in_time,
    irredundant,
    lower_bound,
    needed,
    smallest_cover,
    thinned,
)


@st.composite
def tables(draw: st.DrawFn) -> Bools:
    tests, targets = draw(st.integers(1, 7)), draw(st.integers(1, 9))
    rows = draw(st.lists(st.integers(0, 2**targets - 1), min_size=tests, max_size=tests))
    return np.array([[row >> i & 1 for i in range(targets)] for row in rows], bool)


shares = st.sampled_from([0.3, 0.5, 0.7, 0.9, 1.0])


def fewest(problem: CoverProblem) -> int:
    """By trying all subsets."""
    tests = range(len(problem.rows))
    return next(
        count
        for count in range(len(problem.rows) + 1)
        if any(problem.kept(some) >= problem.need for some in itertools.combinations(tests, count))
    )


@given(tables(), shares)
def test_a_greedy_suite_keeps_what_is_needed_and_has_no_test_too_many(
    table: Bools, share: float
) -> None:
    problem = CoverProblem.of(table, share)
    chosen = greedy(problem)
    assert problem.kept(chosen) >= problem.need
    assert all(problem.kept([t for t in chosen if t != one]) < problem.need for one in chosen)


@given(tables(), shares)
def test_the_smallest_suite_is_smallest(table: Bools, share: float) -> None:
    problem = CoverProblem.of(table, share)
    chosen, at_least = smallest_cover(problem)
    assert problem.kept(chosen) >= problem.need
    assert len(chosen) == at_least == fewest(problem)


@given(tables(), shares)
def test_no_suite_is_smaller_than_the_bound(table: Bools, share: float) -> None:
    problem = CoverProblem.of(table, share)
    bound = lower_bound(problem, greedy(problem)) if problem.need else None
    if bound is not None:
        assert bound.tests <= fewest(problem) <= len(bound.chosen)
        assert problem.kept(bound.chosen) >= problem.need


@given(tables(), shares)
def test_a_thinned_suite_still_keeps_what_is_needed(table: Bools, share: float) -> None:
    problem = CoverProblem.of(table, share)
    everything = list(range(len(table)))
    assert problem.kept(thinned(problem, everything)) >= problem.need


@given(tables(), st.lists(st.floats(0.1, 2.0), min_size=7, max_size=7), st.floats(0.05, 5.0))
def test_a_suite_in_time_fits_and_keeps_at_least_what_any_one_test_does(
    table: Bools, times: list[float], budget: float
) -> None:
    problem = CoverProblem.of(table)
    seconds = np.array(times[: len(table)])
    chosen = greedy_in_time(problem, seconds, budget)
    assert seconds[chosen].sum() <= budget + 1e-9
    fitting = [problem.kept([t]) for t in range(len(table)) if seconds[t] <= budget]
    assert problem.kept(chosen) >= max(fitting, default=0)


def test_what_is_merely_quick_does_not_fill_the_time() -> None:
    table = np.zeros((2, 100), bool)
    table[0, :1] = True  # one target in a hundredth of a second
    table[1, 1:] = True  # all the others, in all the time there is
    assert greedy_in_time(CoverProblem.of(table), np.array([0.01, 1.0]), 1.0) == [1]


def test_targets_that_the_same_tests_hit_are_one_class_with_their_weight() -> None:
    problem = CoverProblem.of(np.array([[1, 1, 0, 1], [0, 0, 0, 1]], bool))
    assert problem.weights.tolist() == [2, 1]
    assert problem.members == ((0, 1), (3,))
    assert problem.total == 3


def test_seven_percent_of_a_hundred_are_seven() -> None:
    assert needed(0.07, 100) == 7


def test_of_equal_tests_the_first_is_taken() -> None:
    assert greedy(CoverProblem.of(np.array([[1, 1], [1, 1]], bool))) == [0]


def test_the_test_that_was_taken_last_goes_first() -> None:
    table = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0]], bool)
    assert irredundant(CoverProblem.of(table), [0, 1, 2]) == [0, 1]


@pytest.mark.parametrize("sat", [True, False])
def test_greedy_is_beaten_where_it_is_led_astray(
    sat: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The classic: the largest test is in no smallest suite."""
    if not sat:
        monkeypatch.setattr(search, "sat_is_installed", lambda: False)
    columns = 30
    halves = np.arange(columns) % 2 == 0
    tests = [halves, ~halves]
    start = 0
    for size in (16, 8, 4, 2):
        row = np.zeros(columns, bool)
        row[start : start + size] = True
        start += size
        tests.append(row)
    problem = CoverProblem.of(np.array(tests))
    assert len(greedy(problem)) == 4
    assert smallest_cover(problem) == ([0, 1], 2)


def test_ten_thousand_tests_are_chosen_from_in_little_time() -> None:
    """0.3 s of CPU time on a machine with nothing else to do."""
    import time

    rng = np.random.default_rng(7)
    rare = 10 ** rng.uniform(-3, 0, 1000)
    table = rng.random((10_000, 1000)) < rare
    start = time.process_time()
    problem = CoverProblem.of(table)
    chosen = greedy(problem)
    assert problem.kept(chosen) == problem.total
    assert time.process_time() - start < 30
