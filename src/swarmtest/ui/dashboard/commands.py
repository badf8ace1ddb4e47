"""Commands started from the dashboard: built from forms, and run as child processes (jobs).

A form becomes the command that a person would type, as a list of words and never as a line for a
shell. Values are joined to their options with ``=``, so that no value can be taken for another
option.

A job runs in a session of its own, so that Ctrl-C at the dashboard does not reach it directly. When
the dashboard ends, its jobs are interrupted as by Ctrl-C, and killed only if they do not end in
time.
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
from swarmtest.subjects.stored_reference import refuse_harmful
from swarmtest.ui.dashboard.store_watch import EventBroadcaster
from swarmtest.ui.terminal.tables import command_text

# From forms to commands.

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
"""What `swarmtest focus` can aim at, and how each is written."""


@dataclass(frozen=True)
class DashboardCommand:
    """The arguments of a ``swarmtest`` command.

    >>> command = DashboardCommand(("run", "stack.py"), (("--tests", "100"), ("--api", "")))
    >>> command.words()
    ['run', 'stack.py', '--tests=100', '--api']
    >>> command.text(".swarmtest/swarmtest.db")
    'swarmtest run stack.py --tests 100 --api'
    """

    plain: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    """Pairs of an option and its value; the value of a flag is empty."""
    campaign: int | None = None
    """The existing campaign that the command is about, if there is one."""

    def words(self) -> list[str]:
        """Return the arguments for a process."""
        joined = [f"{name}={value}" if value else name for name, value in self.options]
        return [*self.plain, *joined]

    def text(self, store: str) -> str:
        """Return the command as a person would type it."""
        words = [*map(shlex.quote, self.plain)]
        words += [f"{name} {shlex.quote(value)}" if value else name for name, value in self.options]
        return command_text(" ".join(words), store)


def run_command(form: Form) -> DashboardCommand:
    """Return the command that runs a new campaign.

    >>> run_command({"subject": "stack.py", "tests": "500", "strategy": "coin"}).words()
    ['run', 'stack.py', '--strategy=coin', '--tests=500']
    """
    subject = _subject(form.get("subject", ""))
    options = [
        *_text(form, "strategy"),
        *_budget(form),
        *_whole(form, "seed"),
        *_whole(form, "workers"),
        *_text(form, "coverage"),
    ]
    if form.get("api"):
        options.append(("--api", ""))
    return DashboardCommand(("run", subject), tuple(options))


def resume_command(record: CampaignRecord, form: Form) -> DashboardCommand:
    """Return the command that resumes a campaign."""
    return DashboardCommand(("resume", str(record.id)), tuple(_budget(form)), record.id)


def focus_command(record: CampaignRecord, form: Form) -> DashboardCommand:
    """Return the command that directs tests at what the form names."""
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
    return DashboardCommand(("focus", _subject(str(reference["text"]))), tuple(options), record.id)


def reduce_command(record: CampaignRecord, form: Form) -> DashboardCommand:
    """Return the command that reduces the test of a fault."""
    _reference(record)
    fault = form.get("fault", "")
    if not _FAULT.fullmatch(fault):
        raise UserError(f"{fault!r} is not the id of a fault, like 4ee18053")
    return DashboardCommand(("reduce", fault), tuple(_time(form, "time")), record.id)


def _reference(record: CampaignRecord) -> Mapping[str, Any]:
    reference = record.options.get("subject")
    if not isinstance(reference, dict) or "text" not in reference:
        raise UserError(
            f"campaign {record.id} does not say how to load its subject: run it from Python"
        )
    refuse_harmful(str(reference["text"]))
    return reference


def _subject(text: str) -> str:
    text = text.strip()
    if not text or text.startswith("-") or "\0" in text:
        raise UserError("name what to test: a file such as stack.py, or MODULE:CLASS")
    return text


def _budget(form: Form) -> list[tuple[str, str]]:
    return [*_whole(form, "tests"), *_time(form, "time")]


def _text(form: Form, name: str) -> list[tuple[str, str]]:
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


# Running commands as jobs.

_MAX_LINES = 2_000
_MAX_LINE_LENGTH = 2_000
_ANNOUNCE_INTERVAL = 0.3
"""Seconds between two announcements that a command has printed something."""
_GRACE = 10.0
"""Seconds that jobs have to end after an interrupt, when the dashboard ends."""
_MAX_JOBS = 8
"""The most jobs that may run at the same time."""
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass
class DashboardJob:
    """A command that was started from the dashboard."""

    number: int
    command: DashboardCommand
    text: str
    """The command as a person would type it."""
    process: subprocess.Popen[str]
    started: float = field(default_factory=time.time)
    ended: float | None = None
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=_MAX_LINES))
    printed: int = 0
    """The number of lines printed so far; only the last of them are kept in `lines`."""
    stopping: bool = False

    @property
    def status(self) -> str:
        """``running``, ``stopping``, ``done``, or how the command ended."""
        code = self.process.returncode
        if self.ended is None or code is None:
            return "stopping" if self.stopping else "running"
        meanings = {0: "done", 1: "done, faults found", 2: "refused", 130: "interrupted"}
        return meanings.get(code, f"ended with status {code}")

    @property
    def is_running(self) -> bool:
        """Whether the command has not ended."""
        return self.ended is None


class DashboardJobs:
    """The jobs of a dashboard."""

    def __init__(self, live: EventBroadcaster, store: Callable[[], tuple[str, str]]) -> None:
        """`store` returns the address of the store twice: for a process, and as it may be shown."""
        self._live = live
        self._store = store
        self._jobs: dict[int, DashboardJob] = {}
        self._readers: list[threading.Thread] = []
        self._lock = threading.Lock()

    def all(self) -> list[DashboardJob]:
        """Return all jobs, newest first."""
        return sorted(self._jobs.values(), key=lambda job: -job.number)

    def get(self, number: int) -> DashboardJob | None:
        """Return the job of this number; None if there is none."""
        return self._jobs.get(number)

    def of_campaign(self, campaign: int) -> list[DashboardJob]:
        """Return the jobs about a campaign, newest first."""
        return [job for job in self.all() if job.command.campaign == campaign]

    def start(self, command: DashboardCommand) -> DashboardJob:
        """Start a command, and collect what it prints."""
        url, shown = self._store()
        with self._lock:
            if sum(job.is_running for job in self._jobs.values()) >= _MAX_JOBS:
                raise UserError(f"{_MAX_JOBS} commands are running already: stop one first")
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
            job = DashboardJob(len(self._jobs) + 1, command, command.text(shown), process)
            self._jobs[job.number] = job
            reader = threading.Thread(target=self._read, args=(job,), daemon=True)
            self._readers.append(reader)
        reader.start()
        self._live.announce("jobs")
        return job

    def stop(self, job: DashboardJob) -> None:
        """Interrupt a job as Ctrl-C would."""
        if job.is_running:
            job.stopping = True
            with contextlib.suppress(ProcessLookupError):
                job.process.send_signal(signal.SIGINT)
            self._live.announce(f"job:{job.number}")

    def close(self) -> None:
        """Interrupt all running jobs, and wait until they have ended."""
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

    def _read(self, job: DashboardJob) -> None:
        assert job.process.stdout is not None
        announced = 0.0
        for line in job.process.stdout:
            # A progress line overwrites itself with carriage returns; only its last state is kept.
            final_text = line.rstrip("\r\n").rpartition("\r")[2]
            job.lines.append(_COLOURS.sub("", final_text)[:_MAX_LINE_LENGTH])
            job.printed += 1
            now = time.monotonic()
            if now - announced > _ANNOUNCE_INTERVAL:
                announced = now
                self._live.announce(f"job:{job.number}")
        job.process.stdout.close()
        job.process.wait()
        job.ended = time.time()
        self._live.announce(f"job:{job.number}")
        self._live.announce("jobs")
