"""What follows from a decision: checked against trying every configuration."""

from __future__ import annotations

from functools import reduce

from hypothesis import assume, given
from hypothesis import strategies as st

from swarmtest.core.constraints import Clause, Constraint, Deduction
from swarmtest.core.dimensions import Feature
from swarmtest.core.space import Space

COUNT = 7
MASKS = st.integers(0, (1 << COUNT) - 1)
CLAUSES = st.lists(st.tuples(MASKS, MASKS).filter(any), max_size=12)


def models(pairs):
    return [
        bits
        for bits in range(1 << COUNT)
        if all(bits & on or ~bits & off & ((1 << COUNT) - 1) for on, off in pairs)
    ]


@given(CLAUSES, st.permutations(range(COUNT)), st.lists(st.booleans(), min_size=7, max_size=7))
def test_a_decision_is_possible_exactly_if_some_configuration_agrees_with_all(pairs, order, wishes):
    possible = models(pairs)
    assume(possible)
    deduction = Deduction([Clause(on, off, Constraint((), (), "")) for on, off in pairs], COUNT)
    known = deduction.start
    for i, wish in zip(order, wishes, strict=True):
        assert known.witness in possible
        assert known.true & ~reduce(lambda a, b: a & b, possible) == 0
        assert known.false & reduce(lambda a, b: a | b, possible) == 0
        for on in (False, True):
            agreeing = [bits for bits in possible if bool(bits >> i & 1) == on]
            assert (deduction.decided(known, 1 << i, on) is not None) == bool(agreeing)
            assert deduction.possible(known, 1 << i, on) == bool(agreeing)
        on = wish if any(bool(bits >> i & 1) == wish for bits in possible) else not wish
        known = deduction.decided(known, 1 << i, on)
        possible = [bits for bits in possible if bool(bits >> i & 1) == on]
    assert possible == [known.true] == [known.witness]


def test_a_space_as_large_as_a_grammars_is_drawn_from_in_little_time():
    """150 features, each of which needs another, and alternatives of which one has to be there.

    A draw takes 0.5 ms of CPU time on a machine with nothing else to do.
    """
    from time import process_time

    from swarmtest.core.constraints import at_least_one_of
    from swarmtest.core.sampling import toss
    from swarmtest.core.seeds import Stream

    features = [Feature(f"f{i}", requires=[f"f{i // 3}"] if i > 5 else []) for i in range(150)]
    groups = [at_least_one_of(*(f"f{j}" for j in range(i, i + 3))) for i in range(0, 150, 3)]
    space = Space(features, groups)
    rates = [0.5] * 150
    toss(space, rates, Stream(0, 0))
    start = process_time()
    for trial in range(20):
        proposal = toss(space, rates, Stream(0, trial))
        assert not space.violated(proposal.configuration.bits)
    assert (process_time() - start) / 20 < 0.05
