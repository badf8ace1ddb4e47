"""Shrink a test while it keeps its fault, its coverage, the mutants it kills, or all of these.

The subject knows the parts of its tests and proposes smaller candidates; this module runs each
candidate, in another process because the fault may end the process. The original test is never
changed, and the result is run once more in a fresh process before it is accepted.
"""

from __future__ import annotations

import functools
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.processes.fork_pool import IsolatedRun, run_isolated, wait_for_any
from swarmtest.reduce.candidate_oracle import Answers, CandidateOracle, TimeIsUp, summary_of
from swarmtest.reduce.keep_criteria import (
    HitObserver,
    Keep,
    KeepCriterion,
    Keys,
    KillCheck,
    RunSummary,
)
from swarmtest.reducer.criteria import size_reduction_rate
from swarmtest.subjects.subject import Subject, named_fault

if TYPE_CHECKING:
    from swarmtest.coverage.watch import Coverage

_SLOWDOWN_ALLOWED = 20.0
"""How many times longer than the original a candidate may take; this bounds the cost of a hang."""

_WORTH_PARALLEL = 0.05
"""The seconds per run above which running candidates speculatively, in parallel, pays."""


@dataclass(frozen=True)
class Reduced:
    """The result of a reduction: the smaller test and how it was found.

    >>> Reduced({"steps": []}, Fault("exit", "boom"), 100, 3, runs=42, complete=True).srr
    0.97
    """

    test: Any
    """The smaller test, as JSON data."""
    fault: Fault | None
    """The fault that it shows; None if it passes."""
    before: int
    """The number of parts of the original test."""
    size: int
    """The number of parts that are left."""
    runs: int
    """How many tests the reduction ran."""
    complete: bool
    """Whether no part can be removed; False if the time ran out before that was known."""
    seconds: float = 0.0
    interrupted: bool = False
    """Whether the user interrupted the reduction."""

    @property
    def srr(self) -> float:
        """The size reduction rate: the share of parts that were removed (dissertation, 3.4.1)."""
        return size_reduction_rate(self.before, self.size)


