"""Results of a point: what a user's test returned, how good it is, and how several become one.

A result is the `swarmtest.Result` of every campaign. A result whose time was up has a fault of
kind ``timeout``: the papers' "interrupted". A fitness is a function of a result and kept apart
from it, so that either can change alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.result import Result, Verdict
from swarmtest.core.targets import Catalogue, MovingHits
from swarmtest.languages.user_objects import load_object

# Fitness.

Score: TypeAlias = tuple[float, ...]
"""One number per objective; larger is better."""

BUILT_IN = ("hits", "seconds", "cpu", "failed")
"""The measures of every result: targets reached, wall and CPU seconds, whether it failed."""


class Fitness:
    """What a search looks for: the name of a measure, several names, or a function of a result.

    ``hits`` is the number of targets reached (``hits.pair``: of kind pair), ``failed`` is 1 for a
    failure, ``seconds`` is how long it took; other names are measures of the test itself. A minus
    looks for the smallest value. Several names, separated by commas, are several objectives.

    >>> Fitness("hits, -seconds")(Result(Verdict.PASSED, hits=("a:1", "a:2"), wall_seconds=3.0))
    (2.0, -3.0)
    """

    def __init__(
        self, measures: str | Callable[[Result], Any] = "hits", objectives: int = 1
    ) -> None:
        """Take names or a function; `objectives` is how many numbers the function returns."""
        named = isinstance(measures, str)
        self.text = str(measures) if named else getattr(measures, "__name__", repr(measures))
        self._own: Callable[[Result], Any] | None = None if isinstance(measures, str) else measures
        if named and ":" in self.text:
            self._own = load_object(self.text, "fitness function", callable)
        self._names = [name.strip() for name in self.text.split(",")] if self._own is None else []
        if self._own is None and not all(name.lstrip("-").strip() for name in self._names):
            raise UserError(
                f"a fitness is a measure's name, like hits or -seconds, not {measures!r}"
            )
        self.objectives = len(self._names) or objectives
        """How many numbers a score has."""

    def __call__(self, result: Result) -> Score:
        """Return how good a result is."""
        if self._own is not None:
            return self._numbers(self._own(result))
        return tuple(
            -measure(result, name.lstrip("- ")) if name.startswith("-") else measure(result, name)
            for name in self._names
        )

    def _numbers(self, answer: object) -> Score:
        numbers = answer if isinstance(answer, tuple) else (answer,)
        if not all(isinstance(number, int | float) for number in numbers):
            raise UserError(f"fitness {self.text} must return a number, or several, not {answer!r}")
        if len(numbers) != self.objectives:
            raise UserError(
                f"fitness {self.text} returns {len(numbers)} numbers, but {self.objectives} are "
                f"expected: write Fitness({self.text}, objectives={len(numbers)})"
            )
        return tuple(float(number) for number in numbers)

    def __repr__(self) -> str:
        return f"Fitness({self.text!r})"


def measure(result: Result, name: str) -> float:
    """Return a number of a result, by name.

    >>> measure(Result(Verdict.PASSED, measures={"sold": 151}), "sold")
    151.0
    """
    if name in result.measures:
        return float(result.measures[name])
    if name == "hits":
        return float(len(named_hits(result)))
    if name.startswith("hits."):
        kind = name.removeprefix("hits.") + ":"
        return float(sum(hit.startswith(kind) for hit in named_hits(result)))
    if name == "failed":
        return float(result.verdict == Verdict.FAILED)
    if name == "seconds":
        return result.wall_seconds
    if name == "cpu":
        return result.cpu_seconds
    if result.verdict != Verdict.PASSED:
        return float("-inf")  # the test ended before it could measure anything
    known = [*result.measures, *BUILT_IN]
    raise UserError(f"no result has a measure {name!r}{did_you_mean(name, known)}")


# Results.

Combine: TypeAlias = Callable[[Result, Result], Result]
"""Combines two results of the same point into one."""

INTERRUPTED = "timeout"
"""The kind of fault of a test whose time was up."""


def status_of(result: Result) -> str:
    """Return ``passed``, ``failed``, ``interrupted``, or ``invalid`` if the test could not begin.

    >>> from swarmtest import Fault
    >>> status_of(Result(Verdict.FAILED, Fault("timeout", "timeout")))
    'interrupted'
    """
    if result.fault is not None and result.fault.kind == INTERRUPTED:
        return "interrupted"
    return result.verdict.label


def named_hits(result: Result) -> tuple[str, ...]:
    """Return all targets that a result reached by name, both reported and covered.

    >>> named_hits(Result(Verdict.PASSED, hits=("event:full",)))
    ('event:full',)
    """
    if not result.covered:
        return result.hits
    more = {str(target) for hits in result.covered for target in hits.targets()}
    return tuple(sorted(more.union(result.hits)))


class MovingResult(NamedTuple):
    """A result on its way from one process to another."""

    plain: Result
    covered: tuple[MovingHits, ...]

    def arrived(self, catalogue: Catalogue) -> Result:
        """Return the result, with its hits numbered by a catalogue of this process."""
        return self.plain._replace(covered=tuple(hits.arrived(catalogue) for hits in self.covered))


def moving(result: Result) -> MovingResult:
    """Return a result in a form that can be sent to another process.

    >>> moving(Result(Verdict.PASSED)).covered
    ()
    """
    covered = tuple(hits.moving() for hits in result.covered)
    return MovingResult(result._replace(covered=(), configuration=None), covered)


def result_of(answer: object) -> Result:
    """Return what a user's test returned, as a result.

    >>> result_of({"sold": 151, "hits": ["full"]}).measures
    {'sold': 151.0}
    """
    if answer is None:
        return Result(Verdict.PASSED)
    if isinstance(answer, Result):
        return answer
    if not isinstance(answer, Mapping):
        raise UserError(
            'a test returns nothing, its measures ({"sold": 151, "hits": ["full"]}) or a Result, '
            f"not {answer!r}"
        )
    hits = tuple(sorted(set(map(_target, _texts(answer.get("hits", ()))))))
    measures = {str(name): _number(name, value) for name, value in answer.items() if name != "hits"}
    return Result(Verdict.PASSED, hits=hits, measures=measures)


def _texts(hits: Any) -> Sequence[str]:
    if isinstance(hits, str) or not all(isinstance(hit, str) for hit in hits):
        raise UserError(f"hits are a list of names, not {hits!r}")
    return list(hits)


def _target(name: str) -> str:
    return name if ":" in name else f"event:{name}"


def _number(name: object, value: object) -> float:
    if not isinstance(value, int | float):
        raise UserError(f"measure {name!r} is a number, not {value!r}")
    return float(value)


def cumulated(first: Result, second: Result) -> Result:
    """Combine two results: all hits, all of the time, the worse verdict, the larger measures.

    >>> both = cumulated(Result(Verdict.PASSED, hits=("a:1",)), Result(Verdict.FAILED))
    >>> both.verdict.label, both.hits
    ('failed', ('a:1',))
    """
    worse = max(first, second, key=_badness)
    measures = dict(first.measures)
    for name, value in second.measures.items():
        measures[name] = max(value, measures.get(name, value))
    hits = set(named_hits(first)).union(named_hits(second))
    return worse._replace(
        hits=tuple(sorted(hits)),
        covered=(),
        measures=measures,
        steps=first.steps + second.steps,
        cpu_seconds=first.cpu_seconds + second.cpu_seconds,
        wall_seconds=first.wall_seconds + second.wall_seconds,
        missing=first.missing or second.missing,
    )


def _badness(result: Result) -> int:
    return ("invalid", "passed", "interrupted", "failed").index(status_of(result))


def combine_results(results: Sequence[Result], how: Combine) -> Result:
    """Combine several results of a point into one.

    >>> both = [Result(Verdict.PASSED, steps=2), Result(Verdict.PASSED, steps=3)]
    >>> combine_results(both, cumulated).steps
    5
    """
    return reduce(how, results)


def combination_of(how: str | Combine, fitness: Callable[[Result], Any]) -> Combine:
    """Return the combination ``best``, ``worst`` or ``cumulated``, or a function of two results.

    >>> combination_of("cumulated", len) is cumulated
    True
    """
    if callable(how):
        return how
    known: dict[str, Combine] = {
        "cumulated": cumulated,
        "best": lambda first, second: max(first, second, key=fitness),
        "worst": lambda first, second: min(first, second, key=fitness),
    }
    if how not in known:
        raise UserError(
            f"combine is one of {', '.join(known)}, not {how!r}{did_you_mean(how, known)}"
        )
    return known[how]
