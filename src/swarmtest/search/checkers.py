"""When a test has been repeated often enough: after so many runs, so long, or nothing new.

A checker is asked once per point to `begin`, and answers with a function that is told each result
and says whether that was enough.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from swarmtest.errors import UserError
from swarmtest.result import Result
from swarmtest.search.results import named_hits

Enough: TypeAlias = Callable[[Result], bool]


@runtime_checkable
class IterationChecker(Protocol):
    """Decides whether a test is repeated once more.

    >>> isinstance(AfterRuns(3), IterationChecker)
    True
    """

    def begin(self) -> Enough:
        """Start anew, for another point."""


@dataclass(frozen=True)
class AfterRuns:
    """Enough after so many runs.

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
        """Count from 0."""
        done = 0

        def enough(result: Result) -> bool:
            nonlocal done
            done += 1
            return done >= self.runs

        return enough


@dataclass(frozen=True)
class AfterSeconds:
    """Enough when so much time has passed since the first run began.

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
    """Enough when the last runs brought nearly nothing new: what all runs reached grew too little.

    `last` is over how many runs the growth is measured. Choose it longer than the shoulders of the
    curve (stretches where nothing new comes, and then more does), or the repetition stops on one.
    `below` is the growth that is too little: a number of targets, or with `relative` a share of
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
        """Nothing is reached yet."""
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
    """Enough when a run failed; one whose time was up did not.

    >>> from swarmtest import Fault, Verdict
    >>> enough = WhenFailed().begin()
    >>> enough(Result(Verdict.PASSED)), enough(Result(Verdict.FAILED, Fault("exception", "oh")))
    (False, True)
    """

    def begin(self) -> Enough:
        """Nothing has failed yet."""
        return lambda result: result.fault is not None and result.fault.kind != "timeout"
