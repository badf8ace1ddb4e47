"""Run variants of one failing test, and say what became of its fault.

Variants run in a process that stands ready (`fork_pool`), which is many times faster than a process
for each. A program that keeps state between tests may answer differently there, so the test itself
is run alone and after other tests first (`check`). If the fault shows only in fresh processes, each
variant gets its own; if it shows only sometimes, each variant runs several times, and the fault
counts if it shows once.

What a variant showed is remembered: asking again costs nothing. The number of runs and the CPU time
are limited (`VariantBudget`).
"""

from __future__ import annotations

import enum
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault, Verdict
from swarmtest.core.signatures import SignatureParts, is_older_form
from swarmtest.processes.fork_pool import ForkPool, IsolatedRun, PendingAnswer, wait_for_any
from swarmtest.processes.tree import children_cpu_ns
from swarmtest.reduce.candidate_oracle import key_of_test
from swarmtest.subjects.subject import Subject

_CHECKS = 3
"""How often the test itself is run alone, and how often after other tests."""
_FLAKY_RUNS = 4
"""How often a variant of a flaky test is run."""


class VariantOutcome(enum.StrEnum):
    """What became of the fault in a variant of its test."""

    SAME = "same"
    """The same fault."""
    KIN = "kin"
    """A failure of the same type at the same place, with another message."""
    OTHER = "other fault"
    BLOCKED = "blocked"
    """A step of the test could not run: its guard was false, or a value was missing."""
    GONE = "gone"
    """All steps ran, and the test passed. Only this is evidence against a variant."""

    @property
    def is_kept(self) -> bool:
        """Whether the fault still shows."""
        return self in (VariantOutcome.SAME, VariantOutcome.KIN)


@dataclass(frozen=True)
class VariantBudget:
    """How much the experiments on one fault may cost.

    >>> VariantBudget().runs
    1200
    """

    runs: int = 1200
    cpu_seconds: float = 5.0
    wall_seconds: float = math.inf
    """For programs that wait; the results then depend on how busy the machine is."""

    def __post_init__(self) -> None:
        if self.runs < 1 or self.cpu_seconds <= 0:
            raise UserError(
                f"experiments need at least 1 run and some CPU time, not {self.runs} runs and "
                f"{self.cpu_seconds:g} s"
            )


class BudgetSpent(Exception):
    """The runs or the CPU time of the current experiments are used up."""


@dataclass(frozen=True)
class _Seen:
    """What one run of a variant showed."""

    fault: Fault | None
    invalid: bool = False
    used: tuple[int, ...] = ()
    skipped: int = 0
    cpu_seconds: float = 0.0
    missing: str = ""
    """What the subject could not do or measure, such as a switch that could not be made."""


