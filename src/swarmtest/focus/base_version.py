"""Base against patched: does the version before the change show the fault, too?

The shortest test of a fault is run again in a checkout of the base revision. The directories on
the path that lie in the repository are replaced by those of the checkout, and what was imported is
looked at: an installed copy of the program that would be tested instead makes the answer
"unknown", never "new" or "old".

A test that passes there is run a few times more, and on today's version, too: only one that fails
here every time and never there tells that the change is to blame.

The harness is today's: the test is written in its language. Where the harness is itself what was
changed (a program and its machine in one file), both are the base's.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from swarmtest.campaign.budget import Budget
from swarmtest.focus.base_run import RUNS
from swarmtest.languages.git import checkout_of, top
from swarmtest.store.records import FaultRecord
from swarmtest.subjects.loading import SubjectReference, with_reference

NEW, OLD, UNKNOWN = "new", "old", "unknown"


@dataclass(frozen=True)
class BaseVerdict:
    """Whether a fault is in the base version, too.

    >>> BaseVerdict("unknown", "the test could not be replayed").status
    'unknown'
    """

    status: str
    why: str = ""
    """For what is unknown: why."""


@dataclass(frozen=True)
class BaseCheck:
    """A base version to run failing tests on."""

    revision: str
    reference: SubjectReference
    harness: str
    """The harness's file, absolute; empty if there is none of its own."""
    changed: tuple[str, ...]
    """The places of the changed files of the program."""
    seconds: float

    def verdicts(self, faults: Sequence[FaultRecord]) -> dict[str, BaseVerdict]:
        """For each fault, by its id."""
        if not faults:
            return {}
        here = Path.cwd().resolve()
        root = Path(top(str(here))).resolve()
        with (
            tempfile.TemporaryDirectory(prefix="swarmtest-base-") as scratch,
            checkout_of(self.revision, str(here)) as tree,
        ):
            self._bring_harness(root, Path(tree))
            base = _Run(root, Path(tree), Path(scratch), here, self)
            today = _Run(root, root, Path(scratch), here, self)
            return {fault.id: _verdict(fault, base, today) for fault in faults}

    def _bring_harness(self, root: Path, tree: Path) -> None:
        if not self.harness:
            return
        harness = Path(os.path.realpath(self.harness))
        if not harness.is_relative_to(root) or str(harness) in self.changed:
            return
        there = tree / harness.relative_to(root)
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(harness, there)


@dataclass(frozen=True)
class _Run:
    root: Path
    tree: Path
    scratch: Path
    here: Path
    check: BaseCheck

    def told(self, fault: FaultRecord) -> dict[str, Any]:
        """What came of a fault's shortest test."""
        data = json.loads(fault.test or "{}")
        file = self.scratch / f"{fault.id}.json"
        reference = self._reference()
        file.write_text(json.dumps(with_reference(data, reference["text"], reference)))
        inside = [Path(p).relative_to(self.root) for p in self.check.changed if self._is_inside(p)]
        command = [sys.executable, "-P", "-m", "swarmtest.focus.base_run", str(file)]
        command += [fault.id, str(self.check.seconds), *(str(self.tree / path) for path in inside)]
        directory = self.tree / self.here.relative_to(self.root)
        directory.mkdir(parents=True, exist_ok=True)
        try:
            done = subprocess.run(
                command,
                cwd=directory,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(self._path())},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=RUNS * self.check.seconds + 60,
            )
        except subprocess.TimeoutExpired:
            return {"error": "it did not end"}
        told = _last_json(done.stdout) or {"error": _last_line(done.stderr)}
        if "error" in told:
            told["error"] = told["error"].replace(f"{self.tree}{os.sep}", "")
        return told

    def _reference(self) -> dict[str, Any]:
        """The subject's reference with paths in the repository made those of the checkout."""
        plain = self.check.reference.to_json()
        file, mark, name = str(plain["text"]).partition("::")
        where = os.path.realpath(file)
        if os.path.exists(where) and self._is_inside(where):
            plain["text"] = f"{self.tree / Path(where).relative_to(self.root)}{mark}{name}"
        return plain

    def _path(self) -> list[str]:
        """The checkout's directories instead of the repository's, before everything else."""
        known = [os.path.realpath(entry or ".") for entry in sys.path]
        ours = [
            str(self.tree / Path(entry).relative_to(self.root))
            for entry in known
            if self._is_inside(entry)
        ]
        given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        theirs = [entry for entry in given if entry and not self._is_inside(os.path.abspath(entry))]
        return [*dict.fromkeys(ours), *theirs]

    def _is_inside(self, place: str) -> bool:
        """In the repository, and not in a virtual environment that lies in it."""
        path = Path(place)
        return path.is_relative_to(self.root) and "site-packages" not in path.parts


