"""What a file of coverage says, whichever format it is in."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from swarmtest.errors import UserError
from swarmtest.instrument.interchange import (
    FileCoverage,
    TestCoverage,
    read_cobertura,
    read_coverage_data,
    read_lcov,
    read_lcov_tests,
)
from swarmtest.instrument.kinds import KINDS
from swarmtest.targets import Target


@dataclass
class Measured:
    """Files and tests as other tools tell of them; in our own format, targets and their hits."""

    files: list[FileCoverage] = field(default_factory=list)
    """What there is to hit; empty when the format has only what was hit."""
    tests: list[TestCoverage] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    hits: dict[str, list[Target]] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    """Where files are, as far as that is told."""

    def paths(self) -> list[str]:
        """The files that are told of."""
        told = {file.path for file in self.files} | {path for t in self.tests for path in t.files}
        return sorted(told | {target.file for target in self.targets if target.file})

    def kinds(self) -> list[str]:
        """The kinds that were watched."""
        if self.targets:
            found = {target.kind for target in self.targets}
            return [kind for kind in KINDS if kind in found]
        branches = any(file.branches for file in self.files) or any(
            arcs for test in self.tests for _, arcs in test.files.values()
        )
        return ["line", "branch"] if branches else ["line"]


def read_measured(file: Path) -> Measured:
    """Read a file in the format that its ending names; coverage.py's own have any."""
    ending = file.suffix.lower()
    if ending == ".json":
        return _own(_bytes(file), file)
    if ending == ".xml":
        files = read_cobertura(_bytes(file), str(file))
        return Measured(files, [_as_test(files)])
    if ending in (".lcov", ".info"):
        text = _bytes(file).decode(errors="replace")
        return Measured(read_lcov(text, str(file)), read_lcov_tests(text, str(file)))
    return Measured(tests=read_coverage_data(file))


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None


def _as_test(files: Iterable[FileCoverage]) -> TestCoverage:
    return TestCoverage(
        "",
        {
            file.path: (
                frozenset(line for line, count in file.lines.items() if count),
                frozenset(arc for arc, count in file.branches.items() if count),
            )
            for file in files
        },
    )


def _own(data: bytes, file: Path) -> Measured:
    """What `Tally.to_json` told. Without tests, everything that was hit is one."""
    try:
        told = json.loads(data)
        targets = [_target(one) for one in told["targets"]]
        hits = {name: [targets[n] for n in numbers] for name, numbers in told["tests"].items()}
        counts = [one["tests"] for one in told["targets"]]
        outside = [t for t, one in zip(targets, told["targets"], strict=True) if one["at_import"]]
        places = {one["file"]: one["path"] for one in told["files"]}
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        raise UserError(f"{file}: not what `swarmtest coverage -o` writes as JSON") from None
    if not hits:
        hits["all tests"] = [t for t, count in zip(targets, counts, strict=True) if count]
    if outside:
        hits[""] = outside
    return Measured(targets=targets, hits=hits, places=places)


def _target(told: dict[str, Any]) -> Target:
    return Target(
        str(told["kind"]),
        str(told["name"]),
        str(told["file"]),
        int(told["line"]),
        str(told["function"]),
        str(told["content"]),
        str(told["source"]),
        str(told.get("detail", "")),
    )
