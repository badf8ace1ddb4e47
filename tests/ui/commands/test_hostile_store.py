"""A store may come from anybody: whatever its columns hold, no command passes it on raw."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hostile_store import Swarmtest, check_file, check_text, make_stores

# 1 and 2 are campaigns of the machine, 3 is a search. OUT is a new file.
COMMANDS = [
    "list",
    "show 1",
    "show 3",
    "faults 1",
    "faults 1 --json",
    "faults --all",
    "faults --all --json",
    "faults 1 FAULT --mark known --note why",
    "roles 1",
    "roles 1 --json",
    "roles 1 --kind line",
    "roles 1 --kind event --summary",
    "roles 1 --kind line -o OUT.csv",
    "triage 1",
    "triage 1 --json",
    "why FAULT",
    "why FAULT --all",
    "why FAULT --json",
    "coverage 1",
    "coverage 1 --targets",
    "coverage 1 --json",
    "growth 1",
    "growth 1 --json",
    "compare 1 2",
    "compare 1 2 --json",
    "report 1 -o OUT.html",
    "report 1 2 -o OUT.html",
    "report 3 -o OUT.html",
    "report 1 --figures OUT.figures -o OUT.html",
    "export 1",
    "export 1 -o OUT.csv",
    "export 1 -f jsonl",
    "export 1 -o OUT.jsonl",
    "export 1 -o OUT.parquet",
    "export 3 -o OUT.csv",
    "replay 1#5 --no-run",
    "replay FAULT --no-run",
    "replay 3#5 --no-run",
    "suite 1",
    "reduce FAULT",
    "mutate 1",
    "resume 1 --tests 310",
    "run disk.py -n 20 --avoid known",
    "copy STORE OUT.db",
    "delete 1",
    "search correlate 3",
    "search roles 3",
    "search best-sequence 3",
    "search compare 3 --repeats 3",
    "search replay 3 --points 3",
    "search plot 3 -o OUT.svg",
    "search export 3",
    "search export 3 -o OUT.csv",
    "search export 3 -o OUT.dat",
]

WITH_THE_SUBJECT = [
    "faults 1",
    "faults 1 --json",
    "replay 1#5 --no-run",
    "replay FAULT --no-run",
    "replay FAULT",
    "report 1 -o OUT.html",
    "suite 1",
    "suite 1 -o OUT_test.py",
    "reduce FAULT",
    "reduce FAULT --json",
    "triage 1",
    "why FAULT --all",
    "why FAULT --again --runs 30 --no-confirm",
    "compare 1 2",
    "resume 1 --tests 310",
    "resume 2 --tests 310 --json",
]
"""Commands that import the subject, or need more of the store to be as it was."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, swarmtest: Swarmtest) -> Path:
    place = tmp_path_factory.mktemp("hostile")
    make_stores(place, swarmtest)
    return place


@pytest.mark.parametrize(
    ("name", "command"),
    [
        *[("names", command) for command in COMMANDS],
        *[("columns", command) for command in COMMANDS],
        *[("results", command) for command in WITH_THE_SUBJECT],
    ],
)
def test_no_command_prints_or_writes_what_a_terminal_or_a_browser_would_obey(
    place: Path, tmp_path: Path, swarmtest: Swarmtest, name: str, command: str
) -> None:
    store = Path(shutil.copy(place / f"{name}.db", tmp_path / "store.db"))
    with closing(sqlite3.connect(store, isolation_level=None)) as opened:
        fault = opened.execute("SELECT id FROM faults WHERE campaign = 1").fetchone()[0]
    names = {"FAULT": fault, "STORE": str(store)}
    words = [
        names.get(word, word.replace("OUT", str(tmp_path / "out"))) for word in command.split()
    ]
    chosen = [] if words[0] == "copy" else ["--store", store]
    done = swarmtest(*words, *chosen, cwd=place)
    check_text(done.stdout)
    check_text(done.stderr)
    for file in tmp_path.rglob("out*"):
        if file.is_file():
            check_file(file)


def test_what_a_terminal_would_obey_is_shown_as_escapes(place: Path, swarmtest: Swarmtest) -> None:
    for command in ("list", "show 1", "faults 1", "roles 1", "coverage 1 --targets", "triage 1"):
        done = swarmtest(*command.split(), "--store", "names.db", cwd=place)
        assert done.returncode == 0, done.stderr
        assert "\\x1b]0;owned\\x07\\u202e" in done.stdout, command


def test_a_name_with_a_newline_stays_in_its_row(place: Path, swarmtest: Swarmtest) -> None:
    shown = swarmtest("list", "--store", "names.db", cwd=place).stdout
    assert len(shown.splitlines()) == 5
