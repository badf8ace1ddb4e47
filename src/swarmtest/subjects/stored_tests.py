"""Stored tests as code, without their subject.

A store may come from anybody, so showing it must be safe. `Subject.code` needs the subject, which
is code of the user; what is here reads only the data of a test. Stores keep the code that a subject
printed beside the test, so this is for tests that have none: of older stores, and of files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.subjects.command.test import CommandTest
from swarmtest.subjects.generated import FORMAT as GENERATED
from swarmtest.subjects.generated import content_of, input_of
from swarmtest.subjects.hypothesis import test as rule_test
from swarmtest.subjects.machine import test as machine_test
from swarmtest.subjects.machine.code import ArgumentWriter
from swarmtest.subjects.machine.test import MachineTest, Step, used_labels


@dataclass(frozen=True)
class StoredTests:
    """A stand-in for a subject that turns stored tests into code.

    >>> test = {"format": machine_test.FORMAT, "subject": "stack.py::Stack"}
    >>> print(StoredTests().code(test | {"steps": [["push", [{"$tuple": [1, 2]}]]]}))
    from stack import Stack
    <BLANKLINE>
    machine = Stack()
    machine.start()
    machine.push((1, 2))
    """

    part: str = "step"
    """The name of a part of a test."""

    def code(self, data: Any) -> str:
        """Return a test as a person would write it; as JSON if its format is not known."""
        if not isinstance(data, Mapping):
            return json.dumps(data, indent=1)
        if isinstance(data.get("text"), str):
            return str(data["text"])
        if data.get("format") == GENERATED:
            return _generated_code(data)
        try:
            if data.get("format") == machine_test.FORMAT:
                return _machine_code(MachineTest.from_json(data))
            if data.get("format") == rule_test.FORMAT:
                return _rule_code(data)
        except (UserError, KeyError, TypeError, ValueError, AttributeError):
            pass  # not written by us: show it as JSON
        return json.dumps(data, indent=1)


def _generated_code(data: Mapping[str, Any]) -> str:
    try:
        return CommandTest("", input_of(content_of(data))).shown
    except UserError:
        return json.dumps(data, indent=1)


def _machine_code(test: MachineTest) -> str:
    labels = used_labels(test.steps)
    lines = _head(test.subject)
    if test.settings:
        lines.append(f"machine.settings = {dict(test.settings)!r}")
    return "\n".join([*lines, *(_step_code(step, labels) for step in test.steps)])


def _head(subject: str) -> list[str]:
    """Return the lines that start a machine in a file; for other subjects, a comment."""
    file, _, name = subject.rpartition("::")
    if not (file.endswith(".py") and name.isidentifier()):
        return [f"# {subject}"]
    module = PurePath(file).stem
    return [f"from {module} import {name}", "", f"machine = {name}()", "machine.start()"]


def _step_code(step: Step, labels: set[int]) -> str:
    assignment = f"v{step.label} = " if step.label in labels else ""
    call = f"{assignment}machine.{step.action}({', '.join(map(argument_code, step.arguments))})"
    return f"{call}  # raises {step.raised}" if step.raised else call


def _rule_code(data: Mapping[str, Any]) -> str:
    lines = [f"# {data.get('subject', '')}"]
    for step in data["steps"]:
        words = ", ".join(f"{name}={text}" for name, text in step.get("arguments", {}).items())
        drawn = "".join(f"  # drew {text}" for text in step.get("drawn", ()))
        lines.append(f"v{step['label']} = state.{step['rule']}({words}){drawn}")
    if data.get("violated"):
        lines.append(f"state.{data['violated']}()  # does not hold")
    return "\n".join(lines)


def argument_code(argument: Any) -> str:
    """Return the code of an argument of a stored test; for an object, its `repr`.

    >>> argument_code([{"$ref": 3}, {"$float": "nan"}, {"$pickle": "gASVBg==", "repr": "<Cart>"}])
    "[v3, float('nan'), <not shown: needs --trust>]"
    >>> argument_code({"$drawn": [7, 0], "repr": "<Token 7>"})
    '<Token 7>'
    """
    if isinstance(argument, Mapping) and not {"$lost", "$drawn", "$option"}.isdisjoint(argument):
        return str(argument.get("repr", argument.get("$lost", "<an object>")))
    return ArgumentWriter().code(argument)
