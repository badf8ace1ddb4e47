"""Races in native programs: how often noise finds them, next to plain runs; and what it costs.

Detections per run and per CPU second (of the program and of whoever runs it) on five programs: bare
runs, bare runs on one core (`taskset`), our library without noise, each kind of noise, a swarm that
draws its settings anew for each run, and the best of some drawn settings (found with other seeds).
A hang counts as found: bare runs are given up after half a second.

`helgrind`, `drd` and gcc's own ThreadSanitizer are listed apart. They look at one run and say what
could go wrong in another: they need no failure, cannot see one, and do not see every kind (a gap
between two locked sections is no data race). `rr chaos` needs performance counters of the machine.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from harness import (
    arguments,
    cpu_seconds,
    median_ratio,
    print_figures,
    print_table,
    progress,
    require_programs,
)

from swarmtest.core.sampling import rates_for, toss
from swarmtest.core.seeds import Stream
from swarmtest.processes.commands import CommandLine
from swarmtest.race.native.runner import NativeThreads
from swarmtest.race.native.subject import noise_of, noise_space
from swarmtest.race.noise_settings import KINDS, NoiseSettings

HERE = Path(__file__).with_name("race_native_subjects")
SUBJECTS = {"airlines": (), "shutdown": (), "counter": ("-fsanitize=thread",), "deadlock": ()}
SUBJECTS |= {"wake_up": ()}
HANGS_AFTER = 0.5
NOISY = 200
"""The frequency of noise where it is not drawn."""

Once = Callable[[int], bool]
"""One run with a seed: whether it failed."""


class Measured(NamedTuple):
    """What came of some runs."""

    found: int
    runs: int
    cpu: float

    @property
    def per_second(self) -> float:
        return self.found / self.cpu

    @property
    def shown(self) -> str:
        return f"{self.found / self.runs:.2f} {self.per_second:.1f}"


def build(name: str, directory: Path, *flags: str, output: str = "") -> Path:
    program = directory / (output or name)
    command = ["gcc", "-g", *flags, "-o", str(program), str(HERE / f"{name}.c"), "-pthread"]
    subprocess.run(command, check=True)
    return program


def bare(program: Path, *before: str) -> Once:
    def once(seed: int) -> bool:
        stdin = os.open(os.devnull, os.O_RDONLY)
        try:
            ended = CommandLine((*before, str(program)), os.environ).run(stdin, HANGS_AFTER)
        finally:
            os.close(stdin)
        return ended.timed_out or ended.status != 0

    return once


def noisy(threads: NativeThreads, settings: NoiseSettings) -> Once:
    return lambda seed: threads.run(settings, seed).fault is not None


def swarm(threads: NativeThreads) -> Once:
    return lambda seed: threads.run(drawn(seed), seed).fault is not None


def drawn(number: int) -> NoiseSettings:
    space = noise_space()
    return noise_of(toss(space, rates_for(space, 0.5), Stream(0, number)).configuration)


def measured(once: Once, runs: int, first_seed: int = 0) -> Measured:
    start = cpu_seconds()
    found = sum(once(seed) for seed in range(first_seed, first_seed + runs))
    return Measured(found, runs, cpu_seconds() - start)


def searched(threads: NativeThreads, settings: int, runs: int) -> NoiseSettings:
    """The best per CPU second of each kind and some drawn settings; with seeds of its own."""
    candidates = [NoiseSettings(NOISY, [kind]) for kind in KINDS]
    candidates += [drawn(10_000 + number) for number in range(settings)]
    return max(
        candidates, key=lambda one: measured(noisy(threads, one), runs, 1_000_000).per_second
    )


def detections(directory: Path, quick: bool) -> dict[str, dict[str, Measured]]:
    runs = 8 if quick else 60
    table: dict[str, dict[str, Measured]] = {}
    for name, flags in SUBJECTS.items():
        progress(f"detections: {name}")
        plain = build(name, directory, output=f"{name}_bare")
        threads = NativeThreads([build(name, directory, *flags)], seconds=20)
        ways: dict[str, Once] = {"bare": bare(plain)}
        if shutil.which("taskset"):
            ways["bare, one core"] = bare(plain, "taskset", "-c", "0")
        ways["no noise"] = noisy(threads, NoiseSettings(0))
        ways |= {kind: noisy(threads, NoiseSettings(NOISY, [kind])) for kind in [*KINDS, "mixed"]}
        ways["swarm"] = swarm(threads)
        best = searched(threads, *((2, 5) if quick else (8, 8)))
        ways["searched"] = noisy(threads, best)
        table[name] = {way: measured(once, runs) for way, once in ways.items()}
        print(f"searched for {name}: {best}")
    print()
    head = ["found per run, per CPU second", *table]
    rows = [[way, *(table[name][way].shown for name in table)] for way in table["airlines"]]
    print_table(head, rows)
    return table


def detectors(directory: Path, quick: bool) -> None:
    """What tools say that look at one run; each is run a few times."""
    tools: dict[str, list[str]] = {"ThreadSanitizer (gcc)": []}
    if shutil.which("valgrind") and not quick:
        tools["helgrind"] = ["valgrind", "-q", "--tool=helgrind", "--error-exitcode=9"]
        tools["drd"] = ["valgrind", "-q", "--tool=drd", "--error-exitcode=9"]
    rows = []
    for tool, words in tools.items():
        progress(f"detectors: {tool}")
        row: list[object] = [tool]
        for name in SUBJECTS:
            output = f"{name}_{'tsan' if not words else 'bare'}"
            program = directory / output
            if not words:
                program = build(name, directory, "-fsanitize=thread", output=output)
            row.append(told(program, words, 1 if quick else 5))
        rows.append(row)
    print()
    print_table(["a report, per CPU second", *SUBJECTS], rows)


def told(program: Path, words: list[str], runs: int) -> str:
    reports, hangs = 0, 0
    start = cpu_seconds()
    for _ in range(runs):
        try:
            done = subprocess.run([*words, program], capture_output=True, timeout=20)
        except subprocess.TimeoutExpired:
            hangs += 1
            continue
        reports += b"WARNING: ThreadSanitizer" in done.stderr or done.returncode == 9
    per_second = reports / (cpu_seconds() - start)
    return f"{reports}/{runs} {per_second:.1f}" + (f" ({hangs} hung)" if hangs else "")


def slow_downs(directory: Path, quick: bool) -> dict[str, float]:
    """CPU time of runs in turns, as ratios to the bare program's."""
    rounds = 2 if quick else 9
    locks = build("locks", directory, "-O2", output="locks")
    working = build("locks", directory, "-O2", "-DWORK=300", output="working")
    sort = build("accesses", directory, "-O2", output="sort")
    seen = build("accesses", directory, "-O2", "-fsanitize=thread", output="sort_seen")
    cases = {
        "locks only, preloaded": (locks, NativeThreads([locks]), None),
        "locks and work, preloaded": (working, NativeThreads([working]), None),
        "accesses, our runtime": (sort, NativeThreads([seen]), None),
        "accesses, gcc's runtime": (sort, None, seen),
    }
    rows, figures = [], {}
    for name, (plain, threads, other) in cases.items():
        progress(f"slow-down: {name}")
        bare_times, times = [], []
        for _ in range(rounds):
            bare_times.append(cpu_of(plain))
            if threads is not None:
                times.append(threads.run(NoiseSettings(0), 0).cpu_seconds)
            elif other is not None:
                times.append(cpu_of(other))
        figures[name] = round(median_ratio(times, bare_times), 2)
        middle = statistics.median(bare_times) * 1000
        rows.append([name, f"{middle:.0f} ms", f"{figures[name]:.2f}x"])
    print()
    print_table(["slow-down without noise", "bare", "CPU time"], rows)
    return figures


