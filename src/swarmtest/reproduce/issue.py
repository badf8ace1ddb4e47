"""A report of a fault for an issue tracker, in Markdown."""

from __future__ import annotations

import ast
import importlib.metadata
import platform
import re
import sys

from swarmtest.core.formatting import printable, printable_line
from swarmtest.core.result import Fault
from swarmtest.reproduce.clean_run import CleanRun

_LONGEST = 40
"""Lines of output that are shown."""


def issue_text(fault: Fault, script: str, run: CleanRun) -> str:
    """Return the report: what was expected and what happens, the script, and the versions."""
    # What the program printed is pasted into a page of somebody else: no escapes, and no fence.
    output = printable(run.text.rstrip()).splitlines()
    fence = "````" if any(line.startswith("```") for line in output) else "```"
    if len(output) > _LONGEST:
        output = [*output[: _LONGEST // 2], "...", *output[-_LONGEST // 2 :]]
    return "\n".join(
        [
            f"# {printable_line(title(fault))}",
            "",
            "To reproduce, run this script:",
            "",
            "```python",
            script.rstrip(),
            "```",
            "",
            "## Expected",
            "",
            printable(expected(fault)),
            "",
            "## Actual",
            "",
            f"The script {printable_line(run.ending)}."
            if not output or run.end.timed_out or run.end.signal
            else "The script fails:",
            "",
            *([fence, *output, fence, ""] if output else []),
            "## Versions",
            "",
            *(f"- {line}" for line in versions(script)),
            "",
            "The script was checked in a process of its own, in an empty directory.",
        ]
    )


def title(fault: Fault) -> str:
    """Return what happens, without where.

    >>> title(Fault("exception", "KeyError: 3 [Till.pay < Shop.sell: del x]"))
    'KeyError: 3 in Till.pay'
    """
    what, _, where = fault.signature.partition(" [")
    place = re.split(r"[ \]:<]", where, maxsplit=1)[0]
    return f"{what} in {place}" if place and "." in place else what


def expected(fault: Fault) -> str:
    """Return what should happen instead, as far as the oracle knows it."""
    what = fault.signature.partition(" [")[0]
    kind, _, rest = what.partition(": ")
    if kind == "Difference":
        model = re.search(r"(?:where|than|as) (\w+)", rest)
        return f"The same as for `{model[1] if model else 'the model'}`, line `expected`."
    if kind == "CheckFailed":
        return f"This should not happen: {rest}."
    if fault.kind == "invariant":
        return f"That the last assertion of the script holds ({what})."
    if kind == "AssertionError":
        return "That the assertion that fails holds."
    ways = {"signal": "The script ends.", "timeout": "The script ends."}
    return ways.get(fault.kind, f"No {kind}.")


def versions(script: str) -> list[str]:
    """Return the versions of Python, the system and the packages that a script imports.

    >>> versions("import json")[0].startswith("Python 3")
    True
    """
    lines = [f"Python {platform.python_version()}", platform.platform(terse=True)]
    packages = importlib.metadata.packages_distributions()
    modules = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(script))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    for module in sorted(modules - sys.stdlib_module_names):
        names = packages.get(module, ())
        lines += [f"{name} {importlib.metadata.version(name)}" for name in names]
    return lines