def reduce_test(
    subject: Subject,
    test: Any,
    keep: str | Keep,
    *,
    coverage: Coverage | None = None,
    kills: KillCheck | None = None,
    seconds: float = 10.0,
    budget: float = 60.0,
    workers: int | None = None,
    on_run: Callable[[int, int], None] | None = None,
    answers: Answers | None = None,
) -> Reduced:
    """Return the smallest test found that meets `keep`; a string `keep` is the id of a fault.

    `coverage` observes what tests hit; it must be installed before the subject is loaded. `kills`
    decides whether `keep.mutants` are killed; by default they are mutants of loaded Python files.
    `seconds` limits one run, and `budget` all runs together; when it is spent, the smallest test so
    far is the result. `workers` is the number of parallel runs; by default one per processor
    if the test takes long enough for that to pay. `on_run` is called after each candidate with the
    number of runs and the smallest size so far. `answers` holds the answers of an earlier
    reduction and is updated in place, so that a reduction that was stopped can be resumed.

    >>> from swarmtest import Machine, action
    >>> from swarmtest.subjects import MachineSubject
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
    if isinstance(keep, str):
        keep = Keep(fault=keep)
    if not callable(getattr(subject, "reduced", None)):
        raise UserError(f"{subject.name} does not know the parts of its tests (no `reduced`)")
    begun = time.monotonic()
    watch = HitObserver(subject, coverage)
    if kills is None and keep.mutants:
        from swarmtest.mutate.killing import kills_of

        kills = kills_of(subject, keep.mutants, seconds)
    original = _original(watch, subject, test, keep, seconds)
    criterion = _criterion(watch, subject, original, keep, kills, seconds)
    known_answers: Answers = {} if answers is None else answers
    search = _ReductionSearch(subject, test, keep, criterion, original, on_run)
    asker = functools.partial(
        CandidateOracle,
        criterion.observe,
        criterion.holds,
        seconds=_limit(original, seconds, keep),
        runs=keep.runs,
        workers=_workers(original) if workers is None else workers,
        known=known_answers,
    )
    # A process that ran mutants is left in another state than one that ran tests, and one run
    # cannot confirm a flaky fault: in both cases every run needs a process of its own.
    alone = bool(keep.mutants) or keep.runs != (1, 1)
    if not search.run(asker, budget, alone=alone):
        # The shared processes gave a wrong answer, so no answer can be trusted: start over.
        known_answers.clear()
        search.run(asker, budget, alone=True)
    smallest, fault = search.rerecorded(seconds)
    return Reduced(
        smallest,
        fault and named_fault(subject, fault),
        subject.size(test),
        subject.size(smallest),
        search.runs,
        search.complete,
        time.monotonic() - begun,
        search.interrupted,
    )


def hits_of(
    subject: Subject, test: Any, coverage: Coverage | None = None, seconds: float = 10.0
) -> tuple[Result, frozenset[int]]:
    """Run a test in its own process; return the result and the keys of the targets that it hits.

    If the test ends its process, its hits are unknown and the set is empty.
    """
    original = _observed(HitObserver(subject, coverage), test, seconds)
    return original.result, original.keys


@dataclass(frozen=True)
class _Original:
    """What the original test did in one run: its result, its hits, and the time it took."""

    result: Result
    keys: Keys
    seconds: float


def _observed(watch: HitObserver, test: Any, seconds: float) -> _Original:
    begun = time.monotonic()
    run = IsolatedRun(lambda: watch.run(test), seconds, quiet=True)
    try:
        wait_for_any([run])
    finally:
        run.end()
    took = time.monotonic() - begun
    outcome = run.outcome()
    if isinstance(outcome, Fault):
        return _Original(Result(Verdict.FAILED, outcome), frozenset(), took)
    return _Original(*outcome, took)


def _original(
    watch: HitObserver, subject: Subject, test: Any, keep: Keep, seconds: float
) -> _Original:
    """Run the original test; raise if it does not show the fault that is to be kept."""
    if keep.is_command_alone:
        return _Original(Result(Verdict.PASSED), frozenset(), seconds)
    for _ in range(keep.runs[1]):
        original = _observed(watch, test, seconds)
        if original.result.verdict == Verdict.INVALID:
            raise UserError(f"the test is invalid: {original.result.missing}")
        fault = original.result.fault and named_fault(subject, original.result.fault)
        if keep.fault is None or (fault is not None and fault.is_called(keep.fault)):
            return original
    shown = f"fault {fault.id}: {fault.signature}" if fault else "a pass"
    times = "" if keep.runs[1] == 1 else f" {keep.runs[1]} times"
    raise UserError(
        f"the test does not show fault {keep.fault} when it is run again{times}, but {shown}: "
        "a flaky fault needs more runs (--runs 2/10), or cannot be reduced"
    )


def _criterion(
    watch: HitObserver,
    subject: Subject,
    original: _Original,
    keep: Keep,
    kills: KillCheck | None,
    seconds: float,
) -> KeepCriterion:
    """Turn the user's `keep` into a criterion for candidates, relative to the original."""
    wanted, share = keep.targets, keep.share
    if keep.coverage is not None:
        wanted, share = wanted | original.keys, keep.coverage
    if keep.needs_coverage and not original.keys:
        why = original.result.missing or "nothing that it reaches is watched"
        raise UserError(f"the test hits no target, so there is no coverage to keep: {why}")
    # 0.07 * 100 is slightly more than 7 in floating point; 7 targets are meant, not 8.
    needed = math.ceil(round(share * len(wanted), 9)) if keep.needs_coverage else 0
    fault = original.result.fault

    def ends(shown: Fault | None) -> bool:
        if shown == fault:
            return True
        # Another identity of the same fault, as the store has it.
        return (
            shown is not None
            and keep.fault is not None
            and named_fault(subject, shown).is_called(keep.fault)
        )

    return KeepCriterion(watch, keep, ends, wanted, needed, kills, (subject, seconds))


