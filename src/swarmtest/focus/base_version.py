"""Check whether the version before a change shows a fault, too; and set the budget of a baseline.

`BaseCheck` runs the shortest test of each fault again in a checkout of the base revision. The
directories of the repository on the import path are replaced by those of the checkout, and the
files that were imported are checked: if an installed copy of the program would be tested instead,
the answer is "unknown", never "new" or "old".

If the test passes there, it is run a few more times, also on the current version: only a test that
always fails here and never there shows that the change is to blame.

The current harness is used, because the test is written for it. If the harness itself was changed
(a program and its machine in one file), both are those of the base version.

`baseline_of` and `rest_of` divide a time budget between the undirected campaign that comes first
when there is no data and the directed campaign.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from swarmtest.campaign.budget import Budget
from swarmtest.focus.base_run import RUNS
from swarmtest.languages.git import checkout_of, top
from swarmtest.processes.commands import capture
from swarmtest.store.records import FaultRecord
from swarmtest.subjects.loading import SubjectReference, with_reference

NEW, OLD, UNKNOWN = "new", "old", "unknown"


@dataclass(frozen=True)
class BaseVerdict:
    """Whether the base version shows a fault, too.

    >>> BaseVerdict("unknown", "the test could not be replayed").status
    'unknown'
    """

    status: str
    why: str = ""
    """The reason, if the status is unknown."""


@dataclass(frozen=True)
class BaseCheck:
    """Runs failing tests on a base version."""

    revision: str
    reference: SubjectReference
    harness: str
    """The absolute path of the harness; empty if it has no file of its own."""
    changed: tuple[str, ...]
    """The paths of the changed files of the program."""
    seconds: float

    def verdicts(self, faults: Sequence[FaultRecord]) -> dict[str, BaseVerdict]:
        """Return the verdict for each fault, by its id."""
        if not faults:
            return {}
        here = Path.cwd().resolve()
        root = Path(top(str(here))).resolve()
        with (
            tempfile.TemporaryDirectory(prefix="swarmtest-base-") as scratch,
            checkout_of(self.revision, str(here)) as tree,
        ):
            self._bring_harness(root, Path(tree))
            base = _TreeRun(root, Path(tree), Path(scratch), here, self)
            current = _TreeRun(root, root, Path(scratch), here, self)
            return {fault.id: _verdict(fault, base, current) for fault in faults}

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
class _TreeRun:
    """Runs the tests of faults in one source tree: the checkout, or the repository itself."""

    root: Path
    tree: Path
    scratch: Path
    here: Path
    check: BaseCheck

    def run(self, fault: FaultRecord) -> dict[str, Any]:
        """Run a fault's shortest test and return the JSON that `base_run` prints."""
        data = json.loads(fault.test or "{}")
        file = self.scratch / f"{fault.id}.json"
        reference = self._reference()
        file.write_text(json.dumps(with_reference(data, reference["text"], reference)))
        files = [Path(p).relative_to(self.root) for p in self.check.changed if self._is_inside(p)]
        command = [sys.executable, "-P", "-m", "swarmtest.focus.base_run", str(file)]
        command += [
            fault.fault.key,
            str(self.check.seconds),
            *(str(self.tree / path) for path in files),
        ]
        directory = self.tree / self.here.relative_to(self.root)
        directory.mkdir(parents=True, exist_ok=True)
        ended = capture(
            command,
            RUNS * self.check.seconds + 60,
            directory=directory,
            environment=os.environ | {"PYTHONPATH": os.pathsep.join(self._path())},
        )
        if ended.status is None:
            return {"error": "it did not end"}
        output, errors = (text.decode(errors="replace") for text in (ended.stdout, ended.stderr))
        result = _last_json(output) or {"error": _last_line(errors)}
        if "error" in result:
            result["error"] = result["error"].replace(f"{self.tree}{os.sep}", "")
        return result

    def holds(self, program: str) -> bool:
        """Return whether a program is one of this tree."""
        return Path(program).is_relative_to(self.tree) and "site-packages" not in program

    def _reference(self) -> dict[str, Any]:
        """Return the subject's reference with paths in the repository moved to the tree."""
        data = self.check.reference.to_json()
        file, separator, name = str(data["text"]).partition("::")
        path = os.path.realpath(file)
        if os.path.exists(path) and self._is_inside(path):
            data["text"] = f"{self.tree / Path(path).relative_to(self.root)}{separator}{name}"
        return data

    def _path(self) -> list[str]:
        """Return the import path: the tree's directories, then those outside the repository."""
        entries = [os.path.realpath(entry or ".") for entry in sys.path]
        ours = [
            str(self.tree / Path(entry).relative_to(self.root))
            for entry in entries
            if self._is_inside(entry)
        ]
        environment = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        theirs = [
            entry for entry in environment if entry and not self._is_inside(os.path.abspath(entry))
        ]
        return [*dict.fromkeys(ours), *theirs]

    def _is_inside(self, place: str) -> bool:
        """Return whether a path is in the repository but not in a virtual environment within it."""
        path = Path(place)
        return path.is_relative_to(self.root) and "site-packages" not in path.parts


