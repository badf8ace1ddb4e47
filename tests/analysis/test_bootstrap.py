"""Bootstrap intervals, against scipy's and against the truth."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest.analysis.rank_tests import bootstrap_interval, difference_of_means, mean

counts = st.lists(st.integers(0, 50), min_size=2, max_size=12)


def test_the_interval_of_a_mean_is_scipys_bca_interval():
    values = np.random.default_rng(3).exponential(size=300)
    ours = bootstrap_interval(values, statistic=mean)
    theirs = scipy.stats.bootstrap((values,), np.mean, method="BCa", rng=1).confidence_interval
    assert ours == pytest.approx(tuple(theirs), abs=0.02)


def test_the_interval_of_a_difference_is_scipys_bca_interval():
    random = np.random.default_rng(4)
    a, b = random.exponential(size=250) + 1, random.exponential(size=300)
    ours = bootstrap_interval(a, b, statistic=difference_of_means)
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
