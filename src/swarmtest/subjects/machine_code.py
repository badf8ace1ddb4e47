"""A machine's test as Python code that runs by itself."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from swarmtest.subjects.machine import Action, Machine, invariants_of
from swarmtest.subjects.machine_test import MachineTest, Step, argument_code, used_labels


def code_of(cls: type[Machine], test: MachineTest, actions: Mapping[str, Action]) -> str:
    """The program that does what the test does: no generator, no guards, no engine."""
    known = [step for step in test.steps if step.action in actions]
    name, made = cls.code_of_start()
    body = [f"{name} = {made}"]
    if test.settings:
        body.append(f"{name}.settings = {dict(test.settings)!r}")
    if name == "machine" and cls.start is not Machine.start:
        body.append("machine.start()")
    wanted = used_labels(known)
    for step in known:
        body += _step_lines(name, step, actions[step.action], wanted)
    body += [f"assert {name}.{invariant}() is not False" for invariant in invariants_of(cls)]
    if cls.stop is not Machine.stop:
        body.append(f"{name}.stop()")
    return "\n".join([*_imports(cls, known, actions), "", *body]) + "\n"


def _imports(cls: type[Machine], steps: list[Step], actions: Mapping[str, Action]) -> list[str]:
    lines = ["from contextlib import suppress"] if any(step.raised for step in steps) else []
    module = cls.__module__
    if module == "__main__":
        module = Path(getattr(sys.modules[module], "__file__", None) or module).stem
    names = [cls.__qualname__.partition(".")[0]]
    foreign = []
    for error in _raised(steps, actions):
        if error.__module__ == cls.__module__:
            names.append(error.__qualname__)
        elif error.__module__ != "builtins":
            foreign.append(f"from {error.__module__} import {error.__qualname__}")
    return [*lines, f"from {module} import {', '.join(names)}", *foreign]


def _raised(steps: list[Step], actions: Mapping[str, Action]) -> list[type[BaseException]]:
    """The exception classes that the code has to name, each once."""
    found = {e: 0 for s in steps if s.raised for e in _suppressed(s, actions[s.action])}
    return sorted(found, key=lambda error: error.__qualname__)


def _suppressed(step: Step, action: Action) -> tuple[type[BaseException], ...]:
    """The class that was raised if the action names it, else all that it names."""
    exact = tuple(error for error in action.raises if error.__qualname__ == step.raised)
    return exact or action.raises


def _step_lines(name: str, step: Step, action: Action, wanted: set[int]) -> list[str]:
    arguments = [argument_code(argument) for argument in step.arguments]
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
    errors = ", ".join(error.__qualname__ for error in _suppressed(step, action))
    return [f"with suppress({errors}):", f"    {call}"]
