"""Aiming at several targets with fewer kinds of configurations."""

import itertools
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest import UserError
from swarmtest.strategies.directed.aim import Aim, Goal
from swarmtest.strategies.directed.merging import (
    MERGES,
    Merging,
    leaner,
    merge_at_random,
    merged,
    without_subsumed,
)

examples = settings(derandomize=True, deadline=None, max_examples=150)


def aim(name, triggers="", suppressors=""):
    return Aim((Goal(name),), frozenset(triggers), frozenset(suppressors))


def random_aims(count, features, seed, most=3):
    rng = random.Random(seed)
    found = []
    for number in range(count):
        names = rng.sample(range(features), rng.randint(0, most))
        cut = rng.randint(0, len(names))
        found.append(
            aim(f"line:x:{number}", {f"f{i}" for i in names[:cut]}, {f"f{i}" for i in names[cut:]})
        )
    return found


@st.composite
def several_aims(draw, most=7, features="abcd"):
    roles = st.lists(st.sampled_from("tsii"), min_size=len(features), max_size=len(features))
    found = []
    for number, each in enumerate(draw(st.lists(roles, min_size=1, max_size=most))):
        pairs = list(zip(features, each, strict=True))
        triggers = [name for name, role in pairs if role == "t"]
        suppressors = [name for name, role in pairs if role == "s"]
        found.append(aim(f"line:x:{number}", triggers, suppressors))
    return found


def partitions(items):
    if not items:
        yield []
        return
    first, *rest = items
    for smaller in partitions(rest):
        for at, group in enumerate(smaller):
            yield [*smaller[:at], [first, *group], *smaller[at + 1 :]]
        yield [[first], *smaller]


def fewest_by_partitions(aims):
    """The fewest groups in which no two aims conflict, by looking at all partitions."""
    return min(
        len(groups)
        for groups in partitions(aims)
        if not any(
            one.conflicts_with(other)
            for group in groups
            for one, other in itertools.combinations(group, 2)
        )
    )


def fewest_by_pairwise_merges(aims):
    """The fewest aims that any sequence of merges of two can end in, by trying all sequences."""
    fewest, seen, waiting = len(aims), set(), [tuple(aims)]
    while waiting:
        present = waiting.pop()
        fewest = min(fewest, len(present))
        for one, other in itertools.combinations(present, 2):
            if not one.conflicts_with(other):
                rest = [each for each in present if each is not one and each is not other]
                after = (*rest, one.merged_with(other))
                key = frozenset(frozenset(each.targets) for each in after)
                if key not in seen:
                    seen.add(key)
                    waiting.append(after)
    return fewest


def assert_fits(aims, kept):
    """Each goal once, in an aim that asks for all that the goal's own aim asks for."""
    owner = {target: each for each in kept for target in each.targets}
    assert Counter(t for each in kept for t in each.targets) == Counter(a.targets[0] for a in aims)
    for each in aims:
        assert each.triggers <= owner[each.targets[0]].triggers
        assert each.suppressors <= owner[each.targets[0]].suppressors


@examples
@given(several_aims(most=6), several_aims(most=1))
def test_what_conflicts_with_no_member_does_not_conflict_with_their_union(aims, others):
    group: list[Aim] = []
    for each in aims:
        if not any(each.conflicts_with(member) for member in group):
            group.append(each)
    union = group[0]
    for each in group[1:]:
        union = union.merged_with(each)
    other = others[0]
    assert union.conflicts_with(other) == any(other.conflicts_with(each) for each in group)


@examples
@given(several_aims())
def test_the_fewest_merged_aims_are_those_of_the_best_partition(aims):
    found = merged(aims, "aggressive")
    assert len(found.aims) == found.lower_bound == fewest_by_partitions(aims)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(several_aims(most=5))
def test_no_sequence_of_pairwise_merges_ends_in_fewer(aims):
    assert len(merged(aims, "aggressive").aims) == fewest_by_pairwise_merges(aims)


@examples
@given(several_aims(most=12, features="abcdef"), st.sampled_from(MERGES))
def test_each_goal_is_kept_once_with_all_that_its_aim_asked_for(aims, merge):
    assert_fits(aims, merged(aims, merge).aims)


@examples
@given(several_aims(most=12))
def test_after_subsumption_no_aim_asks_for_all_that_another_asks_for(aims):
    for one, other in itertools.permutations(without_subsumed(aims), 2):
        assert not (one.triggers <= other.triggers and one.suppressors <= other.suppressors)


