"""What tests are called, and what their comments say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from swarmtest.core.result import Fault
from swarmtest.core.targets import Target
from swarmtest.suite.formatting import comment_of, name_of, places
from swarmtest.suite.suite import SuiteTest


def lines(function: str, *numbers: int) -> tuple[Target, ...]:
    return tuple(Target("line", f"cart.py:{n}", "cart.py", n, function) for n in numbers)


def test_a_test_is_called_after_what_it_keeps() -> None:
    adds = (*lines("Cart.add", 3, 4), *lines("Cart.total", 9))
    assert name_of(SuiteTest(4, None, 9, 2, adds)) == "test_4_keeps_3_lines_of_cart_add"


def test_a_test_of_a_fault_is_called_after_the_fault() -> None:
    fault = Fault("exception", "OverflowError: stack is full [stack.push]")
    name = name_of(SuiteTest(17, None, 9, 2, fault=fault))
    assert name == "test_17_shows_overflowerror_stack_is_full_stack_push"


def test_a_single_event_is_told_by_its_name() -> None:
    assert name_of(SuiteTest(1, None, 1, 1, (Target("event", "stack was full"),))) == (
        "test_1_keeps_1_event_stack_was_full"
    )


@given(st.integers(0, 10**6), st.text(), st.text())
def test_names_are_identifiers_and_comments_are_comments_whatever_is_in_them(
    trial: int, signature: str, name: str
) -> None:
    shown = SuiteTest(trial, None, 9, 2, (Target("event", name),), fault=Fault("exit", signature))
    kept = SuiteTest(trial, None, 9, 2, (Target("event", name),))
    for test in (shown, kept):
        assert name_of(test).isidentifier()
        assert name_of(test).isascii()
        assert all(line.startswith("#") and line.isprintable() for line in comment_of(test, 1, "x"))


def test_a_comment_says_what_is_kept_and_where_it_comes_from() -> None:
    mutant = Target("mutant", "cart.py:4 ab12", "cart.py", 4, "Cart.add")
    test = SuiteTest(4, None, 30, 2, (*lines("Cart.add", 3, 4, 5, 9), mutant))
    assert comment_of(test, 7, "step") == [
        "# Keeps 4 lines, 1 mutant:",
        "#   line cart.py:3-5, 9",
        "#   mutant cart.py:4 ab12",
        "# Trial 4 of campaign 7: 2 of 30 steps are left.",
    ]


def test_many_names_are_cut_short() -> None:
    some = [Target("branch", f"a.py:{n}->{n + 1}", "a.py", n) for n in range(12)]
    assert places("branch", some).endswith("a.py:7->8 and 4 more")
