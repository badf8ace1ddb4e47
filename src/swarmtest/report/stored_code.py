"""A saved test as code, by reading alone: no subject is imported and no object is unpickled.

What a store holds may come from anybody. `subject.code` imports the subject, and arguments that are
objects are pickles; a page that shows somebody else's store must do neither.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from swarmtest.errors import UserError
from swarmtest.subjects import machine_test
from swarmtest.subjects.machine_test import MachineTest, Step, used_labels
from swarmtest.subjects.rule_based import rule_test

_CONTAINERS = {"$tuple": "({})", "$set": "{{{}}}", "$frozenset": "frozenset([{}])"}


class StoredTests:
    """Stands where a subject prints tests.

    >>> test = {"format": machine_test.FORMAT, "subject": "stack.py::Stack"}
    >>> print(StoredTests().code(test | {"steps": [["push", [{"$tuple": [1, 2]}]]]}))
    from stack import Stack
    <BLANKLINE>
    machine = Stack()
    machine.start()
    machine.push((1, 2))
    """

    part = "step"

    def code(self, data: Any) -> str:
        """The test as a person would write it down; as JSON if its format is not known here."""
        if not isinstance(data, Mapping):
            return json.dumps(data, indent=1)
        if isinstance(data.get("text"), str):
            return str(data["text"])
        try:
            if data.get("format") == machine_test.FORMAT:
                return _machine_code(MachineTest.from_json(data))
            if data.get("format") == rule_test.FORMAT:
                return _rule_code(data)
        except (UserError, KeyError, TypeError, ValueError, AttributeError):
            pass  # not as we write it: then as it is
        return json.dumps(data, indent=1)


def _machine_code(test: MachineTest) -> str:
    wanted = used_labels(test.steps)
    lines = _head(test.subject)
    if test.settings:
        lines.append(f"machine.settings = {dict(test.settings)!r}")
    return "\n".join([*lines, *(_step_code(step, wanted) for step in test.steps)])


def _head(subject: str) -> list[str]:
    """How a machine in a file is started; of other subjects, which it is."""
    file, _, name = subject.rpartition("::")
    if not (file.endswith(".py") and name.isidentifier()):
        return [f"# {subject}"]
    module = PurePath(file).stem
    return [f"from {module} import {name}", "", f"machine = {name}()", "machine.start()"]


def _step_code(step: Step, wanted: set[int]) -> str:
    made = f"v{step.label} = " if step.label in wanted else ""
    call = f"{made}machine.{step.action}({', '.join(map(argument_code, step.arguments))})"
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
    """An argument as `swarmtest.subjects.values.to_json` wrote it; of objects what they printed.

    >>> argument_code([{"$ref": 3}, {"$float": "nan"}, {"$pickle": "gASVBg==", "repr": "<Cart>"}])
    "[v3, float('nan'), <Cart>]"
    """
    if isinstance(argument, list):
        return f"[{', '.join(map(argument_code, argument))}]"
    if not isinstance(argument, Mapping):
        return repr(argument)
    tag = str(next(iter(argument), ""))
    if not tag.startswith("$"):
        return "{" + ", ".join(f"{k!r}: {argument_code(v)}" for k, v in argument.items()) + "}"
    if tag in ("$pickle", "$lost"):
        return str(argument.get("repr", argument[tag] if tag == "$lost" else "<an object>"))
    return _tagged_code(tag, argument[tag])


def _tagged_code(tag: str, body: Any) -> str:
    if tag == "$ref":
        return f"v{body}"
    if tag == "$float":
        return f"float({body!r})"
    if tag == "$bytes":
        return repr(base64.b64decode(body))
    if tag == "$dict":
        return "{" + ", ".join(f"{argument_code(k)}: {argument_code(v)}" for k, v in body) + "}"
    items = ", ".join(map(argument_code, body))
    if tag == "$set" and not body:
        return "set()"
    return _CONTAINERS[tag].format(f"{items}," if tag == "$tuple" and len(body) == 1 else items)
