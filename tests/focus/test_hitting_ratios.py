"""Ratios of hitting fractions: their intervals hold the truth, zeros are bounds, summaries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest.analysis.rank_tests import paired_means, wilcoxon_signed_rank
from swarmtest.focus.measurement import hitting_ratio, rate_ratio, summarise


@dataclass(frozen=True)
class Count:
    hits: int
    tests: int
    cpu_seconds: float = 1.0


counts = st.integers(1, 5000).flatmap(
    lambda n: st.builds(Count, st.integers(0, n), st.just(n), st.floats(0.01, 1e4))
)
differences = st.lists(st.integers(-6, 6), min_size=1, max_size=9)


@given(counts, counts)
@settings(max_examples=200, deadline=None)
def test_an_interval_holds_the_ratio_that_was_seen(a, b):
    for ratio in (hitting_ratio(a, b), rate_ratio(a, b)):
        if a.hits or b.hits:
            assert 0 <= ratio.low <= ratio.value * (1 + 1e-9)
            assert ratio.value <= ratio.high * (1 + 1e-9)
        else:
            assert math.isnan(ratio.value)


@given(counts, counts)
@settings(max_examples=100, deadline=None)
def test_the_other_way_round_it_is_the_inverse(a, b):
    there, back = hitting_ratio(a, b), hitting_ratio(b, a)
    if a.hits:
        assert 1 / there.low == pytest.approx(back.high, rel=1e-6)
    if b.hits:
        assert there.high == pytest.approx(1 / back.low, rel=1e-6)


@given(counts, counts)
@settings(max_examples=100, deadline=None)
def test_more_confidence_is_a_wider_interval(a, b):
    narrow, wide = hitting_ratio(a, b, 0.8), hitting_ratio(a, b, 0.99)
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (Count(60, 200), Count(12, 200)),
        (Count(1, 20), Count(19, 50)),
        (Count(800, 900), Count(3, 70)),
    ],
)
def test_the_interval_is_the_score_interval_of_statsmodels(a, b):
    from statsmodels.stats.proportion import confint_proportions_2indep

    expected = confint_proportions_2indep(
        a.hits, a.tests, b.hits, b.tests, method="score", compare="ratio", correction=False
    )
    found = hitting_ratio(a, b)
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("p", "q"), [(0.01, 0.01), (0.3, 0.03), (0.9, 0.1), (0.1, 0.9)])
@pytest.mark.parametrize(("n", "m"), [(20, 300), (300, 20), (200, 200), (5000, 1000)])
def test_95_of_100_intervals_hold_the_truth(p, q, n, m):
    """Koopman's interval is approximate: 93% are asked where counts are small, minus the noise."""
    runs = 400
    random = np.random.default_rng([n, m, int(100 * p), int(100 * q)])
    pairs = zip(random.binomial(n, p, runs), random.binomial(m, q, runs), strict=True)
    found = [hitting_ratio(Count(int(a), n), Count(int(b), m)) for a, b in pairs]
    held = sum(one.low <= p / q <= one.high for one in found)
    assert held >= scipy.stats.binom.ppf(1e-4, runs, 0.93)


@pytest.mark.parametrize(("p", "q"), [(0.9, 0.5), (0.5, 0.02), (0.05, 0.9)])
def test_per_second_the_interval_holds_the_truth_where_times_vary_as_their_mean(p, q):
    runs, n = 300, 200
    random = np.random.default_rng([int(100 * p), int(100 * q)])
    held = 0
    for _ in range(runs):
        directed, undirected = (
            Count(int(random.binomial(n, share)), n, float(random.exponential(mean, n).sum()))
            for share, mean in ((p, 2.0), (q, 1.0))
        )
        ratio = rate_ratio(directed, undirected)
        held += ratio.low <= p / q / 2 <= ratio.high
    assert held >= scipy.stats.binom.ppf(1e-4, runs, 0.93)


def test_twice_the_hits_at_twice_the_cost_is_no_gain():
    ratio = rate_ratio(Count(60, 200, 4.0), Count(30, 200, 2.0))
    assert ratio.value == pytest.approx(1)
    assert not ratio.is_shown


def test_where_undirected_tests_never_hit_there_is_a_lower_bound():
    ratio = hitting_ratio(Count(50, 100), Count(0, 100))
    assert ratio.value == ratio.high == math.inf
    assert ratio.low > 10
    assert str(ratio) == f"at least {ratio.low:.1f}"


def test_where_directed_tests_never_hit_there_is_an_upper_bound():
    ratio = hitting_ratio(Count(0, 100), Count(50, 100))
    assert (ratio.value, ratio.low) == (0, 0)
    assert ratio.high < 0.1
    assert str(ratio).startswith("at most 0.0")


