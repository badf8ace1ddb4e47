"""Stores with damaged bytes, and commands that read them."""

from __future__ import annotations

import io
import random
import sqlite3
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from swarmtest.store import open_store
from swarmtest.ui.cli import main

MACHINE = """
from swarmtest import Machine, action, integers

class Stack(Machine):
    steps = 30
    def start(self): self.items = []
    @action(value=integers(0, 9))
    def push(self, value):
        self.items.append(value)
        if len(self.items) > 12: raise OverflowError("full")
    @action
    def pop(self):
        if self.items: self.items.pop()
    @action
    def look(self): self.event("seen")
"""
"""A program whose campaign has coverage, a fault and a reduction."""

COLUMNS = {
    "campaigns": ["subject", "strategy", "seed", "created", "options", "space", "outside"],
    "faults": ["kind", "signature", "details", "first_trial", "trial", "size", "test"],
    "tests": ["test"],
    "reductions": ["test", "size", "criterion"],
    "sources": ["path", "text"],
    "targets": ["kind", "name", "line"],
    "workers": ["host", "pid", "last_seen"],
    "blocks": ["first", "last", "trials", "failed", "features", "columns"],
    "block_faults": ["trials", "fault"],
    "block_targets": ["targets"],
    "block_hits": ["hits"],
}  # fmt: skip
"""The columns that are damaged one at a time."""


def flip_byte(path: Path, seed: int) -> str:
    """Flip one bit of one byte of a file that is not zero; return where."""
    data = bytearray(path.read_bytes())
    chosen = random.Random(seed)
    # Half of the bytes in the first pages, which have the header and the schema.
    places = [at for at, byte in enumerate(data) if byte and (seed % 2 or at < 40_000)]
    at = chosen.choice(places)
    data[at] ^= 1 << chosen.randrange(8)
    path.write_bytes(data)
    return f"byte {at}"


def set_column(path: Path, table: str, column: str, value: object) -> None:
    """Write a value into a column, in every row, as a damaged page might show it."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute(f"UPDATE OR IGNORE {table} SET {column} = ?", (value,))
    connection.close()


def set_trials(path: Path, changes: dict[int, dict[str, Any]]) -> None:
    """Change fields of trials, as if they had been damaged before they were written."""
    with open_store(path) as store:
        trials = [t._replace(**changes.get(t.trial, {})) for t in store.trials(1)]
        connection = sqlite3.connect(path, isolation_level=None)
        for table in ("blocks", "block_faults", "block_targets", "block_hits"):
            connection.execute(f"DELETE FROM {table}")
        connection.close()
        store.record(1, trials)


def run_command(*arguments: str) -> tuple[int, str, str]:
    """Run the program in this process; return its exit status, and what it printed."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    err = io.TextIOWrapper(io.BytesIO(), "utf-8")
    status = 0
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        mock.patch.object(sys, "argv", ["swarmtest", *arguments]),
    ):
        try:
            main()
        except SystemExit as ended:
            status = int(ended.code or 0)
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return status, texts[0], texts[1]


def commands(store: Path, output: Path) -> list[list[str]]:
    """Return commands that read everything in the first campaign of a store."""
    words = [
        ["list"], ["show", "1"], ["faults", "1"], ["faults", "1", "--json"], ["roles", "1"],
        ["triage", "1"], ["coverage", "1"], ["growth", "1"], ["export", "1"],
        ["export", "1", "-f", "jsonl"],
        ["report", "1", "-o", str(output)], ["replay", "1#0", "--no-run"],
    ]  # fmt: skip
    return [[*each, "--store", str(store)] for each in words]
