"""`swarmtest reduce --keep ...`, as a user sees it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
class Queue:
    def __init__(self):
        self.items = []
        self.peak = 0

    def put(self, item):
        self.items.append(item)
        if len(self.items) > self.peak:
            self.peak = len(self.items)

    def get(self):
        if not self.items:
            return None
        return self.items.pop(0)

    def clear(self):
        self.items = []
"""
MACHINE = """
from queue_program import Queue
from swarmtest import Machine, action, integers

class QueueMachine(Machine):
    steps = 40

    def start(self):
        self.queue, self.model = Queue(), []

    @action(item=integers(0, 9))
    def put(self, item):
        self.queue.put(item)
        self.model.append(item)

    @action
    def get(self):
        expected = self.model.pop(0) if self.model else None
        assert self.queue.get() == expected

    @action
    def clear(self):
        self.queue.clear()
        self.model = []
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory, swarmtest) -> Path:
    place: Path = tmp_path_factory.mktemp("queue")
    (place / "queue_program.py").write_text(PROGRAM)
    (place / "machine.py").write_text(MACHINE)
    done = swarmtest("run", "machine.py", "-n", "20", "-s", "all-on", cwd=place)
    assert done.returncode == 0, done.stderr
    return place


def sizes(text):
    found = re.search(r"from (\d+) steps to (\d+)", text)
    assert found
    before, after = found.groups()
    return int(before), int(after)


def rates(text):
    found = re.findall(r"(\d+)% (?:of the [a-z ]+ kept )?\((SRR|CPR|MPR)", text)
    return {name: int(rate) for rate, name in found}


def test_a_passing_test_keeps_a_share_of_its_coverage(place, swarmtest):
    whole = swarmtest("reduce", "1#0", "--keep", "coverage", cwd=place)
    part = swarmtest("reduce", "1#0", "--keep", "coverage=60", cwd=place)
    assert (whole.returncode, part.returncode) == (0, 0), whole.stderr + part.stderr
    assert rates(whole.stdout)["CPR"] == 100
    assert rates(part.stdout)["CPR"] >= 60
    assert sizes(part.stdout)[1] < sizes(whole.stdout)[1] < sizes(whole.stdout)[0] == 40
    assert "; at random " in whole.stdout


def test_a_passing_test_keeps_mutants(place, swarmtest):
    done = swarmtest("reduce", "1#0", "--keep", "mutants=3", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["size"] < told["before"] == 40
    assert 0 < told["rates"]["mpr"] <= 1
    assert told["complete"]
    assert told["fault"] is None


def test_the_hard_mutants_come_from_the_campaign(place, swarmtest):
    missing = swarmtest("reduce", "1#0", "--keep", "minimal-mutants=2", cwd=place)
    assert missing.returncode == 2
    assert "`swarmtest mutate --campaign 1` first" in missing.stderr
    assert swarmtest("mutate", "queue_program.py", cwd=place).returncode in (0, 1)
    killing = swarmtest("reduce", "1#0", "--keep", "minimal-mutants=1", cwd=place)
    assert killing.returncode == 0, killing.stderr
    assert sizes(killing.stdout)[1] < 40


def test_targets_are_named_with_patterns(place, swarmtest):
    done = swarmtest("reduce", "1#0", "--keep", "targets=line:queue_program.py:18", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "machine.clear()" in done.stdout
    assert sizes(done.stdout)[1] == 1
    nearest = swarmtest("reduce", "1#0", "--keep", "targets=line:queue.py:19", cwd=place)
    assert nearest.returncode == 2
    assert "hits no such target; did you mean 'line:queue_program.py:" in nearest.stderr


def test_a_file_is_reduced_by_a_command(place, swarmtest):
    (place / "hay.txt").write_text("hay\n" * 50 + "a needle\n" + "hay\n" * 50)
    original = (place / "hay.txt").read_bytes()
    done = swarmtest(
        "reduce", "hay.txt", "-k", "command=grep -q needle {}", "-o", "small.txt", cwd=place
    )
    assert done.returncode == 0, done.stderr
    assert (place / "small.txt").read_text() == "a needle\n"
    letters = ["--parts", "characters", "-o", "small.txt"]
    done = swarmtest("reduce", "hay.txt", "-k", "command=grep -q needle", *letters, cwd=place)
    assert (place / "small.txt").read_text() == "needle"
    assert (place / "hay.txt").read_bytes() == original


def test_a_reduction_goes_on_with_its_state(place, swarmtest):
    arguments = ["reduce", "1#0", "--keep", "coverage", "--state", "state.json", "--json"]
    first = json.loads(swarmtest(*arguments, "--time", "0.001s", cwd=place).stdout)
    assert not first["complete"]
    again = json.loads(swarmtest(*arguments, cwd=place).stdout)
    assert again["complete"]
    nothing_new = json.loads(swarmtest(*arguments, cwd=place).stdout)
    assert nothing_new["runs"] <= 2  # the original, and what is found once more, alone
    assert nothing_new["test"] == again["test"]
    other = swarmtest("reduce", "1#1", "--keep", "coverage", "--state", "state.json", cwd=place)
    assert other.returncode == 2
    assert "is of another reduction" in other.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--keep", "covrage=9"], "did you mean 'coverage'?"),
        (["--keep", "coverage=0"], "above 0, up to 100"),
        (["--keep", "coverage=many"], "a percentage, like 90"),
        (["--keep", "mutants=0"], "how many, at least 1"),
        (["--keep", "targets"], "needs to say which"),
        (["--keep", "fault"], "the test passes, so it has no fault to keep"),
        (["--keep", "coverage", "--coverage", "none"], "hits no target"),
        (["--keep", "command=false {}"], "`false {}` ends with status 1, not 0"),
        (["--keep", "coverage", "--runs", "3"], "write K/N, like 2/5"),
        (["--keep", "coverage", "--runs", "3/2"], "K is from 1 to N"),
        (["--keep", "coverage", "--state", "machine.py"], "is not a state that `reduce` wrote"),
    ],
)
def test_what_is_wrong_is_one_clear_line(arguments, told, place, swarmtest):
    done = swarmtest("reduce", "1#0", *arguments, cwd=place)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert told in done.stderr


def test_ctrl_c_keeps_the_smallest_so_far(place):
    """An interrupt while tests run: what was found is printed, and the state is kept."""
    program = (
        "import os, signal, sys, threading, time\n"
        "from swarmtest.ui.cli import main\n"
        "def interrupt():\n"
        "    while not os.path.exists('ran') or os.path.getsize('ran') < 8: time.sleep(0.01)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=interrupt).start()\n"
        "sys.argv = ['swarmtest', 'reduce', 'hay.txt', '--state', 'interrupted.json', '-k',\n"
        "    'command=echo 1 >> ' + os.path.abspath('ran') + '; sleep 0.1; grep -q needle',\n"
        "    '--workers', '1']\n"
        "main()\n"
    )
    (place / "hay.txt").write_text("hay\n" * 50 + "a needle\n" + "hay\n" * 50)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 130, done.stderr
    assert "interrupted; the same command continues" in done.stdout
    assert json.loads((place / "interrupted.json").read_text())["answers"]
