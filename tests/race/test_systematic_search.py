"""All schedules with few preemptions are run, each once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from swarmtest.core.errors import UserError
from swarmtest.race.control.runner import ControlledRun, controlled_run
from swarmtest.race.control.systematic import (
    Decision,
    Deviations,
    Searched,
    SystematicScheduler,
    search_schedules,
)
from swarmtest.race.explanation import search_all
from swarmtest.race.raced_program import RacedProgram
from swarmtest.race.views import search_text

Load = Callable[[str], ModuleType]

LETTERS = """
import threading
order = []
def work(letter):
    global order
    order.append(letter)
    order.append(letter)
def test():
    order.clear()
    threads = [threading.Thread(target=work, args=(letter,)) for letter in "abc"]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
"""
SEEN_TWICE = """
import threading
class Box:
    n = 0
def write(box):
    box.n = 1
    box.n = 2
def read(box):
    seen = box.n, box.n
    assert seen != (1, 2), seen
def test():
    box = Box()
    threads = [threading.Thread(target=f, args=(box,)) for f in (write, read)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
"""
INCREMENTS = """
import threading
class Box:
    n = 0
def work(box):
    for _ in range(2):
        n = box.n
        box.n = n + 1
def test():
    box = Box()
    threads = [threading.Thread(target=work, args=(box,)) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert box.n > WANTED, box.n
"""


def search(
    test: Callable[[], object], preemptions: int, fails: Callable[[ControlledRun], bool]
) -> Searched[ControlledRun]:
    def run(deviations: Deviations) -> tuple[ControlledRun, Sequence[Decision]]:
        scheduler = SystematicScheduler(deviations)
        return controlled_run(test, scheduler), scheduler.decisions

    return search_schedules(run, fails, preemptions)


def test_every_order_of_the_threads_is_seen(load: Load) -> None:
    program = load(LETTERS)
    seen = []

    def note(run: ControlledRun) -> bool:
        seen.append("".join(program.order))
        return False

    search(program.test, 0, note)
    one_after_the_other = {"aabbcc", "aaccbb", "bbaacc", "bbccaa", "ccaabb", "ccbbaa"}
    assert set(seen) <= one_after_the_other
    seen.clear()
    search(program.test, 1, note)
    assert set(seen) >= one_after_the_other
    assert {"abbacc", "abbcca", "aabccb"} <= set(seen)
    assert "abcabc" not in seen  # it needs two


def test_no_schedule_is_run_twice(load: Load) -> None:
    program = load(LETTERS)
    runs: list[tuple[object, ...]] = []

    def run(deviations: Deviations) -> tuple[ControlledRun, Sequence[Decision]]:
        scheduler = SystematicScheduler(deviations)
        runs.append(deviations)
        return controlled_run(program.test, scheduler), scheduler.decisions

    searched = search_schedules(run, lambda ran: False, 1)
    assert len(set(runs)) == len(runs) == searched.runs


@pytest.mark.parametrize(
    ("text", "preemptions"), [(INCREMENTS.replace("WANTED", "3"), 1), (SEEN_TWICE, 2)]
)
def test_the_fewest_preemptions_come_first(load: Load, text: str, preemptions: int) -> None:
    program = load(text)
    searched = search(program.test, 3, lambda run: run.fault is not None)
    assert searched.found is not None
    assert (searched.preemptions, searched.complete) == (preemptions, preemptions - 1)


def test_what_was_not_run_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "box.py").write_text(INCREMENTS.replace("WANTED", "1"))
    raced = RacedProgram("box.py", "test")
    all_run = search_all(raced, 1, None, 60.0)
    assert all_run.complete == 1
    text = search_text(all_run, 100)
    assert f"no failure with at most 1 preemption: all {all_run.runs} schedules" in text
    some = search_all(raced, 1, all_run.runs - 1, 60.0)
    assert some.complete == 0
    text = search_text(some, 100)
    assert f"no failure in {some.runs} schedules" in text
    assert "all with at most 0 preemptions, but not all with 1" in text
    (tmp_path / "seen.py").write_text(SEEN_TWICE)
    found = search_all(RacedProgram("seen.py", "test"), 3, None, 60.0)
    assert found.failed == 2
    assert found.explanation is not None
    text = search_text(found, 100)
    assert "fails with 2 preemptions" in text
    assert "none with at most 1 preemption fails" in text


def test_tasks_of_asyncio_are_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks.py").write_text(
        "import asyncio\n"
        "async def test():\n"
        "    await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))\n"
    )
    with pytest.raises(UserError, match="--preemptions is for threads"):
        search_all(RacedProgram("tasks.py", "test"), 1, None, 60.0)
