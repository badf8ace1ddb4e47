"""A kill is not a verdict: only what a test does again is its fault."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from c_programs import needs_gcc

from swarmtest.store import open_store

SUPPORT = Path(__file__).parents[1] / "support"
UNDER_KILLS = SUPPORT / "steady_under_kills.py"
COVERAGE = ("--coverage", "line", "--cover", "steady_under_kills")
SUBJECTS = {
    "machine": (f"{UNDER_KILLS}::Steady", "-n", 80, "--seed", 15, *COVERAGE),
    "hypothesis": (f"{UNDER_KILLS}::Rules", "-n", 50, "--seed", 3),
    "command": (SUPPORT / "under_kills.toml", "-n", 30, "--seed", 7),
}
"""With these seeds, the campaign is killed first, and the processes below it later."""
KILLED = {"machine": [32, 36, 53], "command": [1, 10, 11, 12]}
"""The trials that are killed; which values Hypothesis draws may change with its version."""


@pytest.fixture
def run(swarmtest, tmp_path):
    """Run a campaign, and resume it as often as it is killed."""

    def run(name, subject, **env):
        store = tmp_path / f"{name}.db"
        # One worker, so that the order of the kills is always the same.
        tail = ("-j", 1, "--store", store, "--no-reduce")
        done = swarmtest("run", *subject, "-s", "coin", *tail, cwd=tmp_path, **env)
        while done.returncode == -9:
            done = swarmtest("resume", 1, *tail, cwd=tmp_path, **env)
        return done, store

    return run


def faults_of(store):
    with open_store(str(store)) as opened:
        return [(f.id, f.first_trial, f.trial, f.size, f.test, f.count) for f in opened.faults(1)]


def noted_in(store):
    with open_store(str(store)) as opened:
        return opened.campaign(1).killed


@pytest.mark.parametrize("kind", SUBJECTS)
def test_a_campaign_under_kills_equals_the_undisturbed_one(kind, run, rows, tmp_path, swarmtest):
    undisturbed, quiet = run("quiet", SUBJECTS[kind])
    marks = tmp_path / "marks"
    marks.mkdir()
    disturbed, noisy = run("noisy", SUBJECTS[kind], MARKS=str(marks))
    kills = Counter(mark.name.partition("-")[0] for mark in marks.iterdir())
    assert {"campaign", "host", "child"} <= kills.keys(), kills
    assert ("command" in kills) == (kind == "command"), kills
    assert disturbed.returncode == undisturbed.returncode == 1, disturbed.stderr
    assert rows(noisy) == rows(quiet)
    assert faults_of(noisy) == faults_of(quiet)
    assert not noted_in(quiet)
    noted = noted_in(noisy)
    assert noted == KILLED.get(kind, noted)
    assert 1 <= len(noted) <= kills.total() - kills["campaign"]
    shown = swarmtest("show", "--store", noisy, cwd=tmp_path).stdout
    assert "killed from outside once, so" in shown
    assert f"{noted[-1]}: " in shown


KILLED_FOUR_TIMES = """
import os, signal
from swarmtest import Machine, action, integers

