"""Write a batch to PostgreSQL: COPY it into a temporary table, then insert the new rows from there.

Writers of the same campaign may run at the same time. They lock rows in the same order (trials,
blocks, faults, tests, each sorted), so that they cannot deadlock.

PostgreSQL's text holds every character except NUL, which is stored as ``␀0``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, overload

from swarmtest.store.postgres.connection import Connection
from swarmtest.store.records import FaultRecord, ReductionRecord, TestRecord, TrialRecord
from swarmtest.store.sql import TOTALS
from swarmtest.store.sqlite.batch import storable
from swarmtest.store.sqlite.schema import BLOCK

_MARK = "\u2400"
"""The symbol for NUL; the symbol itself is stored twice."""


@overload
def kept(text: str) -> str: ...
@overload
def kept(text: None) -> None: ...
@overload
def kept(text: str | None) -> str | None: ...
def kept(text: str | None) -> str | None:
    """Return text as PostgreSQL can hold it.

    >>> kept("one\\0two"), kept("\\ud800")
    ('one␀0two', '\\\\ud800')
    """
    if text is None:
        return None
    text = storable(text)
    if _MARK in text or "\0" in text:
        return text.replace(_MARK, 2 * _MARK).replace("\0", f"{_MARK}0")
    return text


@overload
def told(text: str) -> str: ...
@overload
def told(text: None) -> None: ...
@overload
def told(text: str | None) -> str | None: ...
def told(text: str | None) -> str | None:
    """Return the text that `kept` was called with.

    >>> told(kept("one\\0two ␀0")) == "one\\0two ␀0"
    True
    """
    if text is None or is_as_given(text):
        return text
    parts = text.split(2 * _MARK)
    return _MARK.join(part.replace(f"{_MARK}0", "\0") for part in parts)


def is_as_given(text: str | None) -> bool:
    """Return whether `told` would not change the text."""
    return text is None or _MARK not in text


def told_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row with `told` applied to all its texts."""
    return tuple(told(value) if isinstance(value, str) else value for value in row)


# Writing.

_TRIAL = ", ".join(TrialRecord._fields)
_TYPES = {
    "origin": "text",
    "fault": "text",
    "missing": "text",
    "verdict": "int2",
    "configuration": "bytea",
    "propensities": "bytea",
    "used": "bytea",
    "hits": "bytea",
}
_COPY_TYPES = [_TYPES.get(name, "int8") for name in TrialRecord._fields]

_INCOMING = f"""
CREATE TEMPORARY TABLE IF NOT EXISTS incoming AS SELECT {_TRIAL} FROM trials WITH NO DATA;
TRUNCATE incoming
"""
_MOVE = f"""
WITH new AS (
    INSERT INTO trials (campaign, {_TRIAL}) SELECT %s, {_TRIAL} FROM incoming
    ON CONFLICT DO NOTHING
    RETURNING campaign, trial / {BLOCK} AS block, verdict, steps, skipped, cpu_ns, wall_ns
)
INSERT INTO blocks (campaign, block, {", ".join(TOTALS)})
SELECT campaign, block, count(*), count(*) FILTER (WHERE verdict = 0),
       count(*) FILTER (WHERE verdict = 1), count(*) FILTER (WHERE verdict = 2),
       sum(steps), sum(skipped), sum(cpu_ns), sum(wall_ns)
FROM new GROUP BY campaign, block ORDER BY block
ON CONFLICT (campaign, block) DO UPDATE SET
    {", ".join(f"{name} = blocks.{name} + excluded.{name}" for name in TOTALS)}
"""

# Better: a test that can be replayed before none, then the shorter, then the earlier one.
_BETTER = """(excluded.test IS NULL, excluded.size, excluded.trial)
           < (faults.test IS NULL, faults.size, faults.trial)"""
_SHORTEST = ("details", "trial", "size", "test")
_ADD_FAULT = f"""
INSERT INTO faults (campaign, id, kind, signature, details, first_trial, trial, size, test)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (campaign, id) DO UPDATE SET
    first_trial = least(faults.first_trial, excluded.first_trial),
    {
    ", ".join(
        f"{name} = CASE WHEN {_BETTER} THEN excluded.{name} ELSE faults.{name} END"
        for name in _SHORTEST
    )
}
"""

_REDUCTION = ", ".join(ReductionRecord._fields)
# Better: a test before none, then the smaller test, then one that cannot be reduced further.
_ADD_REDUCTION = f"""
INSERT INTO reductions (campaign, {_REDUCTION})
VALUES (%s, {", ".join("%s" for _ in ReductionRecord._fields)})
ON CONFLICT (campaign, fault, criterion) DO UPDATE SET
    ({_REDUCTION}) = ({", ".join(f"excluded.{name}" for name in ReductionRecord._fields)})
WHERE (excluded.test IS NULL, excluded.size, NOT excluded.complete)
   <= (reductions.test IS NULL, reductions.size, NOT reductions.complete)
"""


def insert_trials(connection: Connection, campaign: int, trials: Sequence[TrialRecord]) -> None:
    """Insert trials; trials that are stored already stay unchanged."""
    if not trials:
        return
    connection.execute(_INCOMING)
    with connection.cursor() as cursor:
        with cursor.copy(f"COPY incoming ({_TRIAL}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(_COPY_TYPES)
            for trial in _rows(trials):
                copy.write_row(trial)
        cursor.execute(_MOVE, [campaign])


def _rows(trials: Sequence[TrialRecord]) -> Iterable[TrialRecord]:
    """Yield one row per trial number, the first one in `trials`, in the order of the numbers."""
    by_number = {trial.trial: trial for trial in reversed(trials)}
    for number in sorted(by_number):
        trial = by_number[number]
        if not all(map(_is_plain, (trial.origin, trial.fault, trial.missing))):
            trial = trial._replace(
                origin=kept(trial.origin), fault=kept(trial.fault), missing=kept(trial.missing)
            )
        yield trial


@functools.lru_cache(maxsize=4096)
def _is_plain(text: str | None) -> bool:
    """Return whether PostgreSQL can hold the text as it is."""
    return kept(text) == text


def insert_faults(connection: Connection, campaign: int, faults: Iterable[FaultRecord]) -> None:
    """Insert faults; a stored fault keeps its lowest first trial and its shortest test."""
    rows = [
        (campaign, *map(kept, f[:4]), f.first_trial, f.trial, f.size, kept(f.test))
        for f in sorted(faults, key=lambda fault: fault.id)
    ]
    _execute_all(connection, _ADD_FAULT, rows)


def insert_reduction(connection: Connection, campaign: int, reduction: ReductionRecord) -> None:
    """Insert a reduction unless the fault has a better one."""
    clean = reduction._replace(
        fault=kept(reduction.fault),
        test=kept(reduction.test),
        details=kept(reduction.details),
        criterion=kept(reduction.criterion),
    )
    connection.execute(_ADD_REDUCTION, (campaign, *clean))


def insert_tests(connection: Connection, campaign: int, tests: Iterable[TestRecord]) -> None:
    """Insert whole tests; tests that are stored already stay unchanged."""
    rows = sorted((campaign, test.trial, kept(test.test)) for test in tests)
    insert = "INSERT INTO tests (campaign, trial, test) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
    _execute_all(connection, insert, rows)


def _execute_all(connection: Connection, query: str, rows: Sequence[Sequence[Any]]) -> None:
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(query, rows)
