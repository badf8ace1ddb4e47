"""Runs one subject with one tool for some CPU time; needs nothing but the tool.

``python race_peers_runner.py TOOL SUBJECT SECONDS``: prints a JSON object of how many schedules
were run, in how many of them the subject's fault showed, and the CPU time. Tools: see TOOLS.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

SUBJECTS = Path(__file__).with_name("race_subjects")
HANGS_AFTER = 2.0
MOST_HANGS = 5
WALL = 6
"""A tool may take so many times its CPU time by the clock: others use the machine too."""


class Tally:
    """Schedules run and faults seen, until the CPU time is used up."""

    def __init__(self, seconds: float) -> None:
        self.runs = self.found = 0
        self._began, self.seconds = time.process_time(), seconds
        self._until = time.monotonic() + WALL * seconds + 5

    @property
    def cpu(self) -> float:
        return time.process_time() - self._began

    @property
    def over(self) -> bool:
        return self.cpu > self.seconds or time.monotonic() > self._until

    @property
    def seconds_left(self) -> float:
        return max(1.0, self.seconds - self.cpu)

    def tell(self) -> NoReturn:
        """Print what was seen; threads that hang are left."""
        print(json.dumps({"runs": self.runs, "found": self.found, "cpu": self.cpu}), flush=True)
        os._exit(0)


def plain(subject: ModuleType, tally: Tally) -> None:
    """The program again and again. One that hangs is left, and counts as found."""
    errors: list[object] = []
    threading.excepthook = lambda args: errors.append(args.exc_value)

    def again() -> None:
        while not tally.over:
            try:
                subject.program()
            except Exception as error:
                errors.append(error)
            tally.found += bool(errors)
            tally.runs += 1
            errors.clear()

    hangs = 0
    while not tally.over and hangs < MOST_HANGS:
        thread = threading.Thread(target=again, daemon=True)
        thread.start()
        while thread.is_alive():
            before = tally.runs
            thread.join(HANGS_AFTER)
            if thread.is_alive() and tally.runs == before:
                hangs += 1
                tally.runs += 1
                tally.found += 1
                break


def switching(subject: ModuleType, tally: Tally) -> None:
    """The same, with the shortest switch interval."""
    sys.setswitchinterval(1e-6)
    plain(subject, tally)


def frontrun(subject: ModuleType, tally: Tally, **options: Any) -> None:
    """Explorations up to the first fault, one after the other, without replaying it."""
    import frontrun

    errors: list[Exception] = []

    def guarded(worker: Callable[[Any], None]) -> Callable[[Any], None]:
        def call(state: Any) -> None:
            try:
                worker(state)
            except Exception as error:
                errors.append(error)
                raise

        return call

    schedules = [0]

    def fresh() -> Any:
        errors.clear()
        schedules[0] += 1
        return subject.setup()

    workers = [guarded(worker) for worker in subject.WORKERS]
    seed = 0
    while not tally.over:
        seed += 1
        schedules[0] = 0
        own = {"seed": seed} if options["strategy"] == "random" else {}
        try:
            result = frontrun.explore(
                setup=fresh,
                workers=workers,
                invariant=lambda state: not errors and subject.holds(state),
                reproduce_on_failure=0,
                detect_io=False,
                deadlock_timeout=1.0,
                total_timeout=tally.seconds_left,
                **own,
                **options,
            )
        except Exception as error:  # what a worker raised comes out of systematic exploration
            if error not in errors:
                raise
            tally.runs += schedules[0]
            tally.found += 1
        else:
            tally.runs += result.num_explored
            tally.found += not result.property_holds


def interleave(subject: ModuleType, tally: Tally, **options: Any) -> None:
    """Explorations up to the first fault, one after the other."""
    import interleave_test

    seed = 0
    while not tally.over:
        seed += 1
        result = interleave_test.explore(
            subject.program, iterations=50, seed=seed, raise_on_failure=False, **options
        )
        tally.runs += result.schedules_run
        tally.found += result.failure is not None


def _frontrun(**options: Any) -> Callable[[ModuleType, Tally], None]:
    return lambda subject, tally: frontrun(subject, tally, **options)


def _interleave(**options: Any) -> Callable[[ModuleType, Tally], None]:
    return lambda subject, tally: interleave(subject, tally, **options)


TOOLS: dict[str, Callable[[ModuleType, Tally], None]] = {
    "plain": plain,
    "switch interval": switching,
    "frontrun dpor": _frontrun(strategy="dpor"),
    "frontrun dpor bit-reversal": _frontrun(strategy="dpor", search="bit-reversal"),
    "frontrun random": _frontrun(strategy="random", max_attempts=20),
    "interleave random": _interleave(strategy="random"),
    "interleave pct": _interleave(strategy="pct"),
    "interleave dfs": _interleave(strategy="dfs"),
    "interleave random lines": _interleave(strategy="random", granularity="line"),
    "interleave pct lines": _interleave(strategy="pct", granularity="line"),
}


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Tools print about threads that raise."""
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        yield


def main() -> None:
    """Run, tell."""
    tool, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    sys.path.insert(0, str(SUBJECTS))
    subject = importlib.import_module(name)
    tally = Tally(seconds)
    with silent():
        TOOLS[tool](subject, tally)
    tally.tell()


if __name__ == "__main__":
    main()
