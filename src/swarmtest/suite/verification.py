"""Verify a written suite: run it by pytest in a new process, and drop tests that misbehave.

The file is run with and without swarmtest installed, so that it can say truthfully whether it needs
swarmtest.
"""

from __future__ import annotations

import os
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from swarmtest.core.errors import UserError
from swarmtest.processes.commands import capture
from swarmtest.suite.output_files import files_at, restore, suite_file, write_suite
from swarmtest.suite.suite import Suite, SuiteTest

_SECONDS_PER_TEST = 15.0
_PYTEST_SCRIPT = """
import sys
import pytest

class Absent:
    names = sys.argv.pop(1).split()
    def pytest_sessionstart(self):
        for name in self.names:
            sys.modules[name] = None  # an import of it fails, as where it is not installed

sys.exit(pytest.main(sys.argv[1:], plugins=[Absent()]))
"""


@dataclass(frozen=True)
class PytestReport:
    """What pytest reported about a file of tests."""

    ended: Mapping[str, str] = field(default_factory=dict)
    """``passed``, ``failed``, ``xfailed`` or ``skipped``, by the name of the function."""
    seconds: float = 0.0
    """How long pytest took, including the collection of tests."""
    seconds_of: Mapping[str, float] = field(default_factory=dict)
    """How long each test took."""
    problem: str = ""
    """Why there is no report: the file could not be imported, or pytest did not end."""


@dataclass(frozen=True)
class SavedSuite:
    """A suite that was written to a file and run."""

    suite: Suite
    """The suite without the tests that did not end as expected in each of two runs."""
    path: Path
    seconds: float
    """The time that pytest reported."""
    needs_swarmtest: bool


def save_suite(
    suite: Suite, path: str | Path, command: str = "", force: bool = False
) -> SavedSuite:
    """Write a suite as a pytest file, run it twice, and drop tests that do not end as expected.

    `command` is the command line that the file gives for building it again. `force` overwrites
    also a file that swarmtest did not write. If anything fails, the previous files are restored.
    """
    file = Path(path)
    command = command or f"swarmtest suite {suite.campaign} -o {file.as_posix()}"
    before = files_at(file)
    write_suite(suite_file(suite, file, command), file, force)
    try:
        return _verified(suite, file, command)
    except BaseException:
        restore(file, before)
        raise


def _verified(suite: Suite, file: Path, command: str) -> SavedSuite:
    """Run a suite that was written; write it again without tests that do not end as expected."""
    alone = run_pytest(file, len(suite.tests), without=("swarmtest",))
    needs = bool(_misbehaving(suite, file, alone))
    ran = run_pytest(file, len(suite.tests))
    # If the tests do not need swarmtest, the run without it counts as the second run.
    runs = [ran, run_pytest(file, len(suite.tests)) if needs else alone]
    bad: dict[int, str] = {}
    for run in runs:
        bad |= _misbehaving(suite, file, run)
    if len(bad) == len(suite.tests):
        why = next((run.problem for run in runs if run.problem), next(iter(bad.values())))
        raise UserError(f"{file}: none of its tests behaves as in the campaign: {why}")
    names = suite_file(suite, file, command).names
    verified = suite.without(bad)
    verified = verified.in_time({trial: ran.seconds_of.get(names[trial], 0.0) for trial in names})
    if not verified.tests:
        raise UserError(f"{file}: none of its tests ends within {suite.limit:g} s")
    write_suite(suite_file(verified, file, command, needs), file, force=True)
    if len(verified.tests) < len(suite.tests):
        ran = run_pytest(file, len(verified.tests))
    return SavedSuite(verified, file, ran.seconds, needs)


def run_pytest(path: Path, tests: int, without: tuple[str, ...] = ()) -> PytestReport:
    """Run a file by pytest in a new process in which the modules `without` cannot be imported."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory, "told.xml")
        words = [sys.executable, "-P", "-c", _PYTEST_SCRIPT, " ".join(without)]
        words += ["-q", "-p", "no:swarmtest.pytest_plugin", "-p", "no:cacheprovider"]
        words += ["-o", "addopts=", f"--junitxml={report}", str(path)]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        ended = capture(words, 60 + _SECONDS_PER_TEST * tests, environment=environment)
        if ended.status is None:
            return PytestReport(problem="pytest did not come to an end")
        return _read_report(report, (ended.stdout + ended.stderr).decode(errors="replace"))


def _read_report(report: Path, output: str) -> PytestReport:
    """Read pytest's JUnit XML file; take a problem from its output if there is one."""
    try:
        root = ElementTree.parse(report).getroot()
    except (OSError, ElementTree.ParseError):
        last = [line for line in output.splitlines() if line.strip()][-1:]
        return PytestReport(problem=f"pytest could not run it: {' '.join(last)}")
    ended = {case.get("name", ""): _ended(case) for case in root.iter("testcase")}
    errors = [line for line in output.splitlines() if line.startswith("E  ")]
    collected = all(name.startswith("test_") for name in ended)
    problem = "" if collected and ended else f"pytest: {(errors or ['no tests'])[0][1:].strip()}"
    seconds = sum(float(suite.get("time", 0)) for suite in root.iter("testsuite"))
    seconds_of = {
        case.get("name", ""): float(case.get("time", 0)) for case in root.iter("testcase")
    }
    return PytestReport(ended, seconds, seconds_of, problem)


def _ended(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    skipped = case.find("skipped")
    if skipped is None:
        return "passed"
    return "xfailed" if "xfail" in skipped.get("type", "") else "skipped"


def _misbehaving(suite: Suite, path: Path, ran: PytestReport) -> dict[int, str]:
    """Return the trials whose tests did not end as expected, each with how it ended."""
    names = suite_file(suite, path, "").names
    reasons = {}
    for test in suite.tests:
        ended = ran.ended.get(names[test.trial], "did not run")
        if ended != _expected(suite, test):
            reasons[test.trial] = ran.problem or f"as pytest runs it, it {ended}"
    return reasons


def _expected(suite: Suite, test: SuiteTest) -> str:
    if test.fault is None:
        return "passed"
    return {"xfail": "xfailed", "fail": "failed", "skip": "skipped"}[suite.faults]
