"""Bad input gets one clear line and exit status 2, and nothing is lost."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from swarmtest.store import open_store

GOOD = """
from swarmtest import Machine, action, integers

class Good(Machine):
    steps = 5
    @action(value=integers(0, 9))
    def push(self, value): ...
    @action
    def pop(self): raise OSError
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory, swarmtest):
    place = tmp_path_factory.mktemp("bad")
    (place / "good.py").write_text(GOOD)
    done = swarmtest("run", "good.py", "-n", 30, "-j", 0, "-q", cwd=place)
    assert done.returncode == 1, done.stderr
    return place


@pytest.fixture(scope="module", autouse=True)
def waiting(place, start, tmp_path_factory):
    """A command that waits for a locked store, half a minute, while the other tests run."""
    store = tmp_path_factory.mktemp("locked") / "s.db"
    with open_store(str(store)):
        pass
    connection = sqlite3.connect(store, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    yield start("run", "good.py", "-n", 5, "-j", 0, "--store", store, cwd=place), store, connection
    connection.close()


FILES: dict[str, tuple[str | bytes, list[str]]] = {
    "syntax.py": ("def f(:\n", ["syntax.py:1"]),
    "missing_import.py": ("import numpyy\n", ["missing_import.py", "numpyy"]),
    "raises.py": ("x = 1\nraise ValueError('first\\nsecond')\n", ["raises.py:2", "first"]),
    "exits.py": ("import sys\nsys.exit(3)\n", ["exits.py"]),
    "empty.py": ("", ["defines no machine"]),
    "several.py": (
        GOOD + "\nclass Other(Good): ...\n",
        ["several subjects", "Good", "Other"],
    ),
    "no_actions.py": (
        "from swarmtest import Machine\nclass M(Machine): ...\n",
        ["'M' has no actions"],
    ),
    "bad_generator.py": (
        "from swarmtest import *\nclass M(Machine):\n    @action(a=3)\n    def go(self, a): ...\n",
        ["M.go", "'a'"],
    ),
    "not_utf8.py": (b"x = '\xff\xfe'\n", ["not_utf8.py"]),
    "bad_steps.py": (
        "from swarmtest import *\nclass M(Machine):\n"
        "    steps = 'ten'\n    @action\n    def go(self): ...\n",
        ["steps"],
    ),
    "bad_init.py": (
        "from swarmtest import *\nclass M(Machine):\n"
        "    def __init__(self, port): ...\n    @action\n    def go(self): ...\n",
        ["M"],
    ),
    "bad_length.py": (
        "from swarmtest import *\nclass M(Machine):\n"
        "    steps = lambda rng: rng.nothing\n    @action\n    def go(self): ...\n",
        ["steps"],
    ),
    "json.py": (GOOD, ["json.py", "rename"]),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_used(name, tmp_path, swarmtest, refused):
    code, words = FILES[name]
    (tmp_path / name).write_bytes(code if isinstance(code, bytes) else code.encode())
    refused(swarmtest("run", name, "-n", 5, "-j", 1, cwd=tmp_path), *words)


ARGUMENTS = {
    "a file that is not there": ("run goood.py", ["goood.py", "did you mean 'good.py'"]),
    "a directory": ("run .", ["."]),
    "a module that is not there": ("run nosuchmodule:M", ["nosuchmodule"]),
    "a machine that is not there": ("run good.py::Godo", ["did you mean 'Good'"]),
    "something that is no machine": (
        "run good.py::integers",
        ["is neither a Machine nor another subject"],
    ),
    "an unknown strategy": ("run good.py -s cion", ["did you mean 'coin'"]),
    "an unknown parameter": ("run good.py -s coin:q=1", ["coin", "'q'"]),
    "a parameter that is no number": ("run good.py -s coin:p=half", ["p"]),
    "a parameter out of range": ("run good.py -s coin:p=7", ["p is above 0"]),
    "a parameter without a value": ("run good.py -s coin:p", ["NAME=VALUE"]),
    "a strategy file that is not there": ("run good.py -s no.py:S", ["no.py"]),
    "a strategy that is none": ("run good.py -s good.py:Good", ["no method ask"]),
    "a strategy that cannot be imported": ("run good.py -s nosuch:S", ["nosuch"]),
    "an empty strategy": ("run good.py -s=", ["strategy"]),
    "no tests": ("run good.py -n 0", ["tests"]),
    "tests that are no number": ("run good.py -n many", ["many"]),
    "a time that is none": ("run good.py --time soon", ["soon", "30s"]),
    "a CPU time that is none": ("run good.py --cpu-time 1y", ["1y"]),
    "a timeout of zero": ("run good.py --timeout 0s", ["0s"]),
    "a size that is none": ("run good.py --memory lots", ["lots", "512MB"]),
    "steps that are none": ("run good.py --steps few", ["few"]),
    "steps the wrong way round": ("run good.py --steps 9-3", ["9-3"]),
    "a negative number of workers": ("run good.py -j -1", ["workers"]),
    "an unknown option": ("run good.py --fast", ["--fast"]),
    "an unknown command": ("rnu good.py", ["rnu"]),
    "a missing argument": ("run", ["PATH"]),
    "raises without api": ("run good.py --raises OSError", ["--raises", "--api"]),
    "an unknown campaign": ("show 9", ["no campaign 9"]),
    "an unknown campaign to resume": ("resume 9", ["no campaign 9"]),
    "an unknown campaign to export": ("export 9", ["no campaign 9"]),
    "an unknown campaign to delete": ("delete 9 -y", ["no campaign 9"]),
    "a huge campaign number": ("show 99999999999999999999999", ["no campaign"]),
    "an unknown trial": ("replay 1#99", ["no trial 99"]),
    "a trial of an unknown campaign": ("replay 9#1", ["no campaign 9"]),
    "a trial that is none": ("replay 1#x", ["1#x"]),
    "an unknown fault": ("faults 1 zzz", ["zzz"]),
    "a test file that is not there": ("replay nothing.json", ["nothing.json"]),
    "a test file that is a directory": ("replay .", ["."]),
    "a test file that is no test": ("replay good.py", ["good.py"]),
    "a place where the test cannot be saved": ("replay 1#0 --save no/t.json", ["no/t.json"]),
    "a place where the export cannot be written": ("export 1 -o no/e.csv", ["no/e.csv"]),
    "an export to a kind that is not known": ("export 1 -o out.xlsx", ["xlsx"]),
    "an export in a kind that is not known": ("export 1 -f xml", ["xml"]),
    "a store that is not there": ("list --store nothing.db", ["nothing.db"]),
    "an empty name of a store": ("list --store=", ["store"]),
    "a store of another kind": ("list --store mysql://x", ["mysql"]),
}


@pytest.mark.parametrize("what", ARGUMENTS)
def test_a_mistake_on_the_command_line(what, place, swarmtest, refused):
    command, words = ARGUMENTS[what]
    refused(swarmtest(*command.split(), cwd=place), *words)


SAVED = {
    "a number for a subject": '{"format": "swarmtest machine test 1", "subject": 3, "steps": []}',
    "no steps": '{"format": "swarmtest machine test 1", "subject": "good.py::Good"}',
    "another format": '{"format": "x", "subject": "good.py::Good", "steps": []}',
    "an unknown action": '{"format": "swarmtest machine test 1", "subject": "good.py::Good",'
    ' "steps": [["psuh", [1]]]}',
    "steps that are none": '{"format": "swarmtest machine test 1", "subject": "good.py::Good",'
    ' "steps": [3]}',
    "a broken value": '{"format": "swarmtest machine test 1", "subject": "good.py::Good",'
    ' "steps": [["push", [{"$pickle": "AAAA", "repr": "?"}]]]}',
    "a pattern that is none": '{"format": "swarmtest machine test 1", "subject": "good.py::Good",'
    ' "steps": [["push", [{"$pattern": "(((a", "flags": 0}]]]}',
    "an unknown tag": '{"format": "swarmtest machine test 1", "subject": "good.py::Good",'
    ' "steps": [["push", [{"$future": 1}]]]}',
    "text": "hello",
    "bytes": "\udcff",
    "nothing": "",
}


@pytest.mark.parametrize("what", SAVED)
def test_a_saved_test_that_is_broken(what, place, swarmtest, refused, tmp_path):
    file = tmp_path / "t.json"
    file.write_text(SAVED[what], errors="surrogateescape")
    refused(swarmtest("replay", file, cwd=place))


def test_a_guard_that_is_never_true_is_said_and_the_campaign_is_kept(tmp_path, swarmtest, refused):
    (tmp_path / "m.py").write_text(
        "from swarmtest import *\nclass M(Machine):\n"
        "    @action\n    def a(self): ...\n"
        "    @action(when=lambda self: False)\n    def b(self): ...\n"
    )
    done = swarmtest("run", "m.py", "-n", 400, "-j", 1, "-q", cwd=tmp_path)
    refused(done, "'b'", "never")
    with open_store(str(tmp_path / ".swarmtest" / "swarmtest.db")) as store:
        assert store.summary(1)["trials"] == 400


def test_a_machine_of_which_no_action_is_ever_possible(tmp_path, swarmtest, refused):
    (tmp_path / "m.py").write_text(
        "from swarmtest import *\nclass M(Machine):\n"
        "    @action(when=lambda self: False)\n    def b(self): ...\n"
    )
    refused(swarmtest("run", "m.py", "-n", 300, "-j", 1, "-q", cwd=tmp_path), "'b'", "never")


# Stores that cannot be used.

COMMANDS = ["run good.py -n 5 -j 0", "list", "show 1", "faults 1", "export 1", "resume 1 -n 40"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"this is not a database, but a text\n" * 200, ["damaged or not a store"]),
        (b"SQLite format 3\0" + b"\xff" * 5000, ["damaged or not a store"]),
    ],
)
def test_a_store_that_is_no_store(command, content, words, place, swarmtest, refused, tmp_path):
    store = tmp_path / "s.db"
    store.write_bytes(content)
    refused(swarmtest(*command.split(), "--store", store, cwd=place), *words, "s.db")
    assert store.read_bytes() == content


