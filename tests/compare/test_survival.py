"""Waiting times with censoring, against statsmodels and against counting by hand."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import pytest
import scipy
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from swarmtest.compare.detection import CensoredTime, kaplan_meier, log_rank

one_wait = st.builds(CensoredTime, st.integers(1, 12), st.booleans())
waits = st.lists(one_wait, min_size=1, max_size=20)


def arrays(waits):
    return np.array([w.time for w in waits]), np.array([int(w.found) for w in waits])


def random_waits(random, size, longest):
    found = random.random(size) < 0.8
    times = random.integers(1, longest + 1, size)
    return [CensoredTime(int(time), bool(one)) for time, one in zip(times, found, strict=True)]


@given(waits)
@settings(deadline=None)
def test_the_curve_is_that_of_statsmodels(some):
    from statsmodels.duration.survfunc import SurvfuncRight

    assume(any(wait.found for wait in some))
    theirs = SurvfuncRight(*arrays(some))
    ours = kaplan_meier(some)
    for time, waiting in zip(ours.times, ours.waiting, strict=True):
        at = np.flatnonzero(theirs.surv_times == time)[0]
        assert waiting == pytest.approx(theirs.surv_prob[at], abs=1e-12)


def test_the_median_and_its_interval_are_those_of_statsmodels():
    from statsmodels.duration.survfunc import SurvfuncRight

    some = random_waits(np.random.default_rng(2), size=60, longest=40)
    ours, theirs = kaplan_meier(some, 0.9), SurvfuncRight(*arrays(some))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # statsmodels takes the logarithm of 0 at the end
        low, high = theirs.quantile_ci(0.5, alpha=0.1, method="cloglog")
    assert (ours.median, ours.median_low, ours.median_high) == (theirs.quantile(0.5), low, high)


def test_without_censoring_the_median_is_that_of_the_times():
    assert kaplan_meier([CensoredTime(t, True) for t in (9, 2, 5)]).median == 5


def test_the_median_is_not_reached_when_most_runs_never_found_it():
    found = kaplan_meier([CensoredTime(2, True), *[CensoredTime(10, False)] * 3])
    assert found.median is None
    assert found.found_by(10) == 0.25


def test_a_run_that_ends_early_counts_for_as_long_as_it_lasted():
    # Without it, two of three would have found it by 7; if it were waiting for ever, two of four.
    some = [
        CensoredTime(3, True),
        CensoredTime(5, False),
        CensoredTime(7, True),
        CensoredTime(9, True),
    ]
    assert kaplan_meier(some).found_by(7) == pytest.approx(1 - 3 / 4 * 1 / 2)


def test_nobody_has_found_it_before_the_first_did():
    assert kaplan_meier([CensoredTime(3, True)]).found_by(2.9) == 0


def test_runs_that_never_find_anything_have_an_empty_curve():
    never = kaplan_meier([CensoredTime(5, False), CensoredTime(6, False)])
    assert (never.times, never.found, never.runs, never.median) == ((), 0, 2, None)


@pytest.mark.parametrize(("runs", "reached"), [(5, False), (6, True), (10, True)])
def test_six_runs_are_needed_for_an_upper_end_of_the_median(runs, reached):
    # As for any median: five values all lie on one side of it with probability 1/16.
    high = kaplan_meier([CensoredTime(1, True)] * runs).median_high
    assert (high is not None) == reached


@given(waits)
@settings(deadline=None)
def test_the_curve_falls_and_lies_in_its_interval(some):
    curve = kaplan_meier(some)
    assert list(curve.waiting) == sorted(curve.waiting, reverse=True)
    for low, share, high in zip(curve.low, curve.waiting, curve.high, strict=True):
        assert 0 <= low <= share + 1e-12 <= high + 2e-12 <= 1 + 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_the_log_rank_test_of_large_groups_is_that_of_statsmodels(seed):
    from statsmodels.duration.survfunc import survdiff

    random = np.random.default_rng(seed)
    a = random_waits(random, size=90, longest=12)
    b = random_waits(random, size=120, longest=16)
    expected = survdiff(*arrays([*a, *b]), np.repeat([0, 1], [90, 120]))[1]
    assert log_rank(a, b) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_the_log_rank_test_of_middling_groups_is_a_permutation_test(seed):
    """Drawn splits stand for all: another 4,000 of them give the same share, within five sigma."""
    random = np.random.default_rng(seed)
    a = random_waits(random, size=15, longest=12)
    b = random_waits(random, size=20, longest=16)
    pooled = [*a, *b]
    scores = np.array(
        [
            wait.found
            - sum(
                sum(w.time == t and w.found for w in pooled) / sum(w.time >= t for w in pooled)
                for t in {w.time for w in pooled if w.found and w.time <= wait.time}
            )
            for wait in pooled
        ]
    )
    sums = [abs(random.permutation(scores)[:15].sum()) for _ in range(4000)]
    expected = np.mean(np.array(sums) >= abs(scores[:15].sum()) - 1e-9)
    error = np.sqrt(expected * (1 - expected) * (1 / 4000 + 1 / 20_000))
    assert abs(log_rank(a, b) - expected) <= 5 * error + 1e-3


@given(st.lists(one_wait, min_size=2, max_size=4), st.lists(one_wait, min_size=2, max_size=4))
@settings(deadline=None, max_examples=50)
def test_the_log_rank_test_of_small_groups_counts_every_split(a, b):
    pooled = [*a, *b]
    events = sorted({wait.time for wait in pooled if wait.found})

    def uneven(group):
        observed = sum(wait.found for wait in group)
        expected = sum(
            sum(w.time == t and w.found for w in pooled)
            * sum(w.time >= t for w in group)
            / sum(w.time >= t for w in pooled)
            for t in events
        )
        return abs(observed - expected)

    splits = [uneven([pooled[i] for i in s]) for s in combinations(range(len(pooled)), len(a))]
    assert log_rank(a, b) == pytest.approx(np.mean(np.array(splits) >= uneven(a) - 1e-9))


def test_three_runs_against_three_cannot_be_more_certain_than_one_in_ten():
    # The usual chi-square approximation would say 0.025.
    assert (
        log_rank([CensoredTime(t, True) for t in (1, 2, 3)], [CensoredTime(99, False)] * 3) == 0.1
    )


def test_groups_that_never_found_it_do_not_differ():
    assert log_rank([CensoredTime(5, False)] * 12, [CensoredTime(6, False)] * 12) == 1
    assert log_rank([CensoredTime(5, False)] * 3, [CensoredTime(6, False)] * 3) == 1


@pytest.mark.parametrize("runs", [6, 15])
def test_the_log_rank_test_raises_false_alarms_as_often_as_it_says(runs):
    random = np.random.default_rng(5)

    def group():
        times = random.exponential(10, runs)
        return [CensoredTime(min(t, 12.0), t < 12) for t in times]

    alarms = sum(log_rank(group(), group()) <= 0.05 for _ in range(400))
    assert scipy.stats.binomtest(alarms, 400, 0.05, "greater").pvalue > 0.001
