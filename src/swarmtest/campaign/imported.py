"""Coverage that other tools measured, as a campaign in the store.

Such a campaign has no features: it says what tests reach, not why. Contexts of a coverage.py file
and test names of an LCOV file are tests; the name of each is kept as the test's origin.

Of Python source, the lines and branches are those that weaving finds, hit or not: the same targets
as in campaigns of our own. Of anything else they are what the file lists.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from swarmtest.campaign.measured import Measured, read_measured
from swarmtest.errors import UserError
from swarmtest.instrument.arcs import arc_content, arc_name, arc_of
from swarmtest.instrument.interchange import Arc
from swarmtest.instrument.interchange.formats import is_python
from swarmtest.instrument.interchange.summary import number_of
from swarmtest.instrument.scope import project_root, shown_path
from swarmtest.instrument.syntax import logical_lines
from swarmtest.instrument.versions import text_of
from swarmtest.instrument.weave import weave
from swarmtest.store import CampaignRecord, Store, TrialRecord
from swarmtest.targets import Source, Target, content_hash, pack_hits


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