@examples
@given(several_aims(most=9), st.integers(0, 99))
def test_merging_at_random_merges_until_nothing_is_left_to_merge(aims, seed):
    found = merge_at_random(aims, trials=3, seed=seed)
    assert_fits(aims, found)
    if len(found) < len(without_subsumed(aims)):
        assert all(one.conflicts_with(other) for one, other in itertools.combinations(found, 2))


def test_round_robin_merges_nothing():
    aims = random_aims(10, 5, seed=1)
    assert merged(aims, "round-robin").aims == tuple(aims)


def test_of_aims_that_ask_for_the_same_one_stays_with_the_goals_of_all():
    kept = without_subsumed([aim("one", "a", "b"), aim("two", "a", "b"), aim("three", "a", "b")])
    assert [each.targets for each in kept] == [("one", "two", "three")]


def test_the_pair_of_sets_is_what_must_be_stricter_not_each_of_them():
    kept = without_subsumed([aim("lax", "a", "b"), aim("strict", "ac", "b")])
    assert [each.targets for each in kept] == [("strict", "lax")]


def test_a_subsumed_goal_goes_to_the_leanest_aim_that_asks_for_as_much():
    kept = without_subsumed([aim("small", "a"), aim("large", "abcd"), aim("middle", "ae")])
    assert [each.targets for each in kept] == [("large",), ("middle", "small")]


def test_a_chain_of_subsumption_leaves_its_strictest_aim():
    kept = without_subsumed([aim("a", "a"), aim("ab", "ab"), aim("abc", "abc")])
    assert [set(each.targets) for each in kept] == [{"a", "ab", "abc"}]


def test_merging_at_random_is_reproducible_and_its_seed_matters():
    aims = random_aims(30, 12, seed=3)
    assert merge_at_random(aims, 2, seed=1) == merge_at_random(aims, 2, seed=1)
    assert len({merge_at_random(aims, 1, seed=seed) for seed in range(5)}) > 1


def test_exact_merging_is_never_worse_than_merging_at_random_and_sometimes_better():
    sizes = []
    for seed in range(6):
        aims = random_aims(60, 10, seed)
        exact = merged(aims, "aggressive")
        assert exact.proven
        sizes.append((len(exact.aims), len(merge_at_random(aims, 30, seed))))
    assert all(exact <= at_random for exact, at_random in sizes)
    assert any(exact < at_random for exact, at_random in sizes)


def test_a_merging_that_is_not_settled_in_time_tells_both_bounds():
    rng = random.Random(0)
    aims = []
    for number in range(120):
        roles = {f"f{i}": rng.random() for i in range(50)}
        triggers = {name for name, draw in roles.items() if draw < 0.1}
        suppressors = {name for name, draw in roles.items() if draw > 0.9}
        aims.append(aim(f"line:x:{number}", triggers, suppressors))
    found = merged(aims, "aggressive", seconds=0.01)
    assert not found.proven
    assert found.lower_bound < len(found.aims) < 60
    assert f"between {found.lower_bound} and {len(found.aims)}" in found.how
    assert_fits(aims, found.aims)


def test_aims_move_to_where_they_fix_fewer_features():
    one, other, same = aim("one", "a"), aim("other", "b", "a"), aim("same", "b")
    assert leaner([one, other, same], [0, 1, 0]) == [0, 1, 1]


@examples
@given(several_aims(most=10, features="abcdef"))
def test_moving_aims_makes_no_conflict_and_no_colour(aims):
    before: list[int] = []
    for number, each in enumerate(aims):
        taken = {c for c, o in zip(before, aims[:number], strict=True) if o.conflicts_with(each)}
        before.append(min(set(range(len(aims))) - taken))
    after = leaner(aims, before)
    assert set(after) <= set(before)
    for (one, first), (other, second) in itertools.combinations(zip(aims, after, strict=True), 2):
        assert first != second or not one.conflicts_with(other)


def test_a_merging_survives_json():
    found = merged(random_aims(15, 6, seed=2), "aggressive")
    assert Merging.from_json(found.to_json()) == found


def test_no_aims_merge_into_none():
    assert [merged([], merge).aims for merge in MERGES] == [(), (), ()]


def test_an_unknown_way_to_merge_is_refused():
    with pytest.raises(UserError, match="did you mean 'aggressive'"):
        merged([], "agressive")
