"""A campaign whose time ends while a test hangs reports the hang."""

import pytest

PROGRAM = """
import time
from swarmtest import Machine, action

class Base(Machine):
    steps = 1
    tests = 0
    @action
    def go(self):
        type(self).tests += 1
        self.work()

class Hangs(Base):
    def work(self):
        while self.tests > 500: pass  # the usual test takes microseconds, at any load

class Slow(Base):
    def work(self): time.sleep(0.7)

class FirstHangs(Base):
    def work(self): time.sleep(60)
"""


@pytest.fixture
def run(tmp_path, swarmtest):
    (tmp_path / "program.py").write_text(PROGRAM)

    def run(machine, *options):
        words = ("--time", "4s", "-j", 1, "--no-reduce", "--store", "s.db")
        return swarmtest("run", f"program.py::{machine}", *words, *options, cwd=tmp_path)

    return run


def test_a_test_that_hangs_when_the_time_is_up_is_a_fault(run):
    done = run("Hangs", "--timeout", "60s")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "timeout [" in done.stdout
    assert "machine.go()" in done.stdout


def test_a_test_that_is_only_slow_is_no_fault(run):
    done = run("Slow")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 distinct faults" in done.stdout


def test_a_campaign_in_which_no_test_ended_has_not_passed(run, refused):
    refused(run("FirstHangs", "-q"), "no test ended before the campaign's time was up")
