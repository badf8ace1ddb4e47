"""The outcome of focused testing on a terminal."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from focus_example import HOSTILE, any_text, counts, fault, line, pull_request, saying
from hypothesis import example, given, settings
from hypothesis import strategies as st

from swarmtest.focus.outcome import Count, FocusedTarget, FocusOutcome
from swarmtest.focus.views.rows import (
    cautions,
    focus_rows,
    line_ranges,
    plain,
    repository_path,
    summaries,
    verdict,
)
from swarmtest.focus.views.terminal import focus_text

words = ("focus on", "campaign 7", "changed lines", "new fault", "replay")


def row_of(text: str, name: str) -> list[str]:
    """The cells of the row that begins with a name."""
    found = next(one for one in text.splitlines() if one.startswith(name))
    return found.split()


@pytest.mark.parametrize("width", [60, 72, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_screen(width):
    text = focus_text(pull_request(), width)
    assert max(map(len, text.splitlines())) <= width
    assert all(word in text for word in words)


def test_a_row_tells_fractions_and_their_ratio():
    found = row_of(focus_text(pull_request()), "shop/cart.py:33")
    assert found == [
        "shop/cart.py:33",
        "Cart.total",
        "23%",
        "12%",
        "68%",
        "2.9",
        "[2.6,",
        "3.3]",
        "2.5",
    ]


def test_a_ratio_that_costs_more_time_is_less_per_second():
    dear = line(3, directed=Count(60, 200, 40.0), undirected=Count(30, 200, 10.0))
    text = focus_text(replace(pull_request(), targets=(dear,)))
    assert row_of(text, "shop/cart.py:3")[-1] == "0.5"


def test_lines_hit_by_the_same_tests_are_one_row():
    text = focus_text(pull_request())
    assert "shop/cart.py:26-30 " in text
    assert "shop/cart.py:27" not in text


def test_lines_hit_alike_in_other_functions_or_not_beside_each_other_stay_apart():
    same = counts(3, 2, 1)
    other = [line(1, function="f", **same), line(2, function="g", **same), line(3, function="g")]
    assert [row.name for row in focus_rows([*other, line(4, function="g", **same)])] == [
        "shop/cart.py:1",
        "shop/cart.py:2",
        "shop/cart.py:3",
        "shop/cart.py:4",
    ]


def test_a_line_that_only_directed_tests_hit_has_a_bound():
    assert "at least 17.3" in focus_text(pull_request())


def test_a_proxy_is_named_below_the_table():
    text = focus_text(pull_request())
    assert "shop/cart.py:44 [1]" in text
    assert "[1] too little data of its own, aimed at through line shop/cart.py:36" in text


def test_changed_lines_are_counted_and_those_never_hit_named():
    assert (
        "changed lines: 14; hit 11 (by 7 to 2,000 tests), never hit: shop/cart.py:31, 40-41"
        in focus_text(pull_request())
    )


def test_lines_that_were_named_are_not_called_changed():
    text = focus_text(replace(pull_request(), base=""))
    assert "\nlines: 14; hit 11" in text
    assert "changes since" not in text


def test_a_long_list_is_shortened_and_everything_shown_on_request():
    lines = tuple(line(n, **counts(n, 1, 1)) for n in range(2, 104, 2))
    outcome = replace(pull_request(), targets=lines)
    assert "... and 31 more: --all" in focus_text(outcome)
    assert "shop/cart.py:102" not in focus_text(outcome)
    assert "shop/cart.py:102" in focus_text(outcome, everything=True)


def test_very_many_lines_never_hit_are_counted_and_all_named_on_request():
    outcome = replace(pull_request(), targets=tuple(line(n) for n in range(1000, 3000, 2)))
    assert "... (1,000 in all: --all)" in focus_text(outcome)
    assert len(focus_text(outcome, 80).splitlines()) < 60
    assert "2996, 2998" in focus_text(outcome, everything=True)


def test_an_interrupted_run_says_so():
    assert "interrupted" in focus_text(replace(pull_request(), interrupted=True))
    assert "interrupted" not in focus_text(pull_request())


def test_dropped_targets_are_in_one_line_and_not_in_the_table():
    text = focus_text(pull_request())
    assert text.count("shop/cart.py:52") == 1
    assert "dropped from focus, 1 target: shop/cart.py:52 (hit by 89% of tests anyway)" in text


def test_what_was_mapped_is_said():
    assert "shop/cart.py:33 is line 29 of an earlier version" in focus_text(pull_request())


def test_the_summary_counts_a_block_of_lines_once():
    block = [line(n, **counts(372, 19, 1)) for n in range(1, 6)]
    assert summaries(focus_rows([*block, line(9, **counts(5, 9, 0))]))["fraction"].count == 2


def test_diversity_is_told():
    text = focus_text(pull_request())
    assert "412 distinct configurations in 1,200 directed tests; 9 distinct ways" in text
    assert "warning" not in text


def test_few_configurations_are_warned_about():
    text = focus_text(replace(pull_request(), distinct_configurations=3))
    assert "warning: little variety: only 3 configurations in 1,200 directed tests" in text


def test_the_most_varied_strategy_is_not_told_to_use_itself():
    few = replace(pull_request(), distinct_configurations=3)
    assert "; strategy adaptive varies more" in focus_text(replace(few, strategy="half-swarm"))
    assert "varies more" not in focus_text(replace(few, strategy="adaptive"))


def test_directed_tests_that_miss_are_warned_about():
    target = line(20, **counts(3, 120, 9), mapped="edited since")
    (found,) = cautions(replace(pull_request(), targets=(target,)))
    assert found == (
        "directed tests hit less often than undirected ones: shop/cart.py:20: the data comes from "
        "other code; use --fresh to run a baseline of this code"
    )


def test_why_a_line_was_neither_hit_nor_aimed_at_is_told():
    never = line(7, dropped="no call of it was found", **counts(0, 0, 0))
    text = focus_text(replace(pull_request(), targets=(never,)))
    assert "could not be aimed at, 1 target: shop/cart.py:7 (no call of it was found)" in text


def test_one_test_repeated_is_warned_about():
    same = replace(pull_request().targets[0], configurations=1, ways=1)
    found = cautions(replace(pull_request(), targets=(same,)))
    assert found == ["always hit with the same configuration and in the same way: shop/cart.py:26"]


def test_faults_come_new_ones_first_with_how_to_replay_them():
    text = focus_text(pull_request())
    new, doubtful, old = (
        text.index(one) for one in ("new fault 3fa9", "new fault 9b3e", "old fault")
    )
    assert new < doubtful < old
    assert "  replay: swarmtest replay 7#801\n" in text
    assert "not known: the base version cannot replay it" in text


def test_a_replay_command_is_never_broken_into_lines():
    long = f"swarmtest replay 7#17 --store {'very/long/' * 20}store.db"
    text = focus_text(replace(pull_request(), faults=(fault(replay=long),)), 80)
    assert f"  replay: {long}\n" in text


def test_the_last_line_is_the_verdict():
    assert focus_text(pull_request()).splitlines()[-1] == (
        "focus: 1 new fault, 1 fault that may be new, 1 old fault; 11 of 14 changed lines hit"
    )


@pytest.mark.parametrize(
    ("statuses", "missed", "level"),
    [
        (("new",), 0, "failed"),
        (("unknown",), 0, "failed"),
        (("",), 1, "failed"),
        (("old",), 0, "passed"),
        (("old",), 1, "warned"),
        ((), 0, "passed"),
    ],
)
def test_only_a_fault_that_may_be_new_fails_and_what_was_not_hit_warns(statuses, missed, level):
    targets = (line(1, **counts(3, 2, 1)), *(line(9 + n) for n in range(missed)))
    faults = tuple(fault(status=one) for one in statuses)
    assert verdict(replace(pull_request(), targets=targets, faults=faults)).level == level


def test_without_a_test_nothing_passed():
    empty = FocusOutcome("shop.py", 1, "half-swarm")
    assert verdict(empty).level == "warned"
    assert focus_text(empty, 80).endswith("focus: no test was run")


def test_targets_that_are_no_lines_are_shown_by_name():
    event = FocusedTarget("event:stack was full", **counts(30, 3, 0))
    text = focus_text(replace(pull_request(), targets=(event,)))
    assert "event:stack was full" in text
    assert "targets: 1; hit 1 (by 33 tests)" in text


@given(any_text)
@example(HOSTILE)
@settings(max_examples=60, deadline=None)
def test_no_text_of_a_test_reaches_the_terminal_or_the_runner_as_a_command(text):
    for width in (0, 40):
        shown = focus_text(saying(text), width)
        assert not any(one.lstrip().startswith("::") for one in shown.splitlines())
        assert "##[" not in shown
        assert shown.isprintable() or all(
            c.isprintable() or c == "\n" or ord(c) > 159 for c in shown
        )
        shown.encode()


@given(any_text)
@settings(max_examples=60, deadline=None)
def test_plain_text_is_one_line_and_stays_as_it_is(text):
    once = plain(text)
    assert "\n" not in once
    assert plain(once) == once


@given(st.sets(st.integers(1, 60)))
@settings(max_examples=60, deadline=None)
def test_ranges_hold_exactly_the_lines(numbers):
    ranges = line_ranges([line(n) for n in numbers])
    assert sorted(n for _, first, last in ranges for n in range(first, last + 1)) == sorted(numbers)
    assert all(a[2] + 1 < b[1] for a, b in pairwise(ranges))


@pytest.mark.parametrize(
    ("file", "here", "told"),
    [
        ("shop/cart.py", None, "shop/cart.py"),
        ("/repo/shop/cart.py", None, "shop/cart.py"),
        ("cart.py", "/repo/shop", "shop/cart.py"),
        ("../tax.py", "/repo/shop", "tax.py"),
        ("/usr/lib/x.py", None, "/usr/lib/x.py"),
    ],
)
def test_paths_are_told_from_the_top_of_the_repository(file, here, told):
    assert repository_path(file, Path("/repo"), Path(here) if here else None) == told


def test_triggers_and_suppressors_that_were_used_are_named():
    first = replace(line(3), triggers=("add", "use"), suppressors=("clear",))
    targets = (first, replace(first, line=9, target="line:shop/cart.py:9"), line(5))
    outcome = replace(pull_request(), targets=targets)
    text = focus_text(outcome)
    assert "triggers add, use; suppressors clear: for shop/cart.py:3, 9\n" in text
    assert "suppressors clear" not in focus_text(replace(outcome, targets=(line(5),)))


def test_the_number_of_tests_is_told_and_intervals_on_request():
    target = line(3, directed=Count(60, 200), undirected=Count(30, 1200), default=Count(6, 40))
    outcome = replace(pull_request(), targets=(target,))
    assert "tests: 1,200 undirected, 40 with all features on, 200 directed" in focus_text(outcome)
    assert "15% [7.1%, 29%]" not in focus_text(outcome)
    assert "15% [7.1%, 29%]" in focus_text(outcome, everything=True)
