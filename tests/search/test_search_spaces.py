"""Spaces to search: their points by number, what is forbidden, and what is wrong with some."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtest import Choice, Feature, Flag, Integer, Space, Test, UserError
from swarmtest.search import SearchSpace
from swarmtest.search.space import (
    digits_of,
    is_allowed,
    is_ordered,
    neighbours,
    number_of,
    point_at,
    size_of,
)

names = st.integers(0, 10**6).map("d{}".format)


def nothing(**values):
    """A test that takes all that there is."""


@st.composite
def dimensions(draw, name):
    kind = draw(st.sampled_from(["flag", "integer", "choice", "feature"]))
    if kind == "flag":
        return Flag(name)
    if kind == "feature":
        return Feature(name)
    if kind == "integer":
        low = draw(st.integers(-1000, 1000))
        return Integer(name, low, low + draw(st.integers(0, 10**6)), draw(st.integers(1, 50)))
    values = draw(st.lists(st.text(max_size=3), min_size=1, max_size=6, unique=True))
    return Choice(name, values, ordered=draw(st.booleans()))


@st.composite
def spaces(draw):
    found = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    return Space([draw(dimensions(name)) for name in found])


@settings(max_examples=60, deadline=None)
@given(spaces(), st.data())
def test_a_point_is_known_by_its_number(space, data):
    number = data.draw(st.integers(0, size_of(space) - 1))
    point = point_at(space, number)
    assert number_of(point) == number
    if point.bits or not space.features:
        assert space.configuration(point.to_json()) == point


@settings(max_examples=60, deadline=None)
@given(spaces(), st.data())
def test_a_space_comes_back_from_plain_data_with_the_same_points(space, data):
    number = data.draw(st.integers(0, size_of(space) - 1))
    again = Space.from_json(space.to_json())
    assert point_at(again, number) == point_at(space, number)


@settings(max_examples=60, deadline=None)
@given(spaces(), st.data())
def test_neighbours_are_neighbours_of_each_other(space, data):
    point = point_at(space, data.draw(st.integers(0, size_of(space) - 1)))
    for near in neighbours(point):
        changed = [
            (dimension, a, b)
            for dimension, a, b in zip(
                space.dimensions, digits_of(point), digits_of(near), strict=True
            )
            if a != b
        ]
        assert len(changed) == 1
        dimension, a, b = changed[0]
        assert not is_ordered(dimension) or abs(a - b) == 1
        assert point in list(neighbours(near))


def test_a_space_larger_than_memory_is_made_and_asked_at_once():
    wide = [Integer(f"n{i}", 0, 10**9) for i in range(20)]
    space = SearchSpace([*wide, Test("test", ["t"])], {"t": nothing})
    assert space.size == (10**9 + 1) ** 20
    assert number_of(point_at(space, 10**170)) == 10**170


def test_an_expression_forbids_points():
    space = SearchSpace(
        [Integer("threads", 1, 4), Choice("noise", ["none", "sleep"]), Test("test", ["t"])],
        {"t": nothing},
        forbid=["threads == 1 and noise != 'none'", "max(threads, 3) == 4"],
    )
    allowed = [
        point_at(space, n) for n in range(space.size) if is_allowed(space, point_at(space, n))
    ]
    assert [(p["threads"], p["noise"]) for p in allowed] == [
        (1, "none"),
        (2, "none"),
        (2, "sleep"),
        (3, "none"),
        (3, "sleep"),
    ]


def test_a_function_forbids_points():
    space = SearchSpace(
        [Integer("threads", 1, 4), Test("test", ["t"])],
        {"t": nothing},
        forbid=[lambda point: point["threads"] > 2],
    )
    assert not space.allows(space.configuration({"threads": 3}))
    assert space.allows(space.configuration({"threads": 2}))


THREADS = Integer("threads", 1, 4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SearchSpace([THREADS]), "exactly one test dimension, and this one has none"),
        (
            lambda: SearchSpace([Test("a", ["x"]), Test("b", ["y"])]),
            "exactly one test dimension, and this one has 2: a, b",
        ),
        (
            lambda: SearchSpace([THREADS, Test("test", ["sell"])], {"sel": nothing}),
            "has no value 'sel'; did you mean 'sell'",
        ),
        (
            lambda: SearchSpace([THREADS, Test("test", ["sell"])]),
            "test 'sell' of dimension 'test' does not say what to run",
        ),
        (
            lambda: SearchSpace([THREADS, Test("test", ["t"])], {"t": lambda: None}),
            "dimension 'threads' makes no difference: no test takes it",
        ),
        (
            lambda: SearchSpace([THREADS, Test("test", ["t"])], {"t": lambda threds: None}),
            "takes 'threds', but the space has no such dimension; did you mean 'threads'",
        ),
        (
            lambda: SearchSpace([THREADS, Test("test", ["t"])], {"t": nothing}, ["threds > 1"]),
            "the space has no dimension 'threds'; did you mean 'threads'",
        ),
        (
            lambda: SearchSpace([THREADS, Test("test", ["t"])], {"t": nothing}, ["threads >"]),
            "is not an expression",
        ),
        (
            lambda: SearchSpace([THREADS, Test("test", ["t"])], {"t": nothing}, "threads > 1"),
            "forbid is a list",
        ),
        (
            lambda: SearchSpace([THREADS, Test("test", ["t"])], {"t": 7}),
            "a function, a machine or an executor, not 7",
        ),
    ],
)
def test_what_is_wrong_with_a_space_is_said_in_one_line(make, message):
    with pytest.raises(UserError) as error:
        make()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_predicate_that_fails_says_where():
    space = SearchSpace([THREADS, Test("test", ["t"])], {"t": nothing}, ["1 / (threads - 2) > 5"])
    with pytest.raises(UserError, match="failed at 'threads=2 test=t': ZeroDivisionError"):
        space.allows(space.configuration({"threads": 2}))
