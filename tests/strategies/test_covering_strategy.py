"""A covering array over the features of a space: what is asked for in one cycle, by brute force."""

import math
import random
from itertools import combinations, product
from typing import Any

import pytest

from swarmtest import Feature, Flag, Space, UserError, at_least_one_of, excludes, requires
from swarmtest.compare.detection import CensoredTime, log_rank
from swarmtest.strategies import Covering, Stream, parse_strategy


def one_cycle(strategy, space, seed=0):
    strategy.prepare(space)
    return [strategy.ask(space, t, Stream(seed, t)) for t in range(len(strategy.rows))]


def patterns(sets, features, t):
    """Every combination of t features, on or off, that occurs in some of the sets of features."""
    return {
        (chosen, tuple(bits >> i & 1 for i in chosen))
        for bits in sets
        for chosen in combinations(range(features), min(t, features))
    }


def possible(space):
    return [bits for bits in range(1, 1 << len(space.features)) if not space.violated(bits)]


def plain(count):
    return Space([f"f{i}" for i in range(count)])


TREE = Space(
    ["expr", "call", "args", "loop", "break", "return", "yield", "async"],
    [
        requires("call", "expr"),
        requires("args", "call"),
        requires("break", "loop"),
        excludes("return", "yield"),
        at_least_one_of("expr", "loop", "async"),
    ],
)
MUST = Space([Feature("main", mandatory=True), *"abcde", Feature("f", excludes=["a", "b"])])


def assert_one_cycle_covers(space, t, fill):
    asked = [q.configuration.bits for q in one_cycle(Covering(t, fill), space)]
    count = len(space.features)
    assert patterns(asked, count, t) == patterns(possible(space), count, t)
    assert not any(space.violated(bits) for bits in asked)
    assert all(asked)


@pytest.mark.parametrize(
    ("space", "t"),
    [
        (plain(1), 2),
        (plain(2), 2),
        (plain(2), 4),
        (plain(3), 3),
        (plain(8), 3),
        (plain(7), 4),
        (plain(8), 6),
        (TREE, 3),
        (MUST, 4),
    ],
)
def test_one_cycle_has_every_possible_combination_and_nothing_forbidden(space, t):
    assert_one_cycle_covers(space, t, "coin")


@pytest.mark.parametrize("fill", ["coin", "include", "exclude"])
@pytest.mark.parametrize("space", [plain(5), plain(6), TREE, MUST])
def test_one_cycle_covers_however_open_entries_are_filled(space, fill):
    assert_one_cycle_covers(space, 2, fill)


@pytest.mark.parametrize("count", [10, 20, 40])
def test_pairs_of_many_features_take_few_configurations(count):
    proposals = one_cycle(Covering(2), plain(count))
    assert len(proposals) <= 10
    for one, other in combinations(range(count), 2):
        seen = {
            (q.configuration.bits >> one & 1, q.configuration.bits >> other & 1) for q in proposals
        }
        assert seen == set(product((0, 1), repeat=2))


def test_the_rows_take_turns():
    strategy, space = Covering(2), plain(6)
    cycle = len(one_cycle(strategy, space))
    origins = [strategy.ask(space, t, Stream(0, t)).origin for t in range(2 * cycle)]
    assert origins == [f"row {number}" for number in range(cycle)] * 2


@pytest.mark.parametrize("text", ["covering:t=2", "covering:t=3", "complete"])
def test_how_soon_a_combination_comes_does_not_depend_on_the_names_of_its_features(text):
    """Two groups of eight seeds look for two combinations, as `compare` does with renamed features.

    With a design that ignores its seed, nearly all of these comparisons find a difference.
    """
    space, pick = plain(7), random.Random(5)
    strategy: Any = parse_strategy(text)
    asked = {
        seed: [strategy.ask(space, t, Stream(seed, t)).configuration.bits for t in range(127)]
        for seed in range(16)
    }

    def waits(seeds):
        on, also, off = (1 << i for i in pick.sample(range(7), 3))
        times = [
            next((t for t, b in enumerate(asked[s]) if b & on and b & also and not b & off), None)
            for s in seeds
        ]
        return [CensoredTime(127 if t is None else t, t is not None) for t in times]

    comparisons = 200
    different = sum(
        log_rank(waits(seeds[:8]), waits(seeds[8:])) <= 0.05
        for seeds in (pick.sample(range(16), 16) for _ in range(comparisons))
    )
    assert different / comparisons < 0.05 + 5 * math.sqrt(0.05 * 0.95 / comparisons)


@pytest.mark.parametrize("space", [plain(7), TREE, MUST])
@pytest.mark.parametrize("seed", [1, 2, 12345678901])
def test_every_seed_has_an_array_of_its_own_that_covers(space, seed):
    strategy = Covering(3)
    strategy.ask(space, 0, Stream(seed))
    cycle = [strategy.ask(space, t, Stream(seed, t)) for t in range(len(strategy.rows))]
    asked = [proposal.configuration.bits for proposal in cycle]
    count = len(space.features)
    assert patterns(asked, count, 3) == patterns(possible(space), count, 3)
    assert not any(space.violated(bits) for bits in asked)
    other = [strategy.ask(space, t, Stream(seed + 1, t)).configuration.bits for t in range(40)]
    assert asked != other[: len(asked)]
    again = [strategy.ask(space, t, Stream(seed, t)).configuration.bits for t in range(len(asked))]
    assert again == asked


def test_it_prepares_itself_when_nobody_did():
    assert Covering(2).ask(plain(4), 0, Stream()).configuration.included


def test_one_strategy_can_be_asked_for_two_spaces():
    strategy = Covering(2)
    strategy.ask(plain(3), 0, Stream())
    asked = [strategy.ask(plain(6), t, Stream(0, t)).configuration.bits for t in range(50)]
    assert patterns(asked, 6, 2) == patterns(possible(plain(6)), 6, 2)


def test_where_an_array_leaves_entries_open_include_has_more_features_than_exclude():
    asked = {
        fill: sum(
            q.configuration.bits.bit_count()
            for count in (5, 11, 12)  # each has entries that no pair of features needs
            for q in one_cycle(Covering(2, fill), plain(count))
        )
        for fill in ("include", "exclude")
    }
    assert asked["include"] > asked["exclude"]


@pytest.mark.parametrize("fill", ["include", "exclude"])
@pytest.mark.parametrize("space", [plain(7), TREE, MUST])
def test_the_logged_odds_are_the_shares_of_a_cycle(space, fill):
    proposals = one_cycle(Covering(2, fill), space)
    for i in range(len(space.features)):
        share = sum(q.configuration.bits >> i & 1 for q in proposals) / len(proposals)
        assert proposals[0].propensities[i] == pytest.approx(share)


def test_settings_are_drawn_anew_for_each_test():
    strategy = Covering(2)
    space = Space(["a", "b", "c", Flag("fsync")])
    proposals = one_cycle(strategy, space) + [
        strategy.ask(space, t, Stream(0, t)) for t in range(40)
    ]
    assert {q.configuration["fsync"] for q in proposals} == {False, True}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("covering:t=1", "from 2 to 6"),
        ("covering:t=7", "from 2 to 6"),
        ("covering:t=two", "'two'"),
        ("covering:t=2.5", "2.5"),
        ("covering:t=3.0", "3.0"),
        ("covering:fill=maybe", "coin, include, exclude"),
    ],
)
def test_bad_parameters_get_one_clear_line(text, says):
    with pytest.raises(UserError) as refused:
        parse_strategy(text)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
