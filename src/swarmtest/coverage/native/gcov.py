"""Coverage with gcov, for programs built with `--coverage`: one call of `gcov` per test.

Every process has its own directory that mirrors the build tree: `GCOV_PREFIX` makes the program
write its `.gcda` files there, beside links to the build's `.gcno` files, so that parallel tests do
not interfere and the build tree stays clean. After a test gcov reads the `.gcda` files of watched
sources, and all of them are removed. A program that is killed writes none: its coverage is missing,
which is not the same as empty.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Hits
from swarmtest.coverage.native.collector import Collected, LineNumbers
from swarmtest.processes.commands import ProcessEnd

# The `.gcno` files that gcc writes beside its objects.


def locate_notes(counters: str, objects: Path | None) -> Path:
    """Return the `.gcno` file for a `.gcda` file, which is named as the program names it.

    `objects` is where to look if the build tree was moved after the program was built.
    """
    built = Path(counters).with_suffix(".gcno")
    if objects is None:
        if built.exists():
            return built
        raise UserError(
            f"{built} is missing: build with --coverage on this machine and keep the .gcno files; "
            "if the build tree was moved, say objects=DIRECTORY"
        )
    notes = max(
        objects.rglob(built.name),
        key=lambda path: _common_tail(path, built),
        default=None,
    )
    if notes is None:
        raise UserError(
            f"no {built.name} below {objects}, which the program's {counters} needs: objects= "
            "has to name the directory that holds the build's .gcno files"
        )
    return notes.resolve()


def _common_tail(path: Path, other: Path) -> int:
    """Return how many of their last parts two paths share."""
    pairs = zip(reversed(path.parts), reversed(other.parts), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def version_text(notes: Path) -> str:
    """Return the version of gcc that wrote a `.gcno` file, such as ``12.2``."""
    major, minor = _version(notes)
    return f"{major}.{minor}"


def major_version(notes: Path) -> int:
    """Return the major version of gcc that wrote a `.gcno` file."""
    return _version(notes)[0]


def _version(notes: Path) -> tuple[int, int]:
    head = notes.read_bytes()[:8]
    if head[:4] == b"oncg":  # written on a little-endian machine
        head = head[3::-1] + head[:3:-1]
    letter, tens, minor = (chr(byte) for byte in head[4:7].ljust(3))
    if head[:4] != b"gcno" or not (tens.isdigit() and minor.isdigit()):
        raise UserError(f"{notes} is not a .gcno file of gcc: rebuild with gcc --coverage")
    if letter.isdigit():
        raise UserError(
            f"{notes} was written by clang, whose coverage gcov cannot read: build with gcc "
            "--coverage, or for clang with `swarmtest cc clang`"
        )
    return (ord(letter) - ord("A")) * 10 + int(tens), int(minor)


# Collecting hits.


def has_counters(program: str) -> bool:
    """Return whether a program was built with `--coverage`: it holds the names of its files.

    >>> has_counters("/bin/sh")
    False
    """
    return b".gcda\0" in Path(program).read_bytes()


class GcovCoverage:
    """Collects hits with gcov, in its own directory."""

    extra_memory = 0

    def __init__(
        self, program: str, lines: LineNumbers, directory: Path, objects: Path | None = None
    ) -> None:
        self._program = program
        self._lines = lines
        self._directory = directory
        self._objects = objects
        self._is_watched: dict[str, bool] = {}
        self._numbers: dict[str, dict[int, int]] = {}
        self._gcov = ""

    @property
    def environment(self) -> dict[str, str]:
        """The variables that make the program write into our directory."""
        return {"GCOV_PREFIX": str(self._directory), "GCOV_PREFIX_STRIP": "0"}

    def collect(self, ended: ProcessEnd) -> Collected:
        """Return the lines that the program which has just ended executed."""
        written = self._written()
        if not written:
            return Collected(None, _why_missing(ended))
        try:
            self._learn([path for path in written if path not in self._is_watched])
            watched = [path for path in written if self._is_watched[path]]
            hits = Hits.of(self._lines.catalogue, self._executed(watched))
        except _Unreadable as error:
            if ended.signal:
                return Collected(None, f"killed by signal {ended.signal} as it wrote coverage")
            raise UserError(f"gcov cannot read the coverage of {self._program}: {error}") from None
        finally:
            for path in written:
                os.unlink(path)
        partial = f"partial: {_why_missing(ended)}" if ended.signal else ""
        return Collected(hits, partial)

    def _written(self) -> list[str]:
        return [
            os.path.join(folder, name)
            for folder, _, names in os.walk(self._directory)
            for name in names
            if name.endswith(".gcda")
        ]

    def _learn(self, counters: Sequence[str]) -> None:
        """Link each file's notes beside it, and number all lines of the watched sources."""
        for path in counters:
            notes = locate_notes(path.removeprefix(str(self._directory)), self._objects)
            link = Path(path).with_suffix(".gcno")
            if not link.is_symlink():
                link.symlink_to(notes)
            self._gcov = self._gcov or _gcov_for(notes)
            self._is_watched[path] = self._number_all(str(link))
        if counters and not any(self._is_watched.values()):
            raise UserError(
                f"no source file of {self._program} matches sources={self._lines.wanted}"
            )

    def _number_all(self, notes: str) -> bool:
        """Give numbers to all watched lines in a `.gcno` file; return whether there are any."""
        report = self._report([notes])
        for path, lines in report:
            numbers = self._numbers.setdefault(path, {})
            for line in lines:
                function = line.get("function_name", "")
                number = self._lines.number(path, line["line_number"], function)
                assert number is not None, "the report leaves out what does not matter"
                numbers[line["line_number"]] = number
        return bool(report)

    def _executed(self, counters: Sequence[str]) -> Iterator[int]:
        for path, lines in self._report(counters):
            numbers = self._numbers[path]
            yield from [numbers[line["line_number"]] for line in lines if line["count"]]

    def _report(self, files: Sequence[str]) -> list[tuple[str, list[dict[str, Any]]]]:
        """Return the watched sources, each with the lines that gcov knows and their counts."""
        if not files:
            return []
        done = subprocess.run(
            [self._gcov, "--json-format", "--stdout", "--demangled-names", *files],
            cwd=self._directory,
            env={**os.environ, "LC_ALL": "C"},
            capture_output=True,
        )
        complaint = done.stderr.decode(errors="replace").strip()
        if "stamp mismatch" in complaint:
            raise UserError(
                f"{self._program} and its .gcno files are of different builds "
                f"({complaint.splitlines()[0].rpartition('/')[2]}): rebuild it"
            )
        try:
            documents = [json.loads(text) for text in done.stdout.splitlines() if text]
        except ValueError:
            documents = []
        if done.returncode or not documents:
            raise _Unreadable(complaint or "it printed nothing")
        return [
            (path, file["lines"])
            for document in documents
            for file in document["files"]
            if self._lines.matters(
                path := os.path.join(document["current_working_directory"], file["file"])
            )
        ]

    def close(self) -> None:
        """Remove the directory."""
        shutil.rmtree(self._directory, ignore_errors=True)


