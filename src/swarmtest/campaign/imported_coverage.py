"""Import coverage that other tools measured, as a campaign in the store.

Such a campaign has no features: it says what tests reach, not why. Each context of a coverage.py
file and each test name of an LCOV file is a test; its name is kept as the trial's origin.

For Python source, the lines and branches are those that weaving finds, hit or not: the same targets
as in campaigns of our own. For any other source they are those that the file lists.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Source, Target, content_hash, pack_hits
from swarmtest.coverage.interchange.cobertura import read_cobertura
from swarmtest.coverage.interchange.coveragepy import read_coverage_data
from swarmtest.coverage.interchange.formats import (
    Arc,
    FileCoverage,
    TestCoverage,
    is_python,
    number_of,
)
from swarmtest.coverage.interchange.lcov import read_lcov, read_lcov_tests
from swarmtest.coverage.kinds import KINDS
from swarmtest.coverage.scope import project_root, shown_path, text_of
from swarmtest.coverage.weaving.arcs import arc_content, arc_name, arc_of
from swarmtest.coverage.weaving.syntax import logical_lines
from swarmtest.coverage.weaving.weaver import weave
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, TrialRecord


@dataclass
class MeasuredCoverage:
    """The contents of a coverage file in any format.

    Other tools' formats have `files` and `tests`; our own JSON has `targets` and their `hits`.
    """

    files: list[FileCoverage] = field(default_factory=list)
    """What can be hit; empty when the format lists only what was hit."""
    tests: list[TestCoverage] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    hits: dict[str, list[Target]] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    """Where the files are, as far as the format says."""

    def paths(self) -> list[str]:
        """Return the files that occur."""
        paths = {file.path for file in self.files} | {path for t in self.tests for path in t.files}
        return sorted(paths | {target.file for target in self.targets if target.file})

    def kinds(self) -> list[str]:
        """Return the kinds of coverage that were measured."""
        if self.targets:
            present = {target.kind for target in self.targets}
            return [kind for kind in KINDS if kind in present]
        branches = any(file.branches for file in self.files) or any(
            arcs for test in self.tests for _, arcs in test.files.values()
        )
        return ["line", "branch"] if branches else ["line"]


def read_measured(file: Path) -> MeasuredCoverage:
    """Read a file in the format of its suffix; other suffixes are coverage.py data files."""
    suffix = file.suffix.lower()
    if suffix == ".json":
        return _read_own_format(_bytes(file), file)
    if suffix == ".xml":
        files = read_cobertura(_bytes(file), str(file))
        return MeasuredCoverage(files, [_as_test(files)])
    if suffix in (".lcov", ".info"):
        text = _bytes(file).decode(errors="replace")
        return MeasuredCoverage(read_lcov(text, str(file)), read_lcov_tests(text, str(file)))
    return MeasuredCoverage(tests=read_coverage_data(file))


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


def _read_own_format(data: bytes, file: Path) -> MeasuredCoverage:
    """Read what `Tally.to_json` wrote. Without tests, everything that was hit is one test."""
    try:
        document = json.loads(data)
        entries = document["targets"]
        targets = [_target(entry) for entry in entries]
        hits = {name: [targets[n] for n in numbers] for name, numbers in document["tests"].items()}
        counts = [entry["tests"] for entry in entries]
        outside = [t for t, entry in zip(targets, entries, strict=True) if entry["at_import"]]
        places = {entry["file"]: entry["path"] for entry in document["files"]}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise UserError(f"{file}: not what `swarmtest coverage -o` writes as JSON") from None
    if not hits:
        hits["all tests"] = [t for t, count in zip(targets, counts, strict=True) if count]
    if outside:
        hits[""] = outside
    return MeasuredCoverage(targets=targets, hits=hits, places=places)


def _target(entry: dict[str, Any]) -> Target:
    return Target(
        str(entry["kind"]),
        str(entry["name"]),
        str(entry["file"]),
        int(entry["line"]),
        str(entry["function"]),
        str(entry["content"]),
        str(entry["source"]),
        str(entry.get("detail", "")),
    )


def import_coverage(store: Store, file: Path, name: str) -> tuple[int, int]:
    """Store a file's tests as a campaign; return its number and how many tests it has."""
    measured = read_measured(file)
    if not measured.paths() and not measured.hits:
        raise UserError(f"{file} holds no coverage")
    campaign = store.add_campaign(
        CampaignRecord(
            subject=name,
            strategy="imported",
            seed=0,
            space={"dimensions": [], "constraints": []},
            options={
                "subject": None,
                "budget": {},
                "coverage": {"kinds": measured.kinds(), "from": str(file)},
            },
            status="finished",
            created=time.time(),
        )
    )
    packed = _keep_targets(store, campaign, measured)
    if len(packed) > 1 and "" in packed:  # what was executed in no context: imports
        store.update_campaign(campaign, outside=packed.pop(""))
    rows = [
        TrialRecord(number, b"", origin=name, hits=hits)
        for number, (name, hits) in enumerate(packed.items())
    ]
    store.record(campaign, rows)
    return campaign, len(rows)


def _keep_targets(store: Store, campaign: int, measured: MeasuredCoverage) -> dict[str, bytes]:
    """Store files and their targets; return the packed hits of each test, by its name."""
    files = {path: _file_targets(path, measured) for path in measured.paths()}
    store.add_sources(campaign, [file.source for file in files.values()])
    store.target_ids([target for file in files.values() for target in file.targets()])
    hit_by = {
        test.name: [
            target
            for path, (lines, arcs) in test.files.items()
            for target in files[path].hit(lines, arcs)
        ]
        for test in measured.tests
    }
    for name, targets in measured.hits.items():
        hit_by[name] = [files[t.file].own(t) if t.file else t for t in targets]
    return {name: pack_hits(store.target_ids(targets)) for name, targets in hit_by.items()}