def cpu_of(program: Path) -> float:
    stdin = os.open(os.devnull, os.O_RDONLY)
    try:
        return CommandLine((str(program),), os.environ).run(stdin, 60).cpu_seconds
    finally:
        os.close(stdin)


def against_bare(ways: dict[str, Measured]) -> float:
    """Detections per CPU second, searched against the better bare way.

    Bare runs that found nothing count as if one more would have: the ratio is then a lower bound.
    """
    bares = [one for way, one in ways.items() if way.startswith("bare")]
    return ways["searched"].per_second / max(max(one.found, 1) / one.cpu for one in bares)


def main() -> None:
    """Build, measure, print."""
    quick = arguments(__doc__ or "").quick
    require_programs({"gcc": "gcc", "addr2line": "binutils"})
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made)
        table = detections(directory, quick)
        detectors(directory, quick)
        slow = slow_downs(directory, quick)
    per_second = {
        name: {way: round(one.per_second, 2) for way, one in ways.items()}
        for name, ways in table.items()
    }
    ratios = {name: against_bare(ways) for name, ways in table.items()}
    print_figures(
        {
            "per_cpu_second": per_second,
            "vs_best_bare": {name: round(ratio, 1) for name, ratio in ratios.items()},
            "vs_best_bare_min": round(min(ratios.values()), 1),
            "slow_down": slow,
        }
    )


if __name__ == "__main__":
    main()
