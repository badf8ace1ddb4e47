"""Without `--timeout`, a test hangs if it takes a hundred times as long as the others."""

import re

import pytest

from swarmtest import open_store

PROGRAM = """
import os, time
from swarmtest import Machine, action, integers

class Sleeps(Machine):
    steps = 1
    seconds = 60
    @action(number=integers(0, 60))
    def go(self, number):
        if number == 7:
            time.sleep(self.seconds)

class SleepsAWhile(Sleeps):
    seconds = 1.2

class SleepsOnceAndExits(Sleeps):
    seconds = 0
    def start(self):
        if not os.path.exists("slept"):
            self.seconds = 1.2
    @action(number=integers(0, 60))
    def go(self, number):
        if number == 7:
            open("slept", "w").close()
            time.sleep(self.seconds)
            os._exit(3)
"""


@pytest.fixture
def run(tmp_path, swarmtest):
    (tmp_path / "program.py").write_text(PROGRAM)

    def run(machine, *options):
        words = ("--tests", 80, "--seed", 4, "-j", 1, "--no-reduce", "--no-why", "--store", "s.db")
        return swarmtest("run", f"program.py::{machine}", *words, *options, cwd=tmp_path)

    return run


def test_a_test_that_hangs_is_found_before_the_usual_limit(run, tmp_path):
    done = run("Sleeps")
    assert done.returncode == 1, done.stdout + done.stderr
    with open_store(tmp_path / "s.db", read_only=True) as store:
        [fault] = store.faults(1)
        [seconds] = re.findall(r"after ([\d.]+) s", fault.details)
    assert fault.kind == "timeout"
    assert float(seconds) < 10


def test_a_test_that_ends_when_it_is_given_time_is_no_fault(run):
    done = run("SleepsAWhile")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "80 tests" in done.stdout
    assert "0 distinct faults" in done.stdout


def test_a_slow_test_that_ends_its_process_is_no_hang(run, tmp_path):
    done = run("SleepsOnceAndExits")
    assert done.returncode == 1, done.stdout + done.stderr
    with open_store(tmp_path / "s.db", read_only=True) as store:
        [fault] = store.faults(1)
    assert fault.signature == "the program ended its process with exit status 3"
