"""Intervals, tails and corrections, against scipy and statsmodels."""

from __future__ import annotations

import math
from fractions import Fraction
from math import comb

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest.analysis.intervals import (
    benjamini_hochberg,
    beta_cdf,
    binomial_p_value,
    hits_needed,
    normal_p_value,
    normal_quantile,
    student_p_value,
    student_quantile,
    wilson_interval,
)
from swarmtest.core.errors import UserError

counts = st.integers(1, 100_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
confidences = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99, 0.9999])
rates = st.floats(0.001, 0.999)


@given(counts, confidences)
@settings(max_examples=100, deadline=None)
def test_wilsons_interval_is_that_of_statsmodels(pair, confidence):
    from statsmodels.stats.proportion import proportion_confint

    hits, n = pair
    expected = proportion_confint(hits, n, alpha=1 - confidence, method="wilson")
    assert wilson_interval(hits, n, confidence) == pytest.approx(expected, abs=1e-12)


@given(counts, confidences)
@settings(max_examples=50, deadline=None)
def test_wilsons_interval_lies_in_the_unit_and_holds_the_share(pair, confidence):
    hits, n = pair
    low, high = wilson_interval(hits, n, confidence)
    assert 0 <= low <= hits / n <= high <= 1


@given(counts)
@settings(max_examples=50, deadline=None)
def test_misses_have_the_mirrored_interval_of_hits(pair):
    hits, n = pair
    low, high = wilson_interval(hits, n)
    assert wilson_interval(n - hits, n) == pytest.approx((1 - high, 1 - low), abs=1e-12)


def test_without_tests_everything_is_possible():
    assert wilson_interval(0, 0) == (0.0, 1.0)


def test_arrays_of_counts_give_arrays_of_the_same_intervals():
    hits, n = np.array([[0, 3], [4, 70]]), np.array([[0, 3], [9, 100]])
    low, high = wilson_interval(hits, n)
    one_by_one = [
        [wilson_interval(h, m) for h, m in zip(*row, strict=True)]
        for row in zip(hits, n, strict=True)
    ]
    assert np.array_equal(np.dstack([low, high]), np.array(one_by_one))


@pytest.mark.parametrize("confidence", [0, 1, 1.5, -0.1, 95])
def test_a_confidence_outside_of_0_to_1_is_refused_in_one_line(confidence):
    with pytest.raises(UserError, match=r"like 0\.95"):
        wilson_interval(1, 2, confidence)


def test_four_hits_show_a_role_at_a_base_rate_of_a_half_as_the_paper_says():
    assert hits_needed(0.5) == 4
    assert wilson_interval(3, 3)[0] <= 0.5 < wilson_interval(4, 4)[0]


@given(st.floats(0.02, 0.98), confidences)
@settings(max_examples=50, deadline=None)
def test_the_hits_needed_are_the_fewest_at_which_all_and_none_stand_out(base, confidence):
    needed = hits_needed(base, confidence)

    def both_stand_out(n: int) -> bool:
        above = wilson_interval(n, n, confidence)[0] > base
        return bool(above and wilson_interval(0, n, confidence)[1] < base)

    assert both_stand_out(needed + 1)
    assert not both_stand_out(needed - 1)


@pytest.mark.parametrize("base", [0, 1, float("nan")])
def test_a_feature_without_variation_needs_no_number_of_hits(base):
    with pytest.raises(UserError, match="has no role"):
        hits_needed(base)


@given(st.floats(0, 1), st.floats(1e-3, 1e6), st.floats(1e-3, 1e6))
@settings(max_examples=150, deadline=None)
def test_the_incomplete_beta_function_is_that_of_scipy(x, a, b):
    assert float(beta_cdf(x, a, b)) == pytest.approx(
        scipy.special.betainc(a, b, x), rel=1e-6, abs=1e-9
    )


@given(counts, rates)
@settings(max_examples=100, deadline=None)
def test_p_is_twice_the_smaller_tail_of_scipys_binomial(pair, base):
    hits, n = pair
    tail = min(scipy.stats.binom.sf(hits - 1, n, base), scipy.stats.binom.cdf(hits, n, base))
    expected = min(1, 2 * tail)
    found = float(binomial_p_value(hits, n, base))
    if expected > 1e-200:
        # 100,000 terms of log-gamma lose at most seven of sixteen digits.
        assert found == pytest.approx(expected, rel=1e-7, abs=0)
    else:  # scipy itself is off by up to 3e-6 there: the exact sums below judge
        assert found < 1e-190


