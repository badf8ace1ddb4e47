"""How good a result is: a function of it, kept apart from it, so that either can change alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from swarmtest.errors import UserError, did_you_mean
from swarmtest.loading import load_object
from swarmtest.result import Result, Verdict
from swarmtest.search.results import named_hits

Score: TypeAlias = tuple[float, ...]
"""One number per objective; larger is better."""

BUILT_IN = ("hits", "seconds", "cpu", "failed")
"""What every result has: targets reached, wall and CPU seconds, whether it failed."""


class Fitness:
    """What a search looks for: the name of a measure, several, or a function of a result.

    ``hits`` is how many targets were reached (``hits.pair``: of kind pair), ``failed`` is 1 for a
    failure, ``seconds`` is how long it took; other names are the test's own measures. A minus looks
    for the smallest. Several, separated by commas, are several objectives.

    >>> Fitness("hits, -seconds")(Result(Verdict.PASSED, hits=("a:1", "a:2"), wall_seconds=3.0))
    (2.0, -3.0)
    """

    def __init__(self, told: str | Callable[[Result], Any] = "hits", objectives: int = 1) -> None:
        """`objectives`: how many numbers a function answers."""
        self.text = told if isinstance(told, str) else getattr(told, "__name__", repr(told))
        self._own: Callable[[Result], Any] | None = None if isinstance(told, str) else told
        if isinstance(told, str) and ":" in told:
            self._own = load_object(told, "fitness function", callable)
        self._names = [name.strip() for name in self.text.split(",")] if self._own is None else []
        if self._own is None and not all(name.lstrip("-").strip() for name in self._names):
            raise UserError(f"a fitness is a measure's name, like hits or -seconds, not {told!r}")
        self.objectives = len(self._names) or objectives
        """How many numbers it gives."""

    def __call__(self, result: Result) -> Score:
        """How good a result is."""
        if self._own is not None:
            return self._numbers(self._own(result))
        return tuple(
            -measure(result, name.lstrip("- ")) if name.startswith("-") else measure(result, name)
            for name in self._names
        )

    def _numbers(self, answer: object) -> Score:
        found = answer if isinstance(answer, tuple) else (answer,)
        if not all(isinstance(one, int | float) for one in found):
            raise UserError(f"fitness {self.text} answers a number, or several, not {answer!r}")
        if len(found) != self.objectives:
            raise UserError(
                f"fitness {self.text} answers {len(found)} numbers, and {self.objectives} are "
                f"expected: write Fitness({self.text}, objectives={len(found)})"
            )
        return tuple(float(one) for one in found)

    def __repr__(self) -> str:
        return f"Fitness({self.text!r})"


def measure(result: Result, name: str) -> float:
    """A number of a result, by name.

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
        return float("-inf")  # it ended before it could measure anything
    known = [*result.measures, *BUILT_IN]
    raise UserError(f"no result has a measure {name!r}{did_you_mean(name, known)}")
