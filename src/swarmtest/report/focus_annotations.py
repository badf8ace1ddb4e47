"""What came of focused testing as GitHub annotations: messages at the lines of a pull request.

GitHub shows ten of each level and step, so that is how many are written; the last one counts what
was left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from swarmtest.focus.outcome import FocusedFault, FocusOutcome
from swarmtest.report.focus_lines import shown_by
from swarmtest.report.focus_rows import (
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
from swarmtest.report.printable import one_line
from swarmtest.report.terminal import fault_message, plural

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
