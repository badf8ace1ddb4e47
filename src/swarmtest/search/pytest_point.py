"""The pytest plugin of a search: the fixture ``point``, and what came of the test.

It is loaded only where a search runs a test (``-p swarmtest.search.pytest_point``). What the test
hands to pytest's own fixture ``record_property`` becomes a measure if it is a number, and a target
if its name is ``hit``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import pytest

POINT = "SWARMTEST_POINT"
REPORT = "SWARMTEST_POINT_REPORT"

_told: dict[str, Any] = {"outcome": "", "text": "", "measures": {}, "hits": [], "nodes": []}


@pytest.fixture
def point() -> dict[str, Any]:
    """The values of the point that a search is at, by dimension."""
    values: dict[str, Any] = json.loads(os.environ.get(POINT, "{}"))
    return values


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep the names of all tests."""
    _told["nodes"] = [item.nodeid for item in session.items]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep how the test ended; a failure at setup or teardown counts like one of the test."""
    for name, value in report.user_properties:
        if name == "hit":
            _told["hits"].append(str(value))
        elif isinstance(value, int | float):
            _told["measures"][name] = float(value)
    rank: Sequence[str] = ("", "skipped", "passed", "failed")
    if rank.index(report.outcome) >= rank.index(_told["outcome"]):
        _told["outcome"] = report.outcome
        _told["text"] = report.longreprtext or _told["text"]


def pytest_sessionfinish() -> None:
    """Tell the search."""
    with open(os.environ[REPORT], "w", encoding="utf-8") as out:
        json.dump(_told, out)
