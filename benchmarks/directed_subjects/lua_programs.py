"""Random programs for Lua's interpreter, a C program built with coverage: statements are features.

An error inside a statement is a correct outcome; the oracle is that the interpreter itself does not
crash, hang or fail.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from lua_build import built_lua
from lua_statements import CHOICES, STATEMENTS

from swarmtest import Machine, action
from swarmtest.coverage import Program

REGISTERS = 6
START = "R = {}; math.randomseed(1)\n"
TEXTS = ("'ab'", "'a b(c)'", "'10'", "'0x1p4'", "''", "'\\u{20AC}x'", "'abc abc abc'", "'k'", "'m'")

lua = Program([built_lua(), "-"], fork_server=True, timeout=5)


def filled(template: str) -> Callable[[random.Random], str]:
    """A generator of statements: the template with something for each of its names."""

    def named(name: str, rng: random.Random) -> str:
        if name in "abc":
            return f"R[{rng.randint(1, REGISTERS)}]"
        if name == "n":
            return str(rng.randint(-9, 99))
        if name == "m":
            return str(rng.randint(-2, 5))
        if name == "x":
            return rng.choice(("0.5", "-2.25", "1e300", "3.0", "(0/0)", "(1/0)", "2^53"))
        return rng.choice(TEXTS) if name == "s" else made(rng.choice(CHOICES[name]), rng)

    def made(text: str, rng: random.Random) -> str:
        return re.sub(r"\$([a-z]+)", lambda found: named(found[1], rng), text)

    return lambda rng: made(template, rng)


class LuaMachine(Machine):
    """Collects the statements of a program, and runs it in the end."""

    steps = 50
    cpu_seconds = 0.0
    """What the interpreter has taken so far, in all tests of this process."""

    def start(self) -> None:
        self.statements: list[str] = []

    def stop(self) -> None:
        lines = [f"pcall(function() {text} end)" for text in self.statements]
        run = lua.run((START + "\n".join(lines)).encode())
        LuaMachine.cpu_seconds += run.cpu_seconds
        self.cover(run)
        fault = run.fault()
        assert fault is None, fault.signature
        assert run.status == 0, run.stderr.decode(errors="replace")


def _actions() -> dict[str, Any]:
    def adding(name: str) -> Any:
        def add(self: LuaMachine, statement: str) -> None:
            self.statements.append(statement)

        add.__name__ = name
        add.__qualname__ = f"LuaPrograms.{name}"
        return action(statement=filled(STATEMENTS[name]))(add)

    return {name: adding(name) for name in STATEMENTS}


LuaPrograms = type("LuaPrograms", (LuaMachine,), {"__module__": __name__, **_actions()})
"""One action for each kind of statement."""
