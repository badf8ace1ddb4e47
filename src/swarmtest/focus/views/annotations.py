"""The outcome of a focused campaign for CI: annotations, JUnit XML and SARIF 2.1.0.

GitHub annotations are messages at the lines of a pull request, and a Code Quality report has the
same for a merge request of GitLab. JUnit XML is read by every CI system. SARIF is for code scanning
and for editors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from swarmtest.core.errors import version
from swarmtest.core.formatting import plural
from swarmtest.focus.outcome import FocusedFault, FocusedTarget, FocusOutcome
from swarmtest.focus.views.rows import (
    by_age,
    hits_of,
    is_failure,
    line_ranges,
    never_hit,
    repository_path,
    status_word,
    target_word,
    verdict,
)
from swarmtest.focus.views.terminal import tests_that_show
from swarmtest.ui.terminal.tables import fault_message
from swarmtest.ui.terminal.text import one_line, printable

# GitHub annotations.

# GitHub shows at most ten of each level and step; the last one that is written counts the rest.
_MOST_ANNOTATIONS = 10


def github_annotations(outcome: FocusOutcome, top: Path, here: Path | None = None) -> str:
    """Return workflow commands, one to a line, to print where a GitHub runner reads them.

    `top` is the repository's directory, as in ``GITHUB_WORKSPACE``; `here` is the directory that
    relative paths in the outcome start from, if that is another.
    """
    errors = [
        _fault_annotation(fault, top, here) for fault in by_age(outcome.faults) if is_failure(fault)
    ]
    warnings = _never_hit_annotations(outcome, top, here)
    summary = f"{verdict(outcome).text} ({plural(outcome.tests, 'test')})"
    notice = [_Annotation({"title": "swarmtest focus"}, summary)]
    levels = (("error", errors, "fault"), ("warning", warnings, "place"), ("notice", notice, ""))
    commands = [
        line for level, annotations, word in levels for line in _commands(level, annotations, word)
    ]
    return "".join(f"{command}\n" for command in commands)


class _Annotation:
    """A message, with the file, line and title it belongs to."""

    def __init__(self, properties: dict[str, str], message: str) -> None:
        self.properties = properties
        self.message = message

    def command(self, level: str, more: str = "") -> str:
        properties = ",".join(f"{name}={_property(text)}" for name, text in self.properties.items())
        return f"::{level} {properties}::{_data(self.message + more)}"


def _commands(level: str, annotations: Sequence[_Annotation], word: str) -> list[str]:
    shown = annotations[:_MOST_ANNOTATIONS]
    left = len(annotations) - len(shown)
    more = f"\nand {plural(left, f'more {word}')}: see the log" if left else ""
    return [
        annotation.command(level, more if annotation is shown[-1] else "") for annotation in shown
    ]


def _fault_annotation(fault: FocusedFault, top: Path, here: Path | None) -> _Annotation:
    record = fault.record
    properties = {}
    if fault.location:
        properties = {
            "file": repository_path(fault.location[0], top, here),
            "line": str(fault.location[1]),
        }
    properties["title"] = f"{status_word(fault)} {record.id}"
    lines = [record.signature, fault_message(record), f"shown by {tests_that_show(fault)}"]
    if fault.why_unknown:
        lines.append(f"whether it is new is not known: {fault.why_unknown}")
    if fault.replay:
        lines.append(f"replay: {fault.replay}")
    return _Annotation(properties, "\n".join(one_line(text) for text in lines if text))


def _never_hit_annotations(
    outcome: FocusOutcome, top: Path, here: Path | None
) -> list[_Annotation]:
    missed = never_hit(outcome)
    title = f"{target_word(outcome)} never hit"
    annotations = []
    for file, first, last in line_ranges(missed):
        location = {"file": repository_path(file, top, here), "line": str(first)}
        if last > first:
            location["endLine"] = str(last)
        tests = min(hits_of(t).tests for t in missed if t.file == file and first <= t.line <= last)
        annotations.append(
            _Annotation({**location, "title": title}, f"never hit in {plural(tests, 'test')}")
        )
    return annotations


def _data(text: str) -> str:
    """Escape a message for a workflow command.

    >>> _data("100%\\nsure")
    '100%25%0Asure'
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escape a property of a workflow command."""
    return _data(one_line(text)).replace(":", "%3A").replace(",", "%2C")


# GitLab's Code Quality report.


def code_quality(outcome: FocusOutcome, top: Path, here: Path | None = None) -> str:
    """Return the faults and the lines that were never hit as a Code Quality report of GitLab.

    GitLab shows entries at lines of the repository only, so a fault without a place has none. `top`
    and `here` are as for `github_annotations`.
    """
    entries = []
    for fault in by_age(outcome.faults):
        if fault.location:
            text = f"{status_word(fault)}: {one_line(fault.record.signature)}"
            severity = "critical" if is_failure(fault) else "info"
            file = repository_path(fault.location[0], top, here)
            entries.append(
                _quality_entry(f"fault {fault.record.id}", text, severity, file, fault.location[1])
            )
    word = target_word(outcome)
    for name, first, last in line_ranges(never_hit(outcome)):
        text = f"{word} never hit" if first == last else f"{word}s {first} to {last} never hit"
        file = repository_path(name, top, here)
        entries.append(_quality_entry(f"never hit {first}-{last}", text, "minor", file, first))
    return json.dumps(entries, indent=2)


def _quality_entry(name: str, text: str, severity: str, file: str, line: int) -> dict[str, Any]:
    """Return one entry; GitLab compares entries of two runs by their fingerprints."""
    path = one_line(file)
    return {
        "check_name": "swarmtest",
        "description": text,
        "severity": severity,
        "fingerprint": hashlib.sha256(f"{name}\0{path}".encode(errors="replace")).hexdigest(),
        "location": {"path": path, "lines": {"begin": max(line, 1)}},
    }


# JUnit XML.
#
# A target is a test case, passed if a test hit it; a fault is a failed test case. What is only
# worth knowing is a skipped test case, with the reason.


def junit_xml(outcome: FocusOutcome, strict: bool = False) -> str:
    """Return the outcome as a test suite; if `strict`, a target that was never hit is a failure."""
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
    failure = SubElement(case, "failure", type=_name(record.kind))
    failure.set("message", f"{status_word(fault)}: {one_line(record.signature)}")
    lines = [f"shown by {tests_that_show(fault)}"]
    if fault.why_unknown:
        lines.append(f"whether it is new is not known: {one_line(fault.why_unknown)}")
    if fault.replay:
        lines.append(f"replay: {one_line(fault.replay)}")
    failure.text = "\n".join([*lines, "", printable(record.details)])


# SARIF.

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_HOME = "https://pypi.org/project/swarmtest/"
_FAULT_RULE, _NEVER_RULE = "SWARM001", "SWARM002"
_LEVELS = {"new": "error", "old": "note"}
_STATES = {"new": "new", "old": "unchanged"}
_RULES = (
    (
        _FAULT_RULE,
        "RandomTestFailed",
        "A random test failed.",
        "A random test that was focused on this code failed. Replay it with the command of the "
        "message; a fault that the base version shows too is a note.",
        "error",
    ),
    (
        _NEVER_RULE,
        "NeverHit",
        "No random test executed this code.",
        "No test executed this code, so nothing is known about it. Run longer, give the test "
        "generator what it lacks, or test this code by hand.",
        "warning",
    ),
)


def sarif(outcome: FocusOutcome, top: Path | None = None, here: Path | None = None) -> str:
    """Return a SARIF log of the faults and of the lines that were never hit.

    `top` is the repository's directory, which paths in the log are relative to; `here` is the
    directory that relative paths in the outcome start from, if that is another.
    """
    locations = _Locations(outcome, top or Path.cwd(), here)
    results = [_fault_result(fault, locations) for fault in by_age(outcome.faults)]
    run: dict[str, Any] = {
        "tool": {"driver": _tool()},
        "automationDetails": {"id": f"swarmtest-focus/{_text(outcome.subject)}/"},
        "invocations": [{"executionSuccessful": True}],
        "columnKind": "unicodeCodePoints",
        "results": [*results, *_never_hit_results(outcome, locations)],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2)


def _tool() -> dict[str, Any]:
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


class _Locations:
    """Turns files and lines into SARIF locations."""

    def __init__(self, outcome: FocusOutcome, top: Path, here: Path | None) -> None:
        self._top, self._here = top, here
        self._anywhere = next((t for t in outcome.targets if t.file and t.line), None)

    def of(self, file: str, first: int, last: int = 0) -> dict[str, Any]:
        """Return the location of some lines."""
        path = repository_path(printable(file), self._top, self._here)
        artifact = {"uri": quote(path), "uriBaseId": "%SRCROOT%"}
        if path.startswith("/"):
            artifact = {"uri": f"file://{quote(path)}"}
        region = {"startLine": max(first, 1)}
        if last > first:
            region["endLine"] = last
        return {"physicalLocation": {"artifactLocation": artifact, "region": region}}

    def around(self, fault: FocusedFault) -> list[dict[str, Any]]:
        """Return where to show a fault; code scanning needs a place, so fall back on a target."""
        if fault.location:
            return [self.of(*fault.location)]
        target: FocusedTarget | None = self._anywhere
        return [self.of(target.file, target.line)] if target else []


def _fault_result(fault: FocusedFault, locations: _Locations) -> dict[str, Any]:
    record = fault.record
    lines = [record.signature, fault_message(record), f"shown by {tests_that_show(fault)}"]
    if not fault.location:
        lines.append("where it failed is not known")
    if fault.why_unknown:
        lines.append(f"whether it is new is not known: {fault.why_unknown}")
    if fault.replay:
        lines.append(f"replay: {fault.replay}")
    result = {
        "ruleId": _FAULT_RULE,
        "ruleIndex": 0,
        "level": _LEVELS.get(fault.status, "error"),
        "message": {"text": "\n".join(_text(text) for text in lines if text)},
        "locations": locations.around(fault),
        "partialFingerprints": {"swarmtestFault/v1": _text(record.id)},
    }
    state = _STATES.get(fault.status)
    return {**result, "baselineState": state} if state else result


def _never_hit_results(outcome: FocusOutcome, locations: _Locations) -> list[dict[str, Any]]:
    targets = never_hit(outcome)
    thing = target_word(outcome)
    results = []
    for file, first, last in line_ranges(targets):
        here = [t for t in targets if t.file == file and first <= t.line <= last]
        tests = plural(min(hits_of(target).tests for target in here), "test")
        results.append(
            {
                "ruleId": _NEVER_RULE,
                "ruleIndex": 1,
                "level": "warning",
                "message": {"text": f"{plural(len(here), thing)} never hit in {tests}"},
                "locations": [locations.of(file, first, last)],
                "partialFingerprints": {"swarmtestTarget/v1": _text(here[0].target)},
            }
        )
    return results


def _text(text: str) -> str:
    """Put text on one line, and break links in it.

    SARIF messages may contain links, but random text must not make any.
    """
    return one_line(text).replace("](", "] (")
