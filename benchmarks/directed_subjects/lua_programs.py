"""Random programs for Lua's interpreter, a C program built with coverage: statements are features.

An error inside a statement is a correct outcome; the oracle is that the interpreter itself does not
crash, hang or fail.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from c_builds import built
from lua_statements import CHOICES, STATEMENTS
from statements import StatementMachine, number, one_of, register, with_statements

from swarmtest.coverage import Program

START = "R = {}; math.randomseed(1)\n"
TEXTS = ("'ab'", "'a b(c)'", "'10'", "'0x1p4'", "''", "'\\u{20AC}x'", "'abc abc abc'", "'k'", "'m'")
DRAWS = {
    **dict.fromkeys("abc", register),
    "n": number(-9, 99),
    "m": number(-2, 5),
    "x": one_of("0.5", "-2.25", "1e300", "3.0", "(0/0)", "(1/0)", "2^53"),
    "s": one_of(*TEXTS),
}


class LuaMachine(StatementMachine):
    program = Program([built("lua"), "-"], fork_server=True, timeout=5)

    def input_of(self, statements: Sequence[str]) -> str:
        return START + "\n".join(f"pcall(function() {text} end)" for text in statements)


LuaPrograms = with_statements(LuaMachine, "LuaPrograms", STATEMENTS, DRAWS, CHOICES)
"""One action for each kind of statement."""
