"""Making a failing test small: it keeps its fault, that is the same signature, not merely "fails".

The subject knows the parts of its tests and proposes; here each proposal is run, in a process of
its own because the fault may be the end of it.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from swarmtest.campaign.isolated import run_isolated
from swarmtest.errors import UserError
from swarmtest.result import Fault
from swarmtest.subjects.subject import Subject


@dataclass(frozen=True)
class Reduced:
    """What is left of a test.

    >>> Reduced({"steps": []}, Fault("exit", "boom"), 100, 3, runs=42, complete=True).size
    3
    """

    test: Any
    """The smaller test, as JSON data."""
    fault: Fault
    """What it shows."""
    before: int
    """The size of the test that was given: its parts."""
    size: int
    """The parts that are left."""
    runs: int
    """How many tests were run on the way."""
    complete: bool
    """Whether nothing more can go; False when the time was up before that was known."""


class _TimeIsUp(Exception):
    """The budget is spent: what was found so far is the answer."""


def reduce_test(
    subject: Subject,
    test: Any,
    fault: str,
    *,
    seconds: float = 10.0,
    budget: float = 60.0,
    on_run: Callable[[int, int], None] | None = None,
) -> Reduced:
    """The smallest test found that still shows `fault` (a fault's id).

    `seconds`: what one run may take. `budget`: what all may take together; then the smallest test
    so far is the answer. `on_run`: told after each run how many there were and the size so far.

    >>> from swarmtest import Machine, MachineSubject, action
    >>> class Counter(Machine):
    ...     def start(self): self.n = 0
    ...     @action
    ...     def up(self): self.n += 1; assert self.n < 3
    ...     @action
    ...     def look(self): pass
    >>> subject = MachineSubject(Counter)
    >>> result = subject.execute(subject.space.default(), seed=1)
    >>> reduced = reduce_test(subject, result.test, result.fault.id)
    >>> result.steps, reduced.size
    (5, 3)
    """
    first = run_isolated(lambda: subject.replay(test), seconds, quiet=True).fault
    if first is None or first.id != fault:
        shown = f"fault {first.id}: {first.signature}" if first else "a pass"
        raise UserError(
            f"the test does not show fault {fault} when it is run again, but {shown}: "
            "what does not happen every time cannot be reduced"
        )
    runner = _Runner(subject, test, first, seconds, time.monotonic() + budget, on_run)
    complete = True
    try:
        found = subject.reduced(test, runner.shows_the_fault)
        if found != runner.smallest and runner.shows_the_fault(found):
            runner.smallest = found
    except _TimeIsUp:
        complete = False
    before, size = subject.size(test), subject.size(runner.smallest)
    return Reduced(runner.smallest, runner.fault, before, size, runner.runs, complete)


class _Runner:
    """Runs candidates, remembers what came of each, and the last that showed the fault."""

    def __init__(
        self,
        subject: Subject,
        test: Any,
        fault: Fault,
        seconds: float,
        deadline: float,
        on_run: Callable[[int, int], None] | None,
    ) -> None:
        self._subject = subject
        self._seconds = seconds
        self._deadline = deadline
        self._on_run = on_run
        self._known: dict[str, bool] = {}
        self.smallest = test
        self.fault = fault
        self.runs = 0

    def shows_the_fault(self, candidate: Any) -> bool:
        key = json.dumps(candidate, sort_keys=True)
        if key not in self._known:
            if time.monotonic() > self._deadline:
                raise _TimeIsUp
            self._known[key] = self._run(candidate)
        return self._known[key]

    def _run(self, candidate: Any) -> bool:
        replay = functools.partial(self._subject.replay, candidate)
        fault = run_isolated(replay, self._seconds, quiet=True).fault
        self.runs += 1
        shows = fault is not None and fault.id == self.fault.id
        if fault is not None and shows:
            self.smallest, self.fault = candidate, fault
        if self._on_run is not None:
            self._on_run(self.runs, self._subject.size(self.smallest))
        return shows
