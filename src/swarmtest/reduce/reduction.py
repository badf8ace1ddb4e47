"""Making a test small while it keeps what it is to keep: its fault, coverage, mutants, ...

The subject knows the parts of its tests and proposes; here each proposal is run, in another process
because the fault may be the end of it. The original is never changed, and what is found is run once
more in a process of its own before it is believed.
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
from swarmtest.reduce.candidate_oracle import Answers, Asker, TimeIsUp, seen_in
from swarmtest.reduce.keep_criteria import Keep, Kept, Keys, Kills, Seen, Watch
from swarmtest.reducer.criteria import size_reduction_rate
from swarmtest.subjects.subject import Subject

if TYPE_CHECKING:
    from swarmtest.coverage.watch import Coverage

_LONGER = 20.0
"""A candidate may take so many times as long as the original; one that hangs costs no more."""

_LONG = 0.05
"""Seconds from which on it pays to run candidates that may not be asked about."""


@dataclass(frozen=True)
class Reduced:
    """What is left of a test.

    >>> Reduced({"steps": []}, Fault("exit", "boom"), 100, 3, runs=42, complete=True).srr
    0.97
    """

    test: Any
    """The smaller test, as JSON data."""
    fault: Fault | None
    """What it shows; None: it passes."""
    before: int
    """The size of the test that was given: its parts."""
    size: int
    """The parts that are left."""
    runs: int
    """How many tests were run on the way."""
    complete: bool
    """Whether nothing more can go; False when the time was up before that was known."""
    seconds: float = 0.0
    interrupted: bool = False
    """Whether the user wanted no more."""

    @property
    def srr(self) -> float:
        """The size reduction rate: the share of the parts that are gone (dissertation, 3.4.1)."""
        return size_reduction_rate(self.before, self.size)


def reduce_test(
    subject: Subject,
    test: Any,
    keep: str | Keep,
    *,
    coverage: Coverage | None = None,
    kills: Kills | None = None,
    seconds: float = 10.0,
    budget: float = 60.0,
    workers: int | None = None,
    on_run: Callable[[int, int], None] | None = None,
    answers: Answers | None = None,
) -> Reduced:
    """The smallest test found that still keeps what it is to keep; a text is a fault's id.

    `coverage` sees what tests hit; it was installed before the subject was loaded. `kills` tells
    whether `keep.mutants` are killed; unless given, they are mutants of loaded Python files.
    `seconds`: what one run may take. `budget`: what all may take together; then the smallest test
    so far is the answer. `workers`: how many runs at a time; unless given, one for each processor
    if the test takes long enough for that to pay. `on_run`: told after each question how
    many runs there were and the size so far. `answers`: what is known from before; it grows, and
    with it a reduction that was stopped goes on where it was.

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
    if isinstance(keep, str):
        keep = Keep(fault=keep)
    if not callable(getattr(subject, "reduced", None)):
        raise UserError(f"{subject.name} does not know the parts of its tests (no `reduced`)")
    begun = time.monotonic()
    watch = Watch(subject, coverage)
    if kills is None and keep.mutants:
        from swarmtest.mutate.killing import kills_of

        kills = kills_of(subject, keep.mutants, seconds)
    original = _original(watch, subject, test, keep, seconds)
    kept = _kept(watch, subject, original, keep, kills, seconds)
    known: Answers = {} if answers is None else answers
    search = _Search(subject, test, keep, kept, original, on_run)
    asker = functools.partial(
        Asker,
        kept.look,
        kept.holds,
        seconds=_limit(original, seconds, keep),
        runs=keep.runs,
        workers=_workers(original) if workers is None else workers,
        known=known,
    )
    # Mutants leave other things behind in a process than tests do; and what shows now and then
    # cannot be confirmed by one run.
    alone = bool(keep.mutants) or keep.runs != (1, 1)
    if not search.run(asker, budget, alone=alone):
        known.clear()
        search.run(asker, budget, alone=True)
    smallest, fault = search.told_again(seconds)
    return Reduced(
        smallest,
        fault,
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
    """What comes of a test in a process of its own, and the keys of the targets that it hits.

    If it ends its process, what it hits is not known, and said to be nothing.
    """
    original = _observed(Watch(subject, coverage), test, seconds)
    return original.result, original.keys


@dataclass(frozen=True)
class _Original:
    result: Result
    keys: Keys
    seconds: float


def _observed(watch: Watch, test: Any, seconds: float) -> _Original:
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


def _original(watch: Watch, subject: Subject, test: Any, keep: Keep, seconds: float) -> _Original:
    """What the test does before it is reduced."""
    if keep.is_command_alone:
        return _Original(Result(Verdict.PASSED), frozenset(), seconds)
    for _ in range(keep.runs[1]):
        original = _observed(watch, test, seconds)
        if original.result.verdict == Verdict.INVALID:
            raise UserError(f"the test is invalid: {original.result.missing}")
        fault = original.result.fault
        if keep.fault is None or (fault is not None and fault.id == keep.fault):
            return original
    shown = f"fault {fault.id}: {fault.signature}" if fault else "a pass"
    times = "" if keep.runs[1] == 1 else f" {keep.runs[1]} times"
    raise UserError(
        f"the test does not show fault {keep.fault} when it is run again{times}, but {shown}: "
        "what does not happen every time needs more runs (--runs 2/10), or cannot be reduced"
    )


def _kept(
    watch: Watch,
    subject: Subject,
    original: _Original,
    keep: Keep,
    kills: Kills | None,
    seconds: float,
) -> Kept:
    wanted, share = keep.targets, keep.share
    if keep.coverage is not None:
        wanted, share = wanted | original.keys, keep.coverage
    if keep.needs_coverage and not original.keys:
        why = original.result.missing or "nothing that it reaches is watched"
        raise UserError(f"the test hits no target, so there is no coverage to keep: {why}")
    # 0.07 * 100 is more than 7 in floating point: nobody means eight of them.
    needed = math.ceil(round(share * len(wanted), 9)) if keep.needs_coverage else 0
    fault = keep.fault or (original.result.fault.id if original.result.fault else None)

    def ends(shown: Fault | None) -> bool:
        return (shown.id if shown else None) == fault

    return Kept(watch, keep, ends, wanted, needed, kills, (subject, seconds))


def _limit(original: _Original, seconds: float, keep: Keep) -> float:
    fault = original.result.fault
    if fault is not None and fault.kind == "timeout":
        return seconds
    return min(seconds, 1.0 + _LONGER * original.seconds) + 10.0 * len(keep.mutants)


def _workers(original: _Original) -> int:
    return (os.cpu_count() or 1) if original.seconds > _LONG else 1


def _check_original(asker: Asker, kept: Kept, original: _Original, test: Any, keep: Keep) -> None:
    """The original meets the criterion itself, or there is nothing to keep."""
    only_fault = not (keep.needs_coverage or keep.mutants or keep.command)
    if only_fault and keep.runs == (1, 1):
        return  # it was seen a moment ago
    met = 0
    why = ""
    for _ in range(keep.runs[1]):
        run = asker.start(test)
        wait_for_any([run])
        seen: Seen = seen_in(run)
        met += kept.holds(seen)
        why = why if kept.holds(seen) else kept.why_not(seen)
        if met >= keep.runs[0]:
            return
    times = f" in {met} of {keep.runs[1]} runs, {keep.runs[0]} are needed" if met else ""
    raise UserError(f"the test itself does not keep what it is to keep{times}: {why}")


@dataclass
class _Search:
    """For the smallest test: the last that was interesting."""

    subject: Subject
    test: Any
    keep: Keep
    kept: Kept
    original: _Original
    on_run: Callable[[int, int], None] | None
    runs: int = 0
    complete: bool = True
    interrupted: bool = False

    def run(self, make_asker: Callable[..., Asker], budget: float, *, alone: bool) -> bool:
        """Look for it; False: what was found is not so in a process of its own."""
        before = self.runs
        self.complete = True
        self._forget()

        def note(test: Any, interesting: bool) -> None:
            if interesting:
                self.smallest = test
            self.runs = before + asker.runs
            if self.on_run is not None:
                self.on_run(self.runs, self.subject.size(self.smallest))

        deadline = time.monotonic() + budget
        asker = make_asker(deadline=deadline, alone=alone, on_answer=note)
        try:
            self._look(asker)
            believed = self.smallest == self.test or self._is_confirmed(asker)
        finally:
            asker.close()
            self.runs = before + asker.runs
        seen = asker.shown(self.smallest)
        if not believed:
            self._forget()
        elif seen is not None:
            self.fault = seen.fault
        return believed or self.interrupted

    def _is_confirmed(self, asker: Asker) -> bool:
        try:
            return asker.confirms(self.smallest)
        except KeyboardInterrupt:
            self.complete, self.interrupted = False, True
            return False

    def told_again(self, seconds: float) -> tuple[Any, Fault | None]:
        """The test as a new run tells it, unless the user wants no more."""
        try:
            return _told_again(self.subject, self.smallest, self.fault, seconds)
        except KeyboardInterrupt:
            self.interrupted = True
            return self.smallest, self.fault

    def _forget(self) -> None:
        self.smallest, self.fault = self.test, self.original.result.fault

    def _look(self, asker: Asker) -> None:
        try:
            _check_original(asker, self.kept, self.original, self.test, self.keep)
            found = self.subject.reduced(self.test, asker)
            if found != self.smallest:
                asker(found)
        except TimeIsUp:
            self.complete = False
        except KeyboardInterrupt:
            self.complete, self.interrupted = False, True


def _told_again(
    subject: Subject, test: Any, fault: Fault | None, seconds: float
) -> tuple[Any, Fault | None]:
    """The test as a new run tells it: which steps raise an expected exception may have changed."""
    if not hasattr(subject, "told_again"):
        return test, fault
    result = run_isolated(lambda: subject.told_again(test), seconds, quiet=True)
    same = (result.fault.id if result.fault else None) == (fault.id if fault else None)
    return (result.test, result.fault) if same and result.test is not None else (test, fault)
