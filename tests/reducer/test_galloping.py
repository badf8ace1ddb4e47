"""What is left of a sequence: what is needed, in order, and nothing else."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmtest.reducer.reducer import minimised


class Counted:
    """A criterion that counts how often it is asked."""

    def __init__(self, needed):
        self.needed = set(needed)
        self.asked = 0

    def __call__(self, kept):
        self.asked += 1
        return self.needed <= set(kept)


@given(st.integers(0, 60), st.data())
def test_exactly_the_needed_parts_are_left_in_their_order(count, data):
    needed = data.draw(st.sets(st.integers(0, max(count - 1, 0)), max_size=count))
    assert minimised(range(count), Counted(needed)) == tuple(sorted(needed))


@given(st.lists(st.integers(0, 5), max_size=30), st.data())
def test_whatever_the_criterion_no_single_part_of_the_answer_can_go(parts, data):
    """Also where parts depend on each other, and where there are several smallest answers."""
    wanted = data.draw(st.lists(st.sets(st.integers(0, 5), min_size=1), min_size=1, max_size=3))

    def interesting(kept):
        return any(one <= set(kept) for one in wanted) and sum(kept) % 7 != 3

    if not interesting(parts):
        return
    left = minimised(parts, interesting)
    assert interesting(left)
    for i in range(len(left)):
        assert not interesting([*left[:i], *left[i + 1 :]])


@given(st.lists(st.booleans(), max_size=30))
def test_parts_are_never_reordered(parts):
    numbered = list(enumerate(parts))
    left = minimised(numbered, lambda kept: sum(on for _, on in kept) == sum(parts))
    assert left == tuple(part for part in numbered if part[1])


@pytest.mark.parametrize(
    ("count", "needed", "ddmin"), [(200, 5, 169), (200, 15, 597), (3_500, 12, 1_037)]
)
def test_it_takes_a_third_of_the_runs_of_delta_debugging(count, needed, ddmin):
    """`ddmin`: what the textbook's takes on average, over many seeds."""
    runs = 0
    for seed in range(100):
        criterion = Counted(random.Random(seed).sample(range(count), needed))
        minimised(range(count), criterion)
        runs += criterion.asked
    assert runs / 100 < ddmin / 3
