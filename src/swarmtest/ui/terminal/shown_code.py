"""What a report shows of code: the line that failed, and a test that fits on a screen."""

from __future__ import annotations

import ast
import os
import re
from itertools import groupby

from swarmtest.core.faults import VALUES, is_foreign

_MAX_CODE_LINES = 40
"""Longer tests are cut in the middle; `swarmtest replay` prints them whole."""
_LEAST_FOLDED = 4
"""So many equal calls in a row are shown as a loop."""
_FRAME = re.compile(r'^  File "([^"]+)", line (\d+)(?:, in .*)?\n    (.*)$', re.MULTILINE)
_CALL = re.compile(r"\w+(\.\w+)+\(.*\)")


def failed_line(details: str) -> str:
    """Return the innermost line of the tested code in a traceback; empty if there is none.

    >>> failed_line('  File "/shop/cart.py", line 7, in total\\n    assert total >= 0')
    '/shop/cart.py:7  assert total >= 0'
    """
    frames = _FRAME.findall(details.partition(f"\n{VALUES}\n")[0])
    own = [frame for frame in frames if not is_foreign(frame[0])]
    if not own:
        return ""
    file, line, source = own[-1]
    return f"{_short_path(file)}:{line}  {source.strip()}"


def _short_path(file: str) -> str:
    """Return a path from the current directory, or from where packages are installed."""
    package = file.rpartition("site-packages" + os.sep)[2]
    if package != file:
        return package
    here = os.getcwd() + os.sep
    return file.removeprefix(here)


def shown_lines(code: str) -> list[str]:
    """Return the lines of a test that a report shows: equal calls in a row become a loop.

    >>> for line in shown_lines("import shop" + 5 * "\\nshop.buy(1)"):
    ...     print(line)
    import shop
    for _ in range(5):
        shop.buy(1)
    """
    return shortened(folded_lines(code))


def folded_lines(code: str) -> list[str]:
    """Return all lines of a test; of a Python program, equal calls in a row are one loop.

    >>> folded_lines("import shop" + 4 * "\\nshop.buy(1)")[1:]
    ['for _ in range(4):', '    shop.buy(1)']
    """
    lines = code.rstrip().splitlines()
    return folded(lines) if _is_python(code) else lines


def _is_python(code: str) -> bool:
    """Return whether a test is Python: its first line imports something, and it can be parsed."""
    if not code.startswith(("from ", "import ")):
        return False
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def folded(lines: list[str]) -> list[str]:
    """Return the lines of a Python program with equal calls in a row written as a loop."""
    shorter: list[str] = []
    for line, group in groupby(lines):
        count = len(list(group))
        if count >= _LEAST_FOLDED and _CALL.fullmatch(line):
            shorter += [f"for _ in range({count}):", f"    {line}"]
        else:
            shorter += [line] * count
    return shorter


def shortened(lines: list[str]) -> list[str]:
    """Return the lines of code that fit into a report: of a long test, its beginning and end."""
    if len(lines) <= _MAX_CODE_LINES:
        return lines
    left_out = len(lines) - _MAX_CODE_LINES + 1
    half = _MAX_CODE_LINES // 2
    return [*lines[:half], f"... {left_out} more lines ...", *lines[half + left_out :]]