class VariantRuns:
    """Runs variants of a test that shows `fault`; use it as a context manager.

    With `alone`, every run has a process of its own.

    >>> from swarmtest import Machine, action
    >>> from swarmtest.subjects import MachineSubject
    >>> class Counter(Machine):
    ...     def start(self): self.n = 0
    ...     @action
    ...     def up(self): self.n += 1; assert self.n < 2
    >>> subject = MachineSubject(Counter)
    >>> failed = subject.execute(subject.space.default(), seed=1)
    >>> with VariantRuns(subject, failed.fault) as variants:
    ...     variants.outcome(failed.test), variants.outcome(subject.with_parts(failed.test, []))
    (<VariantOutcome.SAME: 'same'>, <VariantOutcome.GONE: 'gone'>)
    """

    def __init__(
        self,
        subject: Subject,
        fault: Fault,
        budget: VariantBudget | None = None,
        seconds: float = 10.0,
        *,
        alone: bool = False,
    ) -> None:
        self._subject = subject
        self._fault = fault
        self.budget = budget or VariantBudget()
        self._seconds = seconds
        self._pool = None if alone else ForkPool(self._observe, seconds)
        self._known: dict[str, list[_Seen]] = {}
        self._repeats = 1
        self._most_runs = self.budget.runs
        self._deadline = time.monotonic() + self.budget.wall_seconds
        self._own_cpu = time.process_time()
        self._others_cpu = 0.0
        self.runs = 0
        """How many runs were started."""
        self.was_cut_short = False
        self.shown = 0
        self.checks = 0
        """In how many of the first runs of the test (`checks`) the fault was `shown`."""

    def __enter__(self) -> VariantRuns:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._pool is not None:
            self._pool.close()

    @property
    def cpu_seconds(self) -> float:
        """The CPU time so far, of this process and of those that ran variants."""
        return time.process_time() - self._own_cpu + self._others_cpu

    @property
    def is_flaky(self) -> bool:
        """Whether the test itself shows the fault only sometimes."""
        return self._repeats > 1

    @property
    def is_alone(self) -> bool:
        """Whether every variant runs in a process of its own."""
        return self._pool is None

    @property
    def is_spent(self) -> bool:
        """Whether the whole budget is used up."""
        return (
            self.runs >= self.budget.runs
            or self.cpu_seconds >= self.budget.cpu_seconds
            or time.monotonic() > self._deadline
        )

    def check(self, test: Any, other: Any) -> None:
        """Run the test alone and after `other`; raise `UserError` if it never shows its fault."""
        alone = [self._shows(self._alone(test)) for _ in range(_CHECKS)]
        after = []
        for _ in range(_CHECKS):
            self._ready(other)
            after.append(self._shows(self._ready(test)))
        self.checks, self.shown = 2 * _CHECKS, sum(alone) + sum(after)
        if not self.shown:
            raise UserError(
                f"the test does not show fault {self._fault.id} in {self.checks} runs: it is "
                "flaky, or the program has changed"
            )
        if all(alone) and not all(after):
            self._close_pool()  # state that tests leave behind changes the outcome
        elif not all(alone):
            self._repeats = _FLAKY_RUNS
            self._close_pool()
        self._known.clear()

    @contextmanager
    def limited(self, runs: int) -> Iterator[None]:
        """Allow at most so many more runs within the block; then end the block.

        `was_cut_short` tells afterwards whether it ended in this way.
        """
        before = self._most_runs
        self._most_runs = min(before, self.runs + max(runs, 0))
        self.was_cut_short = False
        try:
            yield
        except BudgetSpent:
            self.was_cut_short = True
        finally:
            self._most_runs = before

    def outcome(self, test: Any, needed: Mapping[str, int] | None = None) -> VariantOutcome:
        """Run a variant; `needed` says how often features have to run for it to be evidence."""
        key = key_of_test(test)
        seen = self._known.get(key)
        if seen is None:
            seen = self._known[key] = self._run(test)
        outcomes = [self._judge(run, needed or {}) for run in seen]
        return min(outcomes, key=_STRONGEST.index)

    def fails_alike(self, test: Any) -> bool:
        """Return whether a variant that was run ended with a fault of the same kind and type."""
        kind, name = self._fault.kind, _type_and_frames(self._fault)[0]
        faults = [run.fault for run in self._known[key_of_test(test)] if run.fault is not None]
        return any((fault.kind, _type_and_frames(fault)[0]) == (kind, name) for fault in faults)

    def was_followed(self, test: Any) -> bool:
        """Return whether a variant that was run could do all that the test says."""
        return not any(run.missing for run in self._known[key_of_test(test)])

    def _run(self, test: Any) -> list[_Seen]:
        if self.runs >= self._most_runs or self.is_spent:
            raise BudgetSpent
        seen = []
        for _ in range(self._repeats):
            seen.append(self._ready(test))
            if self._shows(seen[-1]):
                break
        return seen

    def _shows(self, seen: _Seen) -> bool:
        fault = seen.fault
        if fault is None or fault.kind != self._fault.kind:
            return False
        return fault == self._fault or is_older_form(self._fault.signature, fault.signature)

    def _judge(self, seen: _Seen, needed: Mapping[str, int]) -> VariantOutcome:
        if seen.fault is not None:
            if self._shows(seen):
                return VariantOutcome.SAME
            kin = is_kin(seen.fault, self._fault, harness_name(self._subject))
            return VariantOutcome.KIN if kin else VariantOutcome.OTHER
        if seen.invalid:
            return VariantOutcome.BLOCKED
        used = Counter(dict(zip(self._subject.space.feature_names, seen.used, strict=False)))
        if seen.skipped and any(used[name] < count for name, count in needed.items()):
            return VariantOutcome.BLOCKED
        return VariantOutcome.GONE

    def _ready(self, test: Any) -> _Seen:
        """Run a test in a process that stands ready, or alone if there is none."""
        if self._pool is None:
            return self._alone(test)
        return self._finish(self._pool.ask(test))

    def _alone(self, test: Any) -> _Seen:
        return self._finish(IsolatedRun(lambda: self._observe(test), self._seconds, quiet=True))

    def _finish(self, run: PendingAnswer[_Seen]) -> _Seen:
        self.runs += 1
        begun = time.monotonic()
        try:
            wait_for_any([run])
        finally:
            run.end()
        outcome = run.outcome()
        if isinstance(outcome, Fault):  # the test ended its process, which took its time with it
            self._others_cpu += time.monotonic() - begun
            return _Seen(outcome)
        self._others_cpu += outcome.cpu_seconds
        return outcome

    def _observe(self, test: Any) -> _Seen:
        """Run a test in this process."""
        begun, children = time.process_time(), children_cpu_ns()
        self._subject.interruptible = False
        result = self._subject.replay(test)
        elsewhere = max(result.cpu_seconds, (children_cpu_ns() - children) / 1e9)
        spent = time.process_time() - begun + elsewhere
        fault = result.fault and Fault(result.fault.kind, result.fault.signature)
        invalid = result.verdict is Verdict.INVALID
        return _Seen(fault, invalid, result.used, result.skipped, spent, result.missing)

    def _close_pool(self) -> None:
        if self._pool is not None:
            self._pool.close()
            self._pool = None


