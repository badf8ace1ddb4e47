"""Run all tests, each part of them in a pytest of its own: `make unit`.

    python tools/run_tests.py [--workers N] [PATH ...] [-- OPTION ...]

Tests fork, and what a fork costs grows with the memory of the process. A pytest that has run all
tests before, and has imported what they need, holds 500 MB. So the test files are cut into parts,
and each part gets a new pytest. OPTION is handed to all of them.
"""

from __future__ import annotations

import argparse
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LINES = 1600
"""Lines of test code in a part: a pytest takes a second to start, so parts must not be tiny."""
SLOW = ("benchmarks", "docs", "examples")
"""Directories whose tests take longest. They begin first, so that none is alone at the end."""
NO_TESTS = 5
"""The exit status of a pytest that has found no test."""
COUNTED = re.compile(r"(\d+) (failed|passed|skipped|xfailed|xpassed|warnings?|errors?)\b")
CLOSING = re.compile(r" in \d+\.\d+s\b")
NOTE = re.compile(r"^(?:SKIPPED|FAILED|ERROR|XFAIL|XPASS) .*", re.MULTILINE)
ORDER = ("failed", "passed", "skipped", "xfailed", "xpassed", "warning", "error")


@dataclass(frozen=True)
class Part:
    """Test files of one directory that are run together."""

    files: tuple[Path, ...]
    lines: int

    @property
    def name(self) -> str:
        """What is shown: the file, or the directory with its first and last file."""
        first, last = self.files[0], self.files[-1]
        return str(first) if first == last else f"{first} to {last.name}"


@dataclass
class Run:
    """A pytest that runs a part, and the file that gets its output."""

    part: Part
    process: subprocess.Popen[bytes]
    output: Path
    started: float = field(default_factory=time.monotonic)
    cpu_s: float = 0.0

    def ended(self) -> bool:
        """Tell whether it has ended; if so, note its CPU time with that of all that it started."""
        before = cpu_s_of_children()
        if self.process.poll() is None:
            return False
        self.cpu_s = cpu_s_of_children() - before
        return True


def cpu_s_of_children() -> float:
    """Return the CPU time of all child processes that have ended, and of their own children."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def parts_of(paths: Sequence[Path]) -> list[Part]:
    """Return the parts of some files and directories, those that take longest first."""
    files = [
        file
        for path in paths
        for file in (sorted(path.rglob("test_*.py")) if path.is_dir() else [path])
    ]
    parts = [part for place in dict.fromkeys(f.parent for f in files) for part in cut(files, place)]
    return sorted(parts, key=lambda part: (part.files[0].parent.name not in SLOW, -part.lines))


def cut(files: Sequence[Path], directory: Path) -> Iterator[Part]:
    """Cut the files of a directory into parts of about equal size; slow ones are run alone."""
    held: list[Path] = []
    lines = 0
    for file in files:
        if file.parent != directory:
            continue
        more = len(file.read_bytes().splitlines())
        if held and (lines + more > LINES or directory.name in SLOW):
            yield Part(tuple(held), lines)
            held, lines = [], 0
        held.append(file)
        lines += more
    yield Part(tuple(held), lines)


def begin(part: Part, output: Path, options: Sequence[str]) -> Run:
    """Start a pytest that runs a part and writes to a file."""
    # Several at a time would write the same cache.
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    with output.open("wb") as file:
        process = subprocess.Popen(
            [*words, *map(str, part.files)], stdout=file, stderr=subprocess.STDOUT
        )
    return Run(part, process, output)


def counts_of(text: str) -> Counter[str]:
    """Return how many tests ended how, from the closing line of a pytest.

    Python may print more behind it, when the process ends.

    >>> dict(counts_of("....\\n1 failed, 3 passed, 2 errors in 0.12s\\n"))
    {'failed': 1, 'passed': 3, 'error': 2}
    """
    closing = next((line for line in reversed(text.splitlines()) if CLOSING.search(line)), "")
    return Counter({kind.rstrip("s"): int(number) for number, kind in COUNTED.findall(closing)})


def in_words(counts: Counter[str]) -> str:
    """Return counts as pytest writes them.

    >>> in_words(Counter(passed=3, error=2))
    '3 passed, 2 errors'
    """
    plural = {"warning", "error"}
    kinds = [kind for kind in ORDER if counts[kind]]
    return ", ".join(
        f"{counts[kind]} {kind}{'s' * (kind in plural and counts[kind] > 1)}" for kind in kinds
    )


class Report:
    """What the parts have printed, added up."""

    def __init__(self, parts: int) -> None:
        self.parts = parts
        self.ended = 0
        self.counts = Counter[str]()
        self.notes: list[str] = []
        self.failed = False
        self.begun = time.monotonic()

    def add(self, run: Run) -> None:
        """Add a part that has ended, and print a line about it; if it failed, all that it said."""
        text = run.output.read_text(errors="replace")
        counts = counts_of(text)
        self.counts += counts
        self.ended += 1
        # A test that ends its process with status 0 has hidden the others: there are no counts.
        status = run.process.returncode
        bad = status != NO_TESTS and (status != 0 or not counts)
        self.failed = self.failed or bad
        said = in_words(counts) or (f"no result, exit status {status}" if bad else "no tests")
        seconds = time.monotonic() - run.started
        place = f"[{self.ended:{len(str(self.parts))}}/{self.parts}]"
        print(
            f"{place} {run.part.name}: {said} in {seconds:.0f} s ({run.cpu_s:.0f} s of CPU)",
            flush=True,
        )
        if bad:
            print(text, flush=True)
        self.notes += NOTE.findall(text)

    def end(self) -> int:
        """Print what pytest prints at the end, and return the exit status."""
        for note in sorted(self.notes, key=lambda note: note.startswith(("FAILED", "ERROR"))):
            print(note)
        seconds = time.monotonic() - self.begun
        print(f"==== {in_words(self.counts) or 'no tests ran'} in {seconds:.2f}s ====")
        return int(self.failed or not self.counts["passed"])


def run_all(parts: Sequence[Part], workers: int, options: Sequence[str]) -> int:
    """Run the parts, some at a time; return the exit status."""
    report = Report(len(parts))
    waiting = list(enumerate(parts))
    running: list[Run] = []
    with tempfile.TemporaryDirectory() as place:
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    number, part = waiting.pop(0)
                    running.append(begin(part, Path(place, str(number)), options))
                ended = [run for run in running if run.ended()]
                for run in ended:
                    running.remove(run)
                    report.add(run)
                if not ended:
                    time.sleep(0.05)
        finally:
            for run in running:
                run.process.send_signal(signal.SIGINT)  # a pytest then ends what its tests started
            for run in running:
                run.process.wait()
    return report.end()


def main() -> int:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    # Three on two cores: many tests wait for processes that they have started.
    parser.add_argument("--workers", type=int, default=3, metavar="N", help="pytests at a time [3]")
    parser.add_argument("paths", nargs="*", type=Path, default=[Path("tests")], metavar="PATH")
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    given = parser.parse_args(words[:split])
    for path in given.paths:
        if not path.exists():
            parser.error(f"there is no {path}")
    try:
        return run_all(parts_of(given.paths), given.workers, words[split + 1 :])
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
