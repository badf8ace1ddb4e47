"""Beyond one machine's usual work: more workers, Dask, both stores, and large analyses.

    python benchmarks/scale.py [--quick] [--million]

Four parts. (a) Tests per second of the local executor with one worker and with two; the subject is
the push/pop/add stack of `benchmarks/throughput.py`, 50 steps a test, bound by CPU. (b) What the
Dask executor adds to a test: a scheduler and one worker on this machine, against the local executor
with one worker; for the stack (`dask_overhead_us`, with the start of the processes), and for tests
of 0.4 ms (`dask_overhead_ms`; the start, measured with a campaign of few tests, is subtracted).
`dask_overhead_cpu_ms` is the same in CPU time of all processes: scheduler and worker too.
(c) Trials per second into both stores (`benchmarks/store_speed.py` has more). (d) CPU seconds and
peak memory of the analysis as tests, features and targets grow; each measurement is a process of
its own (`benchmarks/scale_measure.py`), of campaigns that are made up (`benchmarks/scale_data.py`
says how). ``--million`` adds one of a million tests.

Walls of seconds are medians of runs in turns, because other work on the machine varies.
"""

from __future__ import annotations

import argparse
import json
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from chaos_processes import children_of, command_of
from harness import (
    cpu_seconds_of,
    print_figures,
    print_table,
    progress,
    require_modules,
)
from store_speed import fill, postgres, seconds, trials
from throughput import FEW, MACHINES, SUBJECT, campaign

from swarmtest import Campaign, open_store

BUSY = f"{MACHINES}::Busy"
MEASURE = Path(__file__).parent / "scale_measure.py"
PATIENCE = 300.0
"""Seconds to wait for Dask to start or to end, on a machine that may be busy."""


@dataclass(frozen=True)
class Size:
    tests: int
    rounds: int
    cluster_tests: int
    busy_tests: int
    stored: int
    counting: tuple[tuple[int, int, int, int, float], ...]
    """Tests, features, targets, targets that a test hits, targets that are alike."""
    from_store: tuple[tuple[int, int, int, int, float], ...]


FULL = Size(
    40_000,
    5,
    20_000,
    5_000,
    50_000,
    (
        (80_000, 300, 500_000, 2_000, 4),
        (200_000, 300, 500_000, 2_000, 4),
        (100_000, 75, 500_000, 2_000, 4),
        (100_000, 300, 125_000, 2_000, 4),
        (100_000, 300, 500_000, 2_000, 1),
        (20_000, 300, 500_000, 20_000, 4),
    ),
    ((10_000, 300, 100_000, 1_000, 4), (40_000, 300, 100_000, 1_000, 4)),
)
QUICK = Size(
    3_000,
    1,
    1_000,
    1_000,
    2_000,
    ((2_000, 100, 5_000, 100, 4), (8_000, 100, 5_000, 100, 4)),
    ((1_000, 100, 2_000, 100, 4),),
)
MILLION = (1_000_000, 300, 500_000, 2_000, 4.0)


def workers(size: Size) -> dict[str, object]:
    """Part (a)."""
    walls: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(size.rounds):
        for count, found in walls.items():
            found.append(campaign(size.tests, "coin", workers=count))
    speed = {count: size.tests / statistics.median(found) for count, found in walls.items()}
    print(f"(a) local executor, {size.tests:,} tests of 50 steps")
    print_table(("workers", "tests/s"), [(count, f"{each:,.0f}") for count, each in speed.items()])
    return {
        "tests_per_second_1": round(speed[1]),
        "tests_per_second_2": round(speed[2]),
        "two_workers": round(speed[2] / speed[1], 2),
    }


@dataclass(frozen=True)
class Spent:
    """What a campaign, or a test of it, took."""

    wall: float
    cpu: float

    def a_test_more_than(self, start: Spent, tests: int) -> Spent:
        """Return what each of so many tests took beyond the start."""
        return Spent((self.wall - start.wall) / tests, (self.cpu - start.cpu) / tests)


