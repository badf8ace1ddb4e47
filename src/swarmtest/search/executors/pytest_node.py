"""Executors for pytest tests and recorded explorations, and the executor for what a user names.

Each pytest test runs in a pytest of its own, with the plugin in `pytest_point`, which reports what
the test did.
"""

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
from swarmtest.core.messages.shapes import normalised
from swarmtest.core.result import Fault, Result, Verdict
from swarmtest.languages.user_objects import load_object, split_reference
from swarmtest.search.executors.command import ShellResult, environment, run_shell
from swarmtest.search.executors.function import Executor, FunctionExecutor, SubjectExecutor
from swarmtest.search.results import result_of
from swarmtest.subjects.loading import SubjectReference, is_testable

if TYPE_CHECKING:
    from swarmtest.search.exploration import Exploration


_PLUGIN = "swarmtest.search.executors.pytest_point"
_NOTHING_COLLECTED = 5


class PytestExecutor:
    """A test of a pytest suite, by its node id; each run may take `seconds`.

    The fixture ``point`` is a dict of the point's values, which are also in the environment
    (``POINT_THREADS``). Numbers passed to ``record_property`` are measures.

    >>> PytestExecutor("tests/test_shop.py::test_sell").name
    'tests/test_shop.py::test_sell'
    """

    def __init__(self, node: str, seconds: float = 60.0) -> None:
        self.name = node
        self.seconds = seconds

    @property
    def uses(self) -> frozenset[str] | None:
        """Return None: the fixture and the environment have all dimensions."""
        return None

    def most_runs(self, point: Configuration) -> int:
        """Return 1: the test is run once."""
        return 1

    def run(self, point: Configuration, seeds: Iterator[int]) -> list[Result]:
        """Run the test in a pytest of its own."""
        values = point.to_json() | {"seed": next(seeds)}
        done, report = _pytest([self.name], self.seconds, values)
        if done.status is None or not report.get("outcome"):
            if done.status == _NOTHING_COLLECTED or "not found:" in done.errors:
                raise UserError(f"pytest finds no test {self.name}")
            return [done.result()]
        measured = result_of({"hits": report["hits"]} | report["measures"])
        verdict, fault, missing = Verdict.PASSED, None, ""
        if report["outcome"] == "failed":
            verdict, fault = Verdict.FAILED, Fault("exception", _signature(report), report["text"])
        elif report["outcome"] == "skipped":
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


def collect_pytest(*paths: str, seconds: float = 120.0) -> list[str]:
    """Return the node ids of all tests that pytest collects in files and directories.

    >>> collect_pytest("nowhere.py")
    Traceback (most recent call last):
    ...
    swarmtest.UserError: no such file or directory: nowhere.py
    """
    for path in paths:
        if not Path(path.partition("::")[0]).exists():
            raise UserError(f"no such file or directory: {path}")
    done, report = _pytest([*paths, "--collect-only"], seconds, {})
    nodes: list[str] = report.get("nodes", [])
    if done.status not in (0, _NOTHING_COLLECTED):
        lines = [line for line in done.output.splitlines() if line.startswith(("E ", "ERROR"))]
        why = f": {lines[0].removeprefix('E').strip()}" if lines else ""
        raise UserError(f"pytest cannot collect {' '.join(paths)}{why}")
    if not nodes:
        raise UserError(f"pytest collects no test in {' '.join(paths)}")
    return nodes


def _pytest(words: list[str], seconds: float, values: Mapping[str, Any]) -> tuple[ShellResult, Any]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", _PLUGIN, "-p", "no:cacheprovider"]
    with tempfile.TemporaryDirectory() as directory:
        report_file = Path(directory, "report.json")
        env = environment(values) | {
            "SWARMTEST_POINT": json.dumps(values),
            "SWARMTEST_POINT_REPORT": str(report_file),
            "PYTHONDONTWRITEBYTECODE": os.environ.get("PYTHONDONTWRITEBYTECODE", "1"),
        }
        done = run_shell(shlex.join([*command, *words]), seconds, env)
        report = json.loads(report_file.read_text(encoding="utf-8")) if report_file.exists() else {}
    return done, report


def _signature(report: Any) -> str:
    """Return the line in which pytest says what went wrong."""
    lines = [line[1:].strip() for line in report["text"].splitlines() if line.startswith("E ")]
    return normalised(lines[0]) if lines else "failed"


class ReplayedExecutor:
    """Returns what was recorded at a point: at once, and always the same.

    >>> from swarmtest import Test, open_store
    >>> from swarmtest.search import Exploration, Search, SearchSpace
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
        """Return None: the recorded results may depend on all dimensions."""
        return None

    def most_runs(self, point: Configuration) -> int:
        """Return how many results were recorded at a point."""
        return len(self._exploration.runs.get(point, ()))

    def run(self, point: Configuration, seeds: Iterator[int]) -> list[Result]:
        """Return all results that were recorded at a point, in their order."""
        results = self._exploration.results(point)
        for _ in results:
            next(seeds)
        return results


def executor_of(source: Any, name: str = "") -> Executor:
    """Return the executor for a function, a subject, a reference to one, or an executor.

    >>> executor_of(print, "say").name
    'say'
    """
    if isinstance(source, str):
        return _named(source, name)
    if is_testable(source):
        return SubjectExecutor(source, name)
    if not isinstance(source, type) and isinstance(source, Executor):
        return source
    if callable(source):
        return FunctionExecutor(source, name)
    raise UserError(f"test {name!r}: a function, a machine or an executor, not {source!r}")


def _named(text: str, name: str) -> Executor:
    """Return the executor for ``file.py::function``, ``module:Machine`` or ``pytest:NODE``."""
    if text.startswith("pytest:"):
        return PytestExecutor(text.removeprefix("pytest:"))
    where, inside = split_reference(text)
    if where.endswith(".toml") or not inside:
        return SubjectExecutor(SubjectReference(text).load(), name or text)
    return executor_of(load_object(text, "test", callable), name or text)
