"""What happens while a machine's test is generated: steps are noted, impossible picks redone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from swarmtest.subjects.machine import Machine
from swarmtest.subjects.machine_test import Step

_TRIES = 3


class Record(list[Any]):
    """The steps of the test at hand, and which of them ended in an expected exception."""

    raised: tuple[tuple[int, str], ...] = ()

    def rescued(self, error: BaseException) -> None:
        """The step noted last raised an exception that is a correct outcome."""
        self.raised = (*self.raised, (len(self), type(error).__qualname__))


class Journal(Record):
    """A record that tells of each step before it runs: for tests that may kill the process."""

    def __init__(
        self, tell: Callable[[Any], None], step: Callable[[tuple[Any, ...], int], Step]
    ) -> None:
        super().__init__()
        self._tell = tell
        self._step = step

    def append(self, noted: Any) -> None:
        super().append(noted)
        self._tell(self._step(noted, len(self)))

    def rescued(self, error: BaseException) -> None:
        super().rescued(error)
        self._tell({"raised": type(error).__qualname__})


def journalled(told: Sequence[Any]) -> tuple[Step, ...]:
    """Steps from what a journal was told: a step, or that the step before it raised."""
    steps: list[Step] = []
    for entry in told:
        if isinstance(entry, dict):
            steps[-1] = steps[-1]._replace(raised=entry["raised"])
        else:
            action, arguments, label, raised = entry
            steps.append(Step(action, tuple(arguments), label, raised))
    return tuple(steps)


class Another:
    """Picks again when the guard of the action picked first is false.

    A few tries at the full odds, then one among the actions that are possible, listed. Both have
    the odds of "pick among the possible ones", so the number of tries is only a matter of speed.
    """

    __slots__ = ("_bounds", "_picks", "_possible", "_weights")

    def __init__(
        self,
        picks: Sequence[int],
        possible: Sequence[Callable[[Machine], Any] | None],
        weights: Sequence[float] | None,
        bounds: Sequence[float] | None,
    ) -> None:
        self._picks = picks
        self._possible = possible
        self._weights = weights
        self._bounds = bounds

    def __call__(self, machine: Machine, draw: Callable[[], float]) -> int:
        picks, possible = self._picks, self._possible
        if self._bounds is None:
            for _ in range(_TRIES):
                k = picks[int(draw() * len(picks))]
                guard = possible[k]
                if guard is None or guard(machine):
                    return k
        able = [k for k in picks if (guard := possible[k]) is None or guard(machine)]
        if not able:
            return -1
        if self._bounds is None:
            return able[int(draw() * len(able))]
        assert self._weights is not None
        bounds = list(itertools.accumulate(self._weights[k] for k in able))
        point = draw() * bounds[-1]
        return next(k for k, bound in zip(able, bounds, strict=True) if point < bound)
