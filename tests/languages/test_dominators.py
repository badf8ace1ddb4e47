"""Dominators of lines: against the definition on random graphs, and what a user is told."""

from __future__ import annotations

import time
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest.languages.flow_graph import Dominance
from swarmtest.languages.python.control_flow import (
    dominators_by_function,
    dominators_of,
    flows_of,
    why_unreachable,
)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[int], list[list[int]]]:
    """Lines (several nodes may share one, 0 is none) and successors."""
    size = draw(st.integers(1, 12))
    lines = draw(st.lists(st.integers(0, size), min_size=size, max_size=size))
    ends = st.lists(st.integers(0, size - 1), max_size=3)
    return lines, draw(st.lists(ends, min_size=size, max_size=size))


def _reachable(successors: list[list[int]], removed: set[int]) -> set[int]:
    left = [0] if 0 not in removed else []
    found = set(left)
    while left:
        fresh = set(successors[left.pop()]) - removed - found
        found |= fresh
        left.extend(fresh)
    return found


@settings(max_examples=300, deadline=None)
@given(graphs())
def test_a_line_is_on_all_ways_to_a_node_that_is_out_of_reach_without_it(
    graph: tuple[list[int], list[list[int]]],
) -> None:
    lines, successors = graph
    dominance = Dominance(lines, successors)
    reachable = _reachable(successors, set())
    for node in reachable:
        nodes_of = {
            line: {i for i, one in enumerate(lines) if one == line} for line in lines if line
        }
        needed = {
            line for line, nodes in nodes_of.items() if node not in _reachable(successors, nodes)
        }
        assert dominance.passed(node) == needed
    assert all(dominance.reaches([node]) == (node in reachable) for node in range(len(lines)))


@settings(max_examples=300, deadline=None)
@given(graphs())
def test_a_chain_goes_from_the_nearest_dominator_to_the_farthest(
    graph: tuple[list[int], list[list[int]]],
) -> None:
    lines, successors = graph
    lines = list(range(1, len(lines) + 1))  # a line for each node: then dominators are a chain
    dominance = Dominance(lines, successors)
    assert dominance.lines == {lines[node] for node in _reachable(successors, set())}
    for line in dominance.lines:
        chain = dominance.chain(line)
        for i, one in enumerate(chain):
            assert dominance.chain(one) == chain[i + 1 :]


def test_dominators_of_a_function_with_2000_statements_take_little_time() -> None:
    """0.01 s of CPU time on a machine with nothing else to do."""
    parts = (
        f"    if x > {i}:\n        x -= 1\n    else:\n        x += g({i})\n    h()\n"
        for i in range(500)
    )
    text = f"def f(x):\n{''.join(parts)}    return x\n"
    flow = flows_of(text).graphs[1]
    begun = time.process_time()
    chain = Dominance(flow.lines, flow.successors).chain(text.count("\n"))
    assert time.process_time() - begun < 5
    assert len(chain) == 1000


def _dominators(text: str, line: int) -> list[int]:
    return dominators_of(dedent(text).lstrip("\n"), line)


def test_dominators_end_with_the_first_statement_of_the_function() -> None:
    text = """
        import os

        def f(x):
            '''What it does.'''
            a = x
            if a:
                b = 1
            return a
    """
    assert _dominators(text, 8) == [6, 5]
    assert _dominators(text, 7) == [6, 5]


def test_a_line_in_the_middle_of_a_statement_counts_as_the_statement() -> None:
    text = """
        def f(x):
            a = x
            return g(
                a,
                x,
            )
    """
    assert _dominators(text, 5) == [2]


def test_a_nested_function_is_dominated_by_the_line_that_defines_it() -> None:
    text = """
        def f(x):
            a = x
            @memo
            def g(y):
                b = y
                return b
            return g
    """
    assert _dominators(text, 6) == [5, 4, 3, 2]
    assert dominators_by_function(dedent(text).lstrip("\n"), 6) == ([5], [4, 3, 2])


def test_a_function_in_one_line_has_what_both_of_its_uses_have_in_common() -> None:
    text = """
        def f(x):
            a = x
            def g(y): return y
            return g
    """
    assert dominators_by_function(dedent(text).lstrip("\n"), 3)[0] == []


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("def f():\n    return 1\n    g()\n", 3, "dead code: no way through f() leads to it"),
        ("def f():\n    while True:\n        g()\n    h()\n", 4, "dead code"),
        ("if 0:\n    g()\n", 2, "dead code: no way through the module leads to it"),
        ("def f():\n    '''Text.'''\n    g()\n", 2, "has no code of its own"),
        ("def f():\n\n    g()\n", 2, "no statement begins on line 2"),
        ("def f():\n    g()\n", 2, ""),
    ],
)
def test_what_cannot_be_reached_is_said(text: str, line: int, reason: str) -> None:
    found = why_unreachable(text, line)
    assert reason in found
    assert bool(reason) == bool(found)
    if reason:
        assert dominators_of(text, line) == []
