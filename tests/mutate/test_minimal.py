"""Small sets from kill matrices, checked against all subsets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from swarmtest.mutate.kill_matrix import (
    FAILED,
    NOT_RUN,
    PASSED,
    KillMatrix,
    classes,
    greedy_tests,
    minimal_mutants,
    minimal_tests,
    subsumption,
)
from swarmtest.mutate.mutant import Mutant

matrices = arrays(bool, array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=7))


def kills_all(killed: np.ndarray, tests: list[int]) -> bool:
    return bool(np.array_equal(killed[:, tests].any(1), killed.any(1)))


@given(matrices)
@settings(max_examples=200)
def test_the_smallest_suite_kills_all_and_none_is_smaller(killed: np.ndarray) -> None:
    tests, proven = minimal_tests(killed)
    assert proven
    assert kills_all(killed, tests)
    smaller = itertools.combinations(range(killed.shape[1]), max(len(tests) - 1, 0))
    assert not tests or not any(kills_all(killed, list(some)) for some in smaller)


@given(matrices)
def test_no_test_of_a_greedy_suite_can_go(killed: np.ndarray) -> None:
    tests = greedy_tests(killed)
    assert kills_all(killed, tests)
    for test in tests:
        assert not kills_all(killed, [other for other in tests if other != test])


@given(matrices)
def test_killing_the_minimal_mutants_kills_all_and_each_is_needed(killed: np.ndarray) -> None:
    chosen = minimal_mutants(killed)

    def forces_all(mutants: list[int]) -> bool:
        """Whether every suite that kills these kills all that can be killed."""
        tests = range(killed.shape[1])
        suites = (
            list(suite)
            for size in range(len(tests) + 1)
            for suite in itertools.combinations(tests, size)
        )
        return all(
            kills_all(killed, suite)
            for suite in suites
            if killed[np.ix_(mutants, suite)].any(1).all()
        )

    assert forces_all(chosen)
    for mutant in chosen:
        assert not forces_all([other for other in chosen if other != mutant])


@given(matrices)
def test_edges_of_subsumption_are_strict_and_direct(killed: np.ndarray) -> None:
    groups, edges = subsumption(killed)
    assert groups == classes(killed)
    rows = [frozenset(np.flatnonzero(killed[group[0]]).tolist()) for group in groups]
    assert all(rows[a] < rows[b] for a, b in edges)
    assert not any(rows[a] < row < rows[b] for a, b in edges for row in rows)
    pairs = [(a, b) for a, b in itertools.permutations(range(len(rows)), 2) if rows[a] < rows[b]]
    assert all(_reaches(edges, a, b) for a, b in pairs)


def _reaches(edges: list[tuple[int, int]], a: int, b: int) -> bool:
    return a == b or any(_reaches(edges, c, b) for d, c in edges if d == a)


def _mutant(number: int) -> Mutant:
    return Mutant(f"m{number}", "a.py", number, "f", "negate", "x", "y", (), "y", "x")


def _matrix(outcomes: list[list[int]], **more: object) -> KillMatrix:
    table = np.array(outcomes, np.uint8)
    mutants = tuple(_mutant(i) for i in range(len(outcomes)))
    tests = tuple(f"t{i}" for i in range(table.shape[1]))
    return KillMatrix(mutants, tests, table, table != NOT_RUN, **more)  # type: ignore[arg-type]


def test_survivors_are_reached_and_not_killed() -> None:
    matrix = _matrix([[PASSED, FAILED], [PASSED, PASSED], [NOT_RUN, NOT_RUN]])
    assert [one.id for one in matrix.survivors] == ["m1"]
    assert [one.id for one in matrix.not_reached] == ["m2"]
    assert matrix.killers(matrix.mutants[0]) == ["t1"]
    assert matrix.score == pytest.approx(1 / 3)


def test_a_score_is_exact_unless_it_is_that_of_a_sample() -> None:
    outcomes = [[FAILED]] * 8 + [[PASSED]] * 2
    assert _matrix(outcomes).interval() == (0.8, 0.8)
    low, high = _matrix(outcomes, population=1000).interval()
    # Wilson's interval for 8 of 10.
    assert (low, high) == pytest.approx((0.490, 0.943), abs=1e-3)


def test_forcing_mutants_are_minimal_for_the_minimal_suite() -> None:
    matrix = _matrix([[FAILED, PASSED], [FAILED, FAILED], [FAILED, FAILED]])
    assert matrix.minimal_tests == ["t0"]
    assert matrix.minimal_is_exact
    assert [one.id for one in matrix.forcing_mutants] == ["m0"]
    assert [[one.id for one in group] for group in matrix.distinct] == [["m0"], ["m1", "m2"]]


@given(st.integers(0, 2**32), st.integers(1, 40), st.booleans())
@settings(max_examples=20)
def test_a_sample_has_its_size_and_is_the_same_for_its_seed(
    seed: int, size: int, stratified: bool
) -> None:
    from swarmtest.core.targets import Source
    from swarmtest.mutate.generation import draw_mutants

    text = "".join(f"def f{i}(x):\n    return x + {i}\n" for i in range(6))
    source = Source("shop.py", text)
    one, other = (
        draw_mutants([source], "arithmetic", None, size, seed, stratified=stratified)
        for _ in range(2)
    )
    assert one == other
    assert one.population == 30
    assert len(one.mutants) == min(size, 30)