_STRONGEST = (
    VariantOutcome.SAME,
    VariantOutcome.KIN,
    VariantOutcome.OTHER,
    VariantOutcome.GONE,
    VariantOutcome.BLOCKED,
)
"""Of several runs of a variant, the outcome that comes first here counts."""


def is_kin(first: Fault, second: Fault, harness: str = "") -> bool:
    """Return whether two faults have the same kind and type, and the same innermost place.

    The message may differ, and so may the callers. If the place is a check in the harness, the
    class `harness`, then the callers must be the same: many bugs end in the same check.

    >>> is_kin(Fault("exception", "KeyError: # [a < b]"), Fault("exception", "KeyError: x [a < c]"))
    True
    >>> is_kin(Fault("exception", "KeyError: # [a]"), Fault("exception", "ValueError: # [a]"))
    False
    """
    if first.kind != second.kind or _type_and_frames(first)[0] != _type_and_frames(second)[0]:
        return False
    frames, others = _type_and_frames(first)[1], _type_and_frames(second)[1]
    if harness and any(places[:1] and places[0].startswith(harness) for places in (frames, others)):
        return frames == others
    return frames[:1] == others[:1]


def harness_name(subject: Subject) -> str:
    """Return the name of the class that drives the program; empty if there is none."""
    machine = getattr(subject, "machine", None)
    return f"{machine.__qualname__}." if isinstance(machine, type) else ""


def _type_and_frames(fault: Fault) -> tuple[str, list[str]]:
    """Return the type of a fault and its frames, the innermost first; then what it was doing."""
    parts = SignatureParts.of(fault.signature)
    operation = [parts.label + parts.operation] if parts.label or parts.operation else []
    return parts.type, [*parts.functions, *operation]
