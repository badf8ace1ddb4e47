"""The commands that a watch runs, one after the other, each in a process of its own.

A new process imports the program as it is now. A command is interrupted as by Ctrl-C, and killed
only if it does not end in time. If the watch itself is killed, the kernel kills the command.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from swarmtest.processes import tree

_GRACE = 30.0
"""Seconds that a command has to end after an interrupt."""
_CHUNK = 1 << 16
_OWN = "swarmtest: "
"""How the line begins that says why a command was refused."""

Event = dict[str, Any]


@dataclass
class JobEnd:
    """How a command ended."""

    status: int
    """Its exit status; minus the signal that ended it."""
    said: str = ""
    """Why it was refused, in one line; empty if it was not."""
    events: list[Event] = field(default_factory=list)
    """The JSON lines that it printed, without those about progress."""
    stopped: bool = False
    """Whether it was interrupted, because `keep_on` said so."""

    @property
    def was_refused(self) -> bool:
        """Whether it could not do its work."""
        return self.status not in (0, 1, 130) and not self.stopped


def run_job(
    words: Sequence[str],
    store: str,
    keep_on: Callable[[], bool],
    tell: Callable[[Event], None],
    *,
    seconds: float,
    every: Callable[[], float],
) -> JobEnd:
    """Run a ``swarmtest`` command to its end, or until `keep_on` says no or the time is up.

    `store` may have a password in it, so it is not an argument of the command. `tell` is called
    with each JSON line that the command prints. `every` returns how long to wait before `keep_on`
    is asked again.
    """
    strays = tree.Supervision()
    process = start_command(words, store)
    end = JobEnd(0)
    try:
        _follow(process, keep_on, tell, end, time.monotonic() + seconds, every)
    finally:
        end_command(process)
        strays.end()
    end.status = process.returncode
    if end.was_refused and not end.said:
        end.said = f"swarmtest {words[0]} ended with status {end.status}"
    return end


def _follow(
    process: subprocess.Popen[bytes],
    keep_on: Callable[[], bool],
    tell: Callable[[Event], None],
    end: JobEnd,
    deadline: float,
    every: Callable[[], float],
) -> None:
    """Read what a command prints until it closes its output, or has to be stopped."""
    assert process.stdout is not None
    output = process.stdout.fileno()
    waiting = b""
    looked = time.monotonic()
    while True:
        ready, _, _ = select.select([output], [], [], every())
        if ready:
            chunk = os.read(output, _CHUNK)
            if not chunk:
                return
            *lines, waiting = (waiting + chunk).split(b"\n")
            for line in lines:
                _take(line.decode(errors="replace"), tell, end)
        now = time.monotonic()
        if now - looked >= every():
            looked = now
            if now > deadline:
                end.said = "it took too long and was stopped"
                return
            if not keep_on():
                end.stopped = True
                return


def _take(line: str, tell: Callable[[Event], None], end: JobEnd) -> None:
    if line.startswith(_OWN):
        end.said = line.removeprefix(_OWN).strip()
        return
    try:
        event = json.loads(line)
    except ValueError:
        return
    if isinstance(event, dict) and isinstance(event.get("event"), str):
        if event["event"] != "progress":
            end.events.append(event)
        tell(event)


def start_command(words: Sequence[str], store: str) -> subprocess.Popen[bytes]:
    """Start a ``swarmtest`` command, which ends when this process does."""
    process: subprocess.Popen[bytes] = tree.spawn(
        [sys.executable, "-P", "-m", "swarmtest", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "SWARMTEST_STORE": store},
        start_new_session=True,
        preexec_fn=tree.die_with_parent,
    )
    return process


def end_command(process: subprocess.Popen[bytes]) -> None:
    """Interrupt a command, and kill it if it does not end."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=_GRACE)  # it may still print a lot
        except subprocess.TimeoutExpired:
            tree.kill_and_await(process.pid)
    process.wait()
    tree.kill_group(process.pid)
    if process.stdout is not None:
        process.stdout.close()
