"""The compact columns hold what was put in."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmtest.core.targets import pack_hits, unpack_hits
from swarmtest.store.records import pack_counts, pack_floats, unpack_counts, unpack_floats


@given(st.lists(st.integers(0, 255) | st.integers(0, 2**32 - 1), max_size=40))
def test_counts_come_back(counts: list[int]) -> None:
    assert unpack_counts(pack_counts(counts)) == tuple(counts)


def test_small_counts_take_a_byte_each() -> None:
    assert len(pack_counts([0, 255, 7])) == 4


@given(st.lists(st.floats(0, 1, width=32), max_size=40))
def test_probabilities_come_back(values: list[float]) -> None:
    assert unpack_floats(pack_floats(values)) == tuple(values)


@given(st.sets(st.integers(0, 2**32 - 1), max_size=40))
def test_hits_come_back_in_order(ids: set[int]) -> None:
    assert unpack_hits(pack_hits(ids)) == sorted(ids)


def test_a_count_that_is_negative_is_refused() -> None:
    with pytest.raises(struct.error):
        pack_counts([-1])
