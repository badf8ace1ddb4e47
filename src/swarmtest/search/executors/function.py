"""Executors run a test at a point: the interface, and those for functions and for subjects."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from swarmtest.campaign.budget import TEST_SECONDS, Limits
from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.faults import fault_of_exception
from swarmtest.core.result import Result, Verdict
from swarmtest.core.space import Space
from swarmtest.processes.shared_limit import LimitedWork
from swarmtest.processes.tree import Supervision, cpu_ns
from swarmtest.search.results import result_of
from swarmtest.subjects.loading import subject_of
from swarmtest.subjects.subject import Subject


@runtime_checkable
class Executor(Protocol):
    """Runs a test at a point; any object with these members is an executor.

    An executor whose ``most_runs(point)`` says how many results it returns at most can be run by
    several workers.

    >>> from swarmtest import Space, Test
    >>> class Always:
    ...     name, uses = "always", frozenset()
    ...     def run(self, point, seeds):
    ...         return [Result(Verdict.PASSED)]
    >>> isinstance(Always(), Executor)
    True
    """

    @property
    def name(self) -> str:
        """Return the name of the test, for people."""

    @property
    def uses(self) -> frozenset[str] | None:
        """Return the dimensions that make a difference to the test; None if it sees all of them."""

    def run(self, point: Configuration, seeds: Iterator[int]) -> list[Result]:
        """Run the test and return a result for each time it ran; each run takes one seed."""


def most_runs(executor: Executor, point: Configuration) -> int | None:
    """Return how many results an executor returns at most; None if it does not say so.

    >>> from swarmtest import Test
    >>> from swarmtest.search import AfterRuns, FunctionExecutor, RepeatedExecutor, SearchSpace
    >>> often = RepeatedExecutor(FunctionExecutor(print, "often"), AfterRuns(3))
    >>> most_runs(often, SearchSpace([Test("test", ["often"])], {"often": often}).default())
    3
    """
    method: Callable[[Configuration], int | None] | None = getattr(executor, "most_runs", None)
    return method(point) if method is not None else None


def timed_result(run: Callable[[], object], seconds: float = TEST_SECONDS) -> Result:
    """Return what a user's function returned or raised, as a result with the time it took.

    `seconds`: how long it may take, if the search runs visits in processes of their own.

    >>> timed_result(lambda: {"sold": 150}).verdict.label, timed_result(lambda: 1 / 0).verdict.label
    ('passed', 'failed')
    """
    wall, cpu_before = time.monotonic(), cpu_ns()
    try:
        with Supervision(), LimitedWork(seconds):
            result = result_of(run())
    except (UserError, KeyboardInterrupt):
        raise
    except BaseException as error:
        result = Result(Verdict.FAILED, fault_of_exception(error))
    return result._replace(
        wall_seconds=result.wall_seconds or time.monotonic() - wall,
        cpu_seconds=max(result.cpu_seconds, (cpu_ns() - cpu_before) / 1e9),
    )


_EXTRA_PARAMETERS = ("point", "seed")
"""What a function may take besides dimensions: the whole point, and the seed of the run."""


class FunctionCall:
    """A callable for a function whose parameters are dimensions, ``point`` or ``seed``.

    A parameter ``**others`` gets all dimensions.

    >>> from swarmtest import Integer
    >>> point = Space([Integer("threads", 1, 8)]).configuration({"threads": 4})
    >>> FunctionCall(lambda threads, seed: (threads, seed))(point, 7)
    (4, 7)
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        parameters = inspect.signature(function).parameters.values()
        self._takes_all = any(p.kind == p.VAR_KEYWORD for p in parameters)
        named = [p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        self._names = [p.name for p in named]
        self._needed = [p.name for p in named if p.default is p.empty]

    @property
    def uses(self) -> frozenset[str] | None:
        """Return the dimensions that it may take; None if all."""
        return None if self._takes_all or "point" in self._names else frozenset(self._names)

    def check(self, space: Space) -> None:
        """Raise an error for a parameter that nothing gives a value to."""
        known = [dimension.name for dimension in space.dimensions]
        for name in self._needed:
            if name not in known and name not in _EXTRA_PARAMETERS:
                raise UserError(
                    f"{self.name}() takes {name!r}, but the space has no such dimension"
                    f"{did_you_mean(name, [*known, *_EXTRA_PARAMETERS])}"
                )

    def __call__(self, point: Configuration, seed: int) -> Any:
        """Call the function with the values that it takes."""
        values = {"point": point, "seed": seed} | point.to_json()
        if self._takes_all:
            return self.function(
                **{
                    n: v
                    for n, v in values.items()
                    if n not in ("point", "seed") or n in self._names
                }
            )
        return self.function(**{name: values[name] for name in self._names if name in values})


class FunctionExecutor:
    """A function whose parameters are dimensions; if it raises an exception, the test failed.

    It returns nothing, or its measures, and with them the targets that it reached. Each run may
    take `seconds`, if the search runs tests in processes of their own.

    >>> from swarmtest import Integer, Test
    >>> from swarmtest.search import SearchSpace
    >>> def sell(seats): return {"left": 100 - seats, "hits": ["sold out"] * (seats == 100)}
    >>> space = SearchSpace([Integer("seats", 1, 100), Test("test", ["sell"])], {"sell": sell})
    >>> FunctionExecutor(sell).run(space.configuration({"seats": 100}), iter([1]))[0].hits
    ('event:sold out',)
    """

    def __init__(
        self, function: Callable[..., Any], name: str = "", seconds: float = TEST_SECONDS
    ) -> None:
        self._call = FunctionCall(function)
        self.seconds = seconds
        self.name = name or self._call.name

    @property
    def uses(self) -> frozenset[str] | None:
        """Return the dimensions that it takes; None if all."""
        return self._call.uses

    def check(self, space: Space) -> None:
        """Raise an error for a parameter that is not a dimension."""
        self._call.check(space)

    def most_runs(self, point: Configuration) -> int:
        """Return 1: the function is called once."""
        return 1

    def run(self, point: Configuration, seeds: Iterator[int]) -> list[Result]:
        """Call the function once."""
        seed = next(seeds)
        return [timed_result(lambda: self._call(point, seed), self.seconds)]


_NONE = "none"


class SubjectExecutor:
    """A machine, or another subject: a random test of it is generated and run.

    Its features and settings are the point's dimensions of the same names; a dimension ``steps``
    sets the length of its tests. What the point does not name has its default value. A subject may
    have further dimensions that choose one of several features (`Subject.alternatives`).

    >>> from swarmtest import Integer, Machine, Test, action
    >>> from swarmtest.search import SearchSpace
    >>> class Lamp(Machine):
    ...     @action
    ...     def switch(self): pass
    >>> space = SearchSpace([Integer("steps", 1, 9), Test("test", ["lamp"])], {"lamp": Lamp})
    >>> SubjectExecutor(Lamp).run(space.configuration({"steps": 7}), iter([1]))[0].steps
    7
    """

    def __init__(self, subject: Any, name: str = "") -> None:
        named = name or getattr(subject, "__name__", getattr(subject, "name", ""))
        resolved = subject_of(subject, named)
        if resolved is None:
            raise UserError(f"{subject!r} is not a Machine, nor anything else that can be tested")
        self._subject: Subject = resolved
        self._original = subject
        self._range_is_setting: bool = getattr(resolved, "range_is_setting", False)
        self._alternatives: Mapping[str, Sequence[str]] = getattr(resolved, "alternatives", {})
        self.name = named
        self._sized = functools.lru_cache(maxsize=256)(self._of_size)

    @property
    def uses(self) -> frozenset[str] | None:
        """Return its features and settings, and ``steps``."""
        names = {dimension.name for dimension in self._subject.space.dimensions}
        return frozenset(names | {"steps", *self._alternatives})

    def most_runs(self, point: Configuration) -> int:
        """Return 1: one test is run."""
        return 1

    def run(self, point: Configuration, seeds: Iterator[int]) -> list[Result]:
        """Generate one test and run it."""
        point_values = point.to_json()
        own = self._subject.space
        subject = self._subject
        if "steps" in point_values and ("steps" not in own.setting_names or self._range_is_setting):
            # The point may have a length that is outside of the subject's own range.
            subject = self._sized(int(point_values["steps"]))
            own = subject.space
        values = own.default().to_json() | self._chosen_features(point_values)
        values |= {name: point_values[name] for name in values if name in point_values}
        seed = next(seeds)
        if self._range_is_setting and subject is self._subject:
            lengths = own.settings[own.setting_number("steps")].values
            values["steps"] = lengths[seed % len(lengths)]
        configuration = own.configuration(values)
        seconds = Limits().seconds_of(subject)
        return [timed_result(lambda: subject.execute(configuration, seed), seconds)]

    def _chosen_features(self, point: Mapping[str, Any]) -> dict[str, bool]:
        """Return which features a point includes, if its dimensions choose among them."""
        named = [name for name in self._alternatives if name in point]
        if not named:
            return {}
        included = ""
        for dimension in named:
            feature, known = str(point[dimension]), (_NONE, *self._alternatives[dimension])
            if feature not in known:
                raise UserError(f"{dimension}: {feature!r}{did_you_mean(feature, known)}")
            included = included if feature == _NONE else feature
        return {name: name == included for name in self._subject.space.feature_names}

    def _of_size(self, steps: int) -> Subject:
        resolved = subject_of(self._original, self.name, (steps, steps))
        assert resolved is not None
        return resolved
