"""Chances of combinations: against enumeration, against simulation, and against the paper."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from swarmtest.core.constraints import at_least_one_of
from swarmtest.core.dimensions import Feature
from swarmtest.core.errors import UserError
from swarmtest.core.space import Space
from swarmtest.plan.combinations import (
    Combination,
    chance_in,
    coin_share,
    coin_ways,
    forbidden_by,
    needed,
    sized_share,
)
from swarmtest.plan.planning import (
    CombinationPlanner,
    PlanQuestion,
    first_covering,
    first_with,
    from_times,
    is_fresh,
)
from swarmtest.strategies.strategy import parse_strategy

RATES = st.lists(st.sampled_from([0.1, 0.5, 0.75, 1.0]), min_size=1, max_size=5)


def configurations(rates: list[float]) -> dict[tuple[int, ...], float]:
    """Every non-empty configuration with its probability."""
    odds = {
        bits: math.prod(r if bit else 1 - r for bit, r in zip(bits, rates, strict=True))
        for bits in itertools.product((0, 1), repeat=len(rates))
        if any(bits)
    }
    whole = sum(odds.values())
    return {bits: chance / whole for bits, chance in odds.items()}


def patterns(features: int, k: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every k features with every way to switch them."""
    sets = itertools.combinations(range(features), k)
    return [(chosen, way) for chosen in sets for way in itertools.product((0, 1), repeat=k)]


# One combination


@given(rates=RATES, data=st.data())
def test_a_share_is_what_counting_all_configurations_gives(
    rates: list[float], data: st.DataObject
) -> None:
    ways = data.draw(st.lists(st.sampled_from("+-."), min_size=len(rates), max_size=len(rates)))
    on, off = ([i for i, way in enumerate(ways) if way == sign] for sign in "+-")
    counted = sum(
        chance
        for bits, chance in configurations(rates).items()
        if all(bits[i] for i in on) and not any(bits[i] for i in off)
    )
    assert coin_share(rates, on, off) == pytest.approx(counted, abs=1e-12)


@given(features=st.integers(1, 6), data=st.data())
def test_a_share_of_sizes_is_what_counting_gives(features: int, data: st.DataObject) -> None:
    low = data.draw(st.integers(1, features))
    high = data.draw(st.integers(low, features))
    on = data.draw(st.integers(0, features))
    off = data.draw(st.integers(0, features - on))
    counted = Fraction(0)
    for size in range(low, high + 1):
        sets = list(itertools.combinations(range(features), size))
        good = [s for s in sets if {*range(on)} <= {*s} and not {*range(on, on + off)} & {*s}]
        counted += Fraction(len(good), len(sets) * (high - low + 1))
    assert sized_share(features, on, off, low, high) == pytest.approx(float(counted))


@pytest.mark.parametrize(("n", "k", "chance"), [(100, 5, 0.95), (1000, 8, 0.95), (1000, 10, 0.60)])
def test_the_papers_chances(n: int, k: int, chance: float) -> None:
    assert chance <= chance_in(coin_share([0.5] * 23, range(k)), n) < chance + 0.05


@given(share=st.floats(1e-6, 1.0), chance=st.floats(0.001, 0.999))
def test_the_number_needed_is_the_smallest_that_will_do(share: float, chance: float) -> None:
    n = needed(share, chance)
    assert chance_in(share, n) >= chance * (1 - 1e-12)
    assert n == 1 or chance_in(share, n - 1) < chance


# All combinations


@given(rates=RATES, k=st.integers(1, 3), on_only=st.booleans())
def test_the_classes_are_all_combinations_with_their_shares(
    rates: list[float], k: int, on_only: bool
) -> None:
    assume(k <= len(rates))
    single = sorted(
        coin_share(
            rates,
            [f for f, on in zip(chosen, way, strict=True) if on],
            [f for f, on in zip(chosen, way, strict=True) if not on],
        )
        for chosen, way in patterns(len(rates), k)
        if all(way) or (not on_only and (any(way) or k < len(rates)))
    )
    classes = coin_ways(rates, k, on_only).classes
    grouped = sorted(share for count, share in classes for _ in range(count))
    assert grouped == pytest.approx(single, abs=1e-12)


