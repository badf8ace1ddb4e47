"""How long a campaign goes on: tests, wall time, CPU time, faults, saturation."""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.subjects.subject import Subject

# -------------------------------------------------------------------------------------------------
# What a single test may take.

_SECONDS = 10.0


@dataclass(frozen=True)
class Limits:
    """What a single test may take.

    >>> Limits(seconds=2.0).memory
    'auto'
    """

    seconds: float | None = None
    """Wall time of one test; one that takes longer is the fault "timeout". None: what the subject
    says, else ten seconds."""
    memory: int | str = "auto"
    """Bytes one worker may hold; 0: no limit; ``auto``: its share of the machine."""

    def seconds_of(self, subject: Subject) -> float:
        """What a test of this subject may take."""
        if self.seconds is None and subject.seconds is not None:
            # A subject that ends its tests in time needs us only where that fails.
            return subject.seconds * 1.25 + 5.0
        return self.seconds or _SECONDS

    def memory_bytes(self, workers: int) -> int:
        """The limit in bytes."""
        if isinstance(self.memory, int):
            return self.memory
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return max(2 << 30, int(machine * 0.8) // max(workers, 1))


# -------------------------------------------------------------------------------------------------
# How many worker processes there are when nobody says it.

VARIABLE = "SWARMTEST_WORKERS"


def usual_workers() -> int:
    """As many as the environment says, or one for each core.

    >>> os.environ["SWARMTEST_WORKERS"] = "3"
    >>> usual_workers()
    3
    >>> del os.environ["SWARMTEST_WORKERS"]
    """
    told = os.environ.get(VARIABLE, "")
    if not told:
        return os.cpu_count() or 1
    if not told.isascii() or not told.isdigit():
        raise UserError(f"{VARIABLE} is a number of worker processes, like 2, not {told!r}")
    return int(told)


# -------------------------------------------------------------------------------------------------

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def parse_seconds(text: str) -> float:
    """A duration as people write it.

    >>> parse_seconds("30s"), parse_seconds("1.5h"), parse_seconds("2m30s")
    (30.0, 5400.0, 150.0)
    """
    pieces = re.findall(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    rest = re.sub(r"(\d+(?:\.\d+)?)\s*([a-z]*)\s*", "", text.strip().lower())
    if not pieces or rest or any(unit and unit not in _UNITS for _, unit in pieces):
        raise UserError(f"{text!r} is not a duration: write 30s, 5m, 2h or 1m30s")
    seconds = sum(float(number) * _UNITS[unit or "s"] for number, unit in pieces)
    if seconds <= 0:
        raise UserError(f"{text!r} is not a duration above 0")
    return seconds


def parse_bytes(text: str) -> int:
    """A size as people write it.

    >>> parse_bytes("512MB"), parse_bytes("2g")
    (536870912, 2147483648)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", text.strip().lower())
    if not found:
        raise UserError(f"{text!r} is not a size: write 512MB or 2GB")
    return int(float(found[1]) * _SIZES[found[2]])


@dataclass(frozen=True)
class Budget:
    """When a campaign stops: whichever comes first. Without any limit it goes on until Ctrl-C.

    >>> Budget(tests=1000).describe()
    '1,000 tests'
    """

    tests: int | None = None
    wall_seconds: float | None = None
    cpu_seconds: float | None = None
    """CPU time of the tests, over all workers."""
    faults: int | None = None
    """Stop when this many distinct faults are known; 1: at the first."""
    saturation: int | None = None
    """Stop when this many tests in a row brought no new target and no new fault."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is not None and value <= 0:
                raise UserError(f"a budget's {name} is above 0, not {value}")

    def describe(self) -> str:
        """The budget in words."""
        words = []
        if self.tests is not None:
            words.append(f"{self.tests:,} test{'s' * (self.tests != 1)}")
        if self.wall_seconds is not None:
            words.append(f"{self.wall_seconds:g} s")
        if self.cpu_seconds is not None:
            words.append(f"{self.cpu_seconds:g} s of CPU")
        if self.faults is not None:
            words.append("the first fault" if self.faults == 1 else f"{self.faults} faults")
        if self.saturation is not None:
            words.append(f"{self.saturation:,} tests without anything new")
        return " or ".join(words) or "Ctrl-C"

    def to_json(self) -> dict[str, Any]:
        """The limits that are set."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass
class Progress:
    """How far a campaign is: what terminals and dashboards show.

    >>> Progress(tests=1000).reached(Budget(tests=1000))
    'all tests done'
    """

    tests: int = 0
    failed: int = 0
    invalid: int = 0
    steps: int = 0
    faults: int = 0
    targets: int = 0
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    since_new: int = 0
    """Tests since the last new target or fault."""
    workers: int = 0
    """How many tests run at once."""
    condition: str = ""
    """What somebody who waits should know: no workers, no connection."""

    def reached(self, budget: Budget) -> str:
        """The limit that is reached, in words; empty if there is more to do."""
        limits = (
            (budget.tests, self.tests, "all tests done"),
            (budget.wall_seconds, self.wall_seconds, "time is up"),
            (budget.cpu_seconds, self.cpu_seconds, "CPU time is up"),
            (budget.faults, self.faults, "enough faults"),
            (budget.saturation, self.since_new, "saturated"),
        )
        return next((text for limit, now, text in limits if limit is not None and now >= limit), "")
