"""What a campaign over commands costs beside a bare loop that starts the same processes.

    python benchmarks/commands.py [--quick]

The generator is one line of shell, the program another: nearly all of the time is that of starting
processes. A *bare* loop makes no configurations, keeps no results, has no time limits and ends
nobody; it draws the same features and seeds, writes the test to a file, and calls `subprocess.run`
for the generator and for the program. There are two: one captures what they print, as most people
write it; the *tuned* one has the generator print into the file, and drops the program's output.
`vs_bare_cpu` and `vs_bare_wall` say how much of the first one's rate a campaign with one worker
reaches (1 is as fast), `vs_tuned_cpu` and `vs_tuned_wall` of the second's. CPU time counts all
processes. The start of a campaign (measured with one of a single test) is subtracted: it does not
grow with the tests. All are measured in turns; a figure is the median of the ratios of neighbours.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from harness import (
    arguments,
    cpu_seconds,
    median_ratio,
    print_figures,
    print_table,
    progress,
)

from swarmtest import Campaign
from swarmtest.subjects.loading import SubjectReference

GENERATOR = 'echo "$0" "$@"'
PROGRAM = 'read line < "$0"'
SUBJECT = f"""
[generate]
command = ['sh', '-c', '{GENERATOR}', '{{seed}}', '{{features}}']
[features]
a = "-a"
b = "-b"
c = "-c"
d = "-d"
[[steps]]
run = ['sh', '-c', '{PROGRAM}', '{{test}}']
"""
_OURS = "campaign, one worker"

FEW = 17
"""Tests of the campaign that measures the start; the measured one has so many more. A smaller
campaign forks its workers instead of starting interpreters."""


def bare(tests: int, directory: Path) -> None:
    """The loop that most people write."""
    rng = random.Random(1)
    file = directory / "test"
    for _ in range(tests):
        features = [word for word in ("-a", "-b", "-c", "-d") if rng.random() < 0.5]
        seed = str(rng.getrandbits(32))
        made = subprocess.run(["sh", "-c", GENERATOR, seed, *features], capture_output=True)
        file.write_bytes(made.stdout)
        done = subprocess.run(
            ["sh", "-c", PROGRAM, "test"], cwd=directory, capture_output=True, timeout=10
        )
        assert done.returncode == 0


def tuned(tests: int, directory: Path) -> None:
    """The same with as little as possible around it: no output is read."""
    rng = random.Random(1)
    file = directory / "test"
    quiet = subprocess.DEVNULL
    for _ in range(tests):
        features = [word for word in ("-a", "-b", "-c", "-d") if rng.random() < 0.5]
        seed = str(rng.getrandbits(32))
        with file.open("wb") as made:
            subprocess.run(["sh", "-c", GENERATOR, seed, *features], stdout=made)
        done = subprocess.run(["sh", "-c", PROGRAM, "test"], cwd=directory, stdout=quiet)
        assert done.returncode == 0


def campaign(tests: int, directory: Path) -> None:
    """The same by a campaign, with everything around it."""
    path = directory / "subject.toml"
    path.write_text(SUBJECT)
    store = directory / "store.db"
    store.unlink(missing_ok=True)
    outcome = Campaign(
        SubjectReference(str(path)), "coin", tests, workers=1, store=str(store)
    ).run()
    assert outcome.progress.tests == tests
    assert not outcome.faults


def measured(run: Callable[[int, Path], None], tests: int) -> tuple[float, float]:
    """CPU and wall seconds of a run in a directory of its own."""
    with tempfile.TemporaryDirectory() as directory:
        cpu, wall = cpu_seconds(), time.monotonic()
        run(tests, Path(directory))
        return cpu_seconds() - cpu, time.monotonic() - wall


def main() -> None:
    quick = arguments(__doc__).quick
    tests, rounds = (150, 2) if quick else (2_000, 7)
    progress("the start of a campaign")
    starts = [measured(campaign, FEW) for _ in range(2 if quick else 3)]
    start_cpu, start_wall = (statistics.median(column) for column in zip(*starts, strict=True))
    loops = {"bare loop": bare, "bare loop, tuned": tuned}
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in (*loops, _OURS)}
    for number in range(1, rounds + 1):
        progress(f"round {number} of {rounds}: bare loops, a campaign")
        for name, loop in loops.items():
            seconds[name].append(measured(loop, tests))
        cpu, wall = measured(campaign, FEW + tests)
        seconds[_OURS].append((cpu - start_cpu, wall - start_wall))
    rows = []
    for name, runs in seconds.items():
        cpu, wall = (statistics.median(column) for column in zip(*runs, strict=True))
        rows.append((name, f"{cpu / tests * 1e3:.2f}", f"{wall / tests * 1e3:.2f}"))
    print_table(("two processes a test", "CPU ms per test", "wall ms per test"), rows)
    print(f"\nstart of a campaign: {start_cpu:.2f} s of CPU, {start_wall:.2f} s, not counted above")

    def ratio(name: str, clock: int) -> float:
        above, below = ([run[clock] for run in seconds[one]] for one in (name, _OURS))
        return round(median_ratio(above, below), 3)

    print_figures(
        {
            "vs_bare_cpu": ratio("bare loop", 0),
            "vs_bare_wall": ratio("bare loop", 1),
            "vs_tuned_cpu": ratio("bare loop, tuned", 0),
            "vs_tuned_wall": ratio("bare loop, tuned", 1),
            "tests": tests,
            "start_up_cpu_seconds": round(start_cpu, 3),
        }
    )


if __name__ == "__main__":
    main()
