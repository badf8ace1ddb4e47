"""A harness of libFuzzer in swarmtest, beside the bare harness, libFuzzer and AFL++.

`native_coverage.py` prints this. The harness is that of cJSON (Debian's source, unchanged), in a
quick run one around the generated program. Every way runs the same distinct inputs, each once in a
turn, and mutates nothing: libFuzzer with ``-runs=0`` on a directory, AFL++ in persistent mode with
``afl-showmap -i`` on the same directory. CPU time is that of all processes. What is not installed
is said, with how to install it; AFL++ is unpacked from Debian's package if apt-get can fetch it.

*Bare* is the library, built without coverage and called by ctypes from Python. The ways of
swarmtest measure which lines each input reached, and in the campaigns they also store it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import shutil
import statistics
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness import cpu_seconds, print_table, progress
from native_subjects import Unavailable, debian_source, generated

from swarmtest import Campaign, generator, open_store
from swarmtest.coverage import Library
from swarmtest.coverage.native.compiler import compiler_command
from swarmtest.coverage.native.program import Program

OPTIMISE = "-O2"
ENTRY = "LLVMFuzzerTestOneInput"
NEEDS_CLANG = "apt-get install clang libclang-rt-dev"
NEEDS_AFL = "apt-get install afl++"
GENERATED = """\
#include <stddef.h>
#include <stdint.h>
#define main generated_main
#include "generated.c"
#undef main
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sum = 0;
  for (size_t i = 0; i < size; i++)
    steps[(sum * 31 + data[i]) % (sizeof steps / sizeof *steps)](data[i]);
  return 0;
}
"""


@dataclass
class Harness:
    """A harness with its program, and what makes inputs for it."""

    title: str
    sources: Sequence[str]
    make: Callable[[random.Random], bytes]
    directory: Path
    """Where it is built, and where the inputs are."""
    tests: list[bytes] = field(default_factory=list)

    def write_tests(self, count: int) -> Path:
        """Make the inputs, and a directory with a file for each."""
        rng = random.Random(1)
        made: dict[bytes, None] = {}
        while len(made) < count:
            made[self.make(rng)] = None
        self.tests = list(made)
        inputs = self.directory / "inputs"
        shutil.rmtree(inputs, ignore_errors=True)
        inputs.mkdir(parents=True)
        for number, test in enumerate(self.tests):
            (inputs / f"{number}").write_bytes(test)
        return inputs

    def build(self, name: str, command: Sequence[str | Path], environment: object = None) -> Path:
        """Build with a compiler's command; its sources are added."""
        program = self.directory / name
        words = [*map(str, command), OPTIMISE, "-w", "-o", str(program), *self.sources]
        if command[0] == "swarmtest":
            words = compiler_command(words[1:])
        done = subprocess.run(words, capture_output=True, text=True, env=environment)  # type: ignore[call-overload]
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise Unavailable(f"{command[0]} failed: {reason}")
        return program


def cjson(work: Path) -> Harness:
    source = debian_source("cjson", work)
    files = [str(source / "fuzzing" / "cjson_read_fuzzer.c"), str(source / "cJSON.c")]
    directory = work / "harness-cjson"
    directory.mkdir(exist_ok=True)
    return Harness(f"{source.name}, its own harness", files, document, directory)


def document(rng: random.Random) -> bytes:
    """A JSON document with the options that cJSON's harness expects before it."""

    def value(depth: int) -> str:
        sort = rng.random()
        if depth and sort < 0.35:
            return (
                "{" + ",".join(f'"k{i}":{value(depth - 1)}' for i in range(rng.randint(1, 6))) + "}"
            )
        if depth and sort < 0.7:
            return "[" + ", ".join(value(depth - 1) for _ in range(rng.randint(1, 6))) + "]"
        texts = ('"abc\\u20ac"', "true", "null", '"a longer text, with \\n and more"')
        return rng.choice((*texts, str(rng.randint(-999, 99999)), f"{rng.random():.4f}"))

    return ("".join(rng.choice("01") for _ in range(4)) + value(6) + "\0").encode()


def generated_harness(work: Path) -> Harness:
    subject = generated(work, 1, functions=150)
    file = subject.directory / "harness.c"
    file.write_text(GENERATED)
    return Harness(
        f"{subject.title}, a harness around it",
        [str(file)],
        lambda rng: rng.randbytes(2000),
        subject.directory,
    )