@settings(deadline=None)
@given(n=st.integers(1, 4))
def test_the_union_bound_is_below_the_exact_chance(n: int) -> None:
    """All swarms of n configurations over three features, one by one."""
    odds = configurations([0.5, 0.5, 0.5])
    wanted = patterns(3, 1)
    exact = sum(
        math.prod(odds[c] for c in swarm)
        for swarm in itertools.product(odds, repeat=n)
        if all(any(c[f] == on for c in swarm) for (f,), (on,) in wanted)
    )
    assert coin_ways([0.5] * 3, 1).chance_in(n) <= exact + 1e-12


@given(features=st.integers(2, 30), k=st.integers(1, 3), chance=st.floats(0.5, 0.999))
def test_enough_is_enough_and_one_less_is_not(features: int, k: int, chance: float) -> None:
    assume(k < features)
    ways = coin_ways([0.5] * features, k)
    n = ways.needed(chance)
    assert ways.chance_in(n) >= chance > ways.chance_in(n - 1)


def best_case(features: int, k: int, n: int) -> float:
    """An upper bound of the chance that n fair-coin configurations are k-way covering.

    Dawson and Sankoff's (1967) lower bound of the chance that something is missing, from the sums
    over single combinations and over pairs. Two combinations that share j features exclude each
    other unless they agree there.
    """
    whole, one = math.comb(features, k) * 2**k, (1 - 0.5**k) ** n
    pairs = 0.0
    for shared in range(k + 1):
        sets = math.comb(k, shared) * math.comb(features - k, k - shared)
        agree = 2 ** (k - shared) if shared < k else 0
        clash = 2**k - 2 ** (k - shared)
        pairs += sets * agree * (1 - 2 * 0.5**k + 0.5 ** (2 * k - shared)) ** n
        pairs += sets * clash * (1 - 2 * 0.5**k) ** n
    singles, pairs = whole * one, whole * pairs / 2
    m = 1 + int(2 * pairs / singles)
    return float(1 - 2 / (m + 1) * singles + 2 / (m * (m + 1)) * pairs)


@pytest.mark.parametrize(("k", "n", "surely", "no_more"), [(3, 120, 41, 43), (5, 750, 62, 63)])
def test_the_papers_covering_claim_holds_up_to_so_many_features(
    k: int, n: int, surely: int, no_more: int
) -> None:
    assert coin_ways([0.5] * surely, k).chance_in(n) >= 0.99
    assert best_case(no_more, k, n) < 0.99


@pytest.mark.parametrize("features", [9, 23, 37])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_at_99_percent_the_union_bound_asks_for_at_most_one_too_many(features: int, k: int) -> None:
    n = coin_ways([0.5] * features, k).needed(0.99)
    assert best_case(features, k, n - 2) < 0.99


def test_very_different_rates_are_refused_not_waited_for() -> None:
    with pytest.raises(UserError, match="100 different rates"):
        coin_ways(np.linspace(0.1, 0.9, 100).tolist(), 5)


# Constraints


FILES = Space(
    [
        Feature("open", mandatory=True),
        Feature("read", requires=["open"]),
        Feature("write", excludes=["lock"]),
        Feature("lock"),
    ],
    [at_least_one_of("read", "write")],
)


@pytest.mark.parametrize(
    ("combination", "rules"),
    [
        (Combination(("read", "write")), []),
        (Combination((), ("open",)), ["'open' is mandatory"]),
        (Combination(("write", "lock")), ["'write' excludes 'lock'"]),
        (Combination((), ("read", "write")), ["at least one of 'read', 'write'"]),
    ],
)
def test_the_constraint_that_forbids_a_combination_is_named(
    combination: Combination, rules: list[str]
) -> None:
    assert forbidden_by(FILES, combination) == rules


def test_nothing_at_all_is_forbidden() -> None:
    rules = forbidden_by(Space(["a", "b"]), Combination((), ("a", "b")))
    assert rules == ["a configuration is never empty"]


# Simulation