class _Unreadable(Exception):
    """gcov cannot read a file; the message is gcov's."""


def _why_missing(ended: ProcessEnd) -> str:
    if ended.timed_out:
        return "killed at its time limit, before it wrote coverage"
    if ended.signal:
        return f"killed by signal {ended.signal}, before it wrote coverage"
    return f"it ended (exit status {ended.status >> 8}) without writing coverage, as by _exit"


@cache
def _gcov_version(gcov: str) -> str:
    if not shutil.which(gcov):
        return ""
    first = subprocess.run([gcov, "--version"], capture_output=True, text=True).stdout
    version = re.search(r"\d+\.\d+(\.\d+)?$", first.partition("\n")[0])
    return version[0] if version else ""


def _gcov_for(notes: Path) -> str:
    """Return the gcov that can read a `.gcno` file."""
    major = major_version(notes)
    candidates = ["gcov", f"gcov-{major}"]
    for gcov in candidates:
        if _gcov_version(gcov).partition(".")[0] == str(major):
            return gcov
    version = _gcov_version("gcov")
    if not version:
        raise UserError("gcov is not on the PATH: install gcc, which brings it")
    raise UserError(
        f"{notes} was written by gcc {version_text(notes)}, but gcov is {version}: install "
        f"gcov-{major}, or build with the gcc that gcov belongs to"
    )
