"""Tests per second with coverage of C programs: gcov, the fast path, the fork server, none.

    python benchmarks/native_coverage.py [--quick] [--work DIR]

The programs are duktape, an interpreter of JavaScript (100,000 lines), and tcc, a compiler (50,000
lines, of which fewer are built in), from Debian's source packages; a test runs a small random
JavaScript program, or compiles a small C program that csmith made. A quick run measures a generated
program of 6,000 lines instead, which takes less time to build. All ways give
the same: the set of lines that each test reached, as `Hits`. gcov is at its best: one call of it
for all objects, only those whose sources matter, JSON through a pipe, in a directory of its own.
What it costs grows with the program; what the fast path costs grows with the test.

Ways are measured in turns. Ratios are of CPU time, all processes counted, because on a shared
machine the wall clock varies by half; tests per second are by the wall clock, one test at a time.
`native_vs_gcov` is each at its best on the first program: the fast path (gcc) with its fork server,
a thing that gcov has not; `new_process_vs_gcov` is the fast path without it. A *disagreement* is a
line that the fast path names and gcov counts as not executed, in the same test; lines that gcov
does not list at all (closing braces) cannot be compared. Compilers move and merge code when they
optimise, so a few lines do disagree.

The last table is about harnesses of libFuzzer, in the process of the worker and persistent, beside
libFuzzer and AFL++: see `native_harnesses.py`. `inprocess_vs_bare` compares with calls of the same
library without coverage, `vs_libfuzzer_execs` and `vs_afl_execs` with these fuzzers on the same
inputs, all by tests per CPU second.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness import cpu_seconds, print_figures, print_table, progress, require_programs
from native_harnesses import harness_figures
from native_subjects import Subject, find_subjects

from swarmtest.coverage.native.compiler import RUNTIME, compiler_command
from swarmtest.coverage.native.program import Program
from swarmtest.processes.caches import cache_directory

OPTIMISE = "-O1"


@dataclass(frozen=True)
class Way:
    """One way to run the tests."""

    name: str
    key: str
    """Of its figures."""
    build: str
    coverage: str = "auto"
    fork_server: bool = False
    per_turn: int = 20
    """Tests."""
    branches: bool = False


WAYS = (
    Way("no coverage", "none", "plain", coverage="none"),
    Way("gcov", "gcov", "gcov", per_turn=3),
    Way("fast path, gcc", "fast", "fast-gcc"),
    Way("fast path, gcc, fork server", "fork_server", "fast-gcc", fork_server=True),
    Way("the same, with branches", "branches", "fast-gcc", fork_server=True, branches=True),
    Way("fast path, clang", "fast_clang", "fast-clang"),
    Way("fast path, clang, fork server", "fork_server_clang", "fast-clang", fork_server=True),
)
COMPILERS: dict[str, Callable[[list[str]], list[str]]] = {
    "plain": lambda words: ["gcc", *words],
    "gcov": lambda words: ["gcc", "--coverage", *words],
    "fast-gcc": lambda words: compiler_command(["gcc", *words]),
    "fast-clang": lambda words: compiler_command(["clang", *words]),
}


def build_all(subject: Subject, builds: Sequence[str]) -> dict[str, Path]:
    """The programs, built unless they are there already."""
    with ThreadPoolExecutor(2) as pool:
        return dict(pool.map(lambda build: (build, build_one(subject, build)), builds))


def build_one(subject: Subject, build: str) -> Path:
    place = subject.directory / f"build-{build}"
    program = place / "program"
    newest = max(RUNTIME.stat().st_mtime, *(source.stat().st_mtime for source in subject.sources))
    if not program.exists() or program.stat().st_mtime < newest:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        words = [OPTIMISE, "-w", "-o", str(program), *subject.flags, *map(str, subject.sources)]
        subprocess.run(COMPILERS[build]([*words, *subject.libraries]), cwd=place, check=True)
    return program


def open_program(subject: Subject, way: Way, programs: dict[str, Path]) -> Program:
    return Program(
        [programs[way.build], *subject.arguments],
        coverage=way.coverage,
        fork_server=way.fork_server,
        branches=way.branches,
        suffix=subject.suffix,
    )


@dataclass
class Cost:
    """What the tests of one way took."""

    tests: int = 0
    wall: float = 0.0
    cpu: float = 0.0
    """Of all processes: ours, the program's, gcov's, the fork server's."""

    @contextmanager
    def count(self, tests: int) -> Iterator[None]:
        wall, cpu = time.perf_counter(), cpu_seconds()
        yield
        self.tests += tests
        self.wall += time.perf_counter() - wall
        self.cpu += cpu_seconds() - cpu


def measure(
    subject: Subject, programs: dict[str, Path], ways: Sequence[Way], turns: int
) -> dict[str, Cost]:
    """What each way costs; in turns, because others may use the machine as well."""
    costs = {way.key: Cost() for way in ways}
    with ExitStack() as stack:
        opened = {way: stack.enter_context(open_program(subject, way, programs)) for way in ways}
        for program in opened.values():
            program.run(subject.tests[0])  # symbols are looked up, servers started
        for turn in range(turns):
            for way, program in opened.items():
                tests = [
                    subject.tests[(turn + i) % len(subject.tests)] for i in range(way.per_turn)
                ]
                with costs[way.key].count(len(tests)):
                    for test in tests:
                        program.run(test)
        for way, program in opened.items():
            # The CPU time of a fork server and its tests is known when it has ended.
            with costs[way.key].count(0):
                program.close()
    return costs


