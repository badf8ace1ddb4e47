"""Drawing under requirements gives what the general solver gives, only faster."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from swarmtest import Space
from swarmtest.core.constraints import Constraint, requires
from swarmtest.core.errors import UserError
from swarmtest.core.requirements import Requirements
from swarmtest.core.sampling import settled, toss_in_turn

NAMES = tuple("abcdefg")
some = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True).map(tuple)
requirement = st.builds(
    lambda on, off: Constraint(on, off, "needed"),
    some,
    st.sampled_from(NAMES).map(lambda name: (name,)) | st.just(()),
)
never = st.sampled_from(NAMES).map(lambda name: Constraint((), (name,), "never"))


def is_possible(constraints: list[Constraint]) -> bool:
    try:
        Space(NAMES, constraints)
    except UserError:
        return False
    return True


@given(
    st.lists(requirement | never, min_size=1, max_size=8).filter(is_possible),
    st.permutations(range(len(NAMES))),
    st.lists(st.booleans(), min_size=len(NAMES), max_size=len(NAMES)),
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=len(NAMES), max_size=len(NAMES)),
)
def test_the_configuration_and_its_odds_are_those_of_the_general_solver(
    constraints, order, wished, rates
):
    space = Space(NAMES, constraints)
    by_solver = toss_in_turn(space, order, wished, rates, after=settled(space, 0, 0))
    assert toss_in_turn(space, order, wished, rates) == by_solver


def test_a_chain_of_requirements_falls_together():
    space = Space(NAMES, [requires(later, first) for first, later in pairwise(NAMES)])
    bits, odds = toss_in_turn(space, range(7), [True, False, *[True] * 5], [0.5] * 7)
    assert bits == 0b0000001
    assert odds == (1.0, 0.5, *[0.0] * 5)


def test_the_last_of_those_that_something_needs_must_stay():
    needs = Requirements([(0b011, 0b100), (0b111, 0)], 3)
    bits, odds = needs.toss_in_turn([2, 0, 1], [False, False, True], [0.5] * 3)
    assert (bits, odds) == (0b110, (0.5, 1.0, 0.5))