def planner(strategy: str, space: Space | int = 6) -> CombinationPlanner:
    features = [f"f{i}" for i in range(space)] if isinstance(space, int) else []
    return CombinationPlanner(
        Space(features) if isinstance(space, int) else space, parse_strategy(strategy)
    )


@pytest.mark.parametrize(
    ("strategy", "fresh"),
    [
        ("coin", True),
        ("layered", True),
        ("all-on", True),
        ("coin:n=50", False),
        ("complete", False),
        ("mixture:all-on=0.1,coin=0.9", False),
    ],
)
def test_strategies_that_take_turns_are_told_from_those_that_draw_anew(
    strategy: str, fresh: bool
) -> None:
    assert is_fresh(planner(strategy)._ask()) is fresh


@pytest.mark.parametrize(
    ("strategy", "method"),
    [
        ("mixture:coin=1", "10,000 simulated configurations"),
        ("coin:n=10", "400 simulated campaigns"),
    ],
)
def test_what_is_simulated_agrees_with_the_formula(strategy: str, method: str) -> None:
    """Ten tests of a mixture of one coin, or of a swarm of ten, are ten tosses of that coin."""
    combination = Combination(("f0", "f1"), ("f2",))
    exact = planner("coin").together(combination, PlanQuestion(10)).chance
    simulated = planner(strategy).together(combination, PlanQuestion(10))
    assert simulated.method == method
    assert exact is not None
    assert simulated.chance is not None
    assert simulated.chance.low <= exact.low <= simulated.chance.high  # type: ignore[operator]


def test_simulated_covering_times_agree_with_the_bounds() -> None:
    space = Space([f"f{i}" for i in range(8)])
    first = first_covering(planner("coin", space)._ask(), space, 2, False)
    assert first is not None
    ways = coin_ways([0.5] * 8, 2)
    for n in (15, 20, 30, 40):
        chance = from_times(first, PlanQuestion(n)).chance
        assert chance is not None
        assert ways.chance_in(n) <= chance.high  # type: ignore[operator]
        assert chance.low <= chance_in(ways.rarest, n)  # type: ignore[operator]


def test_all_subsets_in_turn_have_every_combination_in_the_end() -> None:
    first = first_with(planner("complete", 4)._ask(), on=0b1111, off=0, n=20)
    assert {*first.times} == {*range(1, 16)}  # the campaigns have orders of their own
    assert len(first.times) == first.campaigns


def test_the_plan_for_all_subsets_in_turn_is_that_of_random_orders() -> None:
    """One subset of 63 comes anywhere in the order: within 60 tests with a chance of 95%."""
    answer = planner("complete", 6).together(
        Combination(tuple(f"f{i}" for i in range(6))), PlanQuestion(wished=0.95)
    )
    assert answer.needed is not None
    assert answer.needed.low is not None
    assert answer.needed.high is not None
    assert answer.needed.low <= 60 <= answer.needed.high
    half = planner("complete", 6).together(
        Combination(tuple(f"f{i}" for i in range(6))), PlanQuestion(tests=31)
    )
    assert half.chance is not None
    assert (half.chance.low or 0) < 31 / 63 < (half.chance.high or 0)


def test_under_constraints_only_what_is_possible_is_asked_for() -> None:
    (answer,) = planner("coin", FILES).ways(2, PlanQuestion(wished=0.9))
    assert answer.needed is not None
    assert answer.needed.high is not None


def test_a_combination_that_was_never_drawn_has_a_ceiling_not_a_zero() -> None:
    answer = planner("layered", 16).together(
        Combination(tuple(f"f{i}" for i in range(8)), tuple(f"f{i}" for i in range(8, 16))),
        PlanQuestion(wished=0.95),
    )
    assert answer.share is not None
    assert answer.share.low == 0 < answer.share.high  # type: ignore[operator]
    assert answer.needed is not None
    assert answer.needed.high is None


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ("all-on", "same features in every test"),
        ("activation", "same features in every test"),
        ("sized:low=5", "never makes"),
        ("coin:p=1", "never makes"),
        ("coin:n=9,by=time", "learns from results"),
    ],
)
def test_a_strategy_that_cannot_have_it_says_so(strategy: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        planner(strategy).together(Combination(("f0",), ("f1", "f2")), PlanQuestion())
