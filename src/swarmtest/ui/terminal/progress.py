"""How a running campaign shows itself: a live line, plain lines for CI, or JSON for machines."""

from __future__ import annotations

import json
import sys
import time
from typing import IO, TYPE_CHECKING, Any, Protocol

from swarmtest.campaign.budget import Budget, Progress
from swarmtest.campaign.reduced_faults import Reducing
from swarmtest.store.records import FaultRecord, ReductionRecord
from swarmtest.ui.terminal.reduced_tests import reducing_line, reduction_data

if TYPE_CHECKING:
    from rich.console import Console


class ProgressView(Protocol):
    """Something that shows how a campaign goes."""

    def update(self, progress: Progress, new_faults: list[FaultRecord]) -> None:
        """Called a few times per second, and at once when a new fault appears."""

    def reducing(self, progress: Reducing, part: str) -> None:
        """Called after each run that is to make a fault's test small."""

    def reduced(self, reduction: ReductionRecord) -> None:
        """Called when that is done for a fault."""

    def end(self) -> None:
        """Called when the campaign is over, and when its faults are reduced."""


class Quiet:
    """Shows nothing."""

    def update(self, progress: Progress, new_faults: list[FaultRecord]) -> None:
        """Nothing."""

    def reducing(self, progress: Reducing, part: str) -> None:
        """Nothing."""

    def reduced(self, reduction: ReductionRecord) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


class PlainLines:
    """A line per new fault and one every ten seconds: for logs and CI.

    >>> PlainLines(Budget(tests=10), sys.stdout).update(Progress(tests=5, wall_seconds=2.0), [])
    """

    def __init__(
        self, budget: Budget, out: IO[str], every: float = 10.0, word: str = "new fault"
    ) -> None:
        self._budget = budget
        self._out = out
        self._every = every
        self._reducing = False
        self._troubled = False
        self._word = word
        self._shown = time.monotonic()

    def update(self, progress: Progress, new_faults: list[FaultRecord]) -> None:
        """Print what is new."""
        for fault in new_faults:
            print(f"{self._word} {fault.id}: {fault.signature}", file=self._out, flush=True)
        trouble = bool(progress.condition) and not self._troubled
        self._troubled = bool(progress.condition)
        if trouble or time.monotonic() - self._shown >= self._every:
            self._shown = time.monotonic()
            print(summary_line(progress, self._budget), file=self._out, flush=True)

    def reducing(self, progress: Reducing, part: str) -> None:
        """Print how it goes, if it takes long."""
        if not self._reducing:
            self._reducing = True
            self._shown = time.monotonic()
        if time.monotonic() - self._shown >= self._every:
            self._shown = time.monotonic()
            print(reducing_line(progress, part), file=self._out, flush=True)

    def reduced(self, reduction: ReductionRecord) -> None:
        """Nothing: the report has it."""

    def end(self) -> None:
        """Nothing: the report follows."""


class JsonLines:
    """One JSON object per line: ``fault``, ``progress``, ``reducing`` and ``reduced`` events."""

    def __init__(self, out: IO[str], every: float = 1.0) -> None:
        self._out = out
        self._every = every
        self._shown = time.monotonic()

    def update(self, progress: Progress, new_faults: list[FaultRecord]) -> None:
        """Print what is new."""
        for fault in new_faults:
            self.event("fault", {"id": fault.id, "kind": fault.kind, "signature": fault.signature})
        if time.monotonic() - self._shown >= self._every:
            self._shown = time.monotonic()
            self.event("progress", vars(progress))

    def reducing(self, progress: Reducing, part: str) -> None:
        """Print how it goes, now and then."""
        if time.monotonic() - self._shown >= self._every:
            self._shown = time.monotonic()
            self.event("reducing", vars(progress))

    def reduced(self, reduction: ReductionRecord) -> None:
        """Print what is left of a fault's test."""
        self.event("reduced", reduction_data(reduction))

    def event(self, kind: str, fields: dict[str, Any]) -> None:
        """Print one event."""
        print(json.dumps({"event": kind} | fields), file=self._out, flush=True)

    def end(self) -> None:
        """Nothing: the caller prints the ``end`` event."""


class LiveLine:
    """A line that renews itself, with new faults printed above it."""

    def __init__(self, budget: Budget, console: Console, word: str = "new fault") -> None:
        self._budget = budget
        self._console = console
        self._word = word
        self._status = console.status("starting workers")
        self._status.start()
        self._reducing = False

    def update(self, progress: Progress, new_faults: list[FaultRecord]) -> None:
        """Renew the line."""
        from rich.markup import escape

        for fault in new_faults:
            self._console.print(
                f"[bold red]{self._word}[/] [bold]{fault.id}[/]: {escape(fault.signature)}"
            )
        self._status.update(summary_line(progress, self._budget))

    def reducing(self, progress: Reducing, part: str) -> None:
        """Renew the line, without the thread that a status has: processes are forked meanwhile."""
        self._reducing = True
        self._write(f"\r{reducing_line(progress, part)}\x1b[K")

    def reduced(self, reduction: ReductionRecord) -> None:
        """Nothing: the report has it."""

    def end(self) -> None:
        """Take the line away."""
        self._status.stop()
        if self._reducing:
            self._reducing = False
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        self._console.file.write(text)
        self._console.file.flush()


def summary_line(progress: Progress, budget: Budget) -> str:
    """Tests, rate, faults, targets, time left.

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
        words.append(f"{left:,.0f} s left")
    if progress.condition:
        words.append(progress.condition)
    return ", ".join(words)


def seconds_left(progress: Progress, budget: Budget, rate: float) -> float | None:
    """Until the first limit that can be foretold; None if there is none."""
    found = []
    if budget.tests is not None and rate:
        found.append((budget.tests - progress.tests) / rate)
    if budget.wall_seconds is not None:
        found.append(budget.wall_seconds - progress.wall_seconds)
    if budget.cpu_seconds is not None and progress.cpu_seconds:
        pace = progress.wall_seconds / progress.cpu_seconds
        found.append((budget.cpu_seconds - progress.cpu_seconds) * pace)
    return max(0.0, min(found)) if found else None


def view_for(
    budget: Budget,
    *,
    quiet: bool,
    as_json: bool,
    workers: int | None,
    word: str = "new fault",
) -> ProgressView:
    """The view that fits where the output goes; a debugger (no workers) wants a quiet line.

    `word`: what a fault is called that the campaign had not seen.
    """
    if as_json:
        return JsonLines(sys.stdout)
    if quiet:
        return Quiet()
    if sys.stdout.isatty() and workers != 0:
        from rich.console import Console

        return LiveLine(budget, Console(), word)
    return PlainLines(budget, sys.stdout, word=word)
