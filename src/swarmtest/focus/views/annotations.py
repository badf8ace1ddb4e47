"""What came of focused testing as SARIF 2.1.0, for code scanning and for editors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from swarmtest.core.errors import version
from swarmtest.focus.outcome import FocusedFault, FocusedTarget, FocusOutcome
from swarmtest.focus.views.rows import (
    age,
    by_age,
    hits_of,
    is_failure,
    line_ranges,
    never_hit,
    repository_path,
    things,
    verdict,
)
from swarmtest.focus.views.terminal import shown_by
from swarmtest.ui.terminal.tables import fault_message, plural
from swarmtest.ui.terminal.text import one_line, printable

# -------------------------------------------------------------------------------------------------
# What came of focused testing as GitHub annotations: messages at the lines of a pull request.
#
# GitHub shows ten of each level and step, so that is how many are written; the last one counts
# what
# was left out.

_MOST = 10


def github_annotations(outcome: FocusOutcome, top: Path, here: Path | None = None) -> str:
    """Workflow commands, one to a line, to be printed where a GitHub runner reads them.

    `top`: the repository's directory, as in ``GITHUB_WORKSPACE``; `here`: what relative paths of
    the outcome count from, if that is another.
    """
    errors = [_fault(fault, top, here) for fault in by_age(outcome.faults) if is_failure(fault)]
    warnings = _never(outcome, top, here)
    told = f"{verdict(outcome).text} ({plural(outcome.tests, 'test')})"
    notice = [_Annotation({"title": "swarmtest focus"}, told)]
    levels = (("error", errors, "fault"), ("warning", warnings, "place"), ("notice", notice, ""))
    commands = [one for level, found, word in levels for one in _commands(level, found, word)]
    return "".join(f"{command}\n" for command in commands)


class _Annotation:
    def __init__(self, properties: dict[str, str], message: str) -> None:
        self.properties = properties
        self.message = message

    def command(self, level: str, more: str = "") -> str:
        told = ",".join(f"{name}={_property(text)}" for name, text in self.properties.items())
        return f"::{level} {told}::{_data(self.message + more)}"


def _commands(level: str, found: Sequence[_Annotation], word: str) -> list[str]:
    shown = found[:_MOST]
    left = len(found) - len(shown)
    more = f"\nand {plural(left, f'more {word}')}: see the log" if left else ""
    return [one.command(level, more if one is shown[-1] else "") for one in shown]


def _fault(fault: FocusedFault, top: Path, here: Path | None) -> _Annotation:
    record = fault.record
    properties = {}
    if fault.location:
        properties = {
            "file": repository_path(fault.location[0], top, here),
            "line": str(fault.location[1]),
        }
    properties["title"] = f"{age(fault)} {record.id}"
    lines = [record.signature, fault_message(record), f"shown by {shown_by(fault)}"]
    if fault.why_unknown:
        lines.append(f"whether it is new is not known: {fault.why_unknown}")
    if fault.replay:
        lines.append(f"replay: {fault.replay}")
    return _Annotation(properties, "\n".join(one_line(text) for text in lines if text))


def _never(outcome: FocusOutcome, top: Path, here: Path | None) -> list[_Annotation]:
    missed = never_hit(outcome)
    title = f"{things(outcome)} never hit"
    found = []
    for file, first, last in line_ranges(missed):
        place = {"file": repository_path(file, top, here), "line": str(first)}
        if last > first:
            place["endLine"] = str(last)
        tests = min(hits_of(t).tests for t in missed if t.file == file and first <= t.line <= last)
        found.append(
            _Annotation({**place, "title": title}, f"never hit in {plural(tests, 'test')}")
        )
    return found


def _data(text: str) -> str:
    """A message as a workflow command takes it.

    >>> _data("100%\\nsure")
    '100%25%0Asure'
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(one_line(text)).replace(":", "%3A").replace(",", "%2C")


# -------------------------------------------------------------------------------------------------
# What came of focused testing as JUnit XML, which every CI system reads.
#
# A target is a test case that passed if a test hit it, and a fault is one that failed; what is
# only
# worth knowing is skipped, with the reason.


def junit_xml(outcome: FocusOutcome, strict: bool = False) -> str:
    """The outcome as a test suite; `strict`: a target that was never hit is a failure."""
    suite = Element("testsuite", name=_name(f"swarmtest focus {outcome.subject}"))
    for target in sorted(outcome.targets, key=lambda t: (t.file, t.line, t.target)):
        _add_target(suite, target, strict)
    for fault in by_age(outcome.faults):
        _add_fault(suite, fault)
    counts = {
        "tests": len(suite),
        "failures": len(suite.findall("testcase/failure")),
        "errors": 0,
        "skipped": len(suite.findall("testcase/skipped")),
    }
    whole = Element("testsuites", name="swarmtest focus")
    for element in (suite, whole):
        element.attrib.update({name: str(count) for name, count in counts.items()})
        element.set("time", f"{outcome.wall_seconds:.3f}")
    whole.append(suite)
    ElementTree.indent(whole)
    body = ElementTree.tostring(whole, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'


def _name(text: str) -> str:
    return one_line(text) or "-"


def _case(suite: Element, group: str, name: str, file: str, line: int) -> Element:
    case = SubElement(suite, "testcase", classname=_name(group), name=_name(name), time="0")
    if file:
        case.set("file", one_line(file))
    if line:
        case.set("line", str(line))
    return case


def _add_target(suite: Element, target: FocusedTarget, strict: bool) -> None:
    group = f"target.{target.function or target.file or 'other'}"
    case = _case(suite, group, target.target, target.file, target.line)
    facts = SubElement(case, "properties")
    for sort in ("directed", "undirected", "default"):
        count = getattr(target, sort)
        SubElement(facts, "property", name=f"{sort}_hits", value=str(count.hits))
        SubElement(facts, "property", name=f"{sort}_tests", value=str(count.tests))
    count = hits_of(target)
    if not count.hits:
        message = f"never hit in {plural(count.tests, 'test')}"
        if target.dropped:
            message += f"; not aimed at: {one_line(target.dropped)}"
        SubElement(case, "failure" if strict else "skipped", message=message)
    elif target.dropped:
        SubElement(case, "skipped", message=f"not aimed at: {one_line(target.dropped)}")


def _add_fault(suite: Element, fault: FocusedFault) -> None:
    record = fault.record
    file, line = fault.location or ("", 0)
    case = _case(suite, f"fault.{record.kind}", f"{record.id} {record.signature}", file, line)
    if not is_failure(fault):
        SubElement(case, "skipped", message="in the base version too")
        return
    told = SubElement(case, "failure", type=_name(record.kind))
    told.set("message", f"{age(fault)}: {one_line(record.signature)}")
    lines = [f"shown by {shown_by(fault)}"]
    if fault.why_unknown:
        lines.append(f"whether it is new is not known: {one_line(fault.why_unknown)}")
    if fault.replay:
        lines.append(f"replay: {one_line(fault.replay)}")
    told.text = "\n".join([*lines, "", printable(record.details)])


# -------------------------------------------------------------------------------------------------

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
    results = [_fault_focus_sarif(fault, place) for fault in by_age(outcome.faults)]
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


def _fault_focus_sarif(fault: FocusedFault, place: _Place) -> dict[str, Any]:
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
