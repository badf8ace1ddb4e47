"""The pytest plugin of a search: the fixture ``point``, and a report of what the test did.

It is loaded only when a search runs a test (``-p swarmtest.search.executors.pytest_point``). What
the test passes to pytest's own fixture ``record_property`` becomes a measure if it is a number, and
a target if its name is ``hit``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import pytest

POINT = "SWARMTEST_POINT"
REPORT = "SWARMTEST_POINT_REPORT"

_report: dict[str, Any] = {"outcome": "", "text": "", "measures": {}, "hits": [], "nodes": []}


@pytest.fixture
def point() -> dict[str, Any]:
    """Return the values of the point that a search is at, by dimension."""
    values: dict[str, Any] = json.loads(os.environ.get(POINT, "{}"))
    return values


def pytest_collection_finish(session: pytest.Session) -> None:
    """Record the names of all tests."""
    _report["nodes"] = [item.nodeid for item in session.items]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record how the test ended; a failure in setup or teardown counts as one of the test."""
    for name, value in report.user_properties:
        if name == "hit":
            _report["hits"].append(str(value))
        elif isinstance(value, int | float):
            _report["measures"][name] = float(value)
    rank: Sequence[str] = ("", "skipped", "passed", "failed")
    if rank.index(report.outcome) >= rank.index(_report["outcome"]):
        _report["outcome"] = report.outcome
        _report["text"] = report.longreprtext or _report["text"]


def pytest_sessionfinish() -> None:
    """Write the report for the search."""
    with open(os.environ[REPORT], "w", encoding="utf-8") as out:
        json.dump(_report, out)
