"""Races that were in real packages: found, replayed, and gone after the fix.

    python benchmarks/race_real.py [--quick]

Each program in `race_real_programs/` uses a package as its users do; its docstring names where the
race was reported or fixed. Both releases come from the package index when this is run. The old one
is raced by `swarmtest race` with its defaults, and the fault that is saved has to fail again as a
test of pytest. The new one has to pass that test, and none of as many runs may show that fault.
Other races of redis are in both releases, and do not count. In a quick run there are fewer runs,
and three packages. The last line is one JSON object.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from harness import arguments, cannot_measure, cpu_seconds, print_figures, print_table, progress

from swarmtest import open_store

PROGRAMS = Path(__file__).with_name("race_real_programs")
STORE, SAVED = "races.db", "test_race.py"
ENDED = (0, 1)  # the exit status of a campaign that ran to its end


@dataclass(frozen=True)
class Case:
    """A race of a package, and the releases before and after its fix."""

    program: str
    package: str
    old: str
    new: str
    cover: str
    """What gets probes, besides the program."""
    place: str
    """Where the race shows: a part of the fault's signature."""


CASES = (
    Case("pyee_once", "pyee", "8.0.1", "8.1.0", "pyee", "remove_listener"),
    Case("cachetools_cached", "cachetools", "4.1.1", "4.2.0", "cachetools", "two connections"),
    Case("apipkg_first_access", "apipkg", "1.5", "2.0.1", "apipkg", "__makeattr"),
    Case("multimethod_dispatch", "multimethod", "1.9", "1.9.1", "multimethod", "changed size"),
    Case("filelock_shared", "filelock", "3.10.7", "3.11.0", "filelock", "state['total'] == 2"),
    Case("portalocker_count", "portalocker", "4.1.0", "4.2.0", "portalocker", "one acquire is"),
    Case("portalocker_slots", "portalocker", "4.1.0", "4.2.0", "portalocker", "slots taken"),
    Case(
        "redis_disconnect",
        "redis",
        "4.5.4",
        "4.5.5",
        "redis.connection",
        "[AbstractConnection.disconnect: ",
    ),
)
QUICK = 3


@dataclass(frozen=True)
class Raced:
    """What races of one release showed."""

    faults: tuple[str, ...]
    """The signatures of its faults."""
    cpu: float


def fetched(package: str, version: str, place: Path) -> Path:
    """A directory with a release in it."""
    directory = place / f"{package} {version}"
    if directory.exists():
        return directory
    directory.mkdir()
    words = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run(
        [*words, "-d", directory, f"{package}=={version}"], capture_output=True, text=True
    )
    wheels = list(directory.glob("*.whl"))
    if done.returncode or not wheels:
        last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        cannot_measure(f"{package} {version} could not be fetched from a package index: {last}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(directory)
    return directory


def raced(case: Case, directory: Path, tests: int, *words: str) -> Raced:
    """The faults that `swarmtest race` finds in one release."""
    (directory / STORE).unlink(missing_ok=True)
    command = [sys.executable, "-m", "swarmtest", "race", f"{case.program}.py::program"]
    command += ["--cover", case.cover, "--cover", case.program, "-n", str(tests), "--quiet"]
    begin = cpu_seconds()
    done = subprocess.run(
        [*command, "--store", STORE, *words], cwd=directory, capture_output=True, text=True
    )
    if done.returncode not in ENDED or not (directory / STORE).exists():
        sys.exit(f"swarmtest race failed on {directory.name}:\n{done.stderr}")
    with open_store(str(directory / STORE), must_exist=True, read_only=True) as kept:
        faults = tuple(fault.signature for fault in kept.faults(1))
    return Raced(faults, cpu_seconds() - begin)


def outcome(directory: Path) -> str:
    """Whether the saved test fails or passes."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", SAVED]
    status = subprocess.run(words, cwd=directory, capture_output=True).returncode
    return {0: "passes", 1: "fails"}.get(status, f"status {status}")


def main() -> None:
    """Fetch, race, print."""
    options = arguments(__doc__ or "")
    tests = 300 if options.quick else 1_000
    cases = CASES[:QUICK] if options.quick else CASES
    rows, found = [], 0
    begin = cpu_seconds()
    with tempfile.TemporaryDirectory() as made:
        for case in cases:
            progress(f"{case.package} {case.old}, {case.new}")
            old, new = (fetched(case.package, each, Path(made)) for each in (case.old, case.new))
            for place in (old, new):
                shutil.copy(PROGRAMS / f"{case.program}.py", place)
            before = raced(case, old, tests, "--save", SAVED)
            shown = any(case.place in fault for fault in before.faults)
            replayed = after = "-"
            if shown and (old / SAVED).exists():
                replayed = outcome(old)
                shutil.copy(old / SAVED, new)
                after = outcome(new)
            fixed = raced(case, new, tests, "--no-reduce")
            gone = not any(case.place in fault for fault in fixed.faults)
            good = shown and replayed == "fails" and after == "passes" and gone
            found += good
            rows.append(
                [
                    case.program,
                    f"{case.package} {case.old}",
                    shown,
                    replayed,
                    case.new,
                    after,
                    gone,
                    f"{before.cpu + fixed.cpu:.1f}",
                ]
            )
    head = ["race", "release", "found", "its test", "fixed in", "its test", "gone", "CPU s"]
    print_table(head, rows)
    print_figures(
        {
            "real_found": found,
            "real_total": len(cases),
            "runs": tests,
            "cpu_seconds": round(cpu_seconds() - begin, 1),
        }
    )


if __name__ == "__main__":
    main()
