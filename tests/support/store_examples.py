"""Records that tests share, and real processes that use a store."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import swarmtest.core.errors
from swarmtest.core.dimensions import Choice, Feature, Flag
from swarmtest.core.space import Space
from swarmtest.store.records import CampaignRecord, FaultRecord, TrialRecord

SPACE = Space([Feature("push"), Feature("pop"), Flag("fsync"), Choice("level", ("-O0", "-O2"))])
CAMPAIGN = CampaignRecord(
    "examples/stack.py", "coin", 7, SPACE.to_json(), {"p": 0.5, "budget": {"tests": 100}}
)
BITS = SPACE.configuration({"push": 1, "level": "-O2"}).to_bytes()


def trial(number: int, **values: Any) -> TrialRecord:
    """A trial that differs from others in more than its number."""
    record = TrialRecord(number, BITS, seed=number * 31, steps=20 + number % 5, cpu_ns=number * 7)
    return record._replace(**values)


def trials(start: int, stop: int) -> list[TrialRecord]:
    return [trial(number) for number in range(start, stop)]


def fault(name: str, number: int, size: int = 9, test: str | None = "[]") -> FaultRecord:
    """What one trial says about a fault."""
    details = f"Traceback of trial {number}"
    return FaultRecord(name, "exception", f"Error: {name}", details, number, number, size, test)


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Another Python process that can import swarmtest and these examples."""
    here, source = Path(__file__).parent, Path(swarmtest.core.errors.__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(here)])},
    )


def finish(process: subprocess.Popen[str]) -> str:
    """Let a process go on to its end, and give what it printed."""
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return printed
