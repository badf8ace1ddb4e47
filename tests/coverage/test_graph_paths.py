"""Prime paths, and which paths a call went along: examples, and brute force on small graphs."""

from __future__ import annotations

import itertools
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest.coverage.weaving.paths import (
    PathIndex,
    TooManyPaths,
    du_paths_of,
    prime_paths,
    toured,
)

Graph = list[list[int]]
NOTHING: frozenset[str] = frozenset()
X = frozenset("x")


@st.composite
def graphs(draw: st.DrawFn, nodes: int = 6) -> Graph:
    size = draw(st.integers(1, nodes))
    successors = st.lists(st.integers(0, size - 1), max_size=3)
    return draw(st.lists(successors, min_size=size, max_size=size))


def node_sequences(nodes: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, nodes - 1), max_size=30)


def is_simple(path: tuple[int, ...]) -> bool:
    return len(set(path[1:])) == len(path) - 1 == len(set(path[:-1]))


def is_part(path: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    starts = range(len(whole) - len(path) + 1)
    return any(whole[start : start + len(path)] == path for start in starts)


def simple_paths(graph: Graph, longest: int) -> list[tuple[int, ...]]:
    """Every one, found by trying all sequences of nodes that follow each other."""
    paths: list[tuple[int, ...]] = [(node,) for node in range(len(graph))]
    for path in paths:
        if len(path) <= longest:
            paths += [(*path, node) for node in {*graph[path[-1]]} if is_simple((*path, node))]
    return paths


def chain_of_ifs(nodes: int) -> Graph:
    return [[node + 1, node + 2] for node in range(nodes)] + [[nodes + 1], []]


def test_a_loop_has_a_way_past_it_ways_in_and_out_and_ways_around_it() -> None:
    entry_head_body_exit = [[1], [2, 3], [1], []]
    assert prime_paths(entry_head_body_exit) == [
        (0, 1, 2),
        (0, 1, 3),
        (1, 2, 1),
        (2, 1, 2),
        (2, 1, 3),
    ]


def test_a_node_without_edges_is_a_prime_path() -> None:
    assert prime_paths([[]]) == [(0,)]


def test_a_prime_path_beyond_the_bound_is_there_in_parts() -> None:
    assert prime_paths([[1], [2], [3], []], longest=2) == [(0, 1, 2), (1, 2, 3)]


@settings(deadline=None)
@given(graphs(), st.integers(1, 8))
def test_prime_paths_are_the_simple_paths_that_are_part_of_no_other(
    graph: Graph, longest: int
) -> None:
    simple = simple_paths(graph, longest)
    expected = [
        path
        for path in simple
        if not any(path != other and is_part(path, other) for other in simple)
    ]
    assert prime_paths(graph, longest) == sorted(expected)


def test_too_many_paths_are_refused_and_said_to_be_so() -> None:
    with pytest.raises(TooManyPaths, match="more than 1000 simple paths of at most 10 edges"):
        prime_paths(chain_of_ifs(100), most=1000)


def test_the_number_of_paths_that_is_allowed_may_be_reached() -> None:
    graph = chain_of_ifs(5)
    exactly = len(simple_paths(graph, 10))
    assert prime_paths(graph, most=exactly) == prime_paths(graph)
    with pytest.raises(TooManyPaths):
        prime_paths(graph, most=exactly - 1)


@pytest.mark.parametrize(
    "graph",
    [chain_of_ifs(5000), [[*range(1000)]] * 1000, [[*range(1, 5000)]] + [[0]] * 4999],
    ids=["ifs", "all to all", "switch in a loop"],
)
def test_a_huge_function_is_given_up_in_little_time(graph: Graph) -> None:
    """0.3 s of CPU time on a machine with nothing else to do."""
    start = time.process_time()
    with pytest.raises(TooManyPaths):
        prime_paths(graph)
    assert time.process_time() - start < 20


def test_paths_without_an_edge_cannot_be_asked_for() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        prime_paths([[]], longest=0)


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), max_size=8), node_sequences(4))
def test_a_call_tours_the_paths_that_it_contains_unbroken(
    paths: list[list[int]], call: list[int]
) -> None:
    expected = {i for i, path in enumerate(paths) if is_part(tuple(path), tuple(call))}
    index = PathIndex(paths)
    assert toured(call, index) == expected
    assert toured(call, index) == expected, "a second call finds the same"