def find_harness(work: Path, *, quick: bool) -> Harness:
    if quick:
        return generated_harness(work)
    try:
        return cjson(work)
    except Unavailable as reason:
        print(f"not measured on cJSON ({reason}), but on a generated program")
        return generated_harness(work)


# The ways: each is a function that runs all inputs once.

_SUBREAPER = 36
"""Of prctl: orphans of programs that we started become our children."""


@contextlib.contextmanager
def adopting_orphans() -> Iterator[None]:
    """Count the CPU time of what a program leaves to others, as afl-showmap its fork server."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1)
    try:
        yield
    finally:
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)


def run_tool(command: Sequence[str | Path], environment: dict[str, str] | None = None) -> None:
    env = {**os.environ, **(environment or {})}
    with adopting_orphans():
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=env)
    if done.returncode:
        reason = ((done.stderr or done.stdout).strip().splitlines() or ["no message"])[-1]
        raise Unavailable(f"{Path(str(command[0])).name} ended with {done.returncode}: {reason}")


def in_fork(work: Callable[[], object]) -> None:
    """Run in a process of its own, as a worker does: it has one thread."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    if os.waitpid(child, 0)[1]:
        raise Unavailable("a process of the benchmark failed")


def bare(harness: Harness) -> Callable[[], None]:
    library = harness.build("libbare.so", ["gcc", "-shared", "-fPIC"])
    call = ctypes.CDLL(str(library))[ENTRY]

    def run() -> None:
        for test in harness.tests:
            call(test, len(test))

    return lambda: in_fork(run)


def in_process(harness: Harness, compiler: str) -> Callable[[], None]:
    name = f"lib{compiler}.so"
    library = Library(harness.build(name, ["swarmtest", compiler, "-shared", "-fPIC"]))
    call = library.functions[ENTRY]

    def run() -> None:
        for test in harness.tests:
            call(test, len(test))
            assert library.hits

    return lambda: in_fork(run)


def persistent(harness: Harness) -> Callable[[], None]:
    path = harness.build("persistent", ["swarmtest", "gcc", "-fsanitize=fuzzer"])

    def run() -> None:
        with Program([path], persistent=1000) as program:
            for test in harness.tests:
                assert program.run(test).hits

    return run


def campaign(harness: Harness, *, within: bool) -> Callable[[], None]:
    """A whole campaign of a generator function: tests are made, run and stored."""
    if within:
        library = Library(harness.directory / "libgcc.so")
        call = library.functions[ENTRY]

        def tested(test: bytes) -> object:
            call(test, len(test))
            return library
    else:
        tested = Program([harness.directory / "persistent"], persistent=1000)  # type: ignore[assignment]
    # What the generator itself takes is not measured: it hands out inputs that were made before.
    made = iter(harness.tests * 100)

    @generator(features=["any"], run=tested)
    def inputs(rng: random.Random, features: object) -> bytes:
        return next(made)

    def run() -> None:
        with open_store(":memory:") as store:
            Campaign(inputs, "coin", len(harness.tests), workers=1, store=store).run()

    return run


def libfuzzer(harness: Harness, inputs: Path) -> Callable[[], None]:
    if not shutil.which("clang"):
        raise Unavailable(NEEDS_CLANG)
    try:
        program = harness.build("libfuzzer", ["clang", "-fsanitize=fuzzer"])
    except Unavailable as reason:
        raise Unavailable(f"{NEEDS_CLANG} ({reason})") from None
    return lambda: run_tool([program, "-runs=0", inputs])


def afl(harness: Harness, inputs: Path, work: Path) -> Callable[[], None]:
    compiler, showmap, variables = afl_tools(work)
    environment = {**os.environ, **variables}
    try:
        program = harness.build("afl", [compiler, "-fsanitize=fuzzer"], environment)
    except Unavailable as reason:
        raise Unavailable(f"{NEEDS_AFL} clang ({reason})") from None

    def run() -> None:
        maps = harness.directory / "afl-maps"
        shutil.rmtree(maps, ignore_errors=True)
        maps.mkdir()
        run_tool([showmap, "-q", "-i", inputs, "-o", maps, "--", program], variables)

    return run


