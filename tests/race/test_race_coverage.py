"""Lines and branches of a raced program, beside what its threads do to each other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from raced_programs import LOST_UPDATE

from swarmtest import Campaign, UserError, open_store
from swarmtest.race import ThreadsSubject
from swarmtest.race.race_test import RaceTest
from swarmtest.race.raced_program import split_kinds
from swarmtest.ui.terminal.coverage import campaign_tally

BESIDE = """
def add(totals):
    if len(totals) > 99:
        totals.clear()
    totals.append(1)
"""
SCRIPT = """
import threading
from adding import add

totals = []
threads = [threading.Thread(target=add, args=(totals,)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
SUITE = """
import threading
import unittest
from counter import Counter

def raced(counter):
    threads = [threading.Thread(target=counter.add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.value == 2

class TestCounter(unittest.TestCase):
    def test_two(self):
        raced(Counter())

def test_with_a_directory(tmp_path):
    (tmp_path / "file").touch()
    raced(Counter())
"""
Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def file(name: str, text: str) -> None:
        (tmp_path / name).write_text(text)

    return file


def raced(
    name: str, kinds: str, tests: int = 30
) -> tuple[dict[str, tuple[int, int]], list[tuple[int, int, str | None]]]:
    """What was reached of each kind, and what came of each run."""
    code, _ = split_kinds(kinds)
    subject = ThreadsSubject(name)
    watching = subject.raced.watching(code) if code else None
    with open_store(":memory:") as store:
        campaign = Campaign(subject, "coin", tests, workers=1, store=store, coverage=watching)
        number = campaign.run().campaign
        ran = [(t.trial, t.verdict, store.test(number, t.trial)) for t in store.trials(number)]
        return campaign_tally(store, number).shares(), ran


@pytest.mark.parametrize("where", ["", "--isolated "])
def test_one_run_tells_lines_branches_and_pairs(write: Write, where: str) -> None:
    write("counter.py", LOST_UPDATE)
    shares, _ = raced(f"race {where}--coverage pair counter.py::count_to_two", "line,branch")
    assert shares["line"] == (15, 15)
    assert shares["branch"] == (4, 4)
    assert shares["pair"][0] > 10


def test_the_modules_of_a_script_are_covered(write: Write) -> None:
    write("adding.py", BESIDE)
    write("script.py", SCRIPT)
    shares, _ = raced("race --coverage sync script.py", "line,branch", tests=6)
    hit, known = shares["line"]
    assert known - hit == 1  # the list is never cleared
    assert shares["branch"] == (5, 6)
    assert shares["sync"][0] >= 2


def test_coverage_does_not_change_what_is_scheduled(write: Write) -> None:
    write("counter.py", LOST_UPDATE)
    name = "race --control counter.py::count_to_two"
    _, plain = raced(name, "pair", tests=60)
    _, covered = raced(name, "line,branch,predicate,path", tests=60)
    assert covered == plain


@pytest.mark.parametrize("test", ["TestCounter::test_two", "test_with_a_directory"])
def test_tests_of_unittest_and_those_with_directories_fail_as_they_should(
    write: Write, test: str
) -> None:
    write("counter.py", LOST_UPDATE)
    write("test_counter.py", SUITE)
    _, ran = raced(f"race --control test_counter.py::{test}", "pair", tests=30)
    assert 3 < sum(verdict == 1 for _, verdict, _ in ran) < 27


def test_a_script_that_fails_before_it_starts_a_thread_is_no_race(write: Write) -> None:
    write("script.py", "import argparse\nargparse.ArgumentParser().parse_args(['--what'])\n")
    [problem] = ThreadsSubject("race script.py").check()
    assert problem == (
        "script.py: it fails before it starts a thread (it is run without arguments): SystemExit: 2"
    )


def test_a_fault_that_needs_no_switch_happens_everywhere(write: Write) -> None:
    deep = "import threading\n\ndef deep():\n    def fall(n):\n        fall(n + 1)\n"
    start = "    thread = threading.Thread(target=fall, args=(0,))\n    thread.start()\n"
    write("deep.py", deep + start + "    thread.join()\n")
    subject = ThreadsSubject("race --control deep.py::deep")
    with open_store(":memory:") as store:
        outcome = Campaign(subject, "coin", 3, workers=1, store=store).run()
        test = store.test(outcome.campaign, 0)
    explanation = subject.explained(RaceTest.from_json(json.loads(str(test)))).explanation
    assert explanation is not None
    assert explanation.truth.startswith("happens on your interpreter")


def test_a_kind_that_there_is_not() -> None:
    with pytest.raises(UserError, match="no kind 'lin'; did you mean 'line'"):
        split_kinds("pair,lin")
