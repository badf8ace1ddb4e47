"""The metrics of section 3.4, and Kendall's tau as scipy has it."""

from __future__ import annotations

import math
import random

import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from swarmtest.reducer.criteria import (
    kendall_tau,
    preservation_rate,
    randomly_reduced,
    size_reduction_rate,
)


@given(
    st.lists(st.tuples(st.integers(0, 6), st.floats(0, 1) | st.integers(0, 3)), min_size=3).filter(
        lambda pairs: len({a for a, _ in pairs}) > 1 and len({b for _, b in pairs}) > 1
    )
)
def test_kendalls_tau_is_scipys(pairs):
    first, second = zip(*pairs, strict=True)
    expected = scipy.stats.kendalltau(first, second, method="asymptotic")
    found = kendall_tau(first, second)
    assert found.tau == pytest.approx(expected.statistic, abs=1e-12)
    assert found.p == pytest.approx(expected.pvalue, abs=1e-9)


def test_a_ranking_that_is_all_ties_says_nothing():
    assert math.isnan(kendall_tau([1, 1, 1], [1, 2, 3]).tau)


def test_numbers_that_are_no_pairs_are_refused():
    with pytest.raises(ValueError, match="3 and 2"):
        kendall_tau([1, 2, 3], [1, 2])


@given(st.integers(0, 50), st.data())
def test_chance_keeps_as_many_parts_as_asked_for_in_their_order(count, data):
    size = data.draw(st.integers(0, count))
    kept = randomly_reduced(range(count), size, random.Random(1))
    assert len(set(kept)) == size
    assert list(kept) == sorted(kept)


def test_chance_keeps_every_part_equally_often():
    rng = random.Random(1)
    kept = [part for _ in range(2000) for part in randomly_reduced(range(10), 3, rng)]
    # 2,000 draws at 0.3: five standard deviations are 102.
    assert all(abs(kept.count(part) - 600) < 103 for part in range(10))


def test_rates_are_relative_to_the_original():
    assert size_reduction_rate(200, 10) == 0.95
    assert size_reduction_rate(0, 0) == 0
    assert preservation_rate({1, 2}, {2, 3, 4}) == 0.5
    assert preservation_rate(set(), {1}) == 1
