"""What a test changes in its process costs no other test anything."""

from __future__ import annotations

import runpy
from collections import Counter
from pathlib import Path

import pytest

LEAVING = Path(__file__).with_name("leaving.py")


@pytest.fixture
def run(swarmtest, rows, tmp_path):
    """Run a campaign; return how it ended, and its trials."""

    def run(subject, *options):
        done = swarmtest(
            *("run", subject, *options, "--store", "s.db", "--no-reduce", "--allow-unused"),
            cwd=tmp_path,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done, rows(tmp_path / "s.db")

    return run


def test_no_test_feels_what_another_has_changed(run):
    done, trials = run(LEAVING, "-n", 400, "-j", 2, "--seed", 5)
    assert done.returncode == 0, done.stdout
    assert len(trials) == 400
    assert not any(trial["verdict"] for trial in trials)
    events = Counter(hit for trial in trials for hit in trial["hits"])
    changes = runpy.run_path(str(LEAVING))["CHANGES"]
    assert {f"event:left {change}" for change in changes} <= events.keys()


BURNING = """
import signal, time
from swarmtest import Machine, action, integers

class Burning(Machine):
    steps = 1

    @action(value=integers(0, 9))
    def work(self, value):
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass

    @action
    def leave(self):
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.05)
"""


def test_a_timer_that_a_test_leaves_ends_no_other_test(run, tmp_path):
    (tmp_path / "burning.py").write_text(BURNING)
    done, trials = run("burning.py", "-n", 20, "-j", 1, "--seed", 5, "-s", "all-on")
    assert done.returncode == 0, done.stdout
    used = {tuple(trial["used"]) for trial in trials}
    assert len(used) == 2
    assert len(trials) == 20


HABITUAL = """
import os, signal
from swarmtest import Machine, action

is_set_up = False

def set_up():
    global is_set_up
    if not is_set_up:
        signal.signal(signal.SIGUSR1, lambda *_: None)
        os.environ["SET_UP"] = "1"
        is_set_up = True

class Habitual(Machine):
    steps = 2

    def start(self):
        set_up()
        self.event(f"process {os.getpid()}")

    @action
    def work(self):
        assert "SET_UP" in os.environ
        os.kill(os.getpid(), signal.SIGUSR1)
"""


def test_what_every_test_changes_is_a_habit_that_needs_no_new_process(run, tmp_path):
    (tmp_path / "habitual.py").write_text(HABITUAL)
    done, trials = run("habitual.py", "-n", 500, "-j", 1)
    assert done.returncode == 0, done.stdout
    assert len(trials) == 500
    processes = {hit for trial in trials for hit in trial["hits"]}
    assert len(processes) <= 10


HOARDING = """
import resource
from swarmtest import Machine, action, integers

hoard = []

class Hoarding(Machine):
    steps = 1

    @action(value=integers(0, 9))
    def work(self, value):
        hoard.append(bytearray(20_000_000))

    @action
    def take_all(self):
        resource.setrlimit(resource.RLIMIT_AS, (1, 1))
        for size in (1 << 20, 1 << 12, 1 << 9, 1 << 6, 8):
            try:
                while True:
                    hoard.append(bytearray(size))
            except MemoryError:
                pass
"""


def test_memory_that_a_test_keeps_is_not_missed_by_another(run, tmp_path):
    """Each test keeps 20 MB, or all, of a process that may have 400 MB."""
    (tmp_path / "hoarding.py").write_text(HOARDING)
    done, trials = run("hoarding.py", "-n", 80, "-j", 1, "--memory", "400MB", "--seed", 1)
    assert done.returncode in (0, 1), done.stderr
    assert len(trials) == 80
    failed = [trial for trial in trials if trial["verdict"]]
    assert not any(trial["used"][0] for trial in failed)
    assert len({trial["fault"] for trial in failed}) <= 1
    assert sum(trial["used"][0] for trial in trials) >= 30
