"""Commands that were started from the page: child processes, and what they print.

Invariants: words, never a shell; a session of their own, so that Ctrl-C at the dashboard does not
hit them by accident; when the dashboard ends, they are interrupted as by Ctrl-C, not killed.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from swarmtest.dashboard.commands import Command
from swarmtest.dashboard.live import Live
from swarmtest.errors import UserError

_MOST_LINES = 2_000
_MOST_LETTERS = 2_000
"""Of a line."""
_QUIET = 0.3
"""Seconds between two announcements of what a command prints."""
_GRACE = 10.0
"""Seconds that commands have to end after an interrupt, when the dashboard ends."""
_MOST_JOBS = 8
"""That run at the same time."""
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass
class Job:
    """One command."""

    number: int
    command: Command
    shown: str
    """As a person would type it."""
    process: subprocess.Popen[str]
    started: float = field(default_factory=time.time)
    ended: float | None = None
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=_MOST_LINES))
    printed: int = 0
    """Lines in all; those before `lines` are not kept."""
    stopping: bool = False

    @property
    def status(self) -> str:
        """``running``, ``stopping``, ``done``, or how it ended."""
        code = self.process.returncode
        if self.ended is None or code is None:
            return "stopping" if self.stopping else "running"
        told = {0: "done", 1: "done, faults found", 2: "refused", 130: "interrupted"}
        return told.get(code, f"ended with status {code}")

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.ended is None


class Jobs:
    """All commands of this dashboard."""

    def __init__(self, live: Live, store: Callable[[], tuple[str, str]]) -> None:
        """`store`: the store as a process takes it, and as a person may see it."""
        self._live = live
        self._store = store
        self._jobs: dict[int, Job] = {}
        self._readers: list[threading.Thread] = []
        self._lock = threading.Lock()

    def all(self) -> list[Job]:
        """Newest first."""
        return sorted(self._jobs.values(), key=lambda job: -job.number)

    def get(self, number: int) -> Job | None:
        """One of them."""
        return self._jobs.get(number)

    def of_campaign(self, campaign: int) -> list[Job]:
        """Those that are about a campaign, newest first."""
        return [job for job in self.all() if job.command.campaign == campaign]

    def start(self, command: Command) -> Job:
        """Run a command; what it prints is kept."""
        url, shown = self._store()
        with self._lock:
            if sum(job.is_running for job in self._jobs.values()) >= _MOST_JOBS:
                raise UserError(f"{_MOST_JOBS} commands are running already: stop one first")
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "swarmtest", *command.words()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env={
                    **os.environ,
                    "SWARMTEST_STORE": url,
                    "PYTHONUNBUFFERED": "1",
                    "COLUMNS": "100",
                },
                start_new_session=True,
            )
            job = Job(len(self._jobs) + 1, command, command.text(shown), process)
            self._jobs[job.number] = job
            reader = threading.Thread(target=self._read, args=(job,), daemon=True)
            self._readers.append(reader)
        reader.start()
        self._live.announce("jobs")
        return job

    def stop(self, job: Job) -> None:
        """As Ctrl-C would."""
        if job.is_running:
            job.stopping = True
            with contextlib.suppress(ProcessLookupError):
                job.process.send_signal(signal.SIGINT)
            self._live.announce(f"job:{job.number}")

    def close(self) -> None:
        """Interrupt what runs, and wait for it."""
        for job in self.all():
            self.stop(job)
        deadline = time.monotonic() + _GRACE
        for job in self.all():
            try:
                job.process.wait(max(deadline - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                job.process.kill()
                job.process.wait()
        for reader in self._readers:
            reader.join(_GRACE)

    def _read(self, job: Job) -> None:
        assert job.process.stdout is not None
        told = 0.0
        for line in job.process.stdout:
            # What is drawn over and over on one line of a terminal: only its last state.
            last = line.rstrip("\r\n").rpartition("\r")[2]
            job.lines.append(_COLOURS.sub("", last)[:_MOST_LETTERS])
            job.printed += 1
            now = time.monotonic()
            if now - told > _QUIET:
                told = now
                self._live.announce(f"job:{job.number}")
        job.process.stdout.close()
        job.process.wait()
        job.ended = time.time()
        self._live.announce(f"job:{job.number}")
        self._live.announce("jobs")
