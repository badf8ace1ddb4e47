"""Whether a written suite does what it says: run by pytest, in a process that knows nothing."""

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

_PER_TEST = 15.0
_START = """
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
class Ran:
    """What pytest said of each test."""

    ended: Mapping[str, str] = field(default_factory=dict)
    """``passed``, ``failed``, ``xfailed`` or ``skipped``, by the function's name."""
    seconds: float = 0.0
    """What pytest took for them, from the collection on."""
    seconds_of: Mapping[str, float] = field(default_factory=dict)
    """What each test took."""
    problem: str = ""
    """Why there is nothing to tell: the file could not be imported, or pytest did not end."""


@dataclass(frozen=True)
class SavedSuite:
    """A suite in a file, which was run."""

    suite: Suite
    """Without the tests that did not end as they should, twice."""
    path: Path
    seconds: float
    """What pytest says that it took."""
    needs_swarmtest: bool


def save_suite(
    suite: Suite, path: str | Path, command: str = "", force: bool = False
) -> SavedSuite:
    """Write a suite as a pytest file, run it twice, and drop what does not end as it should.

    `command`: how the file says that it can be made again. `force`: overwrite also a file that
    was not made like this. If nothing can be written, what was there stays.
    """
    file = Path(path)
    command = command or f"swarmtest suite {suite.campaign} -o {file.as_posix()}"
    before = files_at(file)
    write_suite(suite_file(suite, file, command), file, force)
    try:
        return _checked(suite, file, command)
    except BaseException:
        restore(file, before)
        raise


def _checked(suite: Suite, file: Path, command: str) -> SavedSuite:
    """A suite that was written, without the tests that do not end as they should."""
    alone = run_pytest(file, len(suite.tests), without=("swarmtest",))
    needs = bool(_bad(suite, file, alone))
    ran = run_pytest(file, len(suite.tests))
    runs = [ran, run_pytest(file, len(suite.tests)) if needs else alone]
    bad: dict[int, str] = {}
    for one in runs:
        bad |= _bad(suite, file, one)
    if len(bad) == len(suite.tests):
        why = next((one.problem for one in runs if one.problem), next(iter(bad.values())))
        raise UserError(f"{file}: none of its tests does what it did in the campaign: {why}")
    names = suite_file(suite, file, command).names
    checked = suite.without(bad)
    checked = checked.in_time({trial: ran.seconds_of.get(names[trial], 0.0) for trial in names})
    if not checked.tests:
        raise UserError(f"{file}: no test of it is over in {suite.limit:g} s")
    write_suite(suite_file(checked, file, command, needs), file, force=True)
    if len(checked.tests) < len(suite.tests):
        ran = run_pytest(file, len(checked.tests))
    return SavedSuite(checked, file, ran.seconds, needs)


def run_pytest(path: Path, tests: int, without: tuple[str, ...] = ()) -> Ran:
    """Run a file by pytest in a new process; modules of `without` are as if not installed."""
    with tempfile.TemporaryDirectory() as directory:
        told = Path(directory, "told.xml")
        words = [sys.executable, "-P", "-c", _START, " ".join(without)]
        words += ["-q", "-p", "no:swarmtest.pytest_plugin", "-p", "no:cacheprovider"]
        words += ["-o", "addopts=", f"--junitxml={told}", str(path)]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        ended = capture(words, 60 + _PER_TEST * tests, environment=environment)
        if ended.status is None:
            return Ran(problem="pytest did not come to an end")
        return _read(told, (ended.stdout + ended.stderr).decode(errors="replace"))


def _read(told: Path, output: str) -> Ran:
    try:
        root = ElementTree.parse(told).getroot()
    except (OSError, ElementTree.ParseError):
        last = [line for line in output.splitlines() if line.strip()][-1:]
        return Ran(problem=f"pytest could not run it: {' '.join(last)}")
    ended = {case.get("name", ""): _ended(case) for case in root.iter("testcase")}
    errors = [line for line in output.splitlines() if line.startswith("E  ")]
    collected = all(name.startswith("test_") for name in ended)
    problem = "" if collected and ended else f"pytest: {(errors or ['no tests'])[0][1:].strip()}"
    seconds = sum(float(suite.get("time", 0)) for suite in root.iter("testsuite"))
    seconds_of = {
        case.get("name", ""): float(case.get("time", 0)) for case in root.iter("testcase")
    }
    return Ran(ended, seconds, seconds_of, problem)


def _ended(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    skipped = case.find("skipped")
    if skipped is None:
        return "passed"
    return "xfailed" if "xfail" in skipped.get("type", "") else "skipped"


def _bad(suite: Suite, path: Path, ran: Ran) -> dict[int, str]:
    """The trials whose tests did not end as they should, with how they did."""
    names = suite_file(suite, path, "").names
    found = {}
    for test in suite.tests:
        ended = ran.ended.get(names[test.trial], "did not run")
        if ended != _expected(suite, test):
            found[test.trial] = ran.problem or f"as pytest runs it, it {ended}"
    return found


def _expected(suite: Suite, test: SuiteTest) -> str:
    if test.fault is None:
        return "passed"
    return {"xfail": "xfailed", "fail": "failed", "skip": "skipped"}[suite.faults]
