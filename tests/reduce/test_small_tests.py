"""What a user sees of faults that were reduced at the end of a campaign."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

MACHINE = """
from swarmtest import Machine, action

class Door(Machine):
    steps = 40

    def start(self):
        self.open = self.locked = False

    @action
    def push(self):
        self.open = True

    @action
    def lock(self):
        assert not self.open, "locked while open"
        self.locked = True

    @action
    def knock(self):
        assert not self.locked, "knocked in vain"

    @action
    def look(self):
        pass

    @action
    def wait(self):
        pass
"""
HANGING = """
import time
from swarmtest import Machine, action

class Door(Machine):
    @action
    def push(self):
        pass

    @action
    def lock(self):
        time.sleep(1000)
"""
SLOW = """
import time
from swarmtest import Machine, action

class Door(Machine):
    steps = 60

    def start(self):
        self.pushed = 0

    @action
    def push(self):
        self.pushed += 1

    @action
    def lock(self):
        if self.pushed > 5:
            time.sleep(0.5)
            raise ValueError("locked while open")

    @action
    def knock(self):
        pass
"""
ONCE = """
import os
from swarmtest import Machine, action

class Door(Machine):
    @action
    def lock(self):
        if not os.path.exists("locked"):
            os.mkdir("locked")
            raise ValueError("not yet locked")
