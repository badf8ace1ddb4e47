"""A small run of the benchmarks that kill, attack and interrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from quick_runs import BENCHMARKS, CANNOT, KEYS, LONGEST, figures_of, scripts


def test_every_benchmark_is_in_the_table_of_keys() -> None:
    assert scripts() == KEYS.keys()


def test_chaos_loses_nothing_and_counts_nothing_twice() -> None:
    figures = figures_of("chaos.py")
    assert figures["trials"] > 0
    zero = ("lost", "duplicated", "different", "orphans")
    assert [figures[key] for key in zero] == [0] * 4
    kinds = [key for key in KEYS["chaos.py"] if key.startswith("kills_")]
    assert [figures[key] for key in kinds] == [1] * len(kinds), "one of each kind was killed"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks into /proc")
def test_chaos_that_is_killed_leaves_nothing_behind() -> None:
    # A short path: there is a limit for those of sockets.
    with tempfile.TemporaryDirectory() as place:
        begun = subprocess.Popen(
            [sys.executable, str(BENCHMARKS / "chaos.py"), "--quick"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": place},
        )
        with begun:
            said = lines_until("are stored", begun)
            if begun.poll() == 2 and (reason := CANNOT.search(said)):
                pytest.skip(reason[1])
            assert "are stored" in said, said
            mark = f"SWARMTEST_CHAOS={begun.pid}".encode()
            running = started(mark, place)
            assert len(running) >= 5, "a scheduler, a nanny, a worker, a campaign and a database"
            begun.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + LONGEST
        while (left := started(mark, place) or os.listdir(place)) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not left


def lines_until(words: str, process: subprocess.Popen[str]) -> str:
    """What a process says on standard error, up to the first line with these words."""
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if words in line:
            return said
    process.wait()
    return said


def started(mark: bytes, place: str) -> list[str]:
    """The commands of the processes with a mark in their environment, or that work in a place.

    A program that changes its title may overwrite its environment.
    """
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            marked = mark in (process / "environ").read_bytes().split(b"\0")
            if marked or os.readlink(process / "cwd").startswith(place):
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:  # it has ended, or is not ours
            continue
    return found


def test_ctrl_c_ends_a_command_whatever_it_does() -> None:
    figures = figures_of("interrupts.py")
    assert min(figures[key] for key in KEYS["interrupts.py"]) > 0


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks into /proc")
def test_hostile_inputs_lead_to_nothing() -> None:
    figures = figures_of("hostile.py")
    assert figures.pop("inputs") >= 25
    assert set(figures.values()) == {0}, figures
