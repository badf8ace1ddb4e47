"""An order that looks random, takes no memory, and leaves nothing out."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest.search.engines.engine import Permutation


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 1000), st.integers(0, 2**64 - 1))
def test_every_number_comes_once(size, key):
    order = Permutation(size, key)
    assert sorted(order.at(place) for place in range(size)) == list(range(size))


@settings(max_examples=50, deadline=None)
@given(st.integers(2**64, 2**200), st.integers(0, 2**64 - 1), st.data())
def test_places_of_a_space_beyond_any_memory_do_not_meet(size, key, data):
    order = Permutation(size, key)
    places = data.draw(st.lists(st.integers(0, size - 1), unique=True, max_size=50))
    found = [order.at(place) for place in places]
    assert len(set(found)) == len(found)
    assert all(0 <= number < size for number in found)


def test_the_first_numbers_are_spread_evenly_over_the_space():
    order = Permutation(10**9, key=7)
    tenths = [0] * 10
    for place in range(10_000):
        tenths[order.at(place) * 10 // 10**9] += 1
    # 1,000 each, with a standard deviation of 30.
    assert all(850 < count < 1150 for count in tenths), tenths


def test_neighbours_do_not_stay_neighbours():
    order = Permutation(10_000, key=1)
    pairs = itertools.pairwise(order.at(place) for place in range(2000))
    near = sum(abs(a - b) == 1 for a, b in pairs)
    assert near < 10  # 0.4 are expected


def test_another_key_is_another_order():
    first, second = Permutation(1000, 1), Permutation(1000, 2)
    assert sum(first.at(place) == second.at(place) for place in range(1000)) < 20


def test_a_place_outside_is_refused():
    with pytest.raises(IndexError, match="from 0 to 9"):
        Permutation(10, 1).at(10)
