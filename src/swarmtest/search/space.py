"""A space of test settings to search: dimensions, the tests that run at its points, what is not.

Invariants: exactly one dimension is a test; each of its values has an executor; every other
dimension makes a difference to at least one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from swarmtest.errors import UserError, did_you_mean
from swarmtest.search.executors.executor import Executor
from swarmtest.search.executors.references import executor_of
from swarmtest.search.executors.wrapping import check_executor
from swarmtest.search.points import size_of
from swarmtest.search.predicates import Predicate, predicate_of
from swarmtest.space import Configuration, Constraint, Dimension, Scalar, Space, Test


class SearchSpace(Space):
    """Dimensions of which exactly one is a `Test`, and what runs for each of its values.

    `tests` maps the test dimension's values to functions, machines or executors; a value that is
    not in it is a reference, like ``shop.py::sell``. `forbid` are expressions over the dimensions'
    names, or functions of a point: where one is true, there is nothing to explore.

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
    swarmtest.errors.UserError: a search space has exactly one test dimension, and this one has ...
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
        self.forbidden: tuple[Predicate, ...] = tuple(predicate_of(one, names) for one in forbid)
        self.executors: dict[Scalar, Executor] = _executors(self.test, tests or {})
        self.name = name or ", ".join(test.name for test in self.executors.values())
        self._check()

    @property
    def size(self) -> int:
        """How many points it has, the forbidden ones among them."""
        return size_of(self)

    def allows(self, point: Configuration) -> bool:
        """Whether nothing forbids a point."""
        return not any(predicate.forbids(point) for predicate in self.forbidden)

    def executor(self, point: Configuration) -> Executor:
        """What runs at a point."""
        return self.executors[point[self.test.name]]

    def _check(self) -> None:
        for executor in self.executors.values():
            check_executor(executor, self)
        used = [executor.uses for executor in self.executors.values()]
        if any(names is None for names in used):
            return
        known = frozenset[str]().union(*(names for names in used if names is not None))
        for dimension in self.dimensions:
            if dimension is not self.test and dimension.name not in known:
                raise UserError(
                    f"dimension {dimension.name!r} makes no difference: no test takes it"
                    f"{did_you_mean(dimension.name, known)}"
                )


def _only_test(space: Space) -> Test:
    found = [dimension for dimension in space.dimensions if isinstance(dimension, Test)]
    if len(found) == 1:
        return found[0]
    count = f"{len(found)}: {', '.join(one.name for one in found)}" if found else "none"
    raise UserError(
        f"a search space has exactly one test dimension, and this one has {count}; "
        + ("make them one, with the values of both" if found else 'add Test("test", [...])')
    )


def _executors(test: Test, tests: Mapping[str, Any]) -> dict[Scalar, Executor]:
    for name in tests:
        if name not in test.values:
            values = [str(value) for value in test.values]
            raise UserError(
                f"test dimension {test.name!r} has no value {name!r}{did_you_mean(name, values)}"
            )
    found: dict[Scalar, Executor] = {}
    for value in test.values:
        told = tests.get(str(value), value)
        if told is value and ":" not in str(value) and not str(value).endswith((".py", ".toml")):
            raise UserError(
                f"test {value!r} of dimension {test.name!r} says not what runs: give a function "
                "or an executor in `tests`, or name one, like shop.py::sell"
            )
        found[value] = executor_of(told, str(value))
    return found
