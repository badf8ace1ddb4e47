"""Coverage that other tools measured, as a campaign in the store.

Such a campaign has no features: it says what tests reach, not why. Contexts of a coverage.py file
and test names of an LCOV file are tests; the name of each is kept as the test's origin.

Of Python source, the lines and branches are those that weaving finds, hit or not: the same targets
as in campaigns of our own. Of anything else they are what the file lists.
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

# -------------------------------------------------------------------------------------------------
# What a file of coverage says, whichever format it is in.


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


# -------------------------------------------------------------------------------------------------


def import_coverage(store: Store, file: Path, name: str) -> tuple[int, int]:
    """Keep a file's tests as a campaign; answers its number, and how many tests it has."""
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


def _keep_targets(store: Store, campaign: int, measured: Measured) -> dict[str, bytes]:
    """Keep files and their targets; answers the hits of each test."""
    known = {path: _known(path, measured) for path in measured.paths()}
    store.add_sources(campaign, [one.source for one in known.values()])
    store.target_ids([target for one in known.values() for target in one.targets()])
    found = {
        test.name: [
            target
            for path, (lines, arcs) in test.files.items()
            for target in known[path].hit(lines, arcs)
        ]
        for test in measured.tests
    }
    for name, told in measured.hits.items():
        found[name] = [known[t.file].own(t) if t.file else t for t in told]
    return {name: pack_hits(store.target_ids(targets)) for name, targets in found.items()}


@dataclass
class _Known:
    """What there is to hit in a file."""

    source: Source
    lines: dict[int, Target] = field(default_factory=dict)
    branches: dict[Arc, Target] = field(default_factory=dict)
    others: list[Target] = field(default_factory=list)
    starts: Mapping[int, int] = field(default_factory=dict)
    """Lines within a statement -> the line where it begins."""
    unnamed: Mapping[frozenset[Arc], list[Arc]] = field(default_factory=dict)
    """Branches of a line that the file only numbers -> as many that it does not name."""

    def targets(self) -> list[Target]:
        """All of them."""
        return [*self.lines.values(), *self.branches.values(), *self.others]

    def hit(self, lines: Iterable[int], arcs: frozenset[Arc]) -> list[Target]:
        """The targets among what a test hit: other tools tell of every step as an arc.

        Of branches that are only counted, those are taken that lead to lines that were hit, if
        there are as many.
        """
        reached = {self.starts.get(line, line) for line in lines}
        taken = {(self._start(line), self._start(to)) for line, to in arcs}
        for numbered, ways in self.unnamed.items():
            count = len(numbered & arcs)
            possible = ways if count == len(ways) else [way for way in ways if way[1] in reached]
            if count == len(possible):
                taken.update(possible)
        return [
            *(self.lines[line] for line in sorted(reached & self.lines.keys())),
            *(self.branches[arc] for arc in sorted(taken & self.branches.keys())),
        ]

    def _start(self, line: int) -> int:
        return self.starts.get(line, line) if line > 0 else -self.starts.get(-line, -line)

    def own(self, target: Target) -> Target:
        """A target that was told of, as one of this version of the file."""
        return target._replace(source=self.source.id)


def _known(path: str, measured: Measured) -> _Known:
    source = _source(path, measured.places.get(path, ""))
    if measured.targets:
        return _told(path, source, measured.targets)
    known = _Known(source)
    if not (is_python(path) and known.source.text and _weave(known, measured.kinds())):
        _list(known, path, measured)
    listed = [arc for file in measured.files if file.path == path for arc in file.branches]
    known.unnamed = _unnamed(known, listed)
    return known


def _told(path: str, source: Source, targets: Iterable[Target]) -> _Known:
    """A file with the targets that are told of; without its text if that is another by now."""
    told = [target for target in targets if target.file == path]
    version = Source(path, source.text, source.place)
    if version.id not in {target.source for target in told}:
        version = Source(path, "", source.place)
    known = _Known(version)
    known.others = [known.own(target) for target in told]
    return known


def _source(path: str, told: str) -> Source:
    place = Path(told or path)
    if not place.exists():
        place = project_root() / path
    try:
        text = text_of(place, path)
    except OSError:
        return Source(path, "", told)
    return Source(shown_path(str(place)), text, str(place.resolve()))


def _weave(known: _Known, kinds: Iterable[str]) -> bool:
    """Find the lines and branches of Python source; False if it is none."""
    source = known.source
    try:
        plan = weave(source.text, source.path, "", tuple(kinds))[1]
        known.starts = logical_lines(source.text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    for target in plan.targets_in(source):
        if target.kind == "line":
            known.lines[target.line] = target
        else:
            known.branches[arc_of(target)] = target
    return True


def _list(known: _Known, path: str, measured: Measured) -> None:
    """Take lines and branches from what the file lists. Bare arcs may be any steps: left out."""
    source, text = known.source, known.source.text.split("\n")
    files = [file for file in measured.files if file.path == path]
    lines = {line for file in files for line in file.lines}
    lines |= {line for t in measured.tests if path in t.files for line in t.files[path][0]}

    for line in sorted(lines):
        content = content_hash(text[line - 1] if line <= len(text) else "")
        known.lines[line] = source.target("line", f"{line}", line, content=content)
    for line, to in sorted({arc for file in files for arc in file.branches}):
        if number_of(to) is None:
            content = arc_content(text, line, to)
            name = arc_name(line, to)
            known.branches[line, to] = source.target("branch", name, line, content=content)


def _unnamed(known: _Known, listed: Iterable[Arc]) -> dict[frozenset[Arc], list[Arc]]:
    """Which branches can only be those that a file numbers without saying where they go."""
    numbered: dict[int, set[Arc]] = {}
    named = set()
    for arc in listed:
        if number_of(arc[1]) is None:
            named.add(arc)
        else:
            numbered.setdefault(arc[0], set()).add(arc)
    found = {}
    for line, arcs in numbered.items():
        left = [arc for arc in known.branches if arc[0] == line and arc not in named]
        if len(left) == len(arcs):
            found[frozenset(arcs)] = left
    return found
