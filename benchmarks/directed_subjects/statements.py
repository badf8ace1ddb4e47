"""Machines whose actions add statements to a text, which a C program reads at the end of the test.

A statement is a template: each name after a ``$`` stands for a register, a number, or a member of a
list. So one table of templates is a subject with a feature for each kind of statement.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from swarmtest import Machine, action
from swarmtest.coverage import Program

REGISTERS = 6
Draw = Callable[[random.Random], str]


def one_of(*texts: str) -> Draw:
    return lambda rng: rng.choice(texts)


def register(rng: random.Random) -> str:
    return f"R[{rng.randint(1, REGISTERS)}]"


def number(least: int, most: int) -> Draw:
    return lambda rng: str(rng.randint(least, most))


def filled(template: str, draws: Mapping[str, Draw], choices: Mapping[str, Sequence[str]]) -> Draw:
    """A generator of statements: the template with something for each of its names."""

    def named(name: str, rng: random.Random) -> str:
        draw = draws.get(name)
        return draw(rng) if draw is not None else made(rng.choice(choices[name]), rng)

    def made(text: str, rng: random.Random) -> str:
        return re.sub(r"\$([a-z]+)", lambda found: named(found[1], rng), text)

    return lambda rng: made(template, rng)


class StatementMachine(Machine):
    """Collects the statements of a text, and runs the program on it in the end."""

    steps = 50
    program: ClassVar[Program]
    cpu_seconds = 0.0
    """What the program has taken so far, in all tests of this process."""

    def input_of(self, statements: Sequence[str]) -> str:
        """The whole input of the program."""
        raise NotImplementedError

    def start(self) -> None:
        self.statements: list[str] = []

    def stop(self) -> None:
        run = self.program.run(self.input_of(self.statements).encode())
        type(self).cpu_seconds += run.cpu_seconds
        self.cover(run)
        fault = run.fault()
        assert fault is None, fault.signature
        assert run.status == 0, run.stderr.decode(errors="replace")


def with_statements(
    base: type[StatementMachine],
    name: str,
    templates: Mapping[str, str],
    draws: Mapping[str, Draw],
    choices: Mapping[str, Sequence[str]],
) -> type[StatementMachine]:
    """A machine with one action for each kind of statement."""

    def adding(kind: str) -> Any:
        def add(self: StatementMachine, statement: str) -> None:
            self.statements.append(statement)

        add.__name__ = kind
        add.__qualname__ = f"{name}.{kind}"
        return action(statement=filled(templates[kind], draws, choices))(add)

    members = {kind: adding(kind) for kind in templates}
    return type(name, (base,), {"__module__": base.__module__, **members})
