"""Run a script where swarmtest cannot be imported, and tell whether it shows a fault."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from swarmtest.core.result import Fault
from swarmtest.processes.commands import CommandLine, ProcessEnd
from swarmtest.processes.scratch import Scratch

NAME = "reproduce.py"
_SECONDS = 20.0
_BLOCKED = "raise ImportError('this script has to run without swarmtest')\n"
_RAISED = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?::|$)", re.MULTILINE)


@dataclass(frozen=True)
class CleanRun:
    """How a script ended in a process of its own."""

    end: ProcessEnd
    text: str
    """What it printed, and its traceback."""

    @property
    def ending(self) -> str:
        """Return how it ended, in a few words."""
        if self.end.timed_out:
            return f"does not end within {_SECONDS:.0f} seconds"
        if self.end.signal:
            return f"is killed by signal {self.end.signal}"
        if not self.end.status:
            return "ends without an error"
        last = self.text.strip().splitlines()
        return last[-1] if last else "fails"

    def shows(self, fault: Fault) -> bool:
        """Return whether this is how the fault ends: the same exception, signal or no end."""
        if self.end.timed_out or fault.kind == "timeout":
            return self.end.timed_out and fault.kind == "timeout"
        if self.end.signal or fault.kind == "signal":
            return bool(self.end.signal) and fault.kind == "signal"
        raised = _RAISED.findall(self.end.stderr.decode(errors="replace"))
        if not self.end.status or not raised or raised[-1] in ("ImportError", "SyntaxError"):
            return False
        last = raised[-1].rpartition(".")[2]
        # A violated invariant, a check and a difference are written as an assertion.
        same = last in fault.signature.replace(":", " ").replace("[", " ").split()
        return same or (last == "AssertionError" and fault.kind != "exception")


def run_cleanly(script: str, paths: Sequence[str]) -> CleanRun:
    """Run a script in an empty directory; the modules in `paths` can be imported."""
    scratch = Scratch()
    try:
        place = scratch.fresh("reproduce")
        (place / "swarmtest").mkdir()
        (place / "swarmtest" / "__init__.py").write_text(_BLOCKED)
        (place / NAME).write_text(script, encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        environment |= {"HOME": str(place), "TMPDIR": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
        arguments = (sys.executable, "-X", "faulthandler", NAME)
        command = CommandLine(arguments, environment, str(place))
        with open(os.devnull, "rb") as nothing:
            end = command.run(nothing.fileno(), _SECONDS)
        printed = (end.stdout + end.stderr).decode(errors="replace")
        return CleanRun(end, _without_places(printed, place))
    finally:
        scratch.close()


def shortened(script: str, run: CleanRun, paths: Sequence[str], fault: Fault) -> str:
    """Return a script without the parts of a check that the fault does not need.

    A check with the object itself as argument tries one operation after another. Those are the
    statements after ``import copy``; each is left out if the script still fails in the same way.
    """
    head, separator, rest = script.partition("import copy\n")
    if not separator:
        return script
    kept = rest.splitlines()
    for at in range(len(kept) - 1, -1, -1):
        fewer = [*kept[:at], *kept[at + 1 :]]
        text = f"{head}{separator}" + "\n".join(fewer) + "\n"
        again = run_cleanly(text, paths)
        if again.shows(fault) and again.ending == run.ending:
            kept = fewer
    return f"{head}{separator}" + "\n".join(kept) + "\n"


def _without_places(text: str, place: Path) -> str:
    """Return a text without the directories of this machine."""
    text = text.replace(f"{place}{os.sep}", "")
    for path in sorted(filter(None, {*sys.path, os.getcwd()}), key=len, reverse=True):
        text = text.replace(f"{path}{os.sep}", "")
    return text
