"""Convert the trials of an older store, a row each, to blocks.

It runs in the transaction that upgrades the store, so another process sees either the rows or the
blocks. A row that cannot be a trial (damaged before) is left out and noted in the table meta, where
`swarmtest doctor` finds it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from swarmtest.store.block_tables import BLOCK_SIZE, Execute, add_trials
from swarmtest.store.loose_blocks import BlockLayout, features_of
from swarmtest.store.records import TrialRecord

LOST = "lost in conversion"
"""The key in the table meta; its value is a JSON list of lines."""
_MANY = 50_000
"""Converting more trials than this takes seconds, and shows progress."""
_SHOW_SECONDS = 0.5
_MOST_NOTED = 100

_COLUMNS = ", ".join(TrialRecord._fields)
_NUMBERS = ("trial", "seed", "verdict", "steps", "skipped", "cpu_ns", "wall_ns")


def convert_rows(
    execute: Execute, url: str, decode: Callable[[tuple[Any, ...]], tuple[Any, ...]] = tuple
) -> None:
    """Write all trials of the table trials to blocks, and drop the table.

    `decode` returns a row with its original texts.
    """
    ((total,),) = execute("SELECT count(*) FROM trials", ())
    progress = _Progress(url, int(total))
    lost: list[str] = []
    campaigns = execute("SELECT id, seed, space FROM campaigns ORDER BY id", ())
    for campaign, seed, space in campaigns:
        layout = _layout(seed, space)
        for rows in _batches(execute, campaign):
            trials = []
            for row in rows:
                trial = TrialRecord._make(decode(row))
                wrong = _wrong_field(trial)
                if wrong:
                    lost.append(f"campaign {campaign}, trial {trial.trial}: its {wrong}")
                else:
                    trials.append(trial)
            add_trials(execute, campaign, layout, trials)
            progress.add(len(rows))
    progress.end()
    if lost:
        more = [f"and {len(lost) - _MOST_NOTED:,} more"] if len(lost) > _MOST_NOTED else []
        text = json.dumps(lost[:_MOST_NOTED] + more)
        execute("DELETE FROM meta WHERE key = ?", (LOST,))
        execute("INSERT INTO meta (key, value) VALUES (?, ?)", (LOST, text))
    execute("DROP TABLE trials", ())


def _layout(seed: Any, space: Any) -> BlockLayout:
    """Return the layout of a campaign; one that keeps bytes as they are if it is damaged."""
    try:
        return BlockLayout(features_of(json.loads(space)), int(seed))
    except (ValueError, TypeError, AttributeError, KeyError):
        return BlockLayout(0, 0)


def _batches(execute: Execute, campaign: int) -> Iterator[list[tuple[Any, ...]]]:
    after = -(2**63)
    query = (
        f"SELECT {_COLUMNS} FROM trials WHERE campaign = ? AND trial > ? "
        f"ORDER BY trial LIMIT {BLOCK_SIZE}"
    )
    while rows := execute(query, (campaign, after)):
        yield rows
        after = rows[-1][0]


def _wrong_field(trial: TrialRecord) -> str:
    """Return which field cannot be what it should; empty if all can."""
    for name in _NUMBERS:
        if not isinstance(getattr(trial, name), int):
            return f"{name} was not a number"
    for name in ("configuration", "propensities", "used"):
        if not isinstance(getattr(trial, name), bytes):
            return f"{name} was not bytes"
    if not isinstance(trial.hits, bytes | None):
        return "hits were not bytes"
    if not all(isinstance(text, str) for text in (trial.origin, trial.missing, trial.fault or "")):
        return "texts were not text"
    return "verdict was not a verdict" if not -(2**15) <= trial.verdict < 2**15 else ""


class _Progress:
    """A line on standard error, for stores that take long."""

    def __init__(self, url: str, total: int) -> None:
        self._url, self._total = url, total
        self._done, self._shown = 0, time.monotonic()
        if total > _MANY:
            self._show(f"{total:,} trials are converted to a smaller format, once")

    def add(self, count: int) -> None:
        """Count converted trials, and show how many there are now and then."""
        self._done += count
        now = time.monotonic()
        if self._total > _MANY and now - self._shown > _SHOW_SECONDS:
            self._shown = now
            self._show(f"{self._done:,} of {self._total:,} trials converted")

    def end(self) -> None:
        """Say that all is done."""
        if self._total > _MANY:
            self._show(f"all {self._total:,} trials converted")

    def _show(self, text: str) -> None:
        print(f"store {self._url}: {text}", file=sys.stderr, flush=True)