@pytest.fixture
def own_store(place, swarmtest, tmp_path):
    store = tmp_path / "s.db"
    swarmtest("run", "good.py", "-n", 10, "-j", 0, "-q", "--store", store, cwd=place)
    return store


@pytest.mark.parametrize("command", ["run good.py -n 5 -j 0", "list"])
def test_a_store_of_a_newer_schema(command, place, swarmtest, refused, own_store):
    with closing(sqlite3.connect(own_store)) as connection, connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    refused(swarmtest(*command.split(), "--store", own_store, cwd=place), "newer swarmtest", "99")


@pytest.mark.parametrize("command", ["run good.py -n 5 -j 0", "list"])
def test_a_database_of_another_program(command, place, swarmtest, refused, tmp_path):
    store = tmp_path / "other.db"
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute("CREATE TABLE mine (a)")
    connection.close()
    refused(swarmtest(*command.split(), "--store", store, cwd=place), "another program")


@pytest.mark.parametrize("command", ["run good.py -n 5 -j 0", "list"])
def test_a_store_that_is_a_directory(command, place, swarmtest, refused, tmp_path):
    refused(swarmtest(*command.split(), "--store", tmp_path, cwd=place), "is a directory")


def test_a_store_that_is_damaged_in_the_middle_is_said_in_one_line(
    place, swarmtest, refused, own_store
):
    with closing(sqlite3.connect(own_store)) as connection, connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    size = own_store.stat().st_size
    with own_store.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))
    refused(swarmtest("show", 1, "--store", own_store, cwd=place), "damaged")


