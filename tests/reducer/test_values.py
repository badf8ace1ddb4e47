"""Values as simple as they can be, and tests of the same bug that look the same."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmtest.reducer.values import in_canonical_order, renamed, shrunk_values

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(st.integers(-(10**12), 10**12))
def test_a_number_that_has_to_be_large_becomes_the_bound_in_few_calls(bound):
    calls = 0

    def holds(parts):
        nonlocal calls
        calls += 1
        return parts[0] >= bound if bound > 0 else parts[0] <= bound

    start = bound * 8
    assert shrunk_values([start], holds) == (bound,)
    assert calls <= abs(start).bit_length() + 3


@given(st.lists(json_values, max_size=4))
def test_what_does_not_matter_becomes_the_simplest_of_its_type(values):
    def simplest(value):
        return value if value is None else type(value)()

    assert shrunk_values(values, lambda parts: True) == tuple(map(simplest, values))


@given(st.lists(json_values, max_size=4))
def test_what_matters_stays_and_the_original_is_not_changed(values):
    before = copy.deepcopy(values)
    same = repr(tuple(values))
    assert repr(shrunk_values(values, lambda parts: repr(tuple(parts)) == same)) == same
    assert repr(values) == repr(before)


@given(st.lists(st.integers(-100, 100) | st.text(max_size=5), max_size=4), st.integers(2, 5))
def test_what_is_left_is_interesting_and_cannot_be_made_simpler_again(values, divisor):
    def holds(parts):
        return len(repr(parts)) % divisor == len(repr(tuple(values))) % divisor

    simple = shrunk_values(values, holds)
    assert holds(simple)
    assert shrunk_values(simple, holds) == simple


@pytest.mark.parametrize(
    ("value", "holds", "simple"),
    [
        (-77, lambda v: abs(v) > 5, 6),
        (3.75, lambda v: v > 1, 2.0),
        (0.123456, lambda v: 0.1 < v < 0.2, 0.12),
        (float("inf"), lambda v: v > 0.5, 1.0),
        ("hello, wörld", lambda v: len(v) >= 3, "000"),
        ("xyz", lambda v: v.isalpha() and len(v) == 2, "aa"),
        (b"\xff\x00", lambda v: len(v) == 1, b"0"),
        ([5, [7, 8], True], lambda v: len(v) > 1, [0, []]),
        ({"a": 1, "b": [2, 3]}, lambda v: "b" in v, {"b": []}),
        ((4, "x"), lambda v: len(v) == 2, (0, "")),
        (True, lambda v: isinstance(v, bool), False),
    ],
)
def test_values_of_every_type_become_simple(value, holds, simple):
    (found,) = shrunk_values([value], lambda parts: holds(parts[0]))
    assert found == simple
    assert type(found) is type(simple)


@given(st.permutations(["open", "read", "seek", "stat", "write"]))
def test_tests_that_differ_in_an_order_that_is_no_matter_become_the_same(parts):
    assert in_canonical_order(parts, lambda p: True) == tuple(sorted(parts))


@given(st.permutations(range(7)), st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6))))
def test_an_order_that_matters_is_kept_and_no_swap_of_neighbours_is_left(parts, pairs):
    pairs = {(a, b) for a, b in pairs if parts.index(a) < parts.index(b)}

    def holds(order):
        return all(order.index(a) < order.index(b) for a, b in pairs)

    found = in_canonical_order(parts, holds)
    assert holds(found)
    assert sorted(found) == sorted(parts)
    for i in range(1, len(found)):
        swapped = (*found[: i - 1], found[i], found[i - 1], *found[i + 1 :])
        assert found[i - 1] <= found[i] or not holds(swapped)


def test_names_are_given_in_order_of_appearance_and_some_have_to_stay():
    parts = [["open", "zebra"], ["read", "zebra"], ["open", "b"]]

    def holds(p):
        return [part[0] for part in p] == ["open", "read", "open"]

    assert renamed(parts, holds, lambda i: f"v{i}") == (
        ["open", "v0"],
        ["read", "v0"],
        ["open", "v1"],
    )


def test_a_name_that_is_taken_changes_places():
    assert renamed(["v1", "v0"], lambda p: p[0] != p[1], lambda i: f"v{i}") == ("v0", "v1")
