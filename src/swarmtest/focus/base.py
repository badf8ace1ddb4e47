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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swarmtest.focus.base_run import RUNS
from swarmtest.focus.git import checkout_of, top
from swarmtest.store import FaultRecord
from swarmtest.subjects.loading import SubjectReference

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
        file.write_text(json.dumps(data | {"reference": self._reference()}))
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