def dask(size: Size) -> dict[str, object]:
    """Part (b)."""
    walls: dict[str, list[float]] = {"local": [], "dask": []}
    busy: dict[str, list[Spent]] = {"local": [], "dask": []}
    with cluster() as (address, processes):
        on_cluster(address, 10)
        for turn in range(size.rounds):
            progress(f"part (b), round {turn + 1} of {size.rounds}")
            walls["local"].append(campaign(size.cluster_tests, "coin"))
            walls["dask"].append(on_cluster(address, size.cluster_tests))
            for name, run in (
                ("local", partial(campaign, strategy="coin", subject=BUSY)),
                ("dask", partial(on_cluster, address, subject=BUSY)),
            ):
                start = spent(partial(run, tests=FEW), processes)
                whole = spent(partial(run, tests=size.busy_tests), processes)
                busy[name].append(whole.a_test_more_than(start, size.busy_tests - FEW))
    each = {name: 1e6 * statistics.median(w) / size.cluster_tests for name, w in walls.items()}
    slow = {name: 1e6 * statistics.median(run.wall for run in runs) for name, runs in busy.items()}
    cpu = {name: 1e6 * statistics.median(run.cpu for run in runs) for name, runs in busy.items()}
    print(f"\n(b) {size.cluster_tests:,} tests, one worker; wall time")
    print_table(
        ("executor", "us/test", f"{size.busy_tests:,} long tests, us/test", "CPU us/test"),
        [(n, f"{each[n]:,.0f}", f"{slow[n]:,.0f}", f"{cpu[n]:,.0f}") for n in each],
    )
    pairs = list(zip(busy["dask"], busy["local"], strict=True))
    return {
        "local_us": round(each["local"]),
        "dask_us": round(each["dask"]),
        "dask_overhead_us": round(each["dask"] - each["local"]),
        "dask_overhead_ms": round(1e3 * statistics.median(d.wall - n.wall for d, n in pairs), 3),
        "dask_overhead_cpu_ms": round(1e3 * statistics.median(d.cpu - n.cpu for d, n in pairs), 3),
    }


def spent(run: Callable[[], float], processes: Sequence[int]) -> Spent:
    """Return the wall time of a campaign as it says, and the CPU time of all processes."""
    before = _cpu_seconds(processes)
    wall = run()
    return Spent(wall, _cpu_seconds(processes) - before)


def _cpu_seconds(processes: Sequence[int]) -> float:
    """Return the CPU seconds of this process, of others and of all that they have started."""
    deadline = time.monotonic() + PATIENCE
    # The hosts of a campaign end after it. Only then does their parent know what they used.
    while any(children_of(pid) for pid in _workers(processes)):
        if time.monotonic() > deadline:
            raise SystemExit("the hosts of a campaign did not end")
        time.sleep(0.05)
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own = sum(usage.ru_utime + usage.ru_stime for usage in usages)
    return own + sum(cpu_seconds_of(pid) for pid in (*processes, *_workers(processes)))


def _workers(processes: Sequence[int]) -> list[int]:
    """Return the processes that nannies have started for their workers."""
    return [
        child
        for pid in processes
        for child in children_of(pid)
        if b"resource_tracker" not in command_of(child)
    ]


def on_cluster(address: str, tests: int, subject: str = SUBJECT) -> float:
    with tempfile.TemporaryDirectory() as directory:
        store = str(Path(directory) / "store.db")
        done = Campaign(subject, "coin", tests, executor=f"dask://{address}", store=store).run()
        return done.progress.wall_seconds