"""
FULLY_REDUCED = "nothing more can go|cannot be shortened"
RUN = ("run", "door.py", "-n", "9", "-s", "all-on", "--seed", "3", "-j", "1")


@pytest.fixture(scope="module")
def place(tmp_path_factory, swarmtest) -> Path:
    """A campaign whose faults were reduced at its end."""
    place: Path = tmp_path_factory.mktemp("door")
    (place / "door.py").write_text(MACHINE)
    done = swarmtest(*RUN, cwd=place)
    assert done.returncode == 1, done.stderr
    (place / "printed").write_text(done.stdout)
    return place


@pytest.fixture(scope="module")
def faults(place, swarmtest) -> list[dict[str, Any]]:
    return list(map(json.loads, swarmtest("faults", "--json", cwd=place).stdout.splitlines()))


def calls(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip().startswith("machine.")]


def test_a_campaign_ends_with_small_tests(place, faults):
    printed = (place / "printed").read_text()
    assert len(faults) == 2
    start = "machine.start()"
    assert calls(printed) in (
        [start, "machine.push()", "machine.lock()", start, "machine.lock()", "machine.knock()"],
        [start, "machine.lock()", "machine.knock()", start, "machine.push()", "machine.lock()"],
    )
    for fault in faults:
        assert f"replay: swarmtest replay {fault['id']}" in printed


def test_the_line_says_how_and_from_which_test(place, faults):
    printed = (place / "printed").read_text()
    for fault in faults:
        small = fault["reduced"]
        if small["before"] > small["size"]:
            assert (
                f"reduced: from {small['before']} steps (1#{small['trial']}) to {small['size']}, "
                f"in {small['runs']} runs; nothing more can go"
            ) in printed


def test_a_fault_is_replayed_reduced_and_a_trial_as_it_was(place, faults, swarmtest):
    fault = max(faults, key=lambda fault: fault["size"])
    assert fault["size"] > fault["reduced"]["size"]
    small = swarmtest("replay", fault["id"], cwd=place)
    assert len(calls(small.stdout)) == 1 + fault["reduced"]["size"]
    assert "the same as recorded" in small.stdout
    whole = swarmtest("replay", f"1#{fault['trial']}", cwd=place)
    assert len(calls(whole.stdout)) == 1 + fault["size"]


def test_faults_and_show_have_the_small_tests(place, faults, swarmtest):
    listed = swarmtest("faults", cwd=place).stdout
    assert len(calls(listed)) == 6
    assert len(re.findall(FULLY_REDUCED, listed)) == 2
    shown = swarmtest("show", cwd=place).stdout
    row = next(line for line in shown.splitlines() if line.startswith(faults[0]["id"]))
    assert row.split()[5:7] == [str(faults[0]["size"]), "2"]


def test_the_page_has_the_small_tests(place, faults, swarmtest):
    assert swarmtest("report", "-o", "page.html", cwd=place).returncode == 0
    page = (place / "page.html").read_text()
    for fault in faults:
        article = page.partition(f'<article id="fault-{fault["id"]}">')[2].partition("</article>")[
            0
        ]
        small, _, whole = article.partition("Original test")
        assert len(calls(small)) == 3
        assert re.search(FULLY_REDUCED, small)
        if fault["size"] > 2:
            assert len(calls(whole)) == 1 + fault["size"]
        assert f"swarmtest replay {fault['id']}" in article


def test_tables_for_other_tools_have_the_small_tests(place, faults, swarmtest):
    assert swarmtest("export", "1", "-o", "trials.jsonl", cwd=place).returncode == 0
    rows = map(json.loads, (place / "trials.jsonl").read_text().splitlines())
    small = {row["fault"]: row["reduced"]["size"] for row in rows if row["reduced"]}
    assert small == {fault["id"]: 2 for fault in faults}


def test_it_can_be_switched_off(tmp_path, swarmtest):
    (tmp_path / "door.py").write_text(MACHINE)
    done = swarmtest(*RUN, "--no-reduce", cwd=tmp_path)
    assert done.returncode == 1
    assert not re.search(FULLY_REDUCED, done.stdout)
    told = map(json.loads, swarmtest("faults", "--json", cwd=tmp_path).stdout.splitlines())
    assert [fault["reduced"] for fault in told] == [None, None]
    assert "replay: swarmtest replay 1#" in done.stdout


def test_a_resumed_campaign_reduces_what_is_left(tmp_path, swarmtest):
    (tmp_path / "door.py").write_text(MACHINE)
    swarmtest(*RUN, "--no-reduce", cwd=tmp_path)
    first = swarmtest("resume", "-n", "10", "--json", cwd=tmp_path)
    again = swarmtest("resume", "-n", "11", "--json", cwd=tmp_path)
    events = [[json.loads(line) for line in done.stdout.splitlines()] for done in (first, again)]
    reduced = [[one for one in some if one["event"] == "reduced"] for some in events]
    assert [len(some) for some in reduced] == [2, 0]
    assert all(fault["reduced"]["complete"] for fault in events[1][-1]["faults"])


def test_json_tells_what_is_left_of_each_test(tmp_path, swarmtest):
    (tmp_path / "door.py").write_text(MACHINE)
    done = swarmtest(*RUN, "--json", cwd=tmp_path)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    reduced = {one["fault"]: one for one in events if one["event"] == "reduced"}
    assert len(reduced) == 2
    for fault in events[-1]["faults"]:
        told = {name: fault["reduced"][name] for name in ("test", "size", "complete")}
        assert told == {name: reduced[fault["id"]][name] for name in told}
        assert len(told["test"]["steps"]) == 2
        assert len(fault["test"]["steps"]) == fault["size"]


def test_ctrl_c_keeps_the_campaign_and_the_smallest_test_so_far(tmp_path, swarmtest):
    (tmp_path / "door.py").write_text(SLOW)
    program = "from swarmtest.ui.cli import main; main()"
    command = [sys.executable, "-c", program, *RUN, "--json"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        events, interrupted = [], False
        for line in running.stdout:
            events.append(json.loads(line))
            if events[-1]["event"] == "reducing" and not interrupted:
                interrupted = True
                running.send_signal(signal.SIGINT)
    assert running.returncode == 130
    (fault,) = events[-1]["faults"]
    assert not fault["reduced"]["complete"]
    assert events[-1]["notes"] == [
        "1 fault was not reduced as far as it goes: interrupted; `swarmtest resume 1` goes on"
    ]
    assert fault["reduced"]["size"] <= fault["size"]
    assert "finished" in swarmtest("show", cwd=tmp_path).stdout
    rest = swarmtest("resume", "1", "--reduce-time", "60s", cwd=tmp_path)
    assert "for _ in range(6):\n        machine.push()\n    machine.lock()" in rest.stdout


def test_a_fault_that_does_not_show_again_is_said_to_be_flaky_and_keeps_its_test(
    tmp_path, swarmtest
):
    (tmp_path / "door.py").write_text(ONCE)
    done = swarmtest(*RUN, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "  the fault did not show again in 3 runs: flaky?\n" in done.stdout
    assert "machine.lock()" in done.stdout
    assert "replay: swarmtest replay 1#" in done.stdout


def test_there_is_no_time_for_a_test_that_hangs_longer_and_it_is_said(tmp_path, swarmtest):
    (tmp_path / "door.py").write_text(HANGING)
    options = (
        "-x",
        "-n",
        "4",
        "-s",
        "all-on",
        "--timeout",
        "1s",
        "-j",
        "1",
        "--reduce-time",
        "500ms",
    )
    done = swarmtest("run", "door.py", *options, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    note = "1 fault was not reduced: the time was up; `swarmtest resume 1 --reduce-time 5m` goes on"
    assert f"note: {note}" in done.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--reduce-time", "soon"), "soon"),
        (("--reduce-time", "5s", "--no-reduce"), "--reduce-time and --no-reduce: give one of them"),
    ],
)
def test_a_time_that_makes_no_sense_is_refused_before_any_test(tmp_path, swarmtest, options, words):
    (tmp_path / "door.py").write_text(MACHINE)
    done = swarmtest(*RUN, *options, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (tmp_path / ".swarmtest").exists()
