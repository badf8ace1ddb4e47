"""The code that probes are compared with tells the lines that are executed, and no others."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest
from line_tables import compile_program, compile_without_stray_lines
from weave_lab import traced_lines

PROGRAM = dedent(
    """\
    def run(x):
        match x:
            case 0 | 1:
                if x:
                    return "one"
            case 2:
                try:
                    raise ExceptionGroup("g", [KeyError()])
                except* KeyError:
                    caught = True
                except* ValueError:
                    caught = False
            case _:
                try:
                    x = 1
                finally:
                    x += x / (x - 1)
                    x = 0
    """
)
EXECUTED = {
    0: {2, 3, 4},
    1: {2, 3, 4, 5},
    2: {2, 3, 6, 7, 8, 9, 10, 11},
    3: {2, 3, 6, 13, 14, 15, 17},
}
"""By hand: for each argument the lines that are executed."""


@pytest.mark.parametrize("compiled", [compile_program, compile_without_stray_lines])
@pytest.mark.parametrize("given", EXECUTED)
def test_only_lines_that_are_executed_are_traced(
    given: int, compiled: Callable[[str, str], Any]
) -> None:
    code = compiled(PROGRAM, "program.py")
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    ((_, lines),) = traced_lines(PROGRAM, code, lambda: namespace["run"](given))
    assert set(lines) == EXECUTED[given]


def test_locations_within_the_text_stay() -> None:
    code = compile_without_stray_lines(PROGRAM, "program.py")
    (run,) = [constant for constant in code.co_consts if hasattr(constant, "co_positions")]
    raised = [p for p in run.co_positions() if p[0] == 8]
    assert (8, 8, 16, 55) in raised
    assert max(line or 0 for line, *_ in run.co_positions()) == 18
