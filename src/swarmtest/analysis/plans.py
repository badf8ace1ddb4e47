"""Answers about combinations, exact or simulated, in one form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from swarmtest.analysis.combinations import Ways, chance_in, needed
from swarmtest.analysis.intervals import wilson_interval
from swarmtest.analysis.simulated_swarms import FirstTimes

EXACT = "exact"
BOUND = "union bound"


@dataclass(frozen=True)
class Range:
    """A number that is known exactly (low = high), or within an interval; None: no end is known.

    >>> Range(23, 23).is_exact
    True
    """

    low: float | None
    high: float | None

    @property
    def is_exact(self) -> bool:
        """Whether it is one number."""
        return self.low == self.high

    def to_json(self) -> list[float | None]:
        """Plain data: the two ends."""
        return [self.low, self.high]


@dataclass(frozen=True)
class Question:
    """What is the chance within so many tests; or, without them, how many does a chance need?

    >>> Question(tests=100).wished
    0.95
    """

    tests: int | None = None
    wished: float = 0.95


@dataclass(frozen=True)
class Answer:
    """The chance within n tests, or the number of tests that has the chance."""

    method: str
    """``exact``, ``union bound``, or what was simulated."""
    needed: Range | None = None
    """Tests for the wished chance, if that was the question."""
    tests: int | None = None
    chance: Range | None = None
    """The chance within `tests` tests: those asked for, or all that were simulated in vain."""
    share: Range | None = None
    """The share of configurations that have it, where that is the same for all tests."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {name: v.to_json() if isinstance(v, Range) else v for name, v in vars(self).items()}


def from_share(low: float, high: float, method: str, question: Question) -> Answer:
    """Each test has it with the same chance, independently of the others.

    >>> from_share(0.5, 0.5, EXACT, Question(wished=0.95)).needed
    Range(low=5, high=5)
    """
    share = Range(low, high)
    if question.tests is not None:
        chance = Range(chance_in(low, question.tests), chance_in(high, question.tests))
        return Answer(method, None, question.tests, chance, share)
    least, most = (needed(end, question.wished) if end else None for end in (high, low))
    return Answer(method, Range(least, most), share=share)


def from_ways(ways: Ways, question: Question) -> Answer:
    """All of many combinations: at least so likely, and so many are enough (union bound)."""
    share = Range(ways.rarest, ways.rarest)
    if question.tests is not None:
        chance = Range(ways.chance_in(question.tests), chance_in(ways.rarest, question.tests))
        return Answer(BOUND, None, question.tests, chance, share)
    wished = question.wished
    return Answer(BOUND, Range(needed(ways.rarest, wished), ways.needed(wished)), share=share)


def from_times(first: FirstTimes, question: Question) -> Answer:
    """Whole campaigns were simulated.

    >>> times = FirstTimes((1,) * 94 + (7,) * 6, campaigns=100, limit=20)
    >>> from_times(times, Question(wished=0.95)).needed
    Range(low=1, high=7)
    """
    method = f"{first.campaigns} simulated campaigns"
    n = question.tests if question.tests is not None else first.limit
    chance = Range(*wilson_interval(first.within(n), first.campaigns))
    if question.tests is not None:
        return Answer(method, None, n, chance)
    least, most = (_time_at(first, question.wished, end) for end in (1, 0))
    return Answer(method, Range(least, most), *((n, chance) if most is None else ()))


def _time_at(first: FirstTimes, wished: float, end: int) -> int | None:
    """The first time at which this end of the interval of the chance is what was wished."""
    for time in sorted({*first.times}):
        if wilson_interval(first.within(time), first.campaigns)[end] >= wished:
            return time
    return None
