"""Tests of an existing pytest suite as tests of a search."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.faults import normalised
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.languages.user_objects import load_object, split_reference
from swarmtest.search.executors.command import Done, environment, run_shell
from swarmtest.search.executors.function import Executor, FunctionExecutor, SubjectExecutor
from swarmtest.search.results import result_of
from swarmtest.subjects.loading import SubjectReference, is_testable

if TYPE_CHECKING:
    from swarmtest.search.exploration import Exploration


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
    swarmtest.UserError: no such file or directory: nowhere.py
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


# -------------------------------------------------------------------------------------------------
# A recorded exploration in place of a test: the results are there at once, and always the same.


class ReplayedExecutor:
    """Answers with what was recorded at a point.

    >>> from swarmtest import Exploration, Search, SearchSpace, Test, open_store
    >>> space = SearchSpace([Test("test", ["f"])], {"f": lambda: {"size": 3}})
    >>> with open_store(":memory:") as store:
    ...     outcome = Search(space, "sequential", store=store).run()
    ...     replayed = ReplayedExecutor(Exploration.load(store, outcome.campaign))
    >>> replayed.run(space.default(), iter([1]))[0].measures
    {'size': 3.0}
    """

    def __init__(self, exploration: Exploration) -> None:
        self._exploration = exploration
        self.name = "replayed"

    @property
    def uses(self) -> frozenset[str] | None:
        """All that it was recorded with."""
        return None

    def most_runs(self, point: Configuration) -> int:
        """As many as were recorded there."""
        return len(self._exploration.runs.get(point, ()))

    def run(self, point: Configuration, seeds: Iterator[int]) -> list[Result]:
        """All results that were recorded there, in their order."""
        results = self._exploration.results(point)
        for _ in results:
            next(seeds)
        return results


# -------------------------------------------------------------------------------------------------
# From what a user gives or names to an executor.


def executor_of(told: Any, name: str = "") -> Executor:
    """The executor for a function, a machine or another subject, a reference to one, or itself.

    >>> executor_of(print, "say").name
    'say'
    """
    if isinstance(told, str):
        return _named(told, name)
    if is_testable(told):
        return SubjectExecutor(told, name)
    if not isinstance(told, type) and isinstance(told, Executor):
        return told
    if callable(told):
        return FunctionExecutor(told, name)
    raise UserError(f"test {name!r}: a function, a machine or an executor, not {told!r}")


def _named(text: str, name: str) -> Executor:
    """``file.py::function``, ``module:Machine``, or ``pytest:`` and a node id."""
    if text.startswith("pytest:"):
        return PytestExecutor(text.removeprefix("pytest:"))
    where, inside = split_reference(text)
    if where.endswith(".toml") or not inside:
        return SubjectExecutor(SubjectReference(text).load(), name or text)
    return executor_of(load_object(text, "test", callable), name or text)
