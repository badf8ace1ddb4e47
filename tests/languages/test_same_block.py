"""Statements that are executed whenever a line is: those after it in its block, up to a jump."""

from __future__ import annotations

from textwrap import dedent

import pytest

from swarmtest.focus.proxies import Proxy, nearest_with_data
from swarmtest.languages.line_mapping import old_lines
from swarmtest.languages.python.statements import lines_after

TEXT = dedent("""\
    def f(x):
        a = 1
        if x:
            b = 2
            c = 3
        for i in x:
            if i:
                break
            d = 4
        e = lambda: 5
        def g():
            return 6
        if not x:
            return 7
        return 8
""")


@pytest.mark.parametrize(
    ("line", "after"),
    [
        (2, [3, 6]),  # a `break` might be a `return`: what is after its loop is left out
        (4, [5]),
        (5, []),
        (7, []),
        (10, [11, 13]),
        (13, []),
        (99, []),
    ],
)
def test_what_follows_up_to_a_jump(line: int, after: list[int]) -> None:
    assert lines_after(TEXT, line) == after


def test_new_code_at_the_top_of_a_branch_is_aimed_at_through_the_rest_of_it() -> None:
    hits = {3: 500, 5: 20}
    found = nearest_with_data("a.py", 4, {"a.py": TEXT}, lambda _, line: hits.get(line, 0), 12)
    assert found == Proxy((("a.py", 5),), (), "line 5, which follows in the same block")


def test_what_comes_before_is_preferred_where_it_is_hit_as_often() -> None:
    hits = {2: 40, 6: 40}
    found = nearest_with_data("a.py", 3, {"a.py": TEXT}, lambda _, line: hits.get(line, 0), 12)
    assert isinstance(found, Proxy)
    assert found.places == (("a.py", 2),)


def test_a_line_that_became_two_is_found_in_the_one_that_is_like_it() -> None:
    old = "if a:\n    total -= 10\nreturn total\n"
    new = "if a:\n    from tax import tax\n    total -= tax(total)\nreturn total\n"
    assert old_lines(old, new)[3].line == 2
    assert 2 not in old_lines(old, new)
