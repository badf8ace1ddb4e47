"""Write a machine's test as Python code that runs on its own.

Arguments are written as readable expressions where possible: numbers, text, containers, enum
members, dataclasses, named tuples, classes and functions. Any other value is written as a pickle,
which is not readable but runs.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import inspect
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from swarmtest.subjects.machine.compiled import invariants_of
from swarmtest.subjects.machine.machine import Action, Machine
from swarmtest.subjects.machine.test import MachineTest, Step, from_json, to_json, used_labels

_CONTAINERS = {"$tuple": "({})", "$set": "{{{}}}", "$frozenset": "frozenset([{}])"}


class ArgumentWriter:
    """Writes the arguments of a saved test as expressions, and collects the imports they need.

    >>> writer = ArgumentWriter()
    >>> writer.code({"$tuple": [1, {"$float": "nan"}]}), writer.code({"$ref": 3})
    ("(1, float('nan'))", 'v3')
    """

    def __init__(self) -> None:
        self.imports: set[str] = set()
        """Lines like ``from shop import Colour``."""

    def code(self, argument: Any) -> str:
        """Return the expression for an argument in the form that `test.to_json` writes."""
        if isinstance(argument, list):
            return f"[{', '.join(map(self.code, argument))}]"
        if not isinstance(argument, dict):
            return repr(argument)
        tag = next(iter(argument), "")
        if not tag.startswith("$"):
            return "{" + ", ".join(f"{k!r}: {self.code(v)}" for k, v in argument.items()) + "}"
        return self._tagged(tag, argument[tag])

    def name(self, thing: Any) -> str:
        """Return the qualified name of a class or function, and import its outermost part."""
        outer = thing.__qualname__.partition(".")[0]
        if thing.__module__ != "builtins":
            self.imports.add(f"from {thing.__module__} import {outer}")
        qualname: str = thing.__qualname__
        return qualname

    def _tagged(self, tag: str, body: Any) -> str:
        if tag == "$ref":
            return f"v{body}"
        if tag == "$float":
            return f"float({body!r})"
        if tag == "$bytes":
            return repr(base64.b64decode(body))
        if tag == "$dict":
            return "{" + ", ".join(f"{self.code(k)}: {self.code(v)}" for k, v in body) + "}"
        if tag in _CONTAINERS:
            return self._container(tag, body)
        if tag == "$lost":
            return f"...  # this argument could not be saved: {' '.join(body.split())[:60]}\n"
        return self._object(from_json({tag: body}), body)

    def _container(self, tag: str, body: list[Any]) -> str:
        items = ", ".join(map(self.code, body))
        if tag == "$tuple" and len(body) == 1:
            items += ","
        if tag == "$set" and not body:
            return "set()"
        return _CONTAINERS[tag].format(items)

    def _object(self, value: Any, pickled: str) -> str:
        cls = type(value)
        if isinstance(value, enum.Enum) and value.name in cls.__members__:
            return f"{self.name(cls)}.{value.name}"
        if inspect.isclass(value) or inspect.isfunction(value):
            return self.name(value)
        if dataclasses.is_dataclass(value) and all(f.init for f in dataclasses.fields(value)):
            fields = [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)]
            words = [f"{name}={self.code(to_json(item))}" for name, item in fields]
            return f"{self.name(cls)}({', '.join(words)})"
        if isinstance(value, tuple) and hasattr(cls, "_fields"):
            return f"{self.name(cls)}({', '.join(self.code(to_json(item)) for item in value)})"
        self.imports |= {"import base64", "import pickle"}
        return f"pickle.loads(base64.b64decode({pickled!r}))"


def code_of(
    cls: type[Machine], test: MachineTest, actions: Mapping[str, Action], *, after_step: str = ""
) -> str:
    """Return a program that does what the test does, without generators, guards or the engine.

    `after_step` is code to write where a campaign checks the invariants: after the start and after
    every step. Without it, the invariants are checked at the end.
    """
    steps = [step for step in test.steps if step.action in actions]
    writer = ArgumentWriter()
    name, constructor = cls.code_of_start()
    outermost = cls.__qualname__.partition(".")[0]
    writer.imports.add(_import_line(cls.__module__, outermost))
    body = [f"{name} = {constructor}"]
    if test.settings:
        body.append(f"{name}.settings = {dict(test.settings)!r}")
    if name == "machine" and cls.start is not Machine.start:
        body.append("machine.start()")
    labels = used_labels(steps)
    checks = [after_step] if after_step else []
    body += checks
    for step in steps:
        body += [*_step_lines(name, step, actions[step.action], labels, writer), *checks]
    if not checks:
        body += [f"assert {name}.{invariant}() is not False" for invariant in invariants_of(cls)]
    if cls.stop is not Machine.stop:
        body.append(f"{name}.stop()")
    return "\n".join([*_import_lines(writer.imports), "", *body]) + "\n"


def _import_line(module: str, name: str) -> str:
    """Return the code that imports a name; a file whose name is no identifier needs `importlib`."""
    if all(part.isidentifier() for part in module.split(".")):
        return f"from {module} import {name}"
    return f"import importlib; {name} = importlib.import_module({module!r}).{name}"


def _import_lines(imports: Iterable[str]) -> list[str]:
    """Return sorted import lines, one per module; a script is imported by the name of its file."""
    plain = sorted(line for line in imports if line.startswith("import "))
    names: dict[str, set[str]] = {}
    for line in imports:
        if line.startswith("from "):
            _, module, _, name = line.split(" ")
            if module == "__main__":
                module = Path(getattr(sys.modules[module], "__file__", None) or module).stem
            names.setdefault(module, set()).add(name)
    return [*plain, *(f"from {m} import {', '.join(sorted(n))}" for m, n in sorted(names.items()))]


def _step_lines(
    name: str, step: Step, action: Action, labels: set[int], writer: ArgumentWriter
) -> list[str]:
    arguments = [writer.code(argument) for argument in step.arguments]
    if action.render is not None:
        call = action.render(name, arguments)
    else:
        words = [
            code if at < action.positional else f"{key}={code}"
            for at, (key, code) in enumerate(zip(action.arguments, arguments, strict=False))
        ]
        call = f"{name}.{action.name}({', '.join(words)})"
    if step.label in labels:
        call = f"v{step.label} = {call}"
    if not step.raised:
        return [call]
    writer.imports.add("from contextlib import suppress")
    errors = ", ".join(map(writer.name, _suppressed(step, action)))
    return [f"with suppress({errors}):", f"    {call}"]


def _suppressed(step: Step, action: Action) -> tuple[type[BaseException], ...]:
    """Return the exception that the step raised if the action names it, else all that it names."""
    exact = tuple(error for error in action.raises if error.__qualname__ == step.raised)
    return exact or action.raises
