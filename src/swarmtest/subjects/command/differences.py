"""In what two implementations differ that should do the same: how they ended, or at which field.

Values vary from test to test, so they are no part of it. What stays is the kind of the ends (an
answer, an exit status with its exception, a signal), and the path of the first field that differs,
if the answers are JSON or have labelled lines.
"""

from __future__ import annotations

import json
import re
from itertools import zip_longest
from typing import Any

from swarmtest.subjects.command.step_runner import StepOutcome, signal_name

_EXCEPTION = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Panic|Fault))\b", re.MULTILINE)
_LABELLED = re.compile(r"^\s*([A-Za-z_][\w .-]{0,40}?)\s*[:=]")
_DEEPEST = 20


def difference(right: StepOutcome, wrong: StepOutcome) -> str:
    """Return in what the second of two outcomes differs; empty if only the text of the answer does.

    >>> good = StepOutcome("gcc", 0, stdout=b'{"items": [{"price": 3}]}')
    >>> difference(good, StepOutcome("tcc", 0, stdout=b'{"items": [{"price": 4}]}'))
    'at items[].price'
    >>> difference(good, StepOutcome("tcc", 1, stderr=b"KeyError: 'price'"))
    'exit status 1 with KeyError against an answer'
    """
    ends = _end(wrong), _end(right)
    if ends[0] != ends[1]:
        return f"{ends[0]} against {ends[1]}"
    path = _differing_path(right.stdout, wrong.stdout)
    return f"at {path}" if path else ""


def _end(outcome: StepOutcome) -> str:
    if outcome.signal:
        return signal_name(outcome.signal)
    if outcome.status == 0:
        return "an answer"
    raised = _EXCEPTION.findall(outcome.stderr.decode(errors="replace"))
    return f"exit status {outcome.status}" + (f" with {raised[-1]}" if raised else "")


def _differing_path(one: bytes, other: bytes) -> str:
    """Return the path of the first difference between two answers; empty if it has none."""
    try:
        path = _path_in_data(json.loads(one), json.loads(other), "", _DEEPEST)
        return path if path.strip("[]") else ""  # elements of a bare list have no name
    except (ValueError, RecursionError):
        return _label_of_line(one.decode(errors="replace"), other.decode(errors="replace"))


def _path_in_data(one: Any, other: Any, path: str, deepest: int) -> str:
    if deepest and isinstance(one, dict) and isinstance(other, dict):
        for name in [*one, *(name for name in other if name not in one)]:
            below = f"{path}.{name}" if path else str(name)
            if (name in one) != (name in other):
                return f"{below}, which one lacks"
            if one[name] != other[name]:
                return _path_in_data(one[name], other[name], below, deepest - 1)
    if deepest and isinstance(one, list) and isinstance(other, list):
        for first, second in zip(one, other, strict=False):
            if first != second:
                return _path_in_data(first, second, f"{path}[]", deepest - 1)
    return path


def _label_of_line(one: str, other: str) -> str:
    """Return the label of the first line that differs, like ``checksum`` in ``checksum = 7``."""
    for first, second in zip_longest(one.splitlines(), other.splitlines(), fillvalue=""):
        if first != second:
            labels = {match[1] if match else "" for match in map(_LABELLED.match, (first, second))}
            return labels.pop() if len(labels) == 1 else ""
    return ""
