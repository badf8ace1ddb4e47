"""Progress of a running campaign: a live line, plain lines for CI, or JSON for programs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any, Protocol

from swarmtest.campaign.budget import Budget, Progress
from swarmtest.campaign.reduced_faults import FaultReductionProgress
from swarmtest.core.formatting import rough_duration
from swarmtest.store.fault_lives import FaultLife
from swarmtest.store.records import FaultRecord, ReductionRecord
from swarmtest.ui.terminal.fault_lives import announce
from swarmtest.ui.terminal.output import show_status, unescaped
from swarmtest.ui.terminal.reduced_tests import reducing_line, reduction_data
from swarmtest.ui.terminal.text import one_line

if TYPE_CHECKING:
    from rich.console import Console


_MOST_ANNOUNCED = 20
"""New faults that are named while a campaign runs, before the others are only counted."""


class ProgressView(Protocol):
    """A view that shows the progress of a campaign."""

    before: Mapping[str, FaultLife] | None
    """The lives of the subject's faults before the campaign; None: do not say which are new."""

    def update(self, progress: Progress, new_faults: list[FaultRecord]) -> None:
        """Show progress; called a few times per second, and at once when a new fault appears."""

    def reducing(self, progress: FaultReductionProgress, part: str) -> None:
        """Show the progress of reduction; called after each run of a candidate."""

    def reduced(self, reduction: ReductionRecord) -> None:
        """Show a reduction; called when a fault has been reduced."""

    def end(self) -> None:
        """Stop showing progress; called when the campaign ends, and when its faults are reduced."""


class QuietView:
    """A view that shows nothing."""

    before: Mapping[str, FaultLife] | None = None

    def update(self, progress: Progress, new_faults: list[FaultRecord]) -> None:
        """Show nothing."""

    def reducing(self, progress: FaultReductionProgress, part: str) -> None:
        """Show nothing."""

    def reduced(self, reduction: ReductionRecord) -> None:
        """Show nothing."""

    def end(self) -> None:
        """Show nothing."""


class _Announced:
    """Counts the faults that were announced, so that not thousands of them are."""

    def __init__(self) -> None:
        self._count = 0

    def next(self, new: list[FaultRecord]) -> tuple[list[FaultRecord], str]:
        """Return which faults to name, and a note when no others will be."""
        named = new[: max(0, _MOST_ANNOUNCED - self._count)]
        stops = self._count <= _MOST_ANNOUNCED < self._count + len(new)
        self._count += len(new)
        return named, "more new faults are counted, not named" if stops else ""


class PlainLines:
    """A view that prints a line per new fault and one every ten seconds, for logs and CI.

    >>> PlainLines(Budget(tests=10), sys.stdout).update(Progress(tests=5, wall_seconds=2.0), [])
    """

    def __init__(self, budget: Budget, out: IO[str], every: float = 10.0) -> None:
        self.before: Mapping[str, FaultLife] | None = None
        self._announced = _Announced()
        self._budget = budget
        self._out = out
        self._every = every
        self._reducing = False
        self._troubled = False
        self._shown = time.monotonic()

    def update(self, progress: Progress, new_faults: list[FaultRecord]) -> None:
        """Print new faults, and a summary now and then or when trouble begins."""
        named, note = self._announced.next(new_faults)
        for fault in named:
            print(announce(fault, self.before), file=self._out, flush=True)
        if note:
            print(note, file=self._out, flush=True)
        is_new_trouble = bool(progress.condition) and not self._troubled
        self._troubled = bool(progress.condition)
        if is_new_trouble or time.monotonic() - self._shown >= self._every:
            self._shown = time.monotonic()
            print(summary_line(progress, self._budget), file=self._out, flush=True)

    def reducing(self, progress: FaultReductionProgress, part: str) -> None:
        """Print the progress of reduction if it takes long."""
        if not self._reducing:
            self._reducing = True
            self._shown = time.monotonic()
        if time.monotonic() - self._shown >= self._every:
            self._shown = time.monotonic()
            print(reducing_line(progress, part), file=self._out, flush=True)

    def reduced(self, reduction: ReductionRecord) -> None:
        """Print nothing: the report has it."""

    def end(self) -> None:
        """Print nothing: the report follows."""