@dataclass
class _FileTargets:
    """The targets of a file."""

    source: Source
    lines: dict[int, Target] = field(default_factory=dict)
    branches: dict[Arc, Target] = field(default_factory=dict)
    others: list[Target] = field(default_factory=list)
    starts: Mapping[int, int] = field(default_factory=dict)
    """The first line of the statement that a line belongs to, by line."""
    unnamed: Mapping[frozenset[Arc], list[Arc]] = field(default_factory=dict)
    """For branches of a line that the file only numbers: the same number of arcs that it does not
    name, which must be those branches."""

    def targets(self) -> list[Target]:
        """Return all targets."""
        return [*self.lines.values(), *self.branches.values(), *self.others]

    def hit(self, lines: Iterable[int], arcs: frozenset[Arc]) -> list[Target]:
        """Return the targets among what a test hit; other tools report every step as an arc.

        If a file only counts the branches that were taken, they are those that lead to lines that
        were hit, provided that there are equally many.
        """
        reached = {self.starts.get(line, line) for line in lines}
        taken = {(self._start(line), self._start(to)) for line, to in arcs}
        for numbered, arcs_of_line in self.unnamed.items():
            count = len(numbered & arcs)
            possible = (
                arcs_of_line
                if count == len(arcs_of_line)
                else [arc for arc in arcs_of_line if arc[1] in reached]
            )
            if count == len(possible):
                taken.update(possible)
        return [
            *(self.lines[line] for line in sorted(reached & self.lines.keys())),
            *(self.branches[arc] for arc in sorted(taken & self.branches.keys())),
        ]

    def _start(self, line: int) -> int:
        return self.starts.get(line, line) if line > 0 else -self.starts.get(-line, -line)

    def own(self, target: Target) -> Target:
        """Return a target from the file as a target of this version of the source."""
        return target._replace(source=self.source.id)


def _file_targets(path: str, measured: MeasuredCoverage) -> _FileTargets:
    source = _source(path, measured.places.get(path, ""))
    if measured.targets:
        return _targets_in_own_format(path, source, measured.targets)
    file = _FileTargets(source)
    if not (is_python(path) and source.text and _weave(file, measured.kinds())):
        _take_listed(file, path, measured)
    listed = [arc for entry in measured.files if entry.path == path for arc in entry.branches]
    file.unnamed = _unnamed(file, listed)
    return file


def _targets_in_own_format(path: str, source: Source, targets: Iterable[Target]) -> _FileTargets:
    """Return the targets that are listed for a file, without its text if that has changed."""
    listed = [target for target in targets if target.file == path]
    version = Source(path, source.text, source.place)
    if version.id not in {target.source for target in listed}:
        version = Source(path, "", source.place)
    file = _FileTargets(version)
    file.others = [file.own(target) for target in listed]
    return file


def _source(path: str, recorded_path: str) -> Source:
    file = Path(recorded_path or path)
    if not file.exists():
        file = project_root() / path
    try:
        text = text_of(file, path)
    except OSError:
        return Source(path, "", recorded_path)
    return Source(shown_path(str(file)), text, str(file.resolve()))


def _weave(file: _FileTargets, kinds: Iterable[str]) -> bool:
    """Find the lines and branches of Python source; return False if it is not valid Python."""
    source = file.source
    try:
        plan = weave(source.text, source.path, "", tuple(kinds))[1]
        file.starts = logical_lines(source.text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    for target in plan.targets_in(source):
        if target.kind == "line":
            file.lines[target.line] = target
        else:
            file.branches[arc_of(target)] = target
    return True


def _take_listed(file: _FileTargets, path: str, measured: MeasuredCoverage) -> None:
    """Take the lines and branches that the coverage file lists.

    The arcs of tests are left out: they may be any steps, not only branches.
    """
    source, text = file.source, file.source.text.split("\n")
    entries = [entry for entry in measured.files if entry.path == path]
    lines = {line for entry in entries for line in entry.lines}
    lines |= {line for t in measured.tests if path in t.files for line in t.files[path][0]}

    for line in sorted(lines):
        content = content_hash(text[line - 1] if line <= len(text) else "")
        file.lines[line] = source.target("line", f"{line}", line, content=content)
    for line, to in sorted({arc for entry in entries for arc in entry.branches}):
        if number_of(to) is None:
            content = arc_content(text, line, to)
            name = arc_name(line, to)
            file.branches[line, to] = source.target("branch", name, line, content=content)


def _unnamed(file: _FileTargets, listed: Iterable[Arc]) -> dict[frozenset[Arc], list[Arc]]:
    """Match branches that a file only numbers, without saying where they go, with named arcs.

    The branches of a line match if it has exactly as many arcs that the file does not name.
    """
    numbered: dict[int, set[Arc]] = {}
    named = set()
    for arc in listed:
        if number_of(arc[1]) is None:
            named.add(arc)
        else:
            numbered.setdefault(arc[0], set()).add(arc)
    matched = {}
    for line, arcs in numbered.items():
        left = [arc for arc in file.branches if arc[0] == line and arc not in named]
        if len(left) == len(arcs):
            matched[frozenset(arcs)] = left
    return matched