def compare_lines(
    subject: Subject, programs: dict[str, Path], way: Way, tests: Sequence[bytes]
) -> tuple[int, int, int]:
    """Lines where the fast path and gcov can be compared, where they disagree, gcov's lines."""
    with (
        open_program(subject, way, programs) as fast,
        open_program(subject, WAYS[1], programs) as gcov,
    ):
        comparable: set[str] = set()
        disagree: set[str] = set()
        for test in tests:
            began, executed = reached(fast, test), reached(gcov, test)
            listed = {target.name for target in gcov.catalogue.targets}
            comparable |= began & listed
            disagree |= (began & listed) - executed
        return len(comparable), len(disagree), len(gcov.catalogue.targets)


def reached(program: Program, test: bytes) -> set[str]:
    run = program.run(test)
    assert run.hits is not None, run.missing
    return {target.name for target in run.hits.targets()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller run, about a minute")
    parser.add_argument("--work", type=Path, default=cache_directory("benchmarks"), metavar="DIR")
    options = parser.parse_args()
    require_programs({"gcc": "gcc", "gcov": "gcc", "addr2line": "binutils"})
    options.work.mkdir(parents=True, exist_ok=True)
    progress("the programs' sources, and tests for them")
    subjects = find_subjects(
        options.work.resolve(), 20 if options.quick else 100, quick=options.quick
    )
    has_clang = bool(shutil.which("clang")) and not options.quick
    if options.quick:
        print("a quick run leaves clang out")
    elif not has_clang:
        print("clang is not installed: its rows are left out (apt-get install clang)")
    ways = [way for way in WAYS if has_clang or not way.build.endswith("clang")]
    figures: dict[str, object] = {}
    for subject in subjects:
        measured = figures_of(subject, ways, quick=options.quick)
        prefix = "" if subject is subjects[0] else f"{subject.name}_"
        figures |= {f"{prefix}{key}": value for key, value in measured.items()}
    figures |= harness_figures(options.work.resolve(), quick=options.quick)
    print_figures(figures)


def figures_of(subject: Subject, ways: Sequence[Way], *, quick: bool) -> dict[str, object]:
    """Measure one program and print what came of it."""
    os.chdir(subject.directory)
    progress(f"{subject.name}: builds")
    programs = build_all(subject, sorted({way.build for way in ways}))
    progress(f"{subject.name}: all ways in turns")
    costs = measure(subject, programs, ways, turns=4 if quick else 25)
    progress(f"{subject.name}: the lines that each way names")
    tests = subject.tests[: 6 if quick else 40]
    compared = {
        way.name: compare_lines(subject, programs, way, tests)
        for way in ways
        if way.key in ("fast", "fast_clang")
    }
    sizes = [len(test) for test in subject.tests]
    print(f"program: {subject.title}")
    print(f"tests: {len(sizes)} {subject.tests_are}, {statistics.mean(sizes):,.0f} bytes each\n")
    return report(ways, costs, compared) | {"program": subject.title}


def report(
    ways: Sequence[Way], costs: dict[str, Cost], compared: dict[str, tuple[int, int, int]]
) -> dict[str, object]:
    """Print the tables; the figures in them."""
    cpu = {key: cost.cpu / cost.tests for key, cost in costs.items()}
    rates = {key: cost.tests / cost.wall for key, cost in costs.items()}
    print_table(
        ["way", "tests/s", "CPU ms/test", "times gcov", "CPU against none"],
        [
            (
                way.name,
                f"{rates[way.key]:,.1f}",
                f"{1000 * cpu[way.key]:.2f}",
                f"{cpu['gcov'] / cpu[way.key]:.1f}",
                f"{cpu[way.key] / cpu['none']:.2f}",
            )
            for way in ways
        ],
    )
    print()
    print_table(
        ["lines named by", "comparable with gcov", "disagreements"],
        [[name, *row[:2]] for name, row in compared.items()],
    )
    print()
    return {
        "native_vs_gcov": round(cpu["gcov"] / cpu["fork_server"], 1),
        "new_process_vs_gcov": round(cpu["gcov"] / cpu["fast"], 1),
        "native_vs_gcov_wall": round(rates["fork_server"] / rates["gcov"], 1),
        "fast_slowdown": round(cpu["fast"] / cpu["none"], 2),
        "fork_server_slowdown": round(cpu["fork_server"] / cpu["none"], 2),
        "branches_slowdown": round(cpu["branches"] / cpu["none"], 2),
        "gcov_lines": next(iter(compared.values()))[2],
        "comparable": sum(row[0] for row in compared.values()),
        "disagreements": sum(row[1] for row in compared.values()),
        **{f"{way.key}_tests_per_s": round(rates[way.key], 1) for way in ways},
    }


if __name__ == "__main__":
    main()
