"""When a test has been repeated often enough, and when a search ends.

A checker decides about repetition: `begin` is called once per point and returns a function that
gets each result and returns whether that was enough. `Stopping` has the limits of a whole search.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from swarmtest.core.errors import UserError
from swarmtest.core.result import Result
from swarmtest.search.results import named_hits

Enough: TypeAlias = Callable[[Result], bool]


@runtime_checkable
class IterationChecker(Protocol):
    """Decides whether a test is repeated once more.

    >>> isinstance(AfterRuns(3), IterationChecker)
    True
    """

    def begin(self) -> Enough:
        """Start again, for another point."""


@dataclass(frozen=True)
class AfterRuns:
    """Enough after a number of runs.

    >>> from swarmtest import Verdict
    >>> enough = AfterRuns(2).begin()
    >>> enough(Result(Verdict.PASSED)), enough(Result(Verdict.PASSED))
    (False, True)
    """

    runs: int

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise UserError(f"a test runs at least once, not {self.runs} times")

    def begin(self) -> Enough:
        """Start counting from 0."""
        done = 0

        def enough(result: Result) -> bool:
            nonlocal done
            done += 1
            return done >= self.runs

        return enough


@dataclass(frozen=True)
class AfterSeconds:
    """Enough when this much time has passed since the first run began.

    >>> from swarmtest import Verdict
    >>> AfterSeconds(3600).begin()(Result(Verdict.PASSED))
    False
    """

    seconds: float

    def begin(self) -> Enough:
        """Start the clock."""
        end = time.monotonic() + self.seconds
        return lambda result: time.monotonic() >= end


@dataclass(frozen=True)
class WhenSaturated:
    """Enough when the last runs reached almost nothing new.

    `last` is the number of runs over which growth is measured. Choose it longer than the shoulders
    of the curve (stretches without anything new, after which more comes), or the repetition stops
    on one. Growth `below` this is too little: a number of targets, or with `relative` a share of
    those reached so far.

    >>> from swarmtest import Verdict
    >>> enough = WhenSaturated(last=2).begin()
    >>> [enough(Result(Verdict.PASSED, hits=hits)) for hits in (("a:1",), ("a:2",), (), ())]
    [False, False, False, True]
    """

    last: int = 10
    below: float = 1.0
    relative: bool = False

    def __post_init__(self) -> None:
        if self.last < 1 or self.below <= 0:
            raise UserError(
                f"saturation looks at 1 run or more, and at a growth above 0, not at {self.last} "
                f"and {self.below:g}"
            )

    def begin(self) -> Enough:
        """Start with nothing reached."""
        reached: set[str] = set()
        counts: deque[int] = deque(maxlen=self.last + 1)

        def enough(result: Result) -> bool:
            reached.update(named_hits(result))
            counts.append(len(reached))
            if len(counts) <= self.last:
                return False
            least = self.below * counts[-1] if self.relative else self.below
            return counts[-1] - counts[0] < least or not reached

        return enough


@dataclass(frozen=True)
class WhenFailed:
    """Enough when a run failed; a run whose time was up does not count.

    >>> from swarmtest import Fault, Verdict
    >>> enough = WhenFailed().begin()
    >>> enough(Result(Verdict.PASSED)), enough(Result(Verdict.FAILED, Fault("exception", "oh")))
    (False, True)
    """

    def begin(self) -> Enough:
        """Start without a failure."""
        return lambda result: result.fault is not None and result.fault.kind != "timeout"


# The limits of a search.


@dataclass(frozen=True)
class Stopping:
    """The limits of a search: whichever comes first. Without any, the engine decides.

    >>> Stopping(points=100, reach=20).describe()
    '100 points or fitness 20'
    """

    points: int | None = None
    seconds: float | None = None
    reach: float | None = None
    """A fitness that is good enough (the first of several objectives)."""
    faults: int | None = None
    """Stop after this many distinct faults."""
    when: Callable[[Result], bool] | None = None
    """Called with the result of each point; the search ends when it returns true."""

    def __post_init__(self) -> None:
        for name in ("points", "seconds", "faults"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise UserError(f"a search's {name} are above 0, not {value:g}")

    def describe(self) -> str:
        """Return the limits in words."""
        words = [] if self.points is None else [f"{self.points:,} point{'s' * (self.points > 1)}"]
        words += [] if self.seconds is None else [f"{self.seconds:g} s"]
        words += [] if self.reach is None else [f"fitness {self.reach:g}"]
        words += [] if self.faults is None else [f"{self.faults} fault{'s' * (self.faults > 1)}"]
        words += ["the user says so"] if self.when is not None else []
        return " or ".join(words) or "the engine has nothing left"

    def reached(self, progress: SearchProgress) -> str:
        """Return the limit that is reached, in words; empty if the search goes on."""
        best = progress.best_score[0] if progress.best_score else None
        limits = (
            (self.points, progress.visits, self._budget()),
            (self.seconds, progress.seconds, "time is up"),
            (self.reach, best, "fitness reached"),
            (self.faults, progress.faults, "enough faults"),
        )
        for limit, now, text in limits:
            if limit is not None and now is not None and now >= limit:
                return text
        return ""

    def _budget(self) -> str:
        if self.points is None:
            return ""
        return f"the budget of {self.points:,} point{'s' * (self.points != 1)} is used up"

    def to_json(self) -> dict[str, Any]:
        """Return the limits that are set, except for the user's function."""
        named = ("points", "seconds", "reach", "faults")
        return {name: getattr(self, name) for name in named if getattr(self, name) is not None}


@dataclass
class SearchProgress:
    """The progress of a search.

    >>> SearchProgress(visits=3).best_score
    ()
    """

    visits: int = 0
    """Points that were proposed and run; a repeated point counts again."""
    points: int = 0
    """Distinct points."""
    runs: int = 0
    failed: int = 0
    interrupted: int = 0
    targets: int = 0
    faults: int = 0
    seconds: float = 0.0
    best: dict[str, Any] | None = None
    best_score: tuple[float, ...] = ()
    best_visit: int = -1
