"""Mann-Whitney, A12 and bootstrap intervals, against scipy, the truth and counting by hand."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
import scipy
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from swarmtest.analysis.rank_tests import (
    bootstrap_interval,
    difference_of_means,
    mann_whitney,
    mean,
    smallest_p,
    vargha_delaney,
)

small = st.lists(st.integers(0, 4), min_size=1, max_size=5)
numbers = st.lists(st.integers(-1000, 1000), min_size=1, max_size=8)


@given(st.integers(2, 24).flatmap(lambda size: st.permutations(range(size))), st.data())
@settings(max_examples=50, deadline=None)
def test_without_ties_p_is_that_of_scipys_exact_test(values, data):
    cut = data.draw(st.integers(1, len(values) - 1))
    a, b = values[:cut], values[cut:]
    expected = scipy.stats.mannwhitneyu(a, b, method="exact").pvalue
    assert mann_whitney(a, b) == pytest.approx(expected)


@given(small, small)
@settings(max_examples=60, deadline=None)
def test_with_ties_p_is_the_share_of_all_splits_that_are_as_uneven(a, b):
    pooled = [*a, *b]
    ranks = scipy.stats.rankdata(pooled)
    sums = np.array([sum(split) for split in combinations(ranks, len(a))])
    seen = ranks[: len(a)].sum()
    tail = min(np.mean(sums <= seen + 1e-9), np.mean(sums >= seen - 1e-9))
    assert mann_whitney(a, b) == pytest.approx(min(1, 2 * tail))


def test_large_samples_use_the_normal_approximation_with_ties_and_continuity():
    random = np.random.default_rng(1)
    a, b = random.integers(0, 6, 50), random.integers(1, 7, 60)
    expected = scipy.stats.mannwhitneyu(a, b, method="asymptotic").pvalue
    assert mann_whitney(a.tolist(), b.tolist()) == pytest.approx(expected)


def test_large_samples_of_one_value_do_not_differ():
    assert mann_whitney([3] * 40, [3] * 40) == 1


def test_complete_separation_of_large_samples_is_still_a_number():
    assert 0 < mann_whitney(range(30), range(30, 60)) < 1e-15


@given(numbers, numbers)
@settings(deadline=None)
def test_who_is_named_first_does_not_matter(a, b):
    assert mann_whitney(a, b) == pytest.approx(mann_whitney(b, a))


@given(numbers, numbers)
@settings(deadline=None)
def test_no_sample_beats_the_smallest_p_of_its_size(a, b):
    assert mann_whitney(a, b) >= smallest_p(len(a), len(b)) - 1e-12


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 3), (5, 4), (10, 10)])
def test_the_smallest_p_is_that_of_complete_separation(n, m):
    assert mann_whitney(range(n), range(n, n + m)) == pytest.approx(smallest_p(n, m))


def test_an_empty_sample_is_refused():
    with pytest.raises(ValueError, match="at least one value"):
        mann_whitney([], [1])


@given(numbers, numbers)
@settings(deadline=None)
def test_a12_is_the_share_of_pairs_that_the_first_wins(a, b):
    wins = [(x > y) + (x == y) / 2 for x, y in product(a, b)]
    assert vargha_delaney(a, b).a12 == pytest.approx(np.mean(wins))


@given(numbers, numbers)
@settings(deadline=None)
def test_a12_seen_from_the_other_side_is_its_mirror(a, b):
    one, other = vargha_delaney(a, b), vargha_delaney(b, a)
    assert one.a12 == pytest.approx(1 - other.a12)
    assert one.low == pytest.approx(1 - other.high, abs=1e-9)


@given(numbers, numbers)
@settings(deadline=None)
def test_a12_lies_in_its_interval(a, b):
    assume(len(a) > 1 and len(b) > 1)
    effect = vargha_delaney(a, b)
    assert 0 <= effect.low <= effect.a12 <= effect.high <= 1


def test_samples_that_do_not_overlap_still_leave_doubt_about_a12():
    effect = vargha_delaney(range(10, 20), range(10))
    assert effect.a12 == effect.high == 1
    assert 0.75 < effect.low < 0.85


@pytest.mark.parametrize(
    ("wins", "word"),
    [
        *((50, "negligible"), (55, "negligible"), (45, "negligible")),
        *((56, "small"), (63, "small"), (40, "small")),
        *((64, "medium"), (70, "medium"), (35, "medium")),
        *((72, "large"), (100, "large"), (20, "large")),
    ],
)
def test_the_size_of_an_effect_has_its_conventional_word(wins, word):
    assert vargha_delaney([1] * wins + [-1] * (100 - wins), [0]).word == word


def test_a12s_interval_holds_the_truth_as_often_as_it_says():
    random = np.random.default_rng(7)
    truth = scipy.stats.norm.cdf(0.5 / np.sqrt(2))
    effects = [
        vargha_delaney(random.normal(0.5, 1, 8).tolist(), random.normal(0, 1, 8).tolist())
        for _ in range(300)
    ]
    held = np.mean([effect.low <= truth <= effect.high for effect in effects])
    assert 0.92 <= held <= 0.99


# Bootstrap intervals.


counts = st.lists(st.integers(0, 50), min_size=2, max_size=12)


def test_the_interval_of_a_mean_is_scipys_bca_interval():
    values = np.random.default_rng(3).exponential(size=300)
    ours = bootstrap_interval(values.tolist(), statistic=mean)
    theirs = scipy.stats.bootstrap((values,), np.mean, method="BCa", rng=1).confidence_interval
    assert ours == pytest.approx(tuple(theirs), abs=0.02)


def test_the_interval_of_a_difference_is_scipys_bca_interval():
    random = np.random.default_rng(4)
    a, b = random.exponential(size=250) + 1, random.exponential(size=300)
    ours = bootstrap_interval(a.tolist(), b.tolist(), statistic=difference_of_means)
    theirs = scipy.stats.bootstrap(
        (a, b),
        lambda a, b, axis: a.mean(axis) - b.mean(axis),
        method="BCa",
        rng=1,
    ).confidence_interval
    assert ours == pytest.approx(tuple(theirs), abs=0.03)


@pytest.mark.parametrize("size", [5, 10])
def test_few_runs_are_enough_for_an_interval_that_holds_what_it_promises(size):
    random = np.random.default_rng(size)
    ends = [
        bootstrap_interval(
            random.poisson(3, size), random.poisson(2, size), statistic=difference_of_means
        )
        for _ in range(250)
    ]
    assert 0.91 <= np.mean([low <= 1 <= high for low, high in ends]) <= 0.995


@given(counts)
@settings(max_examples=40, deadline=None)
def test_the_interval_of_a_mean_stays_within_the_values(values):
    low, high = bootstrap_interval(values, statistic=mean)
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9


@given(counts, counts)
@settings(max_examples=40, deadline=None)
def test_the_same_data_give_the_same_interval(a, b):
    once = bootstrap_interval(a, b, statistic=difference_of_means)
    assert once == bootstrap_interval(a, b, statistic=difference_of_means)


def test_more_confidence_takes_a_wider_interval():
    values = [3, 1, 4, 1, 5, 9, 2, 6]
    low, high = bootstrap_interval(values, statistic=mean, confidence=0.8)
    lower, higher = bootstrap_interval(values, statistic=mean, confidence=0.99)
    assert lower < low < high < higher


def test_runs_that_all_agree_have_an_interval_without_width():
    assert bootstrap_interval([3, 3, 3], statistic=mean) == (3, 3)


def test_one_value_has_no_interval():
    with pytest.raises(ValueError, match="at least two values"):
        bootstrap_interval([3], statistic=mean)