@pytest.mark.parametrize(
    ("hits", "n", "base"), [(940, 967, 15 / 32), (286, 308, 5 / 64), (3, 400, 0.25), (60, 64, 0.5)]
)
def test_p_is_exact_far_out_in_the_tail(hits, n, base):
    p = Fraction(base)
    terms = [comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    exact = float(2 * min(sum(terms[hits:]), sum(terms[: hits + 1])))
    assert float(binomial_p_value(hits, n, base)) == pytest.approx(exact, rel=1e-10, abs=0)


@given(st.integers(1, 400), rates)
@settings(max_examples=50, deadline=None)
def test_under_chance_alone_small_p_values_are_no_more_frequent_than_they_say(n, base):
    hits = np.arange(n + 1)
    p, mass = binomial_p_value(hits, n, base), scipy.stats.binom.pmf(hits, n, base)
    for level in (0.001, 0.01, 0.05, 0.2):
        assert mass[p <= level].sum() <= level + 1e-9


def test_p_values_far_out_in_the_tails_keep_their_digits():
    assert float(binomial_p_value(1000, 1000, 0.5)) == pytest.approx(2 * 0.5**1000)
    assert float(binomial_p_value(0, 1000, 0.5)) == pytest.approx(2 * 0.5**1000)
    assert float(binomial_p_value(700, 1000, 0.5)) == pytest.approx(
        2 * scipy.stats.binom.sf(699, 1000, 0.5)
    )


@pytest.mark.parametrize("n", [1_000_000, 10_000_000])
@pytest.mark.parametrize("deviations", [1.0, 2.0, 5.0])
def test_p_values_of_ten_million_hits_are_right(n, deviations):
    hits = round(n * 0.3 + deviations * math.sqrt(n * 0.21))
    expected = min(1, 2 * scipy.stats.binom.sf(hits - 1, n, 0.3))
    assert float(binomial_p_value(hits, n, 0.3)) == pytest.approx(expected, rel=1e-5)


def test_p_values_of_broken_counts_lie_between_those_of_whole_ones():
    whole, broken = (float(binomial_p_value(h, 40, 0.5)) for h in (28, 28.5))
    assert float(binomial_p_value(29, 40, 0.5)) < broken < whole


@given(st.floats(-30, 30))
@settings(max_examples=50, deadline=None)
def test_normal_p_values_are_those_of_scipy(z):
    assert float(normal_p_value(z)) == pytest.approx(2 * scipy.stats.norm.sf(abs(z)), rel=1e-9)


@given(confidences)
def test_normal_quantiles_are_those_of_scipy(confidence):
    assert normal_quantile(confidence) == pytest.approx(scipy.stats.norm.ppf(0.5 + confidence / 2))


@given(st.floats(-50, 50), st.floats(1, 1e5))
@settings(max_examples=100, deadline=None)
def test_students_p_values_are_those_of_scipy(t, freedom):
    expected = 2 * scipy.stats.t.sf(abs(t), freedom)
    assert float(student_p_value(t, freedom)) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@given(st.sampled_from([0.5, 0.8, 0.95, 0.99]), st.floats(1, 1e5))
@settings(max_examples=50, deadline=None)
def test_students_quantiles_are_those_of_scipy(confidence, freedom):
    expected = scipy.stats.t.ppf(0.5 + confidence / 2, freedom)
    assert student_quantile(confidence, freedom) == pytest.approx(expected, rel=1e-6)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
@settings(max_examples=50, deadline=None)
def test_adjusted_p_values_are_those_of_statsmodels(p_values):
    from statsmodels.stats.multitest import multipletests

    expected = multipletests(p_values, method="fdr_bh")[1]
    assert benjamini_hochberg(p_values) == pytest.approx(expected)


@given(st.lists(st.floats(0, 0.04), min_size=1, max_size=20), st.integers(0, 50))
@settings(max_examples=50, deadline=None)
def test_comparisons_that_are_not_given_count_as_if_they_were_large(small, more):
    everything = benjamini_hochberg([*small, *[1.0] * more])[: len(small)]
    assert benjamini_hochberg(small, len(small) + more) == pytest.approx(everything)


def test_no_p_values_at_all_are_no_discoveries():
    assert benjamini_hochberg([]).tolist() == []