def has_open(pid, file):
    with contextlib.suppress(OSError):
        return any(fd.resolve() == file for fd in Path(f"/proc/{pid}/fd").iterdir())
    return False


def test_ctrl_c_ends_the_wait_for_a_locked_store(place, start, own_store, until):
    connection = sqlite3.connect(own_store, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    try:
        process = start("run", "good.py", "-n", 5, "-j", 0, "--store", own_store, cwd=place)
        until(lambda: has_open(process.pid, own_store), "the store is opened")
        process.send_signal(2)
        _, said = process.communicate(timeout=25)  # less than the half minute that it would wait
        assert process.returncode == 130, said
    finally:
        connection.execute("ROLLBACK")
        connection.close()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of two megabytes; only root can make one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        os.getuid()
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True
        ).returncode
    ):
        pytest.skip("only root can mount a small disk")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_is_said_and_resume_goes_on_when_there_is_space(
    small_disk, place, swarmtest, refused
):
    store = small_disk / "s.db"
    done = swarmtest(
        *("run", "good.py", "-n", 1_000_000, "-j", 1, "--seed", 2, "-q", "--store", store),
        cwd=place,
    )
    refused(done, "disk is full", "resume")
    with open_store(str(store), read_only=True) as opened:
        kept = opened.summary(1)["trials"]
    assert 0 < kept < 1_000_000
    subprocess.run(["mount", "-o", "remount,size=30m", str(small_disk)], check=True)
    done = swarmtest("resume", "-n", kept + 500, "-j", 1, "-q", "--store", store, cwd=place)
    assert done.returncode == 1, done.stderr
    with open_store(str(store)) as opened:
        assert list(opened.trial_numbers(1)) == list(range(kept + 500))


