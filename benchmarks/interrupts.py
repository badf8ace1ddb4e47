"""How long Ctrl-C takes to end a command, whatever the command is doing.

    python benchmarks/interrupts.py [--quick]

Seconds of wall time from the signal to the end of the process, in the worst of some rounds: while
tests run, while a test hangs that may take an hour, while a test that crashed is run again to find
its steps (and hangs then), and while a store is locked. The goal is a second, on a machine with
nothing else to do. `--quick` makes one round. The last line is one JSON object.
"""

from __future__ import annotations

import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from harness import arguments, print_figures, print_table, progress

from swarmtest.store import open_store

SUBJECT = """
import os, time
from swarmtest import Machine, action

class Case(Machine):
    steps = 1

    def start(self):
        with open("log", "a") as log:
            log.write("x")
            self.is_first = log.tell() == 1

class Busy(Case):
    @action
    def work(self):
        sum(range(20_000))

class Hangs(Case):
    @action
    def wait(self):
        time.sleep(1000)

class CrashesThenHangs(Case):
    @action
    def wait(self):
        if self.is_first:
            os.abort()
        time.sleep(1000)
"""
COMMAND = [sys.executable, "-P", "-c", "from swarmtest.ui.cli import main; main()"]


def seconds_to_end(
    place: Path, machine: str, is_time: Callable[[subprocess.Popen[bytes]], bool]
) -> float:
    """Start a campaign, send Ctrl-C when it is time, and measure until it has ended."""
    options = ["--time", "10m", "--timeout", "1h", "-j", "2", "--store", "s.db", "-q"]
    process = subprocess.Popen(
        [*COMMAND, "run", f"subject.py::{machine}", *options],
        cwd=place,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not is_time(process):
        assert process.poll() is None, "the campaign ended by itself"
        time.sleep(0.01)
    time.sleep(0.2)
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.wait()
    assert process.returncode == 130, process.returncode
    return time.monotonic() - begun


def started(place: Path, tests: int) -> bool:
    """Return whether so many tests have begun."""
    log = place / "log"
    return log.exists() and log.stat().st_size >= tests


def has_open(process: subprocess.Popen[bytes], file: Path) -> bool:
    """Return whether a process has opened a file."""
    return any(fd.resolve() == file for fd in Path(f"/proc/{process.pid}/fd").iterdir())


def measured(case: str) -> float:
    """One round of a case, in a directory of its own."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name).resolve()
        (place / "subject.py").write_text(SUBJECT)
        if case != "locked":
            machine, tests = {
                "busy": ("Busy", 100),
                "hanging": ("Hangs", 2),
                "again": ("CrashesThenHangs", 3),
            }[case]
            return seconds_to_end(place, machine, lambda _: started(place, tests))
        store = place / "s.db"
        open_store(str(store)).close()
        connection = sqlite3.connect(store, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        try:
            return seconds_to_end(place, "Busy", lambda process: has_open(process, store))
        finally:
            connection.close()


CASES = {
    "busy": "tests run",
    "hanging": "a test hangs",
    "again": "a test that crashed is run again",
    "locked": "the store is locked",
}


def main() -> None:
    """Measure each case and print the figures."""
    rounds = 1 if arguments(__doc__ or "").quick else 10
    rows: list[tuple[object, ...]] = []
    figures: dict[str, object] = {}
    for case, words in CASES.items():
        progress(f"Ctrl-C while {words}")
        seconds = [measured(case) for _ in range(rounds)]
        rows.append((words, f"{statistics.median(seconds):.2f}", f"{max(seconds):.2f}"))
        figures[f"ctrl_c_{case}_s"] = round(max(seconds), 3)
    print_table(("Ctrl-C while", "median s", "worst s"), rows)
    print_figures(figures)


if __name__ == "__main__":
    main()
