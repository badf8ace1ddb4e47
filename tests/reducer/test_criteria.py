"""Criteria and metrics: what counts as good enough, and how few runs it takes to know.

The metrics are those of section 3.4; Kendall's tau is compared with scipy's.
"""

from __future__ import annotations

import math
import random
import time

import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from swarmtest.core.errors import UserError
from swarmtest.reducer.criteria import (
    CoverageKept,
    MutantsKept,
    Repeated,
    ShellCommand,
    TargetsKept,
    first_to_add,
    kendall_tau,
    preservation_rate,
    randomly_reduced,
    size_reduction_rate,
)
from swarmtest.reducer.reducer import NotInteresting, Reducer


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.data())
def test_k_of_n_runs_is_what_it_says_and_stops_when_it_is_known(runs, data):
    k = data.draw(st.integers(1, len(runs)))
    answers = iter(runs)
    assert Repeated(lambda parts: next(answers), k, len(runs))([]) == (sum(runs) >= k)
    used = len(runs) - len(list(answers))
    known = [sum(runs[:i]) >= k or i - sum(runs[:i]) > len(runs) - k for i in range(len(runs) + 1)]
    assert used == known.index(True)


def test_more_runs_than_there_are_cannot_be_asked_for():
    with pytest.raises(UserError, match="4 of 3 runs"):
        Repeated(lambda parts: True, k=4, n=3)


def test_a_test_that_fails_now_and_then_is_reduced():
    answers = iter([True, False] * 1000)

    def sometimes(parts):
        return 7 in parts and next(answers)

    assert Reducer(range(30), Repeated(sometimes, k=1, n=3)).run().parts == (7,)


@given(st.sets(st.integers(0, 30), min_size=1), st.sets(st.integers(0, 40)), st.floats(0.01, 1))
def test_coverage_is_the_share_of_what_the_original_reached(original, reached, share):
    still = CoverageKept(lambda parts: reached, original, share)
    exact = len(reached & original) / len(original)
    assert still([]) == (exact >= share - 1e-9)


@pytest.mark.parametrize(
    ("count", "share", "needed"), [(100, 0.07, 7), (3, 0.9, 3), (20, 0.95, 19)]
)
def test_shares_are_rounded_as_people_count(count, share, needed):
    assert CoverageKept(lambda parts: parts, range(count), share).needed == needed


def test_coverage_is_not_asked_for_more_than_it_takes():
    given = iter(range(100))
    assert CoverageKept(lambda parts: given, range(10), share=0.5)([])
    assert next(given) == 5


def test_coverage_reduction_keeps_as_much_as_it_says():
    reaches = {part: {part % 40, part // 10} for part in range(200)}

    def reached(parts):
        return set().union(*(reaches[part] for part in parts))

    original = reached(range(200))
    for share in (0.7, 0.9, 1.0):
        found = Reducer(range(200), CoverageKept(reached, original, share)).run()
        assert len(reached(found.parts) & original) >= share * len(original)


@pytest.mark.parametrize("share", [0, 1.5])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(UserError, match="cannot be kept"):
        CoverageKept(lambda parts: parts, {1}, share)


def test_an_original_that_reaches_nothing_is_refused():
    with pytest.raises(UserError, match="reaches no target"):
        CoverageKept(lambda parts: parts, set())


def test_an_original_that_reaches_less_this_time_is_said():
    still = TargetsKept(lambda parts: {1}, wanted={1, 2})
    with pytest.raises(NotInteresting, match="reaches 1 of 2 targets now, 2 are needed"):
        Reducer([1], still).run()


def test_mutants_are_all_to_be_killed_and_the_last_survivor_is_asked_first():
    asked = []

    def kills(parts, mutant):
        asked.append(mutant)
        return mutant in parts

    still = MutantsKept(kills, ["a", "b", "c"])
    assert still(["a", "b", "c"])
    assert not still(["a", "b"])
    assert asked == ["a", "b", "c", "a", "b", "c"]
    asked.clear()
    assert not still(["a"])
    assert asked == ["c"]


def test_mutants_that_the_original_does_not_kill_are_said():
    with pytest.raises(NotInteresting, match="kills 1 of the 2 mutants"):
        Reducer(["a"], MutantsKept(lambda parts, mutant: mutant in parts, ["a", "b"])).run()


@given(st.lists(st.sets(st.integers(0, 12)), min_size=1, max_size=20), st.floats(0.05, 1))
def test_the_first_to_add_reach_the_share_where_parts_do_not_depend_on_each_other(sets, share):
    after = [set().union(*sets[: i + 1]) for i in range(len(sets))]
    original = after[-1]
    if not original:
        return
    chosen = first_to_add(after, original, share)
    met = set().union(*(sets[i] for i in chosen)) if chosen else set()
    assert len(met) >= share * len(original) - 1e-9
    assert list(chosen) == sorted(chosen)


# Metrics.


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


# A shell command as a criterion.


def test_lines_are_reduced_to_what_the_command_wants():
    lines = [f"line {i}\n" for i in range(30)]
    found = Reducer(lines, ShellCommand("grep -q 'line 17'")).run()
    assert found.parts == ("line 17\n",)


def test_the_file_is_where_the_braces_are():
    assert ShellCommand("cat {} | grep -q b", name="it.txt")([b"a", b"b"])


def test_each_run_has_a_directory_of_its_own():
    fresh = ShellCommand("test $(ls | wc -l) = 1 && touch left behind && test -f")
    assert fresh([b"x"])
    assert fresh([b"x"])


def test_a_command_that_hangs_is_ended_with_its_children():
    begun = time.monotonic()
    assert not ShellCommand("sleep 1000 & sleep 1000; true", seconds=0.2)([b"x"])
    assert time.monotonic() - begun < 60


@pytest.mark.parametrize(
    ("command", "seconds", "told"),
    [
        ("exit 3;", 60, "ends with status 3, not 0"),
        ("no-such-program", 60, "was not found"),
        ("sleep 1000;", 0.2, "takes more than 0.2 s"),
    ],
)
def test_why_the_original_is_not_interesting(command, seconds, told):
    with pytest.raises(NotInteresting, match=told):
        Reducer([b"x"], ShellCommand(command, seconds=seconds)).run()


@pytest.mark.parametrize("name", ["", "a/b", ".."])
def test_the_file_stays_in_its_directory(name):
    with pytest.raises(UserError, match="is not a file name"):
        ShellCommand("true", name=name)


def test_an_empty_command_is_refused():
    with pytest.raises(UserError, match="is empty"):
        ShellCommand(" ")
