"""The text of a suite: code as formatters leave it, names of tests, and comments."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmtest.core.result import Fault
from swarmtest.core.targets import Target
from swarmtest.suite.formatting import comment_of, expression, formatted, name_of, places
from swarmtest.suite.suite import SuiteTest

CODE = """
shop.add('tea', 1)
shop.add(name='it\\'s', other='say "no"', third=b'x', fourth='plain \\\\ text')
v3 = shop.open('a rather long name of a shop', ['tea', 'milk', 'bread'], count=12345, price=0.25)
shop.put({'a': [1, 2, 3], 'b': (1,), 'c': {4, 5}}, other={'one': 'x' * 8, 'two': float('nan')})
with suppress(ValueError, TypeError, LookupError, NotImplementedError, StopIteration):
    shop['key'] = 'value'
for _ in zip(range(1000), shop): pass
len(shop)
del shop[3]
shop[0] = [111111111, 222222222, 333333333, 444444444, 555555555, 666666666, 777777777]
'x' in shop
assert result1 == result2
"""


def test_code_stays_the_same_code() -> None:
    assert ast.dump(ast.parse("\n".join(formatted(CODE)))) == ast.dump(ast.parse(CODE))


@pytest.mark.parametrize("width", [79, 88, 120])
def test_formatters_leave_it_as_it_is(tmp_path: Path, width: int) -> None:
    file = tmp_path / "written.py"
    marker = expression(f"pytest.mark.xfail(strict=True, reason={'a long reason ' * 5!r})", "", "@")
    lines = [*marker, "def test_one():", *formatted(CODE, "    ")]
    file.write_text("\n".join(lines) + "\n")
    words = [sys.executable, "-m", "ruff", "format", "--isolated", "--diff"]
    done = subprocess.run(
        [*words, "--line-length", str(width), str(file)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_fits_a_line_is_on_one() -> None:
    assert formatted("f(a='x', b=[1, 2])") == ['f(a="x", b=[1, 2])']


# Names and comments.


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