def fill(disk):
    with (disk / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass


def test_a_disk_that_is_full_from_the_start(small_disk, place, swarmtest, refused):
    fill(small_disk)
    refused(swarmtest("run", "good.py", "-n", 5, "--store", small_disk / "s.db", cwd=place), "full")


def test_an_export_to_a_full_disk(small_disk, place, swarmtest, refused):
    fill(small_disk)
    refused(swarmtest("export", 1, "-o", small_disk / "e.csv", cwd=place), "e.csv")


@pytest.fixture
def read_only(small_disk, place, swarmtest):
    """A finished store on a disk that nobody may write to any more."""
    store = small_disk / "s.db"
    swarmtest("run", "good.py", "-n", 10, "-j", 0, "-q", "--store", store, cwd=place)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    return store


def test_a_read_only_store_cannot_be_written(read_only, place, swarmtest, refused):
    refused(swarmtest("run", "good.py", "-n", 5, "--store", read_only, cwd=place), "s.db")


@pytest.mark.parametrize("command", ["list", "show 1", "faults 1", "export 1", "replay 1#0"])
def test_a_read_only_store_can_be_read(command, read_only, place, swarmtest):
    done = swarmtest(*command.split(), "--store", read_only, cwd=place)
    assert "swarmtest:" not in done.stderr, done.stderr
    assert done.returncode in (0, 1)


def test_two_campaigns_in_one_store_at_once(place, start, tmp_path):
    store = tmp_path / "both.db"
    processes = [
        start("run", "good.py", "-n", 3000, "-j", 1, "-q", "--seed", s, "--store", store, cwd=place)
        for s in (1, 2)
    ]
    for process in processes:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 1, err
    with open_store(str(store)) as opened:
        assert [opened.summary(c.id)["trials"] for c in opened.campaigns()] == [3000, 3000]


def test_a_store_that_is_locked_is_said_after_a_while(waiting, refused):
    process, store, connection = waiting
    out, err = process.communicate(timeout=100)
    connection.execute("ROLLBACK")
    refused(subprocess.CompletedProcess("run", process.returncode, out, err), "locked")
    with open_store(str(store)) as opened:
        assert opened.campaigns() == []
