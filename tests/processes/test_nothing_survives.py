"""No process that a test started survives the test, whichever subject and whichever command."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from swarmtest.store import open_store

Run = Callable[..., subprocess.CompletedProcess[str]]

STRAYS = '''
import os, subprocess, time

STARTED = os.environ["STARTED"]


def started():
    try:
        return [int(line) for line in open(STARTED)]
    except FileNotFoundError:
        return []


def is_alive(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def start():
    before = len(started())
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    script = f'echo $$ >> "{STARTED}"; exec sleep 977'
    subprocess.Popen(["sh", "-c", script], start_new_session=True, **quiet)
    while len(started()) == before:
        time.sleep(0.001)


def leave():
    """Start a process that nobody waits for; the one of the test before must be gone."""
    left = [pid for pid in started() if is_alive(pid)]
    assert not left or os.environ.get("AT_ONCE"), f"processes of earlier tests are alive: {left}"
    way = os.environ["WAY"]
    if way == "daemon":
        child = os.fork()
        if child == 0:
            os.setsid()
            start()
            os._exit(0)
        os.waitpid(child, 0)
    else:
        start()
    if way == "abort":
        os.abort()
'''
MACHINE = """
from strays import leave
from swarmtest import Machine, action

class Leaving(Machine):
    steps = 1
    @action
    def go(self):
        leave()
"""
COUNTER = """
def more(n):
    return n + 1
"""
FAILING_MACHINE = """
from counter import more
from strays import leave
from swarmtest import Machine, action

class Leaving(Machine):
    steps = 4
    def start(self):
        self.gone = 0
        leave()
    @action
    def go(self):
        self.gone = more(self.gone)
        assert self.gone != 3
    @action
    def stay(self):
        pass
"""
API = """
from strays import leave

class Leaving:
    def __init__(self):
        self.left = False
    def go(self, n: int):
        if not self.left:
            self.left = True
            leave()
"""
GRAMMAR = """
from strays import leave
from swarmtest.subjects import GrammarSubject

def run(text):
    leave()

leaving = GrammarSubject('start: item*\\nitem: "a" -> a | "b" -> b', run, length=(1, 5))
"""
HYPOTHESIS = """
from hypothesis.stateful import RuleBasedStateMachine, rule
from strays import leave

class Leaving(RuleBasedStateMachine):
    left = False
    @rule()
    def go(self):
        if not self.left:
            self.left = True
            leave()
"""
COMMAND = """
[generate]
command = ["sh", "-c", "echo hello # {seed} {features}"]
[features]
a = "-a"
[[steps]]
name = "leave"
run = ["PYTHON", "-c", "import strays; strays.leave()"]
cwd = "{here}"
"""
RACED = """
import threading
from strays import leave

def leaving():
    def work():
        pass
    leave()
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""
SPACE = """
[dimensions]
n = { kind = "integer", low = 1, high = 3 }
test = { kind = "test", values = ["leave"] }
[tests.leave]
"""
SUBJECTS = {
    "machine": ("leaving.py", MACHINE, ("leaving.py",)),
    "api": ("leaving.py", API, ("--api", "leaving.py::Leaving")),
    "grammar": ("leaving.py", GRAMMAR, ("leaving.py::leaving",)),
    "hypothesis": ("leaving.py", HYPOTHESIS, ("leaving.py::Leaving",)),
    "command": ("leaving.toml", COMMAND.replace("PYTHON", sys.executable), ("leaving.toml",)),
}
WAYS = ("session", "daemon", "abort")
NUMBERS = itertools.count()


class Place:
    """A directory with a program that leaves processes behind, and the processes it left."""

    def __init__(self, directory: Path, swarmtest: Run, family: Callable[..., list[int]]) -> None:
        self.directory = directory
        self._family = family
        self._swarmtest = swarmtest
        self._mark = f"STRAYS={directory}-{next(NUMBERS)}-"
        (directory / "strays.py").write_text(STRAYS)

    def write(self, name: str, text: str) -> None:
        (self.directory / name).write_text(text)

    def variables(self, way: str) -> dict[str, str]:
        name, _, mark = self._mark.partition("=")
        return {
            name: mark,
            "WAY": way,
            "STARTED": str(self.directory / "started"),
            "PYTHONPATH": str(self.directory),
        }

    def run(self, way: str, *words: object, **env: str) -> subprocess.CompletedProcess[str]:
        return self._swarmtest(*words, cwd=self.directory, **self.variables(way), **env)

    def started(self) -> int:
        file = self.directory / "started"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def fault(self) -> str:
        with open_store(self.directory / ".swarmtest" / "swarmtest.db", read_only=True) as store:
            return store.faults(1)[0].id

    def alive(self) -> list[int]:
        return self._family(types.SimpleNamespace(mark=self._mark))

    def check(self, done: subprocess.CompletedProcess[str], least: int = 1) -> None:
        """Processes were left, each was gone before the next test, and now there is none."""
        text = done.stdout + done.stderr
        assert self.started() >= least, text
        assert "are alive" not in text
        assert "Traceback" not in done.stderr
        assert self.alive() == []


@pytest.fixture
def place(tmp_path: Path, swarmtest: Run, family: Callable[..., list[int]]) -> Iterator[Place]:
    made = Place(tmp_path, swarmtest, family)
    yield made
    for pid in made.alive():
        subprocess.run(["kill", "-9", str(pid)], check=False)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", SUBJECTS)
