"""A machine's test as Python code that runs by itself."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from swarmtest.subjects.argument_code import ArgumentWriter
from swarmtest.subjects.declared import invariants_of
from swarmtest.subjects.machine import Action, Machine
from swarmtest.subjects.machine_test import MachineTest, Step, used_labels


def code_of(
    cls: type[Machine], test: MachineTest, actions: Mapping[str, Action], *, after_step: str = ""
) -> str:
    """The program that does what the test does: no generator, no guards, no engine.

    `after_step`: what to write where a campaign checks the invariants, which is after the start and
    after every step; without, they are checked at the end.
    """
    known = [step for step in test.steps if step.action in actions]
    writer = ArgumentWriter()
    name, made = cls.code_of_start()
    first = cls.__qualname__.partition(".")[0]
    writer.imports.add(_import_line(cls.__module__, first))
    body = [f"{name} = {made}"]
    if test.settings:
        body.append(f"{name}.settings = {dict(test.settings)!r}")
    if name == "machine" and cls.start is not Machine.start:
        body.append("machine.start()")
    wanted = used_labels(known)
    checks = [after_step] if after_step else []
    body += checks
    for step in known:
        body += [*_step_lines(name, step, actions[step.action], wanted, writer), *checks]
    if not checks:
        body += [f"assert {name}.{invariant}() is not False" for invariant in invariants_of(cls)]
    if cls.stop is not Machine.stop:
        body.append(f"{name}.stop()")
    return "\n".join([*_import_lines(writer.imports), "", *body]) + "\n"


def _import_line(module: str, name: str) -> str:
    """How to get a name from a module; a file whose name is no identifier needs a longer way."""
    if all(part.isidentifier() for part in module.split(".")):
        return f"from {module} import {name}"
    return f"import importlib; {name} = importlib.import_module({module!r}).{name}"


def _import_lines(imports: Iterable[str]) -> list[str]:
    """Sorted, what comes from one module on one line; a script is imported by its file's name."""
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
    name: str, step: Step, action: Action, wanted: set[int], writer: ArgumentWriter
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
    if step.label in wanted:
        call = f"v{step.label} = {call}"
    if not step.raised:
        return [call]
    writer.imports.add("from contextlib import suppress")
    errors = ", ".join(map(writer.name, _suppressed(step, action)))
    return [f"with suppress({errors}):", f"    {call}"]


def _suppressed(step: Step, action: Action) -> tuple[type[BaseException], ...]:
    """The class that was raised if the action names it, else all that it names."""
    exact = tuple(error for error in action.raises if error.__qualname__ == step.raised)
    return exact or action.raises
