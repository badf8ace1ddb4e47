"""Search spaces: dimensions, the tests that run at its points, and which points are forbidden.

Invariants of a `SearchSpace`: exactly one dimension is a test; each of its values has an executor;
every other dimension makes a difference to at least one of them.

Points have numbers, and nothing is stored: a point is a number with one digit per dimension, in
the base of the number of its values, with the first dimension as the highest digit. A feature has
two values here, off and on.
"""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swarmtest.core.configuration import Configuration
from swarmtest.core.constraints import Constraint
from swarmtest.core.dimensions import Choice, Dimension, Feature, Scalar, Test
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.faults import message_of
from swarmtest.core.space import Space
from swarmtest.search.executors.function import Executor
from swarmtest.search.executors.pytest_node import executor_of
from swarmtest.search.executors.wrapping import check_executor


class SearchSpace(Space):
    """Dimensions of which exactly one is a `Test`, and what runs for each of its values.

    `tests` maps the values of the test dimension to functions, machines or executors; a value that
    is not in it is a reference, like ``shop.py::sell``. `forbid` has expressions over the names of
    dimensions, or functions of a point: a point where one is true is not explored.

    >>> from swarmtest import Choice, Integer
    >>> def sell(threads, noise): assert threads < 3 or noise != "sleep"
    >>> space = SearchSpace(
    ...     [Integer("threads", 1, 4), Choice("noise", ["none", "sleep"]), Test("test", ["sell"])],
    ...     {"sell": sell},
    ...     forbid=["threads == 1 and noise != 'none'"],
    ... )
    >>> space.size, space.allows(space.configuration({"threads": 1, "noise": "sleep"}))
    (8, False)
    >>> SearchSpace([Integer("threads", 1, 4)])
    Traceback (most recent call last):
    ...
    swarmtest.UserError: a search space has exactly one test dimension, and this one has ...
    """

    def __init__(
        self,
        dimensions: Iterable[Dimension | str],
        tests: Mapping[str, Any] | None = None,
        forbid: Iterable[Any] = (),
        constraints: Iterable[Constraint] = (),
        name: str = "",
    ) -> None:
        super().__init__(dimensions, constraints)
        if isinstance(forbid, str):
            raise UserError(f"forbid is a list: write [{forbid!r}]")
        self.test = _only_test(self)
        names = [dimension.name for dimension in self.dimensions]
        self.forbidden: tuple[Predicate, ...] = tuple(predicate_of(rule, names) for rule in forbid)
        self.executors: dict[Scalar, Executor] = _executors(self.test, tests or {})
        self.recorded_points: int | None = None
        """In the space of a replay: how many points have results. None: all that are allowed."""
        self.name = name or ", ".join(test.name for test in self.executors.values())
        self._check()

    @property
    def size(self) -> int:
        """Return how many points there are, including forbidden ones."""
        return size_of(self)

    def allows(self, point: Configuration) -> bool:
        """Return whether nothing forbids a point."""
        return not any(predicate.forbids(point) for predicate in self.forbidden)

    def executor(self, point: Configuration) -> Executor:
        """Return what runs at a point."""
        return self.executors[point[self.test.name]]

    def _check(self) -> None:
        """Raise an error if a test cannot run here, or if no test takes a dimension."""
        for executor in self.executors.values():
            check_executor(executor, self)
        used = [executor.uses for executor in self.executors.values()]
        if any(names is None for names in used):
            return
        taken = frozenset[str]().union(*(names for names in used if names is not None))
        for dimension in self.dimensions:
            if dimension is not self.test and dimension.name not in taken:
                raise UserError(
                    f"dimension {dimension.name!r} makes no difference: no test takes it"
                    f"{did_you_mean(dimension.name, taken)}"
                )


def _only_test(space: Space) -> Test:
    tests = [dimension for dimension in space.dimensions if isinstance(dimension, Test)]
    if len(tests) == 1:
        return tests[0]
    count = f"{len(tests)}: {', '.join(test.name for test in tests)}" if tests else "none"
    raise UserError(
        f"a search space has exactly one test dimension, and this one has {count}; "
        + ("make them one, with the values of both" if tests else 'add Test("test", [...])')
    )


def _executors(test: Test, tests: Mapping[str, Any]) -> dict[Scalar, Executor]:
    for name in tests:
        if name not in test.values:
            values = [str(value) for value in test.values]
            raise UserError(
                f"test dimension {test.name!r} has no value {name!r}{did_you_mean(name, values)}"
            )
    executors: dict[Scalar, Executor] = {}
    for value in test.values:
        source = tests.get(str(value), value)
        if source is value and ":" not in str(value) and not str(value).endswith((".py", ".toml")):
            raise UserError(
                f"test {value!r} of dimension {test.name!r} does not say what to run: give a "
                "function or an executor in `tests`, or name one, like shop.py::sell"
            )
        executors[value] = executor_of(source, str(value))
    return executors


# Predicates that forbid points: an expression over the dimensions' names, or a function of a point.

_FUNCTIONS = {name: getattr(builtins, name) for name in ("abs", "len", "max", "min", "sum")}


@dataclass(frozen=True)
class Predicate:
    """Decides whether a point is forbidden; `text` is for people."""

    text: str
    holds: Callable[[Configuration], Any]

    def forbids(self, point: Configuration) -> bool:
        """Return whether it forbids this point."""
        try:
            return bool(self.holds(point))
        except Exception as error:
            raise UserError(
                f"forbid {self.text!r} failed at '{point}': {message_of(error)}"
            ) from None