@settings(deadline=None)
@given(graphs(), st.integers(1, 6), st.randoms())
def test_every_way_through_a_graph_tours_all_its_longest_simple_parts(
    graph: Graph, longest: int, chance: random.Random
) -> None:
    index = PathIndex(prime_paths(graph, longest))
    call = [0]
    while graph[call[-1]] and len(call) < 30:
        call.append(chance.choice(graph[call[-1]]))
    windows = {
        tuple(call[i:j]) for i, j in itertools.combinations(range(len(call) + 1), 2) if j - i <= 7
    }
    assert {index.paths[i] for i in toured(call, index)} == windows.intersection(index.paths)


def test_a_call_with_a_hundred_thousand_steps_is_followed_in_little_time() -> None:
    """0.2 s of CPU time on a machine with nothing else to do."""
    body = 50
    loop = [[node + 1, node + 2] for node in range(body)] + [[body + 1], [0]]
    index = PathIndex(prime_paths(loop, longest=8))
    call = [node for _ in range(2000) for node in range(body + 2)]
    facts = [frozenset({f"v{node % 7}", f"v{node % 3}"}) for node in range(body + 2)]
    start = time.process_time()
    assert toured(call, index)
    assert du_paths_of(call, facts, facts)
    assert time.process_time() - start < 20


def test_a_definition_reaches_a_use_until_the_next_definition() -> None:
    defines = [X, NOTHING, X, NOTHING]
    uses = [NOTHING, X, NOTHING, X]
    assert du_paths_of([0, 1, 2, 3], defines, uses) == {("x", (0, 1)), ("x", (2, 3))}


def test_a_use_on_the_node_of_the_next_definition_still_counts() -> None:
    """As in ``x = x + 1``."""
    assert du_paths_of([0, 1], [X, X], [NOTHING, X]) == {("x", (0, 1))}


def test_a_loop_that_counts_reaches_itself() -> None:
    head, count = 0, 1
    found = du_paths_of([head, count, head, count, head], [NOTHING, X], [NOTHING, X])
    assert found == {("x", (count, head, count))}


def test_a_use_after_several_rounds_of_another_loop_is_on_no_simple_path() -> None:
    assert du_paths_of([0, 1, 1, 2], [X, NOTHING, NOTHING], [NOTHING, NOTHING, X]) == set()


def test_a_use_that_is_too_far_away_does_not_count() -> None:
    defines, uses = [X, NOTHING, NOTHING], [NOTHING, NOTHING, X]
    assert du_paths_of([0, 1, 2], defines, uses, longest=2) == {("x", (0, 1, 2))}
    assert du_paths_of([0, 1, 2], defines, uses, longest=1) == set()


FACTS = st.lists(st.frozensets(st.sampled_from("xyz")), min_size=5, max_size=5)


@settings(deadline=None)
@given(node_sequences(5), FACTS, FACTS, st.integers(1, 6))
def test_du_paths_are_all_simple_parts_from_a_definition_to_a_use(
    call: list[int], defines: list[frozenset[str]], uses: list[frozenset[str]], longest: int
) -> None:
    expected = set()
    for i, j in itertools.combinations(range(len(call)), 2):
        part = tuple(call[i : j + 1])
        if is_simple(part) and j - i <= longest:
            between: frozenset[str] = NOTHING.union(*(defines[node] for node in part[1:-1]))
            expected |= {(v, part) for v in (defines[part[0]] & uses[part[-1]]) - between}
    assert du_paths_of(call, defines, uses, longest) == expected
