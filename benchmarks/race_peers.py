"""Other tools that look for races, each in a virtual environment of its own.

`frontrun` is given each subject's workers and its check: systematic exploration (DPOR, its default,
and the search order that its documentation advises for few executions) and random schedules. It is
run on this Python (on 3.11 it is some five times as fast as on 3.12), without watching for I/O,
without its ten replays of what it finds. `interleave-test` is given the whole program: random
(its default), PCT and bounded search, before each instruction or each line. It needs Python 3.12 or
newer: the newest one that is found is used. Neither counts the time it takes to start.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "swarmtest" / "race"
RUNNER = HERE / "race_peers_runner.py"
GRACE = 90.0
BARE = ("plain", "switch interval")
FRONTRUN = ("frontrun dpor", "frontrun dpor bit-reversal", "frontrun random")
INTERLEAVE = (
    *("interleave random", "interleave pct", "interleave dfs"),
    *("interleave random lines", "interleave pct lines"),
)


@dataclass(frozen=True)
class Measured:
    """What came of the runs of a subject in some way."""

    found: int
    runs: int
    cpu: float

    @property
    def per_second(self) -> float:
        return self.found / self.cpu

    @property
    def bounds(self) -> tuple[float, float]:
        """Detections per CPU second: a Poisson interval of about 95% (Byar's approximation)."""
        low, high = self.found, self.found + 1
        below = low * (1 - 1 / (9 * low) - 1.96 / (3 * low**0.5)) ** 3 if low else 0.0
        above = high * (1 - 1 / (9 * high) + 1.96 / (3 * high**0.5)) ** 3
        return below / self.cpu, above / self.cpu

    @property
    def shown(self) -> str:
        low, high = self.bounds
        return f"{self.found / self.runs:.3f} {self.per_second:.1f} ({low:.1f}-{high:.1f})"


def run_script(command: list[object], environment: dict[str, str] | None = None) -> Measured | None:
    """Start a script that tells what it has measured; None if it did not."""
    done = subprocess.run(
        list(map(str, command)),
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=float(str(command[-1])) * 10 + GRACE,
    )
    lines = done.stdout.strip().splitlines()
    if not lines or not lines[-1].startswith("{"):
        last = (done.stderr.strip().splitlines() or ["nothing was printed"])[-1]
        print(f"{' '.join(map(str, command[2:4]))}: {last}", file=sys.stderr)
        return None
    told = json.loads(lines[-1])
    return Measured(told["found"], told["runs"], told["cpu"])


def measure(tool: str, subject: str, seconds: float) -> Measured | None:
    """Let a tool run a subject for some CPU time; None if the tool is not there or broke down."""
    python = interpreter_of(tool)
    if python is None:
        return None
    active = {"FRONTRUN_ACTIVE": "1"} if tool.startswith("frontrun") else None
    return run_script([python, RUNNER, tool, subject, seconds], active)


def interpreter_of(tool: str) -> Path | None:
    if tool in BARE:
        return Path(sys.executable)
    if tool in FRONTRUN:
        return _environment("frontrun", sys.executable)
    newer = _newer_python()
    return _environment("interleave-test", newer) if newer else None


@functools.cache
def _environment(package: str, python: str) -> Path | None:
    """A virtual environment with the package, made when it is first needed."""
    place = CACHE / package
    program = place / "bin" / "python"
    if (place / "done").exists():
        return program
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([python, "-m", "venv", place], check=True, capture_output=True)
    install = [str(program), "-m", "pip", "install", "-q", package]
    done = subprocess.run(install, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        print(f"{package} could not be installed: {last}", file=sys.stderr)
        return None
    (place / "done").touch()
    return program


@functools.cache
def _newer_python() -> str | None:
    """A Python of at least 3.12, this one if it is."""
    if sys.version_info >= (3, 12):
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    places = [*sorted(pyenv.glob("3.1[2-9]*/bin/python")), *map(shutil.which, _NAMES)]
    return next((str(place) for place in places if place), None)


_NAMES = ("python3.12", "python3.13", "python3.14")
