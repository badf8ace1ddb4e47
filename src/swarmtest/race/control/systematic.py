"""Systematic search: all schedules of a program with at most so many preemptions.

A preemption stops a thread that could continue. Where a thread waits or ends, which thread is next
is a decision, too, but no preemption. A run follows a few deviations from the plain schedule, in
which a thread continues as long as it can and the thread that was started first is next; it reports
each decision it came to. Each deviation at a later decision is another schedule, so every schedule
is run once. Schedules with fewer preemptions come first, since few are enough for most faults.

Musuvathi, Qadeer: "Iterative context bounding for systematic testing of multithreaded programs",
PLDI 2007.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from swarmtest.race.control.schedulers import ThreadScheduler
from swarmtest.race.control.tasks import ThreadTask

Outcome = TypeVar("Outcome")
Deviations = tuple[tuple[int, int], ...]
"""The numbers of decisions, in order, each with the thread chosen there in place of the first."""


@dataclass(frozen=True)
class Decision:
    """A decision of a run: which of several threads that are able to run is next."""

    threads: int
    """How many threads were able to run; number 0 is the one that the plain schedule chooses."""
    forced: bool
    """Whether the running thread could not continue."""


class SystematicScheduler(ThreadScheduler):
    """The plain schedule with some deviations; it notes the decisions of the run."""

    def __init__(self, deviations: Iterable[tuple[int, int]] = ()) -> None:
        self._deviations = dict(deviations)
        self.decisions: list[Decision] = []

    def choose(self, running: ThreadTask, able: Sequence[ThreadTask], step: int) -> ThreadTask:
        """Return the running thread, or the one that a deviation names."""
        return self._decide(able, able.index(running), False)

    def choose_next(self, running: ThreadTask, able: Sequence[ThreadTask], step: int) -> ThreadTask:
        """Return the thread that was started first, or the one that a deviation names."""
        return self._decide(able, 0, True)

    def _decide(self, able: Sequence[ThreadTask], usual: int, forced: bool) -> ThreadTask:
        chosen = self._deviations.get(len(self.decisions), 0)
        self.decisions.append(Decision(len(able), forced))
        return able[(usual + chosen) % len(able)]


@dataclass(frozen=True)
class Searched(Generic[Outcome]):
    """What a systematic search has found."""

    found: Outcome | None
    """The outcome of the first schedule that fails; None if none does."""
    runs: int
    complete: int
    """With at most so many preemptions, all schedules were run; -1 if not even those without."""
    preemptions: int
    """The number of preemptions of the schedules that were run last."""


def search_schedules(
    run: Callable[[Deviations], tuple[Outcome, Sequence[Decision]]],
    fails: Callable[[Outcome], bool],
    most_preemptions: int,
    is_over: Callable[[int], bool] = lambda runs: False,
) -> Searched[Outcome]:
    """Run all schedules with at most `most_preemptions`, until one fails or the time is over.

    `is_over` gets the number of runs.

    >>> def run(deviations):
    ...     return deviations, [Decision(2, forced=False)] * 3
    >>> search_schedules(run, lambda chosen: False, most_preemptions=2).runs  # 1 + 3 + 3
    7
    """
    runs = 0
    waiting: Iterator[Deviations] = iter([()])
    for preemptions in range(most_preemptions + 1):
        reached: list[tuple[Deviations, Sequence[Decision]]] = []
        stack = [waiting]
        while stack:
            deviations = next(stack[-1], None)
            if deviations is None:
                stack.pop()
                continue
            if is_over(runs):
                return Searched(None, runs, preemptions - 1, preemptions)
            outcome, decisions = run(deviations)
            runs += 1
            if fails(outcome):
                return Searched(outcome, runs, preemptions - 1, preemptions)
            stack.append(_later(deviations, decisions, forced=True))
            if preemptions < most_preemptions:
                reached.append((deviations, decisions))
        waiting = (each for known in reached for each in _later(*known, forced=False))
    return Searched(None, runs, most_preemptions, most_preemptions)


def _later(
    deviations: Deviations, decisions: Sequence[Decision], forced: bool
) -> Iterator[Deviations]:
    """Yield the schedules with one more deviation, after all that a schedule has."""
    begin = deviations[-1][0] + 1 if deviations else 0
    for number in range(begin, len(decisions)):
        decision = decisions[number]
        if decision.forced == forced:
            for chosen in range(1, decision.threads):
                yield (*deviations, (number, chosen))
