"""The fewest colours of a conflict graph, and what is known when time is up."""

import itertools
import random
import sys
import time
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest.strategies.directed import colouring
from swarmtest.strategies.directed import colouring as sat_colours
from swarmtest.strategies.directed.aim import Conflicts, members
from swarmtest.strategies.directed.colouring import (
    coloured_by_sat,
    coloured_by_trying,
    components,
    dsatur,
    improved,
    kernel,
    large_clique,
    minimum_colouring,
    put_back,
    sat_is_installed,
)

examples = settings(derandomize=True, deadline=None, max_examples=100)
needs_sat = pytest.mark.skipif(
    not sat_is_installed(), reason="needs python-sat: pip install 'swarmtest[exact]'"
)
LONG = 60.0


def of_edges(size, edges):
    return Conflicts(size, tuple(sorted((1 << a, 1 << b) for a, b in edges)))


def random_graph(size, density, seed):
    rng = random.Random(seed)
    pairs = itertools.combinations(range(size), 2)
    return of_edges(size, [pair for pair in pairs if rng.random() < density])


def odd_cycle(size):
    return of_edges(size, [(i, (i + 1) % size) for i in range(size)])


def mycielski(levels):
    """Graphs without a triangle that need more and more colours: no clique can prove it."""
    size, edges = 2, [(0, 1)]
    for _ in range(levels):
        edges = [
            *edges,
            *[(a, size + b) for a, b in edges],
            *[(b, size + a) for a, b in edges],
            *[(size + i, 2 * size) for i in range(size)],
        ]
        size = 2 * size + 1
    return of_edges(size, edges)


def can_be_coloured(neighbours, count):
    """By trying, vertex after vertex, with no cleverness."""
    colours: list[int] = []

    def rest():
        vertex = len(colours)
        if vertex == len(neighbours):
            return True
        for colour in range(min(count, max(colours, default=-1) + 2)):
            if all(
                colours[other] != colour for other in members(neighbours[vertex] % (1 << vertex))
            ):
                colours.append(colour)
                if rest():
                    return True
                colours.pop()
        return False

    return rest()


def chromatic_number(neighbours):
    return next(count for count in itertools.count() if can_be_coloured(neighbours, count))


def assert_proper(graph, colours):
    assert len(colours) == graph.size
    for vertex, around in enumerate(graph.neighbours):
        assert all(colours[vertex] != colours[other] for other in members(around))


graphs = st.builds(random_graph, st.integers(1, 9), st.floats(0, 1), st.integers(0, 10_000))


@examples
@given(graphs)
def test_the_number_of_colours_is_the_smallest(graph):
    found = minimum_colouring(graph, LONG)
    assert_proper(graph, found.colours)
    assert len(set(found.colours)) == found.lower_bound == chromatic_number(graph.neighbours)


@examples
@given(graphs)
def test_a_clique_is_one_and_the_largest(graph):
    found = set(members(large_clique(graph.neighbours, (1 << graph.size) - 1)))
    sizes = [
        len(some)
        for count in range(graph.size + 1)
        for some in itertools.combinations(range(graph.size), count)
        if all(graph.neighbours[a] >> b & 1 for a, b in itertools.combinations(some, 2))
    ]
    assert all(graph.neighbours[a] >> b & 1 for a, b in itertools.combinations(found, 2))
    assert len(found) == max(sizes)


def largest_clique(neighbours, left):
    if not left:
        return 0
    first = left & -left
    around = neighbours[first.bit_length() - 1]
    return max(
        1 + largest_clique(neighbours, left & around), largest_clique(neighbours, left ^ first)
    )


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.builds(random_graph, st.integers(16, 24), st.floats(0.3, 0.7), st.integers(0, 10_000)))
def test_a_clique_is_the_largest_also_where_greed_is_not_enough(graph):
    everything = (1 << graph.size) - 1
    found = large_clique(graph.neighbours, everything)
    assert found.bit_count() == largest_clique(graph.neighbours, everything)


@examples
@given(graphs, st.integers(0, 9))
def test_what_is_put_aside_needs_no_colour_more(graph, colours):
    """...than there are anyway, or than the rest needs."""
    core, removed = kernel(graph.neighbours, (1 << graph.size) - 1, colours)
    found = improved(graph.neighbours, dsatur(graph.neighbours, core), 0)
    before = len(set(found.values()))
    put_back(graph.neighbours, removed, found)
    assert_proper(graph, [found[vertex] for vertex in range(graph.size)])
    assert len(set(found.values())) <= max(before, colours)


@examples
@given(graphs)
def test_components_are_the_connected_parts(graph):
    parts = list(components(graph.neighbours))
    assert sum(parts) == (1 << graph.size) - 1
    for part in parts:
        assert all(not graph.neighbours[vertex] & ~part for vertex in members(part))


@examples
@given(st.builds(random_graph, st.integers(20, 40), st.floats(0.1, 0.9), st.integers(0, 99)))
def test_colouring_again_needs_no_more_colours(graph):
    first = dsatur(graph.neighbours, (1 << graph.size) - 1)
    again = improved(graph.neighbours, first, 0, rounds=10)
    assert_proper(graph, [again[vertex] for vertex in range(graph.size)])
    assert len(set(again.values())) <= len(set(first.values()))


