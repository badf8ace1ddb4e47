"""The same seed gives the same tests, whatever the workers, interrupts and kills."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sqlite3
import time
from pathlib import Path

import pytest

from swarmtest.store import open_store

STEADY = Path(__file__).with_name("steady.py")
TESTS = 300
ARGUMENTS = ("run", STEADY.name + "::Steady", "-n", TESTS, "--seed", 11, "-q")
SLOWLY = {"NAP": "40"}
"""With two workers all tests take six seconds at least: time to do something midway."""


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    place = tmp_path_factory.mktemp("steady")
    (place / "steady.py").write_text(STEADY.read_text())
    return place


@pytest.fixture(scope="module")
def plain(here, swarmtest, rows):
    """One worker, never interrupted."""
    done = swarmtest(*ARGUMENTS, "-j", 1, "--store", "plain.db", cwd=here)
    assert done.returncode == 1, done.stderr
    return rows(here / "plain.db")


def faults_of(store, campaign=1):
    with open_store(str(store), must_exist=True) as opened:
        return [fault._replace(details="") for fault in opened.faults(campaign)]


def count(store):
    """Trials that are kept so far; 0 while there is no store."""
    if not store.exists():
        return 0
    try:
        with open_store(str(store), read_only=True) as opened:
            return opened.summary(1)["trials"] if opened.campaigns() else 0
    except Exception:
        return 0


def started(log):
    """How many tests have begun."""
    return log.read_text().count("\n") if log.exists() else 0


def test_a_campaign_goes_on_under_the_new_name_of_its_strategy(here, swarmtest, rows):
    """`all-on` was called `default`; stores keep the name that a strategy had."""
    words = ("run", "steady.py::Steady", "-s", "all-on", "--seed", 11, "-j", 1, "-q", "--store")
    swarmtest(*words, "whole.db", "-n", 60, cwd=here)
    swarmtest(*words, "older.db", "-n", 25, cwd=here)
    with contextlib.closing(sqlite3.connect(here / "older.db")) as older:
        older.execute("UPDATE campaigns SET strategy = 'default'")
        older.commit()
    done = swarmtest("resume", "1", "-n", 60, "-j", 1, "-q", "--store", "older.db", cwd=here)
    assert done.returncode == 1, done.stderr
    assert rows(here / "older.db") == rows(here / "whole.db")
    assert "all-on" in swarmtest("list", "--store", "older.db", cwd=here).stdout


def test_the_example_finds_both_bugs(plain, here):
    assert len(faults_of(here / "plain.db")) == 2
    assert {row["verdict"] for row in plain} == {0, 1}
    assert any(row["hits"] for row in plain)


def test_every_trial_is_there_once(plain):
    assert [row["trial"] for row in plain] == list(range(TESTS))


@pytest.mark.parametrize("workers", [0, 2, 7])
def test_the_number_of_workers_changes_nothing(workers, plain, here, swarmtest, rows):
    store = f"workers{workers}.db"
    done = swarmtest(*ARGUMENTS, "-j", workers, "--store", store, cwd=here)
    assert done.returncode == 1, done.stderr
    assert rows(here / store) == plain
    assert faults_of(here / store) == faults_of(here / "plain.db")


def test_another_seed_gives_other_tests(plain, here, swarmtest, rows):
    swarmtest(
        *("run", "steady.py::Steady", "-n", 20, "--seed", 12, "-q", "-j", 0, "--store", "12.db"),
        cwd=here,
    )
    assert rows(here / "12.db") != plain[:20]


def test_the_hash_seed_of_python_changes_nothing(plain, here, swarmtest, rows):
    swarmtest(*ARGUMENTS, "-j", 0, "--store", "hash.db", cwd=here, PYTHONHASHSEED="77")
    assert rows(here / "hash.db") == plain


@pytest.fixture(scope="module")
def interrupted(here, start, until):
    """A campaign that got Ctrl-C midway: the process, what it said, and how many tests it kept."""
    store = here / "interrupted.db"
    arguments = [a for a in ARGUMENTS if a != "-q"]
    process = start(*arguments, "-j", 2, "--store", store.name, cwd=here, **SLOWLY)
    until(lambda: count(store) >= 20, "20 tests")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return process, out, err, count(store)


def test_ctrl_c_ends_with_status_130_and_no_traceback(interrupted):
    process, _, err, _ = interrupted
    assert process.returncode == 130
    assert "Traceback" not in err


def test_ctrl_c_prints_the_command_to_resume(interrupted):
    assert "swarmtest resume 1 --store interrupted.db" in interrupted[1]


def test_ctrl_c_keeps_every_test_that_it_counted(interrupted):
    _, out, _, kept = interrupted
    said = re.search(r"interrupted: ([\d,]+) tests", out)
    assert said, out
    assert int(said[1].replace(",", "")) == kept
    assert 20 <= kept < TESTS


def test_resume_after_ctrl_c_gives_what_an_uninterrupted_run_gives(
    interrupted, here, plain, swarmtest, rows
):
    done = swarmtest("resume", 1, "--store", "interrupted.db", "-j", 2, "-q", cwd=here)
    assert done.returncode == 1, done.stderr
    assert rows(here / "interrupted.db") == plain
    assert faults_of(here / "interrupted.db") == faults_of(here / "plain.db")
    with open_store(str(here / "interrupted.db")) as opened:
        assert opened.campaign(1).status == "finished"


def test_an_impatient_second_ctrl_c_loses_nothing_either(
    here, plain, start, until, swarmtest, rows
):
    store = here / "twice.db"
    process = start(*ARGUMENTS, "-j", 2, "--store", store.name, cwd=here, **SLOWLY)
    until(lambda: count(store) >= 20, "20 tests")
    process.send_signal(signal.SIGINT)
    time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err, err
    done = swarmtest("resume", "--store", store.name, "-j", 2, "-q", cwd=here)
    assert done.returncode == 1, done.stderr
    assert rows(store) == plain


@pytest.fixture
def hanging(here, start, until):
    """Start a campaign whose test has an hour, and hangs when it has begun so many times."""

    def begin(runs, name):
        log = here / f"{name}{runs}.log"
        machine = "Hangs" if runs == 1 else "CrashesThenHangs"
        process = start(
            *("run", f"steady.py::{machine}", "-n", 10, "-j", 1, "--store", f"{name}{runs}.db"),
            *("--timeout", "1h"),
            cwd=here,
            LOG=str(log),
        )
        until(lambda: started(log) >= runs, "the hanging test")
        return process, log

    return begin


@pytest.mark.parametrize("runs", [1, 2])
def test_ctrl_c_does_not_wait_for_a_test_that_hangs(runs, hanging):
    """Both while a test hangs for the first time, and while its steps are found out."""
    process, log = hanging(runs, "hang")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert started(log) == runs


def test_ctrl_c_without_workers_keeps_the_tests_that_are_done(here, start, until):
    store, log = here / "inline.db", here / "inline.log"
    process = start(
        *("run", "steady.py::Sleeps", "-n", 1000, "-j", 0, "--store", store.name, "-q"),
        cwd=here,
        LOG=str(log),
    )
    until(lambda: started(log) >= 4, "three tests")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert started(log) - 1 <= count(store) <= started(log)


def test_sigterm_stops_like_ctrl_c(here, start, until):
    store = here / "term.db"
    process = start(*ARGUMENTS, "-j", 1, "--store", store.name, cwd=here, **SLOWLY)
    until(lambda: count(store) >= 5, "5 tests")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "resume" in out
    assert "Traceback" not in err


def hosts_and_children(process, family):
    """The two hosts of a running campaign, and their two children."""
    above = {}
    for pid in family(process):
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{pid}/stat").read_text()
            above[pid] = int(stat.rpartition(")")[2].split()[1])
    hosts = [pid for pid, parent in above.items() if parent == process.pid]
    children = [pid for pid, parent in above.items() if parent in hosts]
    return (hosts, children) if len(hosts) == len(children) == 2 else None


@pytest.mark.parametrize("victim", ["host", "child"])
def test_killing_a_worker_process_loses_and_doubles_nothing(
    victim, here, plain, start, until, family, rows
):
    store = here / f"kill-{victim}.db"
    hurry = here / f"kill-{victim}.hurry"
    process = start(
        *(*ARGUMENTS, "-j", 2, "--store", store.name), cwd=here, HURRY=str(hurry), **SLOWLY
    )
    until(lambda: count(store) >= 10, "10 tests")
    hosts, children = until(lambda: hosts_and_children(process, family), "two workers")
    os.kill((hosts if victim == "host" else children)[0], signal.SIGKILL)
    hurry.touch()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    found = rows(store)
    if victim == "child":  # nobody can tell an outside kill from the program's own end
        known = {row["fault"] for row in plain}
        died = [row["trial"] for row in found if row["fault"] not in known]
        assert len(died) <= 1
        found = [plain[row["trial"]] if row["trial"] in died else row for row in found]
    assert found == plain
    until(lambda: not family(process), "no process is left")


def test_killing_the_whole_campaign_leaves_no_process_and_resume_completes_it(
    here, plain, start, until, family, swarmtest, rows
):
    store = here / "killed.db"
    process = start(*ARGUMENTS, "-j", 2, "--store", store.name, cwd=here, **SLOWLY)
    until(lambda: count(store) >= 20, "20 tests")
    process.kill()
    process.wait()
    until(lambda: not family(process), "no process is left")
    kept = count(store)
    assert 20 <= kept < TESTS
    done = swarmtest("resume", "--store", store.name, "-j", 2, "-q", cwd=here)
    assert done.returncode == 1, done.stderr
    assert rows(store) == plain


@pytest.mark.parametrize("runs", [1, 2])
def test_a_killed_campaign_whose_test_hangs_leaves_no_process(runs, hanging, until, family):
    """Both while a test hangs for the first time, and while its steps are found out."""
    process, _ = hanging(runs, "orphan")
    process.kill()
    process.wait()
    until(lambda: not family(process), "no process is left")


def test_resuming_a_finished_campaign_adds_nothing(here, plain, swarmtest, rows):
    done = swarmtest("resume", 1, "--store", "plain.db", "-j", 1, "-q", cwd=here)
    assert done.returncode == 1, done.stderr
    assert rows(here / "plain.db") == plain


def test_resume_with_a_larger_budget_goes_on_with_the_same_tests(here, plain, swarmtest, rows):
    swarmtest(
        *("run", "steady.py::Steady", "-n", 100, "--seed", 11, "-q", "-j", 0, "--store", "more.db"),
        cwd=here,
    )
    assert rows(here / "more.db") == plain[:100]
    done = swarmtest("resume", "-n", TESTS, "--store", "more.db", "-q", "-j", 2, cwd=here)
    assert done.returncode == 1, done.stderr
    assert rows(here / "more.db") == plain


def test_resume_counts_the_targets_that_were_known_before(here, swarmtest):
    common = ("--json", "-j", 0, "--store", "targets.db")
    first = swarmtest("run", "steady.py::Steady", "-n", 200, "--seed", 11, *common, cwd=here)
    again = swarmtest("resume", "-n", 201, *common, cwd=here)
    before, after = (
        json.loads(done.stdout.splitlines()[-1])["progress"]["targets"] for done in (first, again)
    )
    assert before >= 3
    assert after >= before


def test_a_changed_machine_is_not_resumed(tmp_path, swarmtest, refused):
    machine = tmp_path / "m.py"
    code = "from swarmtest import Machine, action\nclass M(Machine):\n"
    one = "    @action\n    def a(self): pass\n"
    machine.write_text(code + one)
    swarmtest("run", "m.py", "-n", 5, "-q", "-j", 0, cwd=tmp_path)
    machine.write_text(code + one + one.replace("a(", "b("))
    refused(swarmtest("resume", "-n", 9, "-j", 0, cwd=tmp_path), "other features")


def test_the_file_may_have_moved_which_is_said_in_one_line(tmp_path, swarmtest, refused):
    machine = tmp_path / "m.py"
    machine.write_text(
        "from swarmtest import Machine, action\nclass M(Machine):\n"
        "    @action\n    def a(self): pass\n"
    )
    swarmtest("run", "m.py", "-n", 5, "-q", "-j", 0, cwd=tmp_path)
    machine.rename(tmp_path / "n.py")
    refused(swarmtest("resume", "-n", 9, "-j", 0, cwd=tmp_path), "m.py")