def predicate_of(rule: object, names: Iterable[str]) -> Predicate:
    """Return the predicate that a user wrote, over dimensions of these names.

    >>> from swarmtest import Integer, Space
    >>> space = Space([Integer("threads", 1, 8), Integer("seats", 1, 100)])
    >>> predicate = predicate_of("threads > seats", ["threads", "seats"])
    >>> predicate.forbids(space.configuration({"threads": 4, "seats": 3}))
    True
    """
    if isinstance(rule, Predicate):
        return rule
    if callable(rule):
        return Predicate(getattr(rule, "__name__", repr(rule)), rule)
    if not isinstance(rule, str):
        raise UserError(f"forbid: an expression in quotes or a function of a point, not {rule!r}")
    return _expression(rule, list(names))


def _expression(text: str, names: list[str]) -> Predicate:
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise UserError(f"forbid {text!r} is not an expression: {error.msg}") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in names and node.id not in _FUNCTIONS:
            raise UserError(
                f"forbid {text!r}: the space has no dimension {node.id!r}"
                f"{did_you_mean(node.id, names)}"
            )
    code = compile(tree, "<forbid>", "eval")
    global_names = {"__builtins__": {}, **_FUNCTIONS}

    def holds(point: Configuration) -> Any:
        return eval(code, global_names, point.to_json())

    return Predicate(text, holds)


# Points by number, and their neighbours.

_OFF_AND_ON: tuple[Scalar, ...] = (0, 1)


def values_of(dimension: Dimension) -> Sequence[Scalar]:
    """Return the values that a dimension has in a search, in order.

    >>> values_of(Feature("push"))
    (0, 1)
    """
    return _OFF_AND_ON if isinstance(dimension, Feature) else dimension.values


def is_ordered(dimension: Dimension) -> bool:
    """Return whether neighbouring values resemble each other.

    >>> is_ordered(Choice("kind", ["sleep", "yield"]))
    False
    """
    return dimension.ordered if isinstance(dimension, Choice) else not isinstance(dimension, Test)


def size_of(space: Space) -> int:
    """Return how many points a space has, including forbidden ones.

    >>> size_of(Space([Feature("push"), Choice("kind", ["a", "b", "c"])]))
    6
    """
    return math.prod(len(values_of(dimension)) for dimension in space.dimensions)


def point_at(space: Space, number: int) -> Configuration:
    """Return the point with a number.

    >>> print(point_at(Space([Feature("push"), Choice("kind", ["a", "b", "c"])]), 4))
    push kind=b
    """
    digits: list[int] = []
    for dimension in reversed(space.dimensions):
        number, digit = divmod(number, len(values_of(dimension)))
        digits.append(digit)
    return point_of(space, digits[::-1])


def point_of(space: Space, digits: Sequence[int]) -> Configuration:
    """Return the point with these positions of its values in their dimensions.

    >>> print(point_of(Space([Feature("push"), Choice("kind", ["a", "b", "c"])]), [0, 2]))
    -push kind=c
    """
    bits, bit, settings = 0, 1, []
    for dimension, digit in zip(space.dimensions, digits, strict=True):
        if isinstance(dimension, Feature):
            bits |= bit if digit else 0
            bit <<= 1
        else:
            settings.append(dimension.values[digit])
    return Configuration(space, bits, None, tuple(settings))


def digits_of(point: Configuration) -> list[int]:
    """Return the positions of a point's values in their dimensions.

    >>> digits_of(Space([Feature("push"), Choice("kind", ["a", "b"])]).configuration({"push": 1}))
    [1, 0]
    """
    return [
        int(point[d.name] > 0) if isinstance(d, Feature) else d.values.index(point[d.name])
        for d in point.space.dimensions
    ]


def number_of(point: Configuration) -> int:
    """Return the number of a point.

    >>> space = Space([Feature("push"), Choice("kind", ["a", "b", "c"])])
    >>> number_of(point_at(space, 4))
    4
    """
    number = 0
    for dimension, digit in zip(point.space.dimensions, digits_of(point), strict=True):
        number = number * len(values_of(dimension)) + digit
    return number


def is_allowed(space: Space, point: Configuration) -> bool:
    """Return whether a point may be explored: constraints on features hold, and nothing forbids it.

    >>> is_allowed(Space(["push", "pop"]), point_at(Space(["push", "pop"]), 0))
    False
    """
    if space.features and space.violated(point.bits):
        return False
    allows = getattr(space, "allows", None)
    return allows is None or bool(allows(point))


def neighbours(point: Configuration, by: str = "") -> Iterator[Configuration]:
    """Yield the points that differ in one dimension (only in `by`, if given), allowed or not.

    If values are ordered, only the next lower and the next higher value; otherwise all others.

    >>> space = Space([Choice("level", [1, 2, 3], ordered=True), Choice("kind", ["a", "b", "c"])])
    >>> [str(near) for near in neighbours(space.default())]
    ['level=2 kind=a', 'level=1 kind=b', 'level=1 kind=c']
    """
    digits = digits_of(point)
    for position, dimension in enumerate(point.space.dimensions):
        if by and dimension.name != by:
            continue
        current, count = digits[position], len(values_of(dimension))
        candidates = (current - 1, current + 1) if is_ordered(dimension) else range(count)
        for digit in candidates:
            if 0 <= digit < count and digit != current:
                yield point_of(point.space, [*digits[:position], digit, *digits[position + 1 :]])
