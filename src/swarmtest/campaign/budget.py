"""How long a campaign runs, and what it may use.

`Budget` says when a campaign stops, `Progress` how far it is, `Limits` what a single test may take,
and `usual_workers` how many worker processes run the tests.
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.core.formatting import plural
from swarmtest.subjects.subject import Subject

VARIABLE = "SWARMTEST_WORKERS"
WORKERS_PER_CORE = 64
"""The most worker processes that are accepted for each core."""
"""The environment variable that sets the number of worker processes."""
TEST_SECONDS = 10.0
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


@dataclass(frozen=True)
class Budget:
    """When a campaign stops: at the limit that is reached first, or, without limits, at Ctrl-C.

    >>> Budget(tests=1000).describe()
    '1,000 tests'
    >>> Budget(wall_seconds=1200, cpu_seconds=90).describe()
    '20 min or 90 s of CPU time'
    """

    tests: int | None = None
    wall_seconds: float | None = None
    cpu_seconds: float | None = None
    """CPU time of the tests, over all workers."""
    faults: int | None = None
    """Stop when this many distinct faults were found; 1: at the first."""
    saturation: int | None = None
    """Stop when this many tests in a row brought no new target and no new fault."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is not None and value <= 0:
                raise UserError(f"a budget's {name} must be above 0, not {value}")

    def describe(self) -> str:
        """Return the budget in words."""
        words = []
        if self.tests is not None:
            words.append(f"{self.tests:,} test{'s' * (self.tests != 1)}")
        if self.wall_seconds is not None:
            words.append(_time_text(self.wall_seconds))
        if self.cpu_seconds is not None:
            words.append(f"{_time_text(self.cpu_seconds)} of CPU time")
        if self.faults is not None:
            words.append("the first fault" if self.faults == 1 else f"{self.faults} faults")
        if self.saturation is not None:
            words.append(f"{self.saturation:,} tests without anything new")
        return " or ".join(words) or "Ctrl-C"

    def to_json(self) -> dict[str, Any]:
        """Return the limits that are set, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def _time_text(seconds: float) -> str:
    """Return a limit as people say it: whole minutes and hours by name.

    >>> _time_text(60), _time_text(1200), _time_text(8 * 3600), _time_text(0.5)
    ('60 s', '20 min', '8 h', '0.5 s')
    """
    for length, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * length and seconds % length == 0:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:g} s"


@dataclass
class Progress:
    """How far a campaign is, as terminals and dashboards show it.

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
    """A warning for a user who is waiting, such as no workers or no connection; usually empty."""

    def reached(self, budget: Budget) -> str:
        """Return which limit is reached, in words; empty if none is."""
        limits = (
            (budget.tests, self.tests, "all tests done"),
            (budget.wall_seconds, self.wall_seconds, "time is up"),
            (budget.cpu_seconds, self.cpu_seconds, "CPU time is up"),
            (budget.faults, self.faults, "enough faults"),
            (budget.saturation, self.since_new, "saturated"),
        )
        return next((text for limit, now, text in limits if limit is not None and now >= limit), "")


@dataclass(frozen=True)
class Limits:
    """The time and memory that a single test may take.

    >>> Limits(seconds=2.0).memory
    'auto'
    """

    seconds: float | None = None
    """Wall time of one test; a test that takes longer has the fault "timeout". None: the limit of
    the subject, or ten seconds if it has none."""
    memory: int | str = "auto"
    """Bytes that one worker may hold; 0: no limit; ``auto``: its share of the machine."""

    def seconds_of(self, subject: Subject) -> float:
        """Return the wall time that a test of this subject may take."""
        if self.seconds is None and subject.seconds is not None:
            # The subject ends its own tests in time; this limit is for when that fails.
            return subject.seconds * 1.25 + 5.0
        return self.seconds or TEST_SECONDS

    def adapt(self, subject: Subject) -> bool:
        """Return whether a test that takes far longer than the others hangs, whatever the limit."""
        return self.seconds is None and subject.seconds is None

    def memory_bytes(self, workers: int) -> int:
        """Return the memory limit of one worker in bytes."""
        if isinstance(self.memory, int):
            return self.memory
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return max(2 << 30, int(machine * 0.8) // max(workers, 1))


def usual_workers() -> int:
    """Return the default number of worker processes.

    That is the value of ``SWARMTEST_WORKERS``, or the number of cores if it is not set.

    >>> os.environ["SWARMTEST_WORKERS"] = "3"
    >>> usual_workers()
    3
    >>> del os.environ["SWARMTEST_WORKERS"]
    """
    text = os.environ.get(VARIABLE, "")
    if not text:
        return os.cpu_count() or 1
    if not text.isascii() or not text.isdigit():
        raise UserError(f"{VARIABLE} must be a number of worker processes, like 2, not {text!r}")
    return int(text)


def check_workers(workers: int) -> int:
    """Return the number of worker processes, or raise `UserError` if it makes no sense.

    Tests that wait, for a network or a lock, may keep many workers busy on one core. More than
    `WORKERS_PER_CORE` is a mistake: each worker is two processes with their own memory.

    >>> check_workers(2)
    2
    """
    if workers < 0:
        raise UserError(f"workers must be 0 (run in this process) or more, not {workers}")
    cores = os.cpu_count() or 1
    most = WORKERS_PER_CORE * cores
    if workers > most:
        raise UserError(
            f"{workers:,} workers are too many for this machine: it has {plural(cores, 'core')}, "
            f"and {most:,} workers are the most that can be of use"
        )
    return workers


def parse_seconds(text: str) -> float:
    """Return the seconds of a duration as people write it.

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
    """Return the bytes of a size as people write it.

    >>> parse_bytes("512MB"), parse_bytes("2g")
    (536870912, 2147483648)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", text.strip().lower())
    if not match:
        raise UserError(f"{text!r} is not a size: write 512MB or 2GB")
    return int(float(match[1]) * _SIZES[match[2]])