def test_where_nothing_was_hit_or_run_nothing_is_known():
    for a, b in (
        (Count(0, 9), Count(0, 9)),
        (Count(0, 0), Count(3, 9)),
        (Count(3, 9), Count(0, 0)),
    ):
        assert str(hitting_ratio(a, b)) == "-"
        assert not hitting_ratio(a, b).is_shown


def test_without_cpu_time_there_is_no_rate():
    assert str(rate_ratio(Count(3, 9, 0.0), Count(3, 9))) == "-"


def test_all_tests_against_few_is_an_interval_around_the_ratio():
    """The short form of the score rejects every ratio here."""
    ratio = hitting_ratio(Count(20, 20), Count(1, 90))
    assert ratio.low < 90 < ratio.high


# Paired tests


@given(differences)
@settings(max_examples=60, deadline=None)
def test_signed_ranks_p_is_the_share_of_all_signs_that_are_as_uneven(values):
    kept = [v for v in values if v]
    ranks = scipy.stats.rankdata(np.abs(kept)) if kept else np.array([])
    seen = sum(r for r, v in zip(ranks, kept, strict=True) if v > 0)
    sums = np.array([np.dot(signs, ranks) for signs in product((0, 1), repeat=len(kept))])
    tail = min(np.mean(sums <= seen + 1e-9), np.mean(sums >= seen - 1e-9))
    assert wilcoxon_signed_rank(values, [0] * len(values)) == pytest.approx(min(1, 2 * tail))


@given(st.integers(2, 25), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_without_ties_p_is_that_of_scipys_exact_signed_rank_test(n, seed):
    random = np.random.default_rng(seed)
    a, b = random.random(n), random.random(n)
    expected = scipy.stats.wilcoxon(a, b, method="exact").pvalue
    assert wilcoxon_signed_rank(a, b) == pytest.approx(expected)


@pytest.mark.parametrize("n", [26, 60, 400])
def test_many_pairs_use_scipys_normal_approximation_with_ties(n):
    random = np.random.default_rng(n)
    a, b = random.integers(0, 9, n), random.integers(0, 8, n)
    while np.count_nonzero(a - b) <= 25:
        a = random.integers(0, 9, n)
    expected = scipy.stats.wilcoxon(a, b, correction=True, method="asymptotic").pvalue
    assert wilcoxon_signed_rank(a, b) == pytest.approx(expected)


def test_pairs_that_are_all_equal_do_not_differ():
    assert wilcoxon_signed_rank([0.3, 0.3], [0.3, 0.3]) == 1


def test_a_difference_in_the_last_bit_is_none():
    assert wilcoxon_signed_rank([0.1 + 0.2] * 9, [0.3] * 9) == 1


def test_pairs_of_unequal_number_are_refused():
    with pytest.raises(ValueError, match="2 numbers do not match 1"):
        wilcoxon_signed_rank([1, 2], [1])


def test_paired_means_are_those_of_scipys_t_test():
    random = np.random.default_rng(8)
    a, b = random.random(30) + 0.1, random.random(30)
    found, expected = paired_means(a.tolist(), b.tolist()), scipy.stats.ttest_rel(a, b)
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()))
    assert (found.first, found.second) == pytest.approx((a.mean(), b.mean()))


def test_paired_means_of_pairs_with_one_difference_are_certain():
    found = paired_means([0.5, 0.5], [0.25, 0.25])
    assert (found.low, found.high, found.p) == (0.25, 0.25, 0)
    assert paired_means([0.5, 0.5], [0.5, 0.5]).p == 1


# Summaries


def test_a_summary_has_the_columns_of_the_papers_tables():
    directed, undirected = [0.4, 0.9, 0.2, 0.1, 0.3], [0.1, 0.3, 0.1, 0.2, 0.3]
    ratios = np.divide(directed, undirected)
    found = summarise(directed, undirected)
    assert (found.improved, found.count) == (0.6, 5)
    assert found.mean == pytest.approx(ratios.mean())
    assert found.deviation == pytest.approx(ratios.std(ddof=1))
    quartiles = (found.least, found.lower_quartile, found.median, found.upper_quartile)
    assert (*quartiles, found.greatest) == pytest.approx(
        np.quantile(ratios, [0, 0.25, 0.5, 0.75, 1])
    )
    assert found.p == wilcoxon_signed_rank(directed, undirected)


def test_a_target_that_only_directed_tests_hit_is_improved_but_in_no_mean():
    found = summarise([0.4, 0.2], [0.0, 0.1])
    assert (found.improved, found.count, found.unbounded, found.mean) == (1, 2, 1, 2)


def test_a_target_that_nobody_hit_counts_nowhere():
    found = summarise([0.0, 0.2], [0.0, 0.1])
    assert (found.improved, found.count, found.neither) == (1, 1, 1)


def test_a_summary_of_nothing_has_no_figures():
    found = summarise([], [])
    assert found.count == 0
    assert math.isnan(found.mean)
    assert math.isnan(found.improved)
