"""Tests of an existing pytest suite as tests of a search."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from swarmtest.errors import UserError
from swarmtest.faults import normalised
from swarmtest.result import Fault, Result, Verdict
from swarmtest.search.executors.command import Done, environment, run_shell
from swarmtest.search.results import result_of
from swarmtest.space import Configuration

_PLUGIN = "swarmtest.search.pytest_point"
_NOTHING_COLLECTED = 5


class PytestExecutor:
    """A test of a pytest suite, by its node id; it has `seconds` for each run.

    The fixture ``point`` is a dict of the point's values, which also are in the environment
    (``POINT_THREADS``). Numbers given to ``record_property`` are measures.

    >>> PytestExecutor("tests/test_shop.py::test_sell").name
    'tests/test_shop.py::test_sell'
    """

    def __init__(self, node: str, seconds: float = 60.0) -> None:
        self.name = node
        self.seconds = seconds

    @property
    def uses(self) -> frozenset[str] | None:
        """All dimensions: the fixture and the environment have them."""
        return None

    def most_runs(self, point: Configuration) -> int:
        """One."""
        return 1

    def run(self, point: Configuration, seeds: Iterator[int]) -> list[Result]:
        """Run it in a pytest of its own."""
        values = point.to_json() | {"seed": next(seeds)}
        done, told = _pytest([self.name], self.seconds, values)
        if done.status is None or not told.get("outcome"):
            if done.status == _NOTHING_COLLECTED or "not found:" in done.errors:
                raise UserError(f"pytest finds no test {self.name}")
            return [done.result()]
        measured = result_of({"hits": told["hits"]} | told["measures"])
        verdict, fault, missing = Verdict.PASSED, None, ""
        if told["outcome"] == "failed":
            verdict, fault = Verdict.FAILED, Fault("exception", _signature(told), told["text"])
        elif told["outcome"] == "skipped":
            verdict, missing = Verdict.INVALID, "skipped"
        return [
            measured._replace(
                verdict=verdict,
                fault=fault,
                missing=missing,
                wall_seconds=done.seconds,
                cpu_seconds=done.cpu_seconds,
            )
        ]


def collect_pytest(*places: str, seconds: float = 120.0) -> list[str]:
    """The node ids of all tests that pytest collects in files and directories.

    >>> collect_pytest("nowhere.py")
    Traceback (most recent call last):
    ...
    swarmtest.errors.UserError: no such file or directory: nowhere.py
    """
    for place in places:
        if not Path(place.partition("::")[0]).exists():
            raise UserError(f"no such file or directory: {place}")
    done, told = _pytest([*places, "--collect-only"], seconds, {})
    nodes: list[str] = told.get("nodes", [])
    if done.status not in (0, _NOTHING_COLLECTED):
        lines = [line for line in done.output.splitlines() if line.startswith(("E ", "ERROR"))]
        why = f": {lines[0].removeprefix('E').strip()}" if lines else ""
        raise UserError(f"pytest cannot collect {' '.join(places)}{why}")
    if not nodes:
        raise UserError(f"pytest collects no test in {' '.join(places)}")
    return nodes


def _pytest(words: list[str], seconds: float, values: Mapping[str, Any]) -> tuple[Done, Any]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", _PLUGIN, "-p", "no:cacheprovider"]
    with tempfile.TemporaryDirectory() as place:
        report = Path(place, "report.json")
        env = environment(values) | {
            "SWARMTEST_POINT": json.dumps(values),
            "SWARMTEST_POINT_REPORT": str(report),
            "PYTHONDONTWRITEBYTECODE": os.environ.get("PYTHONDONTWRITEBYTECODE", "1"),
        }
        done = run_shell(shlex.join([*command, *words]), seconds, env)
        told = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    return done, told


def _signature(told: Any) -> str:
    """The line in which pytest says what went wrong."""
    lines = [line[1:].strip() for line in told["text"].splitlines() if line.startswith("E ")]
    return normalised(lines[0]) if lines else "failed"
