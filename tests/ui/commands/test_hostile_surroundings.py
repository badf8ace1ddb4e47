"""Full devices, low limits, killed campaigns and files that vanish."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time

import pytest

from swarmtest import UserError
from swarmtest.campaign.liveness import GONE, shown_status, this_process
from swarmtest.core.space import Space
from swarmtest.store import open_store
from swarmtest.store.records import CampaignRecord, TrialRecord, WorkerRecord

MACHINE = """
import time
from swarmtest import Machine, action

class Slow(Machine):
    steps = 5
    @action
    def wait(self): time.sleep(0.001)
    @action
    def go(self): pass
"""
PROGRAM = [sys.executable, "-P", "-c", "from swarmtest.ui.cli import main; main()"]


@pytest.fixture
def place(tmp_path):
    (tmp_path / "slow.py").write_text(MACHINE)
    return tmp_path


def one_line(done, *says):
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for text in says:
        assert text in done.stderr


@pytest.mark.parametrize("words", [["--help"], ["strategies"]])
def test_output_that_cannot_be_written_is_one_line(place, words):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*PROGRAM, *words], cwd=place, stdout=full, stderr=subprocess.PIPE, text=True
        )
    one_line(done, "No space left on device")


def close_all(descriptors):
    for descriptor in descriptors:
        os.close(descriptor)


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_streams_are_no_reason_to_fail(place, closed):
    done = subprocess.run(
        [*PROGRAM, "run", "slow.py", "-n", "3", "-j", "1", "--store", "s.db"],
        cwd=place,
        capture_output=True,
        text=True,
        preexec_fn=lambda: close_all(closed),
    )
    assert done.returncode == 0, done.stderr
    with open_store(str(place / "s.db")) as store:
        assert store.summary(1)["trials"] == 3


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("file", "text", "command"),
    [
        ("t.json", DEEP, "replay t.json"),
        ("t.json", DEEP, "replay t.json --no-run"),
        ("state", DEEP, "reduce t.txt --keep command=true --state state"),
        ("c.json", '{"files": ' + DEEP, "import-coverage c.json"),
        ("x.toml", f"a = {DEEP}", "run x.toml"),
        ("x.toml", f"a = {DEEP}", "search run x.toml"),
        ("x.toml", f"a = {DEEP}", "run slow.py --executor x.toml"),
    ],
)
def test_a_file_that_is_nested_deeply_is_one_line(place, swarmtest, file, text, command):
    (place / "t.txt").write_text("a\n")
    (place / file).write_text(text)
    one_line(swarmtest(*command.split(), cwd=place), file)


def test_a_low_limit_of_open_files_is_one_line(place):
    done = subprocess.run(
        [*PROGRAM, "run", "slow.py", "-n", "20", "-j", "1"],
        cwd=place,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8)),
    )
    one_line(done, "Too many open files", "ulimit -n")


def test_more_workers_than_a_machine_can_use_are_refused(place, swarmtest):
    one_line(swarmtest("run", "slow.py", "-j", 100_000, cwd=place), "100,000 workers are too many")


def running(place, start):
    """Start a campaign that takes long, and wait until some of its tests are stored."""
    process = start("run", "slow.py", "-n", 10_000_000, "-j", 1, "--store", "s.db", cwd=place)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            with open_store(str(place / "s.db"), read_only=True) as store:
                if store.summary(1)["trials"]:
                    return process
        except UserError:
            pass
        time.sleep(0.05)
    raise AssertionError("no test was stored within two minutes")


def test_a_killed_campaign_is_shown_as_stopped(place, start, swarmtest):
    process = running(place, start)
    assert " running " in swarmtest("list", "--store", "s.db", cwd=place).stdout
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert GONE in swarmtest("list", "--store", "s.db", cwd=place).stdout
    assert GONE in swarmtest("show", "--store", "s.db", cwd=place).stdout
    checked = swarmtest("doctor", "s.db", cwd=place)
    assert checked.returncode == 0
    assert "`swarmtest resume 1 --store s.db` continues it" in checked.stdout
    swarmtest("report", "-o", "r.html", "--store", "s.db", cwd=place)
    assert GONE in (place / "r.html").read_text()


def test_a_running_campaign_is_neither_resumed_nor_deleted(place, start, swarmtest):
    process = running(place, start)
    for words in (("resume", "1", "-n", 5), ("delete", "1", "-y")):
        done = swarmtest(*words, "--store", "s.db", cwd=place)
        one_line(done, f"campaign 1 is running (process {process.pid})")
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=120) == 130
    assert swarmtest("delete", "1", "99", "-y", "--store", "s.db", cwd=place).returncode == 2
    assert swarmtest("show", "1", "--store", "s.db", cwd=place).returncode == 0
    assert swarmtest("delete", "1", "-y", "--store", "s.db", cwd=place).returncode == 0


def test_a_process_is_not_mistaken_for_another_one_with_its_number():
    record = CampaignRecord("slow.py", "coin", 1, {}, {"process": this_process()})
    assert shown_status(record, []) == "running"
    record.options["process"]["started"] = "another time"
    assert shown_status(record, []) == GONE


@pytest.mark.parametrize(
    ("seconds", "status"), [(3, "running"), (900, "silent (no report for 15 minutes)")]
)
def test_a_campaign_elsewhere_runs_while_its_workers_report(seconds, status):
    process = {"host": "elsewhere", "pid": os.getpid(), "started": "some time"}
    record = CampaignRecord("slow.py", "coin", 1, {}, {"process": process})
    worker = WorkerRecord("w", "elsewhere", 5, 0.0, time.time() - seconds)
    assert shown_status(record, [worker]) == status


def test_a_campaign_that_has_ended_does_not_name_its_process(place, swarmtest):
    swarmtest("run", "slow.py", "-n", 20, "--store", "s.db", cwd=place)
    with open_store(str(place / "s.db")) as store:
        assert "process" not in store.campaign(1).options


@pytest.mark.parametrize("replaced", [False, True])
def test_a_store_that_vanishes_ends_the_campaign(place, start, replaced):
    process = running(place, start)
    if replaced:
        open_store(str(place / "other.db")).close()
        (place / "other.db").rename(place / "s.db")
    else:
        (place / "s.db").rename(place / "moved.db")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert len(err.splitlines()) == 1, err
    assert ("replaced by another file" if replaced else "deleted or moved") in err


def test_a_deleted_store_refuses_what_is_written(tmp_path):
    with open_store(str(tmp_path / "s.db")) as store:
        space = Space(["push"])
        number = store.add_campaign(CampaignRecord("a.py", "coin", 1, space.to_json()))
        (tmp_path / "s.db").unlink()
        with pytest.raises(UserError, match="deleted or moved while it was in use"):
            store.record(number, [TrialRecord(0, space.default().to_bytes())])


def test_a_full_disk_at_creation_does_not_promise_resume(tmp_path):
    program = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)); "
        "from swarmtest.store import open_store; from swarmtest.store.sqlite import file; "
        "file._no_space = lambda path: True\n"
        "try: open_store('s.db')\n"
        "except Exception as error: print(error)"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert "the disk is full, and nothing was recorded" in said.stdout, said.stderr
    assert "resume" not in said.stdout


@pytest.mark.parametrize("workers", [1, 2])
def test_a_test_that_deletes_the_store_ends_the_campaign_with_one_line(
    tmp_path, swarmtest, workers
):
    (tmp_path / "deletes.py").write_text(
        MACHINE.replace(
            "def go(self): pass",
            "def go(self):\n        self.event('seen')\n"
            "        if os.path.exists('s.db'): os.unlink('s.db')",
        ).replace("import time", "import os, time")
    )
    words = ("-n", 200, "-j", workers, "-q", "--store", "s.db")
    one_line(swarmtest("run", "deletes.py", *words, cwd=tmp_path), "deleted or moved")
