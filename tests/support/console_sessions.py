"""Sessions in a terminal that pages show: each command is run, and has to print what is shown."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., subprocess.CompletedProcess[str]]

VARYING = re.compile(
    r"\d+\.\d s\b|[\d,.]+ (?:tests|runs)/s|\d+ workers?|\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?"
)
"""Times, rates and cores depend on the machine; everything else is the same everywhere."""

PROGRESS = re.compile(
    r"^(reducing fault \d+ of \d+: .*|[\d,]+ tests, [\d.,]+/s, .*)\n", re.MULTILINE
)
"""Printed every ten seconds, which only a slow machine takes for what is shown."""

PROGRAMS = {
    "pytest": [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
    "coverage": [sys.executable, "-m", "coverage"],
}
"""What a user has on the path, from the environment that the tests run in, beside `swarmtest`."""


def check_console(body: str, swarmtest: Run) -> None:
    """Run each command of a session, and compare what it prints, but for times."""
    for session in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, shown = session.partition("\n")
        program, *arguments = shlex.split(command)
        if program == "swarmtest":
            done = swarmtest(*with_patience(arguments), cwd=Path.cwd(), COLUMNS="80")
        else:
            words = [*PROGRAMS.get(program, [program]), *arguments]
            done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        assert done.returncode in (0, 1), f"{command}\n{done.stdout}{done.stderr}"
        actual, expected = masked(PROGRESS.sub("", done.stdout)), masked(shown)
        assert matches(expected, actual), f"$ {command}\n{done.stdout}\nbut shown is\n{shown}"


def with_patience(arguments: list[str]) -> list[str]:
    """Give a campaign more time to reduce its faults than a slow machine needs."""
    reduces = arguments[0] in ("run", "resume") and not any("reduce" in a for a in arguments)
    return [*arguments, "--reduce-time", "5m"] if reduces else arguments


def masked(text: str) -> list[str]:
    return [VARYING.sub("#", line).rstrip() for line in text.strip().splitlines()]


def matches(expected: list[str], actual: list[str]) -> bool:
    """Whether the lines agree; ``...`` stands for any text, also of several lines."""
    pattern = re.escape("\n".join(expected)).replace(r"\.\.\.", ".*")
    if expected and expected[-1] != "...":
        pattern += r"\n?"
    return re.fullmatch(pattern, "\n".join(actual), re.DOTALL) is not None