@contextmanager
def cluster() -> Iterator[tuple[str, list[int]]]:
    """A scheduler and one worker on this machine: the address, and their process ids."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    host, port = address.split(":")
    quiet = subprocess.DEVNULL
    started: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory() as directory:
        try:
            scheduler = ["scheduler", "--host", host, "--port", port]
            worker = ["worker", f"tcp://{address}", "--nworkers", "1", "--nthreads", "1"]
            for words in (scheduler, [*worker, "--local-directory", directory]):
                command = [sys.executable, "-m", "dask", *words, "--dashboard-address", ":0"]
                started.append(subprocess.Popen(command, stdout=quiet, stderr=quiet))
            _wait_for(host, int(port))
            yield address, [process.pid for process in started]
        finally:
            for process in reversed(started):
                process.terminate()
            for process in started:
                process.wait(PATIENCE)


def _wait_for(host: str, port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with socket.socket() as trying:
            if trying.connect_ex((host, port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit(f"no scheduler answered at {host}:{port} within {PATIENCE:.0f} seconds")


def stores(size: Size) -> dict[str, object]:
    """Part (c)."""
    records = trials(size.stored)
    speeds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as directory, postgres() as url:
        for name, where in (("sqlite", str(Path(directory) / "store.db")), ("postgresql", url)):
            with open_store(where) as store:
                speeds[name] = size.stored / seconds(partial(fill, store, records))
    print(f"\n(c) {size.stored:,} trials of 300 hits, in batches of 1,000")
    print_table(("store", "trials/s"), [(name, f"{each:,.0f}") for name, each in speeds.items()])
    return {f"{name}_per_second": round(each) for name, each in speeds.items()}


def analysis(size: Size, million: bool) -> dict[str, object]:
    """Part (d)."""
    print("\n(d) roles of all targets, counted in memory: CPU seconds, and peak memory")
    rows, counted = [], {}
    for shape in (*size.counting, *([MILLION] if million else [])):
        found = measured("counting", shape)
        counted[_named(shape)] = found
        rows.append(
            (
                *(f"{number:,}" for number in (*shape[:3], found["distinct"], found["hits"])),
                f"{found['count_seconds']:.1f}",
                f"{found['seconds']:.1f}",
                f"{found['megabytes']:,}",
            )
        )
    print_table(
        ("tests", "features", "targets", "distinct", "hits", "counting", "with roles", "MB"), rows
    )
    print("\n    from an SQLite file, and what else is asked: CPU seconds, and peak memory")
    rows, stored = [], {}
    parts = ("read", "roles", "triage", "growth")
    for shape in size.from_store:
        found = measured("store", shape)
        stored[_named(shape)] = found
        rows.append(
            (
                *(f"{number:,}" for number in (*shape[:3], found["file_megabytes"])),
                *(f"{found[f'{part}_seconds']:.1f}" for part in parts),
                f"{found['megabytes_growth']:,}",
            )
        )
    print_table(("tests", "features", "targets", "file MB", *parts, "MB"), rows)
    return {"counting": counted, "from_store": stored}


def measured(what: str, shape: tuple[int, int, int, int, float]) -> dict[str, float]:
    progress(f"part (d), {what}: {_named(shape)}")
    words = [sys.executable, str(MEASURE), what, *map(str, shape)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _named(shape: tuple[int, int, int, int, float]) -> str:
    return "x".join(map(str, shape[:3])) + f" hits {shape[3]} likes {shape[4]:g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smaller run, under 20 seconds")
    parser.add_argument("--million", action="store_true", help="with a million tests, in part (d)")
    parser.add_argument("--only", choices="abcd", help="one part")
    options = parser.parse_args()
    size = QUICK if options.quick else FULL
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "a": lambda: workers(size),
        "b": lambda: dask(size),
        "c": lambda: stores(size),
        "d": lambda: analysis(size, options.million),
    }
    require_modules(
        {
            "distributed": "'swarmtest[dask]'",
            "pgserver": "pgserver",
            "psycopg": "'swarmtest[postgres]'",
        }
    )
    figures: dict[str, object] = {}
    for name, part in parts.items():
        if options.only in (None, name):
            progress(f"part ({name})")
            figures |= part()
    print_figures(figures)


if __name__ == "__main__":
    main()