def afl_tools(work: Path) -> tuple[str, str, dict[str, str]]:
    """AFL++'s compiler, the program that runs inputs, and variables for both."""
    quiet = {"AFL_QUIET": "1", "AFL_SKIP_CPUFREQ": "1", "AFL_NO_AFFINITY": "1"}
    if shutil.which("afl-clang-fast") and shutil.which("afl-showmap"):
        return "afl-clang-fast", "afl-showmap", quiet
    place = work / "afl"
    if not (place / "usr" / "bin" / "afl-showmap").exists():
        if not shutil.which("apt-get") or not shutil.which("dpkg"):
            raise Unavailable(NEEDS_AFL)
        place.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "-q", "download", "afl++"], cwd=place, capture_output=True)
        for package in place.glob("afl++_*.deb"):
            subprocess.run(["dpkg", "-x", str(package), str(place)], capture_output=True)
        if not (place / "usr" / "bin" / "afl-showmap").exists():
            raise Unavailable(NEEDS_AFL)
    tools = place / "usr" / "bin"
    path = {"AFL_PATH": str(place / "usr" / "lib" / "afl")}
    return str(tools / "afl-clang-fast"), str(tools / "afl-showmap"), quiet | path


def harness_figures(work: Path, *, quick: bool) -> dict[str, object]:
    """Measure all ways in turns, print the table, and return the figures."""
    harness = find_harness(work, quick=quick)
    inputs = harness.write_tests(1000 if quick else 3000)
    progress(f"{harness.title}: builds")
    ways: dict[str, Callable[[], None]] = {
        "bare, called from Python": bare(harness),
        "in the process, gcc": in_process(harness, "gcc"),
        "persistent, gcc": persistent(harness),
        "campaign, in the process": campaign(harness, within=True),
        "campaign, persistent": campaign(harness, within=False),
    }
    missing: dict[str, str] = {}
    makers: dict[str, Callable[[], Callable[[], None]]] = {
        "in the process, clang": lambda: in_process(harness, "clang"),
        "libFuzzer, no mutation": lambda: libfuzzer(harness, inputs),
        "AFL++ persistent, no mutation": lambda: afl(harness, inputs, work),
    }
    for name, maker in makers.items():
        try:
            if not shutil.which("clang"):
                raise Unavailable(NEEDS_CLANG)
            ways[name] = maker()
        except Unavailable as reason:
            missing[name] = f"not measured: {reason}"
    rates = measured_rates(ways, harness, turns=2 if quick else 5, missing=missing)
    print(f"harness: {harness.title}")
    print(
        f"tests: {len(harness.tests):,}, {statistics.mean(map(len, harness.tests)):,.0f} bytes each"
    )
    base = rates["bare, called from Python"]
    print_table(
        ["way", "tests per CPU s", "against bare"],
        [(name, f"{rate:,.0f}", f"{rate / base:.2f}") for name, rate in rates.items()]
        + [(name, reason, "-") for name, reason in missing.items()],
    )
    print()

    def against(ours: str, other: str) -> object:
        return round(rates[ours] / rates[other], 2) if other in rates else missing[other]

    return {
        "harness": harness.title,
        "inprocess_vs_bare": against("in the process, gcc", "bare, called from Python"),
        "vs_libfuzzer_execs": against("in the process, gcc", "libFuzzer, no mutation"),
        "vs_afl_execs": against("in the process, gcc", "AFL++ persistent, no mutation"),
        "persistent_vs_libfuzzer_execs": against("persistent, gcc", "libFuzzer, no mutation"),
        "persistent_vs_afl_execs": against("persistent, gcc", "AFL++ persistent, no mutation"),
        "generator_vs_libfuzzer_execs": against(
            "campaign, in the process", "libFuzzer, no mutation"
        ),
        "tests_per_cpu_s": {name: round(rate) for name, rate in rates.items()} | missing,
    }


def measured_rates(
    ways: dict[str, Callable[[], None]], harness: Harness, turns: int, missing: dict[str, str]
) -> dict[str, float]:
    """Tests per CPU second of each way, the median of the turns; the first turn warms up."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(turns + 1):
        progress(f"{harness.title}: turn {turn} of {turns}")
        for name, run in ways.items():
            if name in missing:
                continue
            start = cpu_seconds()
            try:
                run()
            except Unavailable as reason:
                missing[name] = f"not measured: {reason}"
                continue
            if turn:
                taken[name].append(cpu_seconds() - start)
    tests = len(harness.tests)
    return {
        name: tests / statistics.median(seconds)
        for name, seconds in taken.items()
        if seconds and name not in missing
    }
