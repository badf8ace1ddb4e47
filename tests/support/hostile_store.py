"""Stores whose every text is hostile, and what must not leave a command that reads them."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from swarmtest.store import open_store

Swarmtest = Callable[..., subprocess.CompletedProcess[str]]

BEFORE = "=cmd|' /C calc'!A0\x1b]0;owned\x07\u202e\n"
AFTER = "</script><img src=x onerror=owned()>'\" onload=owned() \x9b31m\x7f"

RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")

MACHINE = """
from swarmtest import Machine, action

class Disk(Machine):
    steps = 20
    def start(self): self.n = 0
    @action
    def write(self):
        self.n += 1
        if self.n > 6: raise RuntimeError("too large")
    @action
    def sync(self):
        if self.n > 3: self.event("flushed")
        self.n = 0
    @action
    def stat(self): pass
"""
SPACE = """
[dimensions]
level = { kind = "choice", values = ["low", "high"] }
sellers = { kind = "integer", low = 1, high = 4 }
test = { kind = "test", values = ["sell"] }
[tests.sell]
run = "air.py::sell"
repeat = { runs = 2 }
"""
TEST = """
def sell(level, sellers):
    assert not (level == "high" and sellers == 3), "oversold"
    return {"sold": sellers * (level == "high")}
"""

STRUCTURE = {
    "kind", "format", "fitness", "keep", "combine", "kinds", "probes", "memory", "part", "machine",
    "python",
}  # fmt: skip
"""Keys of JSON below which a text is one of a few words."""
FEW_WORDS = {
    "campaigns.seed",
    "targets.kind",
    "trials.missing",
    "trials.origin",
    "campaigns.status",
}
"""Columns that hold one of a few words, or a number."""
NEEDED_TO_RUN = {
    "campaigns.subject", "campaigns.strategy", "campaigns.options", "campaigns.space",
    "trials.fault", "faults.id", "reductions.fault", "reductions.criterion",
}  # fmt: skip
"""Columns without which a subject is not found, or a fault."""


def hostile(text: str) -> str:
    return BEFORE + text + AFTER


def hostile_json(data: Any, structure: frozenset[str] = frozenset(STRUCTURE)) -> Any:
    if isinstance(data, dict):
        return {
            (hostile(key) if data.keys() == {"sold"} else key): value
            if key in structure
            else hostile_json(value)
            for key, value in data.items()
        }
    if isinstance(data, list):
        return [hostile_json(item) for item in data]
    return hostile(data) if isinstance(data, str) else data


def hostile_text(text: str) -> str:
    """The same data with hostile words in it; text that is not JSON becomes hostile itself."""
    if text[:1] not in "{[":
        return hostile(text)
    return json.dumps(hostile_json(json.loads(text)))


def hostile_configuration(packed: bytes) -> bytes:
    """Values of settings are JSON behind the bits of the features."""
    start = packed.find(b"[")
    if start < 0:
        return packed
    return packed[:start] + json.dumps(hostile_json(json.loads(packed[start:]))).encode()


def text_columns(store: sqlite3.Connection) -> list[tuple[str, str]]:
    tables = [
        name
        for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if not name.startswith("sqlite_") and name not in ("meta", "block_faults")
    ]
    return [
        (table, column)
        for table in tables
        for _, column, kind, *_ in store.execute(f"PRAGMA table_info({table})")
        if kind.startswith("TEXT")
    ]


def spoil_trials(path: Path, kept: set[str], change: Callable[[str], str]) -> None:
    """Make the texts of trials hostile."""
    texts = [name for name in ("fault", "origin", "missing") if f"trials.{name}" not in kept]
    with open_store(path) as store:
        numbers = store.campaign_numbers()
        trials = {number: list(store.trials(number)) for number in numbers}
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            for table in ("blocks", "block_faults", "block_targets", "block_hits"):
                connection.execute(f"DELETE FROM {table}")
        connection.close()
        for number in numbers:
            changed = []
            for trial in trials[number]:
                values: dict[str, Any] = {name: getattr(trial, name) for name in texts}
                values = {name: change(text) for name, text in values.items() if text}
                trial = trial._replace(**values)
                if kept:
                    packed = hostile_configuration(trial.configuration)
                    trial = trial._replace(configuration=packed)
                changed.append(trial)
            store.record(number, changed)


def spoil(path: Path, kept: set[str], change: Callable[[str], str]) -> None:
    """Make the columns of a store hostile; columns that refer to each other still do."""
    spoil_trials(path, kept, change)
    with closing(sqlite3.connect(path, isolation_level=None)) as store:
        store.create_function("spoilt", 1, change, deterministic=True)
        columns = text_columns(store)
        assert len(columns) > 25
        for table, column in columns:
            if f"{table}.{column}" not in kept:
                store.execute(
                    f"UPDATE {table} SET {column} = spoilt({column}) WHERE {column} <> ''"
                )
    store.close()


def make_stores(place: Path, swarmtest: Swarmtest) -> None:
    """Write three stores, with two campaigns of a machine and a search in each.

    ``names.db`` is hostile wherever a command can still read it, ``columns.db`` in every column,
    and ``results.db`` only in what tests, faults and targets say.
    """
    (place / "disk.py").write_text(MACHINE)
    (place / "air.toml").write_text(SPACE)
    (place / "air.py").write_text(TEST)
    run = ("run", "disk.py", "--store", "good.db", "-j", 1)
    watched = ("--coverage", "line,branch", "--cover", "disk.py", "--keep-tests")
    for arguments in (
        (*run, "-s", "coin", "-n", 300, *watched),
        (*run, "-s", "all-on", "-n", 300, *watched),
        ("faults", 1, "--store", "good.db", "--mark", "known", "--note", "a known one"),
        ("search", "run", "air.toml", "--store", "good.db"),
    ):
        assert swarmtest(*arguments, cwd=place).returncode in (0, 1)
    for name in ("names", "columns", "results"):
        shutil.copy(place / "good.db", place / f"{name}.db")
    spoil(place / "names.db", FEW_WORDS, hostile_text)
    spoil(place / "columns.db", set(), hostile)
    spoil(place / "results.db", FEW_WORDS | NEEDED_TO_RUN, hostile_text)


# What others receive.


def check_text(text: str) -> None:
    assert not RAW.findall(text), ascii(text[:2000])


def check_file(file: Path) -> None:
    if file.suffix in (".parquet", ".db", ".pdf", ".png"):
        return  # data in a format of its own
    text = file.read_bytes().decode()
    check_text(text.replace("\r\n", "\n"))  # the lines of a CSV file
    if file.suffix == ".csv":
        check_csv(text)
    elif file.suffix == ".html":
        check_html(text)
    elif file.suffix == ".svg":
        for element in ElementTree.fromstring(text).iter():
            assert_not_live(element.tag.rpartition("}")[2], dict(element.attrib))


def check_csv(text: str) -> None:
    for row in csv.reader(io.StringIO(text, newline="")):
        for cell in row:
            assert not re.match(r"\s*[=@]", cell), cell


class Elements(HTMLParser):
    """The elements of a page, as a browser sees them."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.count += 1
        assert_not_live(tag, {name: value or "" for name, value in attributes})


def assert_not_live(tag: str, attributes: dict[str, str]) -> None:
    assert tag != "img"
    assert not [name for name in attributes if name.lower().startswith("on")], attributes
    assert not attributes.get("href", "").lower().strip().startswith("javascript:")


def check_html(text: str) -> None:
    elements = Elements()
    elements.feed(text)
    elements.close()
    assert elements.count > 10
