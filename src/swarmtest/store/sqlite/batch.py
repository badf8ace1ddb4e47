"""Write faults, their reduced tests, and whole tests to SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from swarmtest.store.records import FaultRecord, ReductionRecord, TestRecord
from swarmtest.store.sql import ADD_REDUCTION, storable

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