def _verdict(fault: FaultRecord, base: _TreeRun, current: _TreeRun) -> BaseVerdict:
    if fault.test is None:
        return BaseVerdict(UNKNOWN, "there is no test of it that could be replayed")
    result = base.run(fault)
    if "error" in result:
        return BaseVerdict(UNKNOWN, f"the base version cannot run it: {result['error']}")
    outside = [p for p in result["places"].values() if not Path(p).is_relative_to(base.tree)]
    if outside:
        return BaseVerdict(UNKNOWN, f"{outside[0]} was imported instead of the base version's file")
    current_program = next((p for p in result["programs"] if current.holds(p)), "")
    if current_program:
        return BaseVerdict(
            UNKNOWN, f"{current_program} is not built for the base version: say how with [build]"
        )
    if result["shown"]:
        return BaseVerdict(OLD)
    if result["verdict"] == "invalid":
        return BaseVerdict(UNKNOWN, f"no valid test of the base version: {result['missing']}")
    if result["fault"]:
        return BaseVerdict(UNKNOWN, f"the base version fails in another way: {result['signature']}")
    return _new_unless_flaky(fault, current)


def _new_unless_flaky(fault: FaultRecord, current: _TreeRun) -> BaseVerdict:
    result = current.run(fault)
    shown, runs = result.get("shown", 0), result.get("runs", 0)
    if "error" in result or shown == runs:
        return BaseVerdict(NEW)
    return BaseVerdict(UNKNOWN, f"its test is flaky: it fails in {shown} of {runs} runs")


def _last_json(text: str) -> dict[str, Any] | None:
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                data: dict[str, Any] = json.loads(line)
            except ValueError:
                continue
            return data
    return None


def _last_line(text: str) -> str:
    lines: Iterable[str] = [line for line in text.splitlines() if line.strip()]
    return next(reversed(list(lines)), "it printed nothing")


# The budget of a baseline, and what it leaves for the directed campaign.
#
# Invariant: a time limit covers both campaigns. The directed one gets what the baseline left.

TESTS = 2000
_SHARE = 0.25
"""The baseline's share of the time."""
_SHARE_IF_ASKED = 0.5
"""Its share of the time if the user gave the number of tests."""
_SECONDS = 15.0
_LEAST_SECONDS = 0.1
_LEAST_SHARE = 0.1


def baseline_of(budget: Budget, tests: int | None = None) -> Budget:
    """Return the budget of a baseline; `tests` is the number asked for, if any.

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
    """Return what is left of a budget; at least a little, even if the baseline took too long.

    >>> rest_of(Budget(wall_seconds=300), 75.4, 0.0).describe()
    '224.6 s'
    """
    wall, cpu = budget.wall_seconds, budget.cpu_seconds
    if wall is not None:
        wall = round(max(wall - wall_seconds, _LEAST_SHARE * wall, _LEAST_SECONDS), 1)
    if cpu is not None:
        cpu = round(max(cpu - cpu_seconds, _LEAST_SHARE * cpu), 3)
    return replace(budget, wall_seconds=wall, cpu_seconds=cpu)