@needs_sat
@examples
@given(st.builds(random_graph, st.integers(2, 9), st.floats(0.3, 1), st.integers(0, 10_000)))
def test_the_solver_alone_finds_the_smallest_number_from_the_worst_start(graph):
    worst = {vertex: vertex for vertex in range(graph.size)}
    everything = (1 << graph.size) - 1
    found, lower = coloured_by_sat(graph, everything, worst, 1, time.monotonic() + LONG)
    assert_proper(graph, [found[vertex] for vertex in range(graph.size)])
    assert len(set(found.values())) == lower == chromatic_number(graph.neighbours)


@examples
@given(st.builds(random_graph, st.integers(2, 9), st.floats(0.3, 1), st.integers(0, 10_000)))
def test_trying_alone_finds_the_smallest_number_from_the_worst_start(graph):
    worst = {vertex: vertex for vertex in range(graph.size)}
    everything = (1 << graph.size) - 1
    found, lower = coloured_by_trying(
        graph.neighbours, everything, worst, 1, time.monotonic() + LONG
    )
    assert_proper(graph, [found[vertex] for vertex in range(graph.size)])
    assert len(set(found.values())) == lower == chromatic_number(graph.neighbours)


@needs_sat
@examples
@given(st.builds(random_graph, st.integers(15, 24), st.floats(0.3, 0.7), st.integers(0, 10_000)))
def test_the_solver_and_trying_agree(graph):
    worst = {vertex: vertex for vertex in range(graph.size)}
    everything, deadline = (1 << graph.size) - 1, time.monotonic() + LONG
    by_sat = coloured_by_sat(graph, everything, worst, 1, deadline)[1]
    assert by_sat == coloured_by_trying(graph.neighbours, everything, worst, 1, deadline)[1]


def test_an_odd_cycle_needs_three_though_no_three_conflict():
    found = minimum_colouring(odd_cycle(9))
    assert found.lower_bound == len(set(found.colours)) == 3
    assert found.how == f"proven by {'SAT' if sat_is_installed() else 'trying all'}"


@pytest.mark.parametrize("levels", [2, 3])
def test_graphs_without_triangles_that_need_many_colours(levels):
    found = minimum_colouring(mycielski(levels), LONG)
    assert found.lower_bound == len(set(found.colours)) == levels + 2


@needs_sat
def test_the_solver_proves_five_colours_without_a_triangle_in_sight():
    graph = mycielski(3)
    assert large_clique(graph.neighbours, (1 << graph.size) - 1).bit_count() == 2
    assert minimum_colouring(graph, LONG).how == "proven by SAT"


@needs_sat
def test_when_time_is_up_downwards_the_lower_bound_still_rises(monkeypatch):
    """The clock advances by a second each time it is looked at: the same on every machine."""
    looks = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: next(looks))
    monkeypatch.setattr(colouring, "time", clock)
    monkeypatch.setattr(sat_colours, "time", clock)
    graph = random_graph(90, 0.5, seed=4)
    clique = large_clique(graph.neighbours, (1 << graph.size) - 1).bit_count()
    found = minimum_colouring(graph, seconds=8)
    assert_proper(graph, found.colours)
    assert clique < found.lower_bound <= len(set(found.colours))


def test_components_are_settled_one_by_one_and_the_neediest_counts():
    triangle, cycle = [(0, 1), (1, 2), (0, 2)], [(3 + i, 3 + (i + 1) % 5) for i in range(5)]
    found = minimum_colouring(of_edges(9, [*triangle, *cycle]))
    assert len(set(found.colours)) == found.lower_bound == 3


def test_without_python_sat_it_searches_itself(monkeypatch):
    monkeypatch.setitem(sys.modules, "pysat", None)
    found = minimum_colouring(mycielski(2), LONG)
    assert len(set(found.colours)) == found.lower_bound == 4
    assert found.how == "proven by trying all"


def test_without_python_sat_what_is_not_settled_says_what_to_install(monkeypatch):
    monkeypatch.setattr(colouring, "sat_is_installed", lambda: False)
    graph = random_graph(90, 0.5, seed=4)
    found = minimum_colouring(graph, seconds=0.2)
    assert_proper(graph, found.colours)
    assert found.lower_bound < len(set(found.colours))
    assert "pip install 'swarmtest[exact]'" in found.how


def test_a_hundred_realistic_aims_take_little_time():
    """0.01 s of CPU time on a machine with nothing else to do."""
    rng = random.Random(7)
    sides = []
    for _ in range(40):
        one = sum(1 << v for v in rng.sample(range(100), rng.randint(1, 8)))
        other = sum(1 << v for v in rng.sample(range(100), rng.randint(1, 8))) & ~one
        sides.append((one, other or 1 << 100))
    before = time.process_time()
    found = minimum_colouring(Conflicts(101, tuple(sides)))
    assert len(set(found.colours)) == found.lower_bound
    assert time.process_time() - before < 5