class JsonLines:
    """A view that prints JSON lines: ``fault``, ``progress``, ``reducing`` and ``reduced``."""

    def __init__(self, out: IO[str], every: float = 1.0) -> None:
        self.before: Mapping[str, FaultLife] | None = None
        self._out = out
        self._every = every
        self._shown = time.monotonic()

    def update(self, progress: Progress, new_faults: list[FaultRecord]) -> None:
        """Print new faults, and the progress now and then."""
        for fault in new_faults:
            shown = {"id": fault.id, "kind": fault.kind, "signature": fault.signature}
            if self.before is not None:
                life = self.before.get(fault.id)
                shown["state_before"] = life.state if life else "new"
            self.event("fault", shown)
        if time.monotonic() - self._shown >= self._every:
            self._shown = time.monotonic()
            self.event("progress", vars(progress))

    def reducing(self, progress: FaultReductionProgress, part: str) -> None:
        """Print the progress of reduction now and then."""
        if time.monotonic() - self._shown >= self._every:
            self._shown = time.monotonic()
            self.event("reducing", vars(progress))

    def reduced(self, reduction: ReductionRecord) -> None:
        """Print the reduced test of a fault."""
        self.event("reduced", reduction_data(reduction))

    def event(self, kind: str, fields: dict[str, Any]) -> None:
        """Print one event."""
        print(json.dumps({"event": kind} | fields), file=self._out, flush=True)

    def end(self) -> None:
        """Print nothing: the caller prints the ``end`` event."""


class LiveLine:
    """A view that updates one line in place, and prints new faults above it."""

    def __init__(self, budget: Budget, console: Console) -> None:
        self.before: Mapping[str, FaultLife] | None = None
        self._budget = budget
        self._announced = _Announced()
        self._console = console
        self._status = console.status("starting workers")
        self._status.start()
        self._reducing = False

    def update(self, progress: Progress, new_faults: list[FaultRecord]) -> None:
        """Print new faults, and update the line."""
        from rich.markup import escape

        named, note = self._announced.next(new_faults)
        for fault in named:
            shown = announce(fault, self.before)
            colour = "bold" if shown.word == "known fault" else "bold red"
            self._console.print(
                f"[{colour}]{shown.word}[/] [bold]{escape(one_line(fault.id))}[/]{shown.more}: "
                f"{escape(one_line(fault.signature))}"
            )
        if note:
            self._console.print(note)
        self._status.update(escape(one_line(summary_line(progress, self._budget))))

    def reducing(self, progress: FaultReductionProgress, part: str) -> None:
        """Update the line directly.

        The status of rich has a thread, and processes are forked during reduction.
        """
        self._reducing = True
        show_status(reducing_line(progress, part), self._console.file)

    def reduced(self, reduction: ReductionRecord) -> None:
        """Print nothing: the report has it."""

    def end(self) -> None:
        """Remove the line."""
        self._status.stop()
        if self._reducing:
            self._reducing = False
            show_status("", self._console.file)


def summary_line(progress: Progress, budget: Budget) -> str:
    """Return a line with tests, rate, faults, targets and time left.

    >>> summary_line(Progress(tests=500, wall_seconds=2.0, faults=1), Budget(tests=1000))
    '500 tests, 250/s, 1 fault, 2 s left'
    """
    rate = progress.tests / progress.wall_seconds if progress.wall_seconds else 0.0
    words = [f"{progress.tests:,} tests", f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"]
    if progress.workers:
        words.append(f"{progress.workers} worker{'s' * (progress.workers != 1)}")
    words.append(f"{progress.faults} fault{'s' * (progress.faults != 1)}")
    if progress.targets:
        words.append(f"{progress.targets} targets")
    left = seconds_left(progress, budget, rate)
    if left is not None:
        words.append(f"{rough_duration(left)} left")
    if progress.condition:
        words.append(progress.condition)
    return ", ".join(words)


def seconds_left(progress: Progress, budget: Budget, rate: float) -> float | None:
    """Return the time until the first limit that can be predicted; None if there is none."""
    estimates = []
    if budget.tests is not None and rate:
        estimates.append((budget.tests - progress.tests) / rate)
    if budget.wall_seconds is not None:
        estimates.append(budget.wall_seconds - progress.wall_seconds)
    if budget.cpu_seconds is not None and progress.cpu_seconds:
        wall_per_cpu = progress.wall_seconds / progress.cpu_seconds
        estimates.append((budget.cpu_seconds - progress.cpu_seconds) * wall_per_cpu)
    return max(0.0, min(estimates)) if estimates else None


def view_for(
    budget: Budget,
    *,
    quiet: bool,
    as_json: bool,
    workers: int | None,
) -> ProgressView:
    """Return the view that suits the output.

    Without workers there is no live line, which would disturb a debugger.
    """
    if as_json:
        return JsonLines(sys.stdout)
    if quiet:
        return QuietView()
    if sys.stdout.isatty() and workers != 0:
        from rich.console import Console

        return LiveLine(budget, Console(file=unescaped(sys.stdout)))
    return PlainLines(budget, sys.stdout)