def _limit(original: _Original, seconds: float, keep: Keep) -> float:
    """Return the seconds that one run of a candidate may take."""
    fault = original.result.fault
    if fault is not None and fault.kind == "timeout":
        return seconds
    return min(seconds, 1.0 + _SLOWDOWN_ALLOWED * original.seconds) + 10.0 * len(keep.mutants)


def _workers(original: _Original) -> int:
    return (os.cpu_count() or 1) if original.seconds > _WORTH_PARALLEL else 1


def _check_original(
    asker: CandidateOracle, criterion: KeepCriterion, original: _Original, test: Any, keep: Keep
) -> None:
    """Raise if the original does not meet the criterion itself."""
    only_fault = not (keep.needs_coverage or keep.mutants or keep.command)
    if only_fault and keep.runs == (1, 1):
        return  # `_original` has just seen the fault
    met = 0
    why = ""
    for _ in range(keep.runs[1]):
        run = asker.start(test)
        wait_for_any([run])
        seen: RunSummary = summary_of(run)
        met += criterion.holds(seen)
        why = why if criterion.holds(seen) else criterion.why_not(seen)
        if met >= keep.runs[0]:
            return
    times = f" in {met} of {keep.runs[1]} runs, {keep.runs[0]} are needed" if met else ""
    raise UserError(f"the test itself does not meet the criterion{times}: {why}")


@dataclass
class _ReductionSearch:
    """A search for the smallest test; `smallest` is the last candidate that met the criterion."""

    subject: Subject
    test: Any
    keep: Keep
    criterion: KeepCriterion
    original: _Original
    on_run: Callable[[int, int], None] | None
    runs: int = 0
    complete: bool = True
    interrupted: bool = False

    def run(
        self, make_asker: Callable[..., CandidateOracle], budget: float, *, alone: bool
    ) -> bool:
        """Search; return False if a fresh process does not confirm the test that was found."""
        before = self.runs
        self.complete = True
        self._start_over()

        def note(test: Any, interesting: bool) -> None:
            if interesting:
                self.smallest = test
            self.runs = before + asker.runs
            if self.on_run is not None:
                self.on_run(self.runs, self.subject.size(self.smallest))

        deadline = time.monotonic() + budget
        asker = make_asker(deadline=deadline, alone=alone, on_answer=note)
        try:
            self._search(asker)
            confirmed = self.smallest == self.test or self._is_confirmed(asker)
        finally:
            asker.close()
            self.runs = before + asker.runs
        seen = asker.shown(self.smallest)
        if not confirmed:
            self._start_over()
        elif seen is not None:
            self.fault = seen.fault
        return confirmed or self.interrupted

    def _is_confirmed(self, asker: CandidateOracle) -> bool:
        try:
            return asker.confirms(self.smallest)
        except KeyboardInterrupt:
            self.complete, self.interrupted = False, True
            return False

    def rerecorded(self, seconds: float) -> tuple[Any, Fault | None]:
        """Return the smallest test and its fault as a new run records them; Ctrl-C skips this."""
        try:
            return _rerecorded(self.subject, self.smallest, self.fault, seconds)
        except KeyboardInterrupt:
            self.interrupted = True
            return self.smallest, self.fault

    def _start_over(self) -> None:
        self.smallest, self.fault = self.test, self.original.result.fault

    def _search(self, asker: CandidateOracle) -> None:
        try:
            _check_original(asker, self.criterion, self.original, self.test, self.keep)
            reduced = self.subject.reduced(self.test, asker)
            if reduced != self.smallest:
                asker(reduced)
        except TimeIsUp:
            self.complete = False
        except KeyboardInterrupt:
            self.complete, self.interrupted = False, True


def _rerecorded(
    subject: Subject, test: Any, fault: Fault | None, seconds: float
) -> tuple[Any, Fault | None]:
    """Return a test as a new run records it, if the run shows the same fault.

    A test notes which of its steps raise an expected exception; removing steps may change that.
    """
    if not hasattr(subject, "told_again"):
        return test, fault
    result = run_isolated(lambda: subject.told_again(test), seconds, quiet=True)
    same = result.fault == fault
    return (result.test, result.fault) if same and result.test is not None else (test, fault)