def _verdict(fault: FaultRecord, base: _Run, today: _Run) -> BaseVerdict:
    if fault.test is None:
        return BaseVerdict(UNKNOWN, "there is no test of it that could be replayed")
    told = base.told(fault)
    if "error" in told:
        return BaseVerdict(UNKNOWN, f"the base version cannot run it: {told['error']}")
    strange = [p for p in told["places"].values() if not Path(p).is_relative_to(base.tree)]
    if strange:
        return BaseVerdict(UNKNOWN, f"{strange[0]} was imported instead of the base version's file")
    if told["shown"]:
        return BaseVerdict(OLD)
    if told["verdict"] == "invalid":
        return BaseVerdict(UNKNOWN, f"no valid test of the base version: {told['missing']}")
    if told["fault"]:
        return BaseVerdict(UNKNOWN, f"the base version fails otherwise: {told['signature']}")
    return _new_unless_flaky(fault, today)


def _new_unless_flaky(fault: FaultRecord, today: _Run) -> BaseVerdict:
    told = today.told(fault)
    shown, runs = told.get("shown", 0), told.get("runs", 0)
    if "error" in told or shown == runs:
        return BaseVerdict(NEW)
    return BaseVerdict(UNKNOWN, f"its test is flaky: it fails in {shown} of {runs} runs")


def _last_json(text: str) -> dict[str, Any] | None:
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                found: dict[str, Any] = json.loads(line)
            except ValueError:
                continue
            return found
    return None


def _last_line(text: str) -> str:
    lines: Iterable[str] = [line for line in text.splitlines() if line.strip()]
    return next(reversed(list(lines)), "it printed nothing")


# -------------------------------------------------------------------------------------------------
# The undirected campaign that comes first when there is no data, and what it leaves of a budget.
#
# Invariant: a limit of time is for all of it. What the baseline took, the directed campaign lacks.

TESTS = 2000
_SHARE = 0.25
"""Of the time."""
_SHARE_IF_ASKED = 0.5
"""Of the time, when the number of tests was named."""
_SECONDS = 15.0
_LEAST_SECONDS = 0.1
_LEAST_SHARE = 0.1


def baseline_of(budget: Budget, tests: int | None = None) -> Budget:
    """The budget of a baseline; `tests`: how many were asked for.

    >>> baseline_of(Budget(wall_seconds=300)).describe()
    '2,000 tests or 75 s'
    """
    share = _SHARE if tests is None else _SHARE_IF_ASKED
    wall, cpu = budget.wall_seconds, budget.cpu_seconds
    if wall is not None:
        wall = share * wall
    elif tests is None:
        wall = _SECONDS
    cpu = share * cpu if cpu is not None else None
    return Budget(tests=tests or TESTS, wall_seconds=wall, cpu_seconds=cpu)


def rest_of(budget: Budget, wall_seconds: float, cpu_seconds: float) -> Budget:
    """What is left of a budget after so much time; of a baseline that took too long, a little.

    >>> rest_of(Budget(wall_seconds=300), 75.4, 0.0).describe()
    '224.6 s'
    """
    wall, cpu = budget.wall_seconds, budget.cpu_seconds
    if wall is not None:
        wall = round(max(wall - wall_seconds, _LEAST_SHARE * wall, _LEAST_SECONDS), 1)
    if cpu is not None:
        cpu = round(max(cpu - cpu_seconds, _LEAST_SHARE * cpu), 3)
    return replace(budget, wall_seconds=wall, cpu_seconds=cpu)
