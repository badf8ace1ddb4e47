"""What came of focused testing as JUnit XML, which every CI system reads.

A target is a test case that passed if a test hit it, and a fault is one that failed; what is only
worth knowing is skipped, with the reason.
"""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from swarmtest.focus.outcome import FocusedFault, FocusedTarget, FocusOutcome
from swarmtest.report.focus_lines import shown_by
from swarmtest.report.focus_rows import age, by_age, hits_of, is_failure
from swarmtest.report.printable import one_line, printable
from swarmtest.report.terminal import plural


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
