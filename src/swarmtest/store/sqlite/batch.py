"""Write a batch to SQLite, with as little work per trial as `sqlite3` allows.

Microseconds of CPU per trial, measured for batches of 1,000 small trials (Python 3.11):

- `executemany` with the records as they are: 6.0
- with `bytes` bound as `bytearray`, and columns that are equal in the whole batch written into the
  SQL text: 2.4. sqlite3 looks for an adapter for every `bytes` and `None` that it binds, which
  costs more than storing the value; it does not for `bytearray`.
- with fifty rows per statement: 1.6. Each statement releases the interpreter lock and takes it
  back.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from swarmtest.store.records import FaultRecord, ReductionRecord, TestRecord, TrialRecord
from swarmtest.store.sql import ADD_REDUCTION, TRIAL, storable

_ROWS_PER_STATEMENT = 50
"""Rows per statement: with 14 values each, below 999, the lowest limit of any SQLite build."""

_LEAST_SHARED = 16
"""Smaller batches are not worth an SQL text of their own."""

_INSERT = f"INSERT OR IGNORE INTO trials (campaign, {TRIAL}) VALUES "

_ADD_FAULT = """
INSERT INTO faults (campaign, id, kind, signature, details, first_trial, trial, size, test, code)
VALUES (:campaign, :id, :kind, :signature, :details, :first_trial, :trial, :size, :test, :code)
ON CONFLICT (campaign, id) DO UPDATE SET first_trial = min(first_trial, excluded.first_trial)
"""
# Better: a test that can be replayed before none, then the shorter, then the earlier one.
_SHORTEN_FAULT = """
UPDATE faults SET details = :details, trial = :trial, size = :size, test = :test, code = :code
WHERE campaign = :campaign AND id = :id
  AND (:test IS NULL, :size, :trial) < (test IS NULL, size, trial)
"""


def insert_trials(
    connection: sqlite3.Connection, campaign: int, trials: Sequence[TrialRecord]
) -> None:
    """Insert trials; trials that are stored already stay unchanged."""
    if not trials:
        return
    values, columns = [str(int(campaign))], []
    for field, column in zip(TrialRecord._fields, zip(*trials, strict=True), strict=True):
        literal = _shared_literal(field, column)
        values.append(literal or "?")
        if literal is None:
            columns.append(_bindable(field, column))
    row = f"({', '.join(values)})"
    flat = list(chain.from_iterable(zip(*columns, strict=True)))
    width = len(columns)
    end = len(trials) // _ROWS_PER_STATEMENT * _ROWS_PER_STATEMENT * width
    connection.executemany(
        _INSERT + ", ".join([row] * _ROWS_PER_STATEMENT),
        _slices(flat[:end], _ROWS_PER_STATEMENT * width),
    )
    connection.executemany(_INSERT + row, _slices(flat[end:], width))


def insert_faults(
    connection: sqlite3.Connection, campaign: int, faults: Iterable[FaultRecord]
) -> None:
    """Insert faults; a stored fault keeps its lowest first trial and its shortest test."""
    for fault in faults:
        clean = fault._replace(
            signature=storable(fault.signature),
            details=storable(fault.details),
            test=None if fault.test is None else storable(fault.test),
            code=storable(fault.code),
        )
        values = {"campaign": campaign, **clean._asdict()}
        connection.execute(_ADD_FAULT, values)
        connection.execute(_SHORTEN_FAULT, values)


def insert_reduction(
    connection: sqlite3.Connection, campaign: int, reduction: ReductionRecord
) -> None:
    """Insert a reduction unless the fault has a better one."""
    clean = reduction._replace(
        test=None if reduction.test is None else storable(reduction.test),
        details=storable(reduction.details),
        code=storable(reduction.code),
    )
    connection.execute(ADD_REDUCTION, (campaign, *clean))


def insert_tests(
    connection: sqlite3.Connection, campaign: int, tests: Iterable[TestRecord]
) -> None:
    """Insert whole tests; tests that are stored already stay unchanged."""
    connection.executemany(
        "INSERT OR IGNORE INTO tests (campaign, trial, test) VALUES (?, ?, ?)",
        [(campaign, test.trial, storable(test.test)) for test in tests],
    )


def _slices(values: list[Any], size: int) -> Iterable[list[Any]]:
    return (values[start : start + size] for start in range(0, len(values), size))


def _shared_literal(field: str, column: tuple[Any, ...]) -> str | None:
    """Return the SQL literal of the value that a whole batch shares, or None."""
    value = column[0]
    if field == "trial" or len(column) < _LEAST_SHARED or column.count(value) != len(column):
        return None
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, bytes) and len(value) <= 64:
        return f"X'{value.hex()}'"
    if isinstance(value, str) and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    return None


def _bindable(field: str, column: tuple[Any, ...]) -> Iterable[Any]:
    if field in ("configuration", "propensities", "used"):
        return map(bytearray, column)
    if field == "hits":
        return (None if hits is None else bytearray(hits) for hits in column)
    if field == "verdict":  # a Verdict is an IntEnum, for which sqlite3 would look for an adapter
        return map(int, column)
    return column
