"""What came of focused testing as SARIF 2.1.0, for code scanning and for editors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from swarmtest.focus.outcome import FocusedFault, FocusedTarget, FocusOutcome
from swarmtest.report.focus_lines import shown_by
from swarmtest.report.focus_rows import (
    by_age,
    hits_of,
    line_ranges,
    never_hit,
    repository_path,
    things,
)
from swarmtest.report.printable import one_line, printable
from swarmtest.report.terminal import fault_message, plural
from swarmtest.version import version

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_HOME = "https://pypi.org/project/swarmtest/"
_FAULT, _NEVER = "SWARM001", "SWARM002"
_LEVELS = {"new": "error", "old": "note"}
_STATES = {"new": "new", "old": "unchanged"}
_RULES = (
    (
        _FAULT,
        "RandomTestFailed",
        "A random test failed.",
        "A random test that was focused on this code failed. Replay it with the command of the "
        "message; a fault that the base version shows too is a note.",
        "error",
    ),
    (
        _NEVER,
        "NeverHit",
        "No random test executed this code.",
        "No test executed this code, so nothing is known about it. Run longer, give the test "
        "generator what it lacks, or test this code by hand.",
        "warning",
    ),
)


def sarif(outcome: FocusOutcome, top: Path | None = None, here: Path | None = None) -> str:
    """A SARIF log: faults, and lines that were never hit.

    `top`: the repository's directory, that paths are told from; `here`: what relative paths of the
    outcome count from, if that is another.
    """
    place = _Place(outcome, top or Path.cwd(), here)
    results = [_fault(fault, place) for fault in by_age(outcome.faults)]
    run: dict[str, Any] = {
        "tool": {"driver": _driver()},
        "automationDetails": {"id": f"swarmtest-focus/{_text(outcome.subject)}/"},
        "invocations": [{"executionSuccessful": True}],
        "columnKind": "unicodeCodePoints",
        "results": [*results, *_missed(outcome, place)],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2)


def _driver() -> dict[str, Any]:
    return {
        "name": "swarmtest",
        "semanticVersion": version(),
        "informationUri": _HOME,
        "rules": [
            {
                "id": identity,
                "name": name,
                "shortDescription": {"text": short},
                "fullDescription": {"text": whole},
                "help": {"text": whole},
                "defaultConfiguration": {"level": level},
            }
            for identity, name, short, whole, level in _RULES
        ],
    }


class _Place:
    """From files and lines to locations."""

    def __init__(self, outcome: FocusOutcome, top: Path, here: Path | None) -> None:
        self._top, self._here = top, here
        self._anywhere = next((t for t in outcome.targets if t.file and t.line), None)

    def of(self, file: str, first: int, last: int = 0) -> dict[str, Any]:
        """The location of some lines."""
        path = repository_path(printable(file), self._top, self._here)
        artifact = {"uri": quote(path), "uriBaseId": "%SRCROOT%"}
        if path.startswith("/"):
            artifact = {"uri": f"file://{quote(path)}"}
        region = {"startLine": max(first, 1)}
        if last > first:
            region["endLine"] = last
        return {"physicalLocation": {"artifactLocation": artifact, "region": region}}

    def around(self, fault: FocusedFault) -> list[dict[str, Any]]:
        """Where a fault is shown; code scanning wants a place, so the first target must do."""
        if fault.location:
            return [self.of(*fault.location)]
        target: FocusedTarget | None = self._anywhere
        return [self.of(target.file, target.line)] if target else []


def _fault(fault: FocusedFault, place: _Place) -> dict[str, Any]:
    record = fault.record
    said = [record.signature, fault_message(record), f"shown by {shown_by(fault)}"]
    if not fault.location:
        said.append("where it failed is not known")
    if fault.why_unknown:
        said.append(f"whether it is new is not known: {fault.why_unknown}")
    if fault.replay:
        said.append(f"replay: {fault.replay}")
    result = {
        "ruleId": _FAULT,
        "ruleIndex": 0,
        "level": _LEVELS.get(fault.status, "error"),
        "message": {"text": "\n".join(_text(text) for text in said if text)},
        "locations": place.around(fault),
        "partialFingerprints": {"swarmtestFault/v1": _text(record.id)},
    }
    state = _STATES.get(fault.status)
    return {**result, "baselineState": state} if state else result


def _missed(outcome: FocusOutcome, place: _Place) -> list[dict[str, Any]]:
    targets = never_hit(outcome)
    thing = things(outcome)
    found = []
    for file, first, last in line_ranges(targets):
        here = [t for t in targets if t.file == file and first <= t.line <= last]
        tests = plural(min(hits_of(target).tests for target in here), "test")
        found.append(
            {
                "ruleId": _NEVER,
                "ruleIndex": 1,
                "level": "warning",
                "message": {"text": f"{plural(len(here), thing)} never hit in {tests}"},
                "locations": [place.of(file, first, last)],
                "partialFingerprints": {"swarmtestTarget/v1": _text(here[0].target)},
            }
        )
    return found


def _text(text: str) -> str:
    """On one line, and without links: SARIF messages may have some, random text must not."""
    return one_line(text).replace("](", "] (")
