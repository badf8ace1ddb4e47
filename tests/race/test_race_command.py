"""`swarmtest race`, as a real process."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from pytest_processes import pytest_words

COUNTER = """
import threading

class Counter:
    def __init__(self):
        self.value = 0

    def add(self):
        value = self.value
        self.value = value + 1

def count_to_two():
    counter = Counter()
    threads = [threading.Thread(target=counter.add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.value == 2, counter.value
"""
FIXED = COUNTER.replace("def add(self):", "def add(self, lock=threading.Lock()):").replace(
    "        value = self.value\n        self.value = value + 1",
    "        with lock:\n            value = self.value\n            self.value = value + 1",
)
AWKWARD = """
import asyncio, os, sys, threading

def no_thread():
    pass

async def only_asyncio():
    await asyncio.sleep(0)

def with_arguments(number):
    pass

def started(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()

def ends():
    started(lambda: os._exit(3))

def forks():
    def fork():
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    started(fork)

def blocks():
    read, write = os.pipe()
    started(lambda: open(read, "rb", 0).read(1))

def always_fails():
    started(list)
    raise ValueError("no")
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, swarmtest) -> Path:
    """A directory with a race that was found and saved."""
    place = tmp_path_factory.mktemp("races")
    (place / "counter.py").write_text(COUNTER)
    (place / "awkward.py").write_text(AWKWARD)
    (place / "tests").mkdir()
    run = swarmtest(
        *("race", "counter.py::count_to_two", "-n", 100, "--control"),
        *("--save", "tests/test_race_counter.py"),
        cwd=place,
    )
    assert run.returncode == 1, run.stderr
    (place / "printed.txt").write_text(run.stdout)
    return place


def test_it_prints_the_fault_its_timeline_and_what_to_do_next(place: Path) -> None:
    printed = (place / "printed.txt").read_text()
    assert "AssertionError: # [count_to_two: assert counter.value == 2, counter.value]" in printed
    assert "not seen on your interpreter" in printed
    assert "replayed: 10 of 10 times" in printed
    assert "main.1 (counter.py)" in printed
    assert "writes self.value: 1 -> 1" in printed
    assert "replay: swarmtest replay 19e28e29" in printed


def test_other_commands_know_the_campaign(place: Path, swarmtest) -> None:
    replayed = swarmtest("replay", "19e28e29", cwd=place)
    assert replayed.returncode == 1
    assert "the same as recorded" in replayed.stdout
    assert "random-walk" in swarmtest("roles", 1, cwd=place).stdout
    assert swarmtest("report", 1, cwd=place).returncode == 0
    page = (place / "report.html").read_text()
    assert '<table class="race">' in page
    assert "stopped here" in page
    assert "not seen on your interpreter" in page


def test_the_saved_test_fails_until_the_race_is_gone(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "tests", tmp_path / "tests")
    words = pytest_words("-q", "-p", "no:cacheprovider", "tests")
    (tmp_path / "counter.py").write_text(COUNTER)
    before = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert "reads self.value: 0" in before.stdout
    assert "1 failed" in before.stdout
    (tmp_path / "counter.py").write_text(FIXED)
    after = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert "1 passed" in after.stdout


def test_after_a_fix_a_bound_is_printed(place: Path, tmp_path: Path, swarmtest) -> None:
    (tmp_path / "counter.py").write_text(FIXED)
    saved = tmp_path / "race.json"
    swarmtest("replay", "19e28e29", "--no-run", "--save", saved, cwd=place)
    done = swarmtest(
        "race", "counter.py::count_to_two", "--after", "race.json", "-n", 299, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "the old schedule passes\n0 of 299 schedules near it fail" in done.stdout
    # 1 - 0.05 ** (1 / 299): the rule of three gives 3 / 299
    assert "at most 1.00% of the schedules near the old one fail" in done.stdout


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_thread", "starts no thread: there is nothing to schedule"),
        ("only_asyncio", "one task of asyncio only"),
        ("with_arguments", "needs arguments (number)"),
        ("ends", "ends its process by os._exit(3)"),
        ("missing", "has no function 'missing'"),
    ],
)
def test_what_cannot_be_raced_is_refused_in_one_line(
    place: Path, swarmtest, refused, name: str, words: str
) -> None:
    refused(swarmtest("race", f"awkward.py::{name}", "-q", cwd=place), words)


def test_a_program_that_blocks_outside_of_probes_does_not_hang(
    place: Path, swarmtest, refused
) -> None:
    done = swarmtest("race", "awkward.py::blocks", "-q", "--timeout", "1s", cwd=place)
    refused(done, "main.1 is in blocks", "waits where there are no probes")


def test_a_program_that_forks_is_raced_and_that_is_said(place: Path, swarmtest) -> None:
    done = swarmtest("race", "awkward.py::forks", "-q", "-n", 5, "--control", cwd=place)
    assert done.returncode == 0, done.stderr
    assert "note: the program forks" in done.stdout


def test_a_fault_that_needs_no_race_is_said_to_need_none(place: Path, swarmtest) -> None:
    done = swarmtest("race", "awkward.py::always_fails", "-q", "-n", 5, "--control", cwd=place)
    assert "it fails without any switch" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name what to race"),
        (["nothing.py"], "no such file"),
        (["printed.txt"], "a script or test is a Python file"),
        (["counter.py::count_to_two", "--after", "00000000"], "has no test of a fault 00000000"),
        (["counter.py::count_to_two", "--save", "race.txt"], "ends in .py"),
        (["counter.py::count_to_two", "--coverage", "pear"], "did you mean 'pair'?"),
        (["--noise", "--", "./program"], "--noise works only for Python programs"),
        (["counter.py", "--", "./program"], "named after --"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(
    place: Path, swarmtest, refused, arguments: list[str], words: str
) -> None:
    refused(swarmtest("race", "-q", *arguments, cwd=place), words)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc: apt-get install gcc")
def test_a_native_program_is_raced_with_noise(tmp_path: Path, swarmtest) -> None:
    (tmp_path / "program.c").write_text(
        """
        #include <pthread.h>
        #include <stdlib.h>
        int total;
        pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        void *add(void *nothing) {
            pthread_mutex_lock(&lock); int value = total; pthread_mutex_unlock(&lock);
            pthread_mutex_lock(&lock); total = value + 1; pthread_mutex_unlock(&lock);
            return 0;
        }
        int main() {
            pthread_t one, two;
            pthread_create(&one, 0, add, 0); pthread_create(&two, 0, add, 0);
            pthread_join(one, 0); pthread_join(two, 0);
            if (total != 2) abort();
            return 0;
        }
        """
    )
    subprocess.run(["gcc", "-pthread", "-o", "program", "program.c"], cwd=tmp_path, check=True)
    done = swarmtest("race", "-q", "-n", 60, "--", "./program", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "signal: SIGABRT" in done.stdout


def test_what_is_left_after_a_fix_is_told_to_programs_as_well(tmp_path, swarmtest):
    (tmp_path / "counter.py").write_text(COUNTER)
    race = ("race", "counter.py::count_to_two")
    found = swarmtest(*race, "--control", "--tests", "60", "-q", cwd=tmp_path).stdout
    fault = found.partition("fault ")[2][:8]
    (tmp_path / "counter.py").write_text(FIXED)
    done = swarmtest(*race, "--after", fault, "--tests", "50", "--json", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert (told["runs"], told["failures"], told["old_fails"]) == (50, 0, "")
    assert 0.05 < told["fails_at_most"] < 0.07  # the rule of three


def test_a_race_goes_on_and_its_report_says_how_to_run_it_again(tmp_path, swarmtest):
    (tmp_path / "counter.py").write_text(COUNTER)
    words = ("counter.py::count_to_two", "--control", "--coverage", "pair,line", "-q")
    swarmtest("race", *words, "--tests", "40", cwd=tmp_path)
    done = swarmtest("resume", "--tests", "60", "-q", cwd=tmp_path)
    assert "60 runs" in done.stdout
    assert "~ ~ ~ stopped ~ ~ ~" in done.stdout  # the picture, not only the test
    table = swarmtest("coverage", cwd=tmp_path).stdout
    assert table.splitlines()[0].split()[:3] == ["file", "line", "pair"]
    swarmtest("report", cwd=tmp_path)
    again = "swarmtest race --control --coverage line,pair counter.py::count_to_two --seed 0"
    assert f"{again} --tests 60" in (tmp_path / "report.html").read_text()


def test_packages_without_probes_are_named(tmp_path: Path, swarmtest) -> None:
    elsewhere, here = tmp_path / "elsewhere", tmp_path / "here"
    elsewhere.mkdir()
    here.mkdir()
    (elsewhere / "counting.py").write_text(
        "def count():\n    total = 0\n    for n in range(50):\n        total += n\n"
    )
    (here / "work.py").write_text(
        "import sys, threading\n"
        f"sys.path.append({str(elsewhere)!r})\n"
        "import counting\n"
        "def main():\n"
        "    threads = [threading.Thread(target=counting.count) for _ in range(2)]\n"
        "    for thread in threads:\n        thread.start()\n"
        "    for thread in threads:\n        thread.join()\n"
    )
    printed = swarmtest("race", "work.py::main", "-n", "20", "--control", cwd=here).stdout
    assert "note: no probes in counting" in printed
    assert "--cover work.py --cover counting gives them probes" in printed


def test_the_diagram_is_saved_for_mermaid(tmp_path: Path, swarmtest) -> None:
    (tmp_path / "counter.py").write_text(COUNTER)
    words = ("race", "counter.py::count_to_two", "-n", "200", "--control", "--save", "race.mmd")
    assert "wrote race.mmd" in swarmtest(*words, cwd=tmp_path).stdout
    lines = (tmp_path / "race.mmd").read_text().splitlines()
    assert lines[0] == "sequenceDiagram"
    assert sum("reads self.value: 0" in line for line in lines) >= 2
    assert "AssertionError: 1" in lines[-1]
