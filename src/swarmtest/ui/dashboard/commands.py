"""Commands that were started from the page: child processes, and what they print.

Invariants: words, never a shell; a session of their own, so that Ctrl-C at the dashboard does not
hit them by accident; when the dashboard ends, they are interrupted as by Ctrl-C, not killed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.processes.tree import spawn
from swarmtest.store.records import CampaignRecord
from swarmtest.ui.dashboard.store_watch import Live
from swarmtest.ui.terminal.tables import command_text

# -------------------------------------------------------------------------------------------------
# From the forms of a page to commands: the very ones that a person would type.
#
# A form becomes a list of words, never a line for a shell. Values are tied to their options with
# ``=``, so that none can pass for another option.

Form = Mapping[str, str]
_WHOLE = re.compile(r"[0-9]{1,12}")
_TIME = re.compile(r"[0-9.]{1,12} ?[a-z]{0,3}([0-9.]{1,12} ?[a-z]{1,3})?")
_FAULT = re.compile(r"[0-9a-f]{8}")
AIMS = {
    "fault": "a fault's id",
    "line": "FILE:LINE",
    "lines": "FILE:A-B",
    "function": "MODULE:NAME",
    "diff": "a git revision",
    "target": "KIND:NAME",
}
"""What `swarmtest focus` can be pointed at, and how that is written."""


@dataclass(frozen=True)
class Command:
    """What comes after ``swarmtest``.

    >>> command = Command(("run", "stack.py"), (("--tests", "100"), ("--api", "")))
    >>> command.words()
    ['run', 'stack.py', '--tests=100', '--api']
    >>> command.text(".swarmtest/swarmtest.db")
    'swarmtest run stack.py --tests 100 --api'
    """

    plain: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    """Each with its value; empty: a flag."""
    campaign: int | None = None
    """The one that it is about, if that is there already."""

    def words(self) -> list[str]:
        """As a process gets them."""
        tied = [f"{name}={value}" if value else name for name, value in self.options]
        return [*self.plain, *tied]

    def text(self, store: str) -> str:
        """As a person types it."""
        words = [*map(shlex.quote, self.plain)]
        words += [f"{name} {shlex.quote(value)}" if value else name for name, value in self.options]
        return command_text(" ".join(words), store)


def run_command(form: Form) -> Command:
    """A new campaign.

    >>> run_command({"subject": "stack.py", "tests": "500", "strategy": "coin"}).words()
    ['run', 'stack.py', '--strategy=coin', '--tests=500']
    """
    subject = _subject(form.get("subject", ""))
    options = [
        *_given(form, "strategy"),
        *_budget(form),
        *_whole(form, "seed"),
        *_whole(form, "workers"),
        *_given(form, "coverage"),
    ]
    if form.get("api"):
        options.append(("--api", ""))
    return Command(("run", subject), tuple(options))


def resume_command(record: CampaignRecord, form: Form) -> Command:
    """More of a campaign."""
    return Command(("resume", str(record.id)), tuple(_budget(form)), record.id)


def focus_command(record: CampaignRecord, form: Form) -> Command:
    """Tests that go where a person points."""
    reference = _reference(record)
    aim, where = form.get("aim", ""), form.get("where", "").strip()
    if aim not in AIMS:
        raise UserError(f"{aim!r}: focus on one of {', '.join(AIMS)}")
    if not where:
        raise UserError(f"say where to focus: {AIMS[aim]}")
    options = [(f"--{aim}", where), *_budget(form)]
    if reference.get("api"):
        options.append(("--api", ""))
    options += [("--raises", str(name)) for name in reference.get("raises", ())]
    return Command(("focus", _subject(str(reference["text"]))), tuple(options), record.id)


def reduce_command(record: CampaignRecord, form: Form) -> Command:
    """A fault's test made smaller."""
    _reference(record)
    fault = form.get("fault", "")
    if not _FAULT.fullmatch(fault):
        raise UserError(f"{fault!r} is not the id of a fault, like 4ee18053")
    return Command(("reduce", fault), tuple(_time(form, "time")), record.id)


def _reference(record: CampaignRecord) -> Mapping[str, Any]:
    reference = record.options.get("subject")
    if not isinstance(reference, dict) or "text" not in reference:
        raise UserError(f"campaign {record.id} does not say where its subject is: run it in Python")
    return reference


def _subject(text: str) -> str:
    text = text.strip()
    if not text or text.startswith("-") or "\0" in text:
        raise UserError("name what to test: a file like stack.py, or MODULE:CLASS")
    return text


def _budget(form: Form) -> list[tuple[str, str]]:
    return [*_whole(form, "tests"), *_time(form, "time")]


def _given(form: Form, name: str) -> list[tuple[str, str]]:
    value = form.get(name, "").strip()
    return [(f"--{name}", value)] if value else []


def _whole(form: Form, name: str) -> list[tuple[str, str]]:
    value = form.get(name, "").strip().replace(",", "")
    if value and not _WHOLE.fullmatch(value):
        raise UserError(f"{name}: a whole number like 1000, not {value!r}")
    return [(f"--{name}", value)] if value else []


def _time(form: Form, name: str) -> list[tuple[str, str]]:
    value = form.get(name, "").strip()
    if value and not _TIME.fullmatch(value):
        raise UserError(f"{name}: a duration like 30s, 5m or 2h, not {value!r}")
    return [(f"--{name}", value)] if value else []


# -------------------------------------------------------------------------------------------------

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
            process = spawn(
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