def test_a_campaign_of_any_subject(kind: str, way: str, place: Place) -> None:
    name, text, words = SUBJECTS[kind]
    place.write(name, text)
    options = ("-n", 8, "-j", 1, "-s", "coin", "--seed", 1, "--allow-unused", "-q")
    place.check(place.run(way, "run", *words, *options), least=4)


@pytest.mark.parametrize("way", ["session", "daemon"])
@pytest.mark.parametrize("kind", SUBJECTS)
def test_a_campaign_in_this_process(kind: str, way: str, place: Place) -> None:
    name, text, words = SUBJECTS[kind]
    place.write(name, text)
    options = ("-n", 8, "-j", 0, "-s", "coin", "--seed", 1, "--allow-unused", "-q")
    place.check(place.run(way, "run", *words, *options), least=4)


def test_forty_tests_leave_nothing(place: Place) -> None:
    place.write("leaving.py", MACHINE)
    done = place.run("session", "run", "leaving.py", "-n", 40, "-j", 1, "-s", "all-on", "-q")
    assert done.returncode == 0, done.stderr + done.stdout
    place.check(done, least=40)


def test_a_host_that_is_killed(place: Place) -> None:
    kill = (
        "leave()\n        if len(started()) == 3:\n            os.kill(os.getppid(), 9)\n"
        "            time.sleep(977)"
    )
    text = MACHINE.replace("leave()", kill).replace("import leave", "import *")
    place.write("leaving.py", text.replace("from strays", "import os, time\nfrom strays"))
    words = ("run", "leaving.py", "-n", 20, "-j", 1, "-s", "all-on", "-q")
    done = place.run("session", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    place.check(done, least=20)


@pytest.mark.parametrize("kind", SUBJECTS)
def test_reducing_and_replaying_a_test_that_ends_its_process(kind: str, place: Place) -> None:
    name, text, words = SUBJECTS[kind]
    place.write(name, text)
    options = ("-n", 6, "-j", 1, "-s", "coin", "--seed", 1, "--allow-unused", "-q")
    place.check(place.run("abort", "run", *words, *options))
    for command in ("reduce", "replay"):
        before = place.started()
        place.check(place.run("abort", command, place.fault()), least=before + 1)


@pytest.mark.parametrize("way", ["session", "daemon"])
def test_commands_on_a_failing_machine(way: str, place: Place) -> None:
    place.write("counter.py", COUNTER)
    place.write("leaving.py", FAILING_MACHINE)
    options = ("-n", 12, "-j", 1, "-s", "coin", "--seed", 1, "--coverage", "line", "-q")
    words: tuple[object, ...] = ("run", "leaving.py", *options, "--cover", "counter")
    place.check(place.run(way, *words), least=12)
    for words in (
        ("reduce", place.fault()),
        ("replay", place.fault()),
        ("mutate", "counter.py"),
        ("suite", "1", "-o", "test_suite.py"),
    ):
        before = place.started()
        place.check(place.run(way, *words), least=before + 1)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("control", ["--control", "--noise", "--isolated"])
def test_a_race(control: str, way: str, place: Place) -> None:
    place.write("leaving.py", RACED)
    words = ("race", control, "leaving.py::leaving", "-n", 5)
    # If it ends its process when it is first tried, it is refused.
    place.check(place.run(way, *words), least=1 if way == "abort" else 2)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "test",
    ['run = "leaving.py::leaving"', "command = \"PYTHON -c 'import strays; strays.leave()'\""],
    ids=("function", "command"),
)
def test_a_search(test: str, way: str, place: Place) -> None:
    place.write("leaving.py", "from strays import leave\ndef leaving(n):\n    leave()\n")
    place.write("space.toml", SPACE + test.replace("PYTHON", sys.executable))
    # One worker is the process of the search itself, which a test may end.
    many = way == "abort"
    words = ("search", "run", "space.toml", "-w", 2 if many else 1)
    place.check(place.run(way, *words, AT_ONCE="yes" if many else ""), least=3)


def run_pytest(place: Place, way: str, *words: str) -> subprocess.CompletedProcess[str]:
    plain = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST")}
    start = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*start, "-p", "swarmtest.pytest_plugin", *words],
        cwd=place.directory,
        env={**plain, **place.variables(way)},
        capture_output=True,
        text=True,
        timeout=120,
    )


# A test that aborts in the process of pytest ends pytest, so that case needs a worker.
@pytest.mark.parametrize(
    ("way", "workers"),
    [(way, workers) for way in WAYS for workers in "01" if (way, workers) != ("abort", "0")],
)
def test_machines_in_pytest(way: str, workers: str, place: Place) -> None:
    place.write("test_it.py", MACHINE)
    place.check(run_pytest(place, way, "--swarm-tests", "8", "--swarm-workers", workers), least=4)


def test_races_in_pytest(place: Place) -> None:
    # What the test left when pytest itself ran it is not ours, so that run leaves nothing.
    text = RACED.replace("def leaving", "def test_leaving").replace("    leave()", "    again()")
    again = """
import os

OWNER = os.getpid()

def again():
    if os.getpid() != OWNER:
        leave()
"""
    place.write("test_it.py", text + again)
    place.check(run_pytest(place, "session", "--race", "--race-tests", "5"), least=2)