class Steady(Machine):
    steps = 3

    @action(value=integers(0, 10**9))
    def work(self, value):
        if value % 10 == 0:
            with open("{mark}", "ab") as mark:
                mark.write(b".")
                mark.flush()
                if mark.tell() <= 4:
                    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_test_that_survives_its_last_run_was_killed_from_outside(swarmtest, rows, tmp_path):
    """Four kills in a row, by chance; the fifth run, which would tell the steps, ends well."""
    (tmp_path / "four.py").write_text(KILLED_FOUR_TIMES.format(mark=tmp_path / "mark"))
    done = swarmtest(
        *("run", "four.py", "-n", 20, "--seed", 3, "-j", 1, "--store", "x.db"), cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout
    assert len((tmp_path / "mark").read_bytes()) > 5
    assert [row["verdict"] for row in rows(tmp_path / "x.db")] == [0] * 20
    assert len(noted_in(tmp_path / "x.db")) == 1


DIES_WHILE_LOADING = """
import os, signal
from pathlib import Path
from swarmtest import Machine, action

MARKS = Path(os.environ["MARKS"])
deaths = len(list(MARKS.iterdir()))
if 1 <= deaths <= 4:
    (MARKS / str(deaths)).touch()
    os.kill(os.getpid(), signal.SIGKILL)

class Steady(Machine):
    @action
    def work(self):
        if not list(MARKS.iterdir()):
            (MARKS / "0").touch()
            os.kill(os.getppid(), signal.SIGKILL)
            signal.pause()
"""


def test_hosts_that_are_killed_while_they_load_cost_no_verdict(swarmtest, rows, tmp_path):
    (tmp_path / "loads.py").write_text(DIES_WHILE_LOADING)
    marks = tmp_path / "marks"
    marks.mkdir()
    done = swarmtest(
        # So many that a host is an interpreter of its own, which loads the program.
        *("run", "loads.py", "-n", 400, "-j", 1, "--store", "x.db"),
        cwd=tmp_path,
        MARKS=str(marks),
    )
    assert done.returncode == 0, done.stderr
    assert len(list(marks.iterdir())) == 5
    assert [row["verdict"] for row in rows(tmp_path / "x.db")] == [0] * 400
    assert noted_in(tmp_path / "x.db") == [0]


KILLED_WITH_OTHERS = """
import os, signal
from pathlib import Path
from swarmtest import Machine, action, integers

def kill_everything():
    parent = os.getppid()
    listing = Path(f"/proc/{{parent}}/task/{{parent}}/children").read_text()
    for other in map(int, listing.split()):
        if other != os.getpid():
            os.kill(other, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)

class Steady(Machine):
    steps = 3

    @action(value=integers(0, 10**9))
    def work(self, value):
        if value % 10 == 0:
            with open("{mark}", "ab") as mark:
                mark.write(b".")
                mark.flush()
                if mark.tell() <= 8:
                    kill_everything()
"""


def test_a_test_is_run_again_while_others_are_killed_too(swarmtest, rows, tmp_path):
    """Eight kills in a row: four would do, if a process that does nothing were not killed too."""
    (tmp_path / "eight.py").write_text(KILLED_WITH_OTHERS.format(mark=tmp_path / "mark"))
    done = swarmtest(
        *("run", "eight.py", "-n", 20, "--seed", 3, "-j", 1, "--store", "x.db"), cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout
    assert len((tmp_path / "mark").read_bytes()) > 9
    assert [row["verdict"] for row in rows(tmp_path / "x.db")] == [0] * 20
    assert len(noted_in(tmp_path / "x.db")) == 1


COMPILER = """
[features]
a = "-f"

[generate]
command = "cp {{features}} {here}/small.c {{test}}"
seed = "none"
suffix = ".c"

[[steps]]
name = "compile"
run = "gcc -wrapper {here}/killer {{test}} -o {{dir}}/program"
"""
KILLER = """#!/bin/sh
case "$1" in
*cc1) echo . >> {mark}; test $(wc -l < {mark}) -gt 2 || kill -9 $$ ;;
esac
exec "$@"
"""


@needs_gcc
def test_a_compiler_whose_part_is_killed_runs_again(swarmtest, rows, tmp_path):
    """The driver is not killed: it exits with status 1, and says that a part of it was."""
    (tmp_path / "small.c").write_text("int main(void) { return 0; }\n")
    (tmp_path / "compiler.toml").write_text(COMPILER.format(here=tmp_path))
    killer = tmp_path / "killer"
    killer.write_text(KILLER.format(mark=tmp_path / "mark"))
    killer.chmod(0o755)
    done = swarmtest(*("run", "compiler.toml", "-n", 3, "-j", 1, "--store", "x.db"), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "mark").read_text() == ".\n" * 5
    assert [row["verdict"] for row in rows(tmp_path / "x.db")] == [0] * 3
    assert noted_in(tmp_path / "x.db") == [0]


HUNGRY = """
from pathlib import Path
from swarmtest import Machine, action, integers

class Hungry(Machine):
    steps = 2

    @action(value=integers(0, 3))
    def work(self, value):
        pass

    @action(value=integers(0, 2))
    def eat(self, value):
        if value == 0:
            with open({mark!r}, "a") as mark:
                mark.write(".")
            for _ in range(200):
                food.append(b"x" * 10_000_000)

food = []
"""


@pytest.fixture
def small_group():
    """Make a control group whose processes have 250 MB, and nothing to swap to."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        here = Path("/sys/fs/cgroup", *(["memory"] if controllers else []), group.lstrip("/"))
        limit = "memory.limit_in_bytes" if controllers else "memory.max"
        swap = "memory.memsw.limit_in_bytes" if controllers else "memory.swap.max"
        small = here / f"swarmtest-{os.getpid()}"
        try:
            small.mkdir()
        except OSError:
            continue
        try:
            (small / limit).write_text("250000000")
            if (small / swap).exists():
                (small / swap).write_text("250000000" if controllers else "0")
            yield small
            return
        except OSError:
            continue
        finally:
            while (small / "cgroup.procs").read_text():
                time.sleep(0.01)
            small.rmdir()
    pytest.skip("cannot make a control group with a memory limit: needs root and a writable cgroup")


def test_what_the_kernel_kills_for_want_of_memory_is_a_fault_at_once(small_group, rows, tmp_path):
    mark = tmp_path / "mark"
    (tmp_path / "hungry.py").write_text(HUNGRY.format(mark=str(mark)))
    run = "swarmtest run hungry.py -n 12 -j 1 --seed 1 --memory 4GB --store x.db --no-reduce"
    enter = f"echo $$ > {small_group}/cgroup.procs"
    done = subprocess.run(
        ["sh", "-c", f"{enter}; exec {sys.executable} -m {run}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    with open_store(str(tmp_path / "x.db")) as opened:
        (fault,) = opened.faults(1)
    assert fault.signature == "SIGKILL (out of memory)"
    failed = [row["trial"] for row in rows(tmp_path / "x.db") if row["verdict"]]
    assert 1 <= len(failed) < 12
    assert fault.count == len(failed)
    # Once as the others, and once more for the steps: a kill from outside takes five runs to tell.
    assert len(mark.read_text()) == 2 * len(failed)
    assert not noted_in(tmp_path / "x.db")
