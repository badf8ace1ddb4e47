"""Run what a page of the documentation shows: files, Python, and sessions in a console."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from console_sessions import check_console
from debian_packages import CSMITH, need

Run = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FILE = re.compile(r"(?:#|//) file: (\S+)\n")
"""The first line of a block, in any language, that is a file which a reader would write."""
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NEEDS = {
    "c_program.md": ("gcc",),
    "mutation.md": ("gcc",),
    "native.md": ("gcc", "addr2line"),
    "native_races.md": ("gcc", "addr2line"),
    "compilers.md": CSMITH,
}
"""Programs and headers without which a page cannot be tried."""


def run_page(page: Path, workplace: Path, swarmtest: Run) -> None:
    """Run all that a page shows, from top to bottom; skip it if a program is missing."""
    need(*NEEDS.get(page.name, ()))
    names: dict[str, object] = {"__name__": "__docs__"}
    for language, body in BLOCK.findall(page.read_text()):
        file = FILE.match(body)
        if file:
            (workplace / file[1]).write_text(body)
            # An earlier test may have imported another file of this name.
            sys.modules.pop(Path(file[1]).stem, None)
        elif language == "python":
            exec(compile(body, "<docs>", "exec"), names)
        elif language == "console":
            check_console(body, swarmtest)
