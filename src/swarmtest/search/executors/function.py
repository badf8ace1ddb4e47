"""A Python function, or any subject that campaigns test, as the test of a point."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from swarmtest.errors import UserError
from swarmtest.result import Result
from swarmtest.search.executors.calling import Calling
from swarmtest.search.executors.executor import timed_result
from swarmtest.space import Configuration, Space
from swarmtest.subjects.loading import subject_of
from swarmtest.subjects.subject import Subject


class FunctionExecutor:
    """A function whose parameters are dimensions: what it raises is its failure.

    It answers nothing, or its measures, and with them the targets that it reached.

    >>> from swarmtest import Integer, SearchSpace, Test
    >>> def sell(seats): return {"left": 100 - seats, "hits": ["sold out"] * (seats == 100)}
    >>> space = SearchSpace([Integer("seats", 1, 100), Test("test", ["sell"])], {"sell": sell})
    >>> FunctionExecutor(sell).run(space.configuration({"seats": 100}), iter([1]))[0].hits
    ('event:sold out',)
    """

    def __init__(self, function: Callable[..., Any], name: str = "") -> None:
        self._call = Calling(function)
        self.name = name or self._call.name

    @property
    def uses(self) -> frozenset[str] | None:
        """The dimensions that it names; None: all."""
        return self._call.uses

    def check(self, space: Space) -> None:
        """Complain about a parameter that is no dimension."""
        self._call.check(space)

    def most_runs(self, point: Configuration) -> int:
        """One."""
        return 1

    def run(self, point: Configuration, seeds: Iterator[int]) -> list[Result]:
        """Call it once."""
        seed = next(seeds)
        return [timed_result(lambda: self._call(point, seed))]


class SubjectExecutor:
    """A machine, or another subject: a random test of it is generated and run.

    Its features and settings are the point's dimensions of the same names; a dimension ``steps``
    sets how long its tests are. What the point does not name is at its default.

    >>> from swarmtest import Integer, Machine, SearchSpace, Test, action
    >>> class Lamp(Machine):
    ...     @action
    ...     def switch(self): pass
    >>> space = SearchSpace([Integer("steps", 1, 9), Test("test", ["lamp"])], {"lamp": Lamp})
    >>> SubjectExecutor(Lamp).run(space.configuration({"steps": 7}), iter([1]))[0].steps
    7
    """

    def __init__(self, subject: Any, name: str = "") -> None:
        named = name or getattr(subject, "__name__", getattr(subject, "name", ""))
        found = subject_of(subject, named)
        if found is None:
            raise UserError(f"{subject!r} is not a Machine, nor anything else that can be tested")
        self._subject: Subject = found
        self._given = subject
        self.name = named
        self._sized = functools.lru_cache(maxsize=256)(self._of_size)

    @property
    def uses(self) -> frozenset[str] | None:
        """Its features and settings, and ``steps``."""
        return frozenset(d.name for d in self._subject.space.dimensions) | {"steps"}

    def most_runs(self, point: Configuration) -> int:
        """One."""
        return 1

    def run(self, point: Configuration, seeds: Iterator[int]) -> list[Result]:
        """Generate one test and run it."""
        told = point.to_json()
        own = self._subject.space
        subject = self._subject
        if "steps" in told and "steps" not in own.setting_names:
            subject = self._sized(int(told["steps"]))
        values = own.default().to_json()
        values |= {name: told[name] for name in values if name in told}
        configuration, seed = own.configuration(values), next(seeds)
        return [timed_result(lambda: subject.execute(configuration, seed))]

    def _of_size(self, steps: int) -> Subject:
        found = subject_of(self._given, self.name, (steps, steps))
        assert found is not None
        return found
