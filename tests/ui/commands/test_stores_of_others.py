"""Commands that only show a store run no code that the store, or a program in it, brings."""

from __future__ import annotations

import base64
import json
import os
import pickle
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

Command = Callable[..., CompletedProcess[str]]
MACHINE = """
from swarmtest import Machine, action, integers

class Stack(Machine):
    def start(self): self.items = []
    @action(value=integers(0, 9))
    def push(self, value):
        self.items.append(value)
        assert len(self.items) < 3
    @action
    def look(self): pass
"""


class Payload:
    """A pickle that creates a file when it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.mark),)


@pytest.fixture
def hostile(tmp_path: Path, swarmtest: Command) -> Iterator[Path]:
    """A store as an earlier version wrote it: its arguments are pickles, its subject is hostile."""
    (tmp_path / "stack.py").write_text(MACHINE)
    swarmtest("run", "stack.py", "-n", 30, "-j", 1, "-q", cwd=tmp_path)
    mark = tmp_path / "executed"
    pickled = base64.b64encode(pickle.dumps(Payload(mark))).decode()
    with closing(
        sqlite3.connect(tmp_path / ".swarmtest" / "swarmtest.db", isolation_level=None)
    ) as store:
        for table in ("faults", "reductions"):
            for (text,) in store.execute(f"SELECT test FROM {table}").fetchall():
                test = json.loads(text)
                for step in test["steps"]:
                    step[1] = [{"$pickle": pickled, "repr": "<Cart>"}] if step[1] else []
                store.execute(
                    f"UPDATE {table} SET test = ?, code = '' WHERE test = ?",
                    (json.dumps(test), text),
                )
    store.close()
    (tmp_path / "stack.py").write_text(f"import os; os.mkdir({str(mark)!r})" + MACHINE)
    yield tmp_path
    assert not mark.exists(), "code of the store was executed"


def fault_in(place: Path) -> str:
    with closing(
        sqlite3.connect(place / ".swarmtest" / "swarmtest.db", isolation_level=None)
    ) as store:
        ((fault,),) = store.execute("SELECT id FROM faults").fetchall()
    store.close()
    return str(fault)


@pytest.mark.parametrize("command", ["list", "show", "faults", "roles", "triage", "growth"])
def test_commands_that_show_run_nothing(command: str, hostile: Path, swarmtest: Command) -> None:
    done = swarmtest(command, cwd=hostile)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("strategy", ["stack.py:Evil", "mixture:stack.py:Evil=1,coin=1"])
@pytest.mark.parametrize("command", ["list", "show", "growth", "roles", "report"])
def test_a_strategy_that_the_store_names_is_not_loaded(
    command: str, strategy: str, hostile: Path, swarmtest: Command
) -> None:
    with closing(
        sqlite3.connect(hostile / ".swarmtest" / "swarmtest.db", isolation_level=None)
    ) as store:
        store.execute("UPDATE campaigns SET strategy = ?", (strategy,))
    store.close()
    assert swarmtest(command, cwd=hostile).returncode == 0


def test_a_report_runs_nothing(hostile: Path, swarmtest: Command) -> None:
    assert swarmtest("report", "-o", "report.html", cwd=hostile).returncode == 0


def test_replay_without_running_shows_that_something_is_missing(
    hostile: Path, swarmtest: Command
) -> None:
    done = swarmtest("replay", fault_in(hostile), "--no-run", cwd=hostile)
    assert done.returncode == 0, done.stderr
    assert "machine.push(<not shown: needs --trust>)" in done.stdout


def test_a_pickle_is_not_read_to_run_a_test_either(hostile: Path, swarmtest: Command) -> None:
    (hostile / "stack.py").write_text(MACHINE)
    done = swarmtest("replay", fault_in(hostile), cwd=hostile)
    assert done.returncode == 2
    assert "use --trust" in done.stderr


def test_the_id_of_a_fault_is_one_word_of_the_commands_that_are_shown(
    hostile: Path, swarmtest: Command
) -> None:
    id = "ab; touch executed #\nls"
    with closing(
        sqlite3.connect(hostile / ".swarmtest" / "swarmtest.db", isolation_level=None)
    ) as store:
        store.execute("UPDATE faults SET id = ?", (id,))
        store.execute("UPDATE reductions SET fault = ?", (id,))
    store.close()
    shown = swarmtest("faults", cwd=hostile).stdout + swarmtest(cwd=hostile).stdout
    assert "swarmtest replay 'ab; touch executed #\\nls'" in shown
    assert "swarmtest why 'ab; touch executed #\\nls'" in shown
