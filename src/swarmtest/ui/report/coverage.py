"""Coverage in a report: a table of files, listings with hitting fractions, and other targets.

A listing shows the source of a file with the hitting fraction of each line. Targets that have no
line of source (events, paths, predicates) get tables of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from swarmtest.analysis.role_cells import SUPPRESSOR, TRIGGER
from swarmtest.core.formatting import format_percent, plural, words_for
from swarmtest.core.targets import Source, Target, unpack_hits
from swarmtest.coverage.kinds import KINDS, WITH_PROBES
from swarmtest.coverage.scope import is_as_it_was
from swarmtest.roles.roles import MARKS, RoleTable
from swarmtest.roles.study import Study
from swarmtest.roles.views import MOST_ROLES, RoleGroups
from swarmtest.ui.report.figures import csv_text
from swarmtest.ui.report.reproduce import confidence_words
from swarmtest.ui.report.tables import HtmlCell, HtmlTable, number_cell, percent_cell
from swarmtest.ui.terminal.coverage import nothing_watched
from swarmtest.ui.terminal.tables import command_text
from swarmtest.ui.terminal.text import elided, printable, spans

MOST_LINES = 20_000
"""Lines of source in one page; files beyond that are in the table only."""
_MAX_LINE_LENGTH = 300


# Files and their listings.


@dataclass(frozen=True)
class SourceLine:
    """A line of source, and how often it was reached."""

    number: int
    text: str
    state: str = ""
    """``hit``, ``import`` or ``missed``; empty if the line has nothing to reach."""
    hits: int = 0
    share: float = 0.0
    group: int | None = None
    roles: str = ""
    """The roles in short; a ditto mark if they are those of the line before."""


@dataclass(frozen=True)
class SourceListing:
    """A version of a file, with what was reached in it."""

    id: str
    path: str
    campaigns: tuple[int, ...]
    """The campaigns that watched this version."""
    tests: int
    """Tests of these campaigns whose coverage is known."""
    lines: tuple[SourceLine, ...]
    shares: dict[str, tuple[int, int]]
    """For each kind, how many targets were reached, and how many there are."""
    missed: tuple[int, ...]
    places: dict[int, list[list[Any]]]
    """The blocks and branches that begin at each line, as ``[name, hits, group]``."""
    changed: bool
    """Whether the file has changed since."""


@dataclass(frozen=True)
class _WatchedFile:
    source: Source
    campaigns: tuple[int, ...]
    targets: dict[int, Target]
    outside: frozenset[int]


def listings(study: Study, groups: RoleGroups, disk: bool = True) -> list[SourceListing]:
    """Return all watched files, by path.

    `groups` has the hits of lines, blocks and branches. If `disk` is set, the files on this machine
    are read to see whether they have changed. If the files have too many lines together, those with
    the most reached targets keep their lines.
    """
    all_listings = [
        _listing(study, groups, file, f"f{number}", disk)
        for number, file in enumerate(_files(study), 1)
    ]
    with_lines: set[str] = set()
    room = MOST_LINES
    for listing in sorted(
        all_listings, key=lambda listing: -sum(hit for hit, _ in listing.shares.values())
    ):
        if len(listing.lines) <= room:
            with_lines.add(listing.id)
            room -= len(listing.lines)
    return [
        listing if listing.id in with_lines else replace(listing, lines=(), places={})
        for listing in all_listings
    ]


def _files(study: Study) -> list[_WatchedFile]:
    files: dict[str, _WatchedFile] = {}
    for campaign in study.evidence.campaigns:
        record = study.store.campaign(campaign)
        kinds = (record.options.get("coverage") or {}).get("kinds", ["line"])
        outside = frozenset(unpack_hits(record.outside)) if record.outside else frozenset()
        watched: dict[str, dict[int, Target]] = {}
        for id, target in study.store.watched_targets(campaign).items():
            if target.kind in kinds:
                watched.setdefault(target.source, {})[id] = target
        for source in study.store.sources(campaign):
            merged = files.get(source.id, _WatchedFile(source, (), {}, frozenset()))
            files[source.id] = _WatchedFile(
                source,
                (*merged.campaigns, campaign),
                merged.targets | watched.get(source.id, {}),
                merged.outside | outside,
            )
    return sorted(files.values(), key=lambda file: (file.source.path, file.campaigns))


def _listing(
    study: Study, groups: RoleGroups, file: _WatchedFile, id: str, disk: bool
) -> SourceListing:
    evidence = study.evidence
    numbers = [evidence.campaigns.index(campaign) for campaign in file.campaigns]
    tests = int((evidence.hits_known & np.isin(evidence.campaign, numbers)).sum())
    states: dict[int, SourceLine] = {}
    shares: dict[str, tuple[int, int]] = {}
    places: dict[int, list[list[Any]]] = {}
    for number, target in file.targets.items():
        identity = target.kind, target.name, target.source
        hits = groups.hits.get(identity, 0)
        reached = bool(hits) or number in file.outside
        if not reached and target.kind not in WITH_PROBES:
            continue  # a path that another campaign found
        hit, total = shares.get(target.kind, (0, 0))
        shares[target.kind] = (hit + reached, total + 1)
        group = groups.group.get(identity)
        if target.kind == "line":
            state = "hit" if hits else "import" if reached else "missed"
            share = hits / tests if tests else 0.0
            states[target.line] = SourceLine(target.line, "", state, hits, share, group)
        elif target.kind in WITH_PROBES:
            name = f"{target.kind} {target.name.removeprefix(f'{target.file}:')}"
            entry = [name, hits, -1 if group is None else group]
            places.setdefault(target.line, []).append(entry)
    missed = tuple(sorted(n for n, line in states.items() if line.state == "missed"))
    return SourceListing(
        id,
        file.source.path,
        file.campaigns,
        tests,
        tuple(_lines(file.source.text, states, groups)),
        shares,
        missed,
        places,
        disk and not is_as_it_was(file.source),
    )


def _lines(text: str, states: dict[int, SourceLine], groups: RoleGroups) -> Iterable[SourceLine]:
    previous_group: int | None = None
    for number, content in enumerate(text.removesuffix("\n").split("\n"), 1) if text else ():
        line = states.get(number, SourceLine(number, ""))
        roles = ""
        if line.group is not None:
            roles = groups.texts[line.group]
            roles = "– ″ –" if line.group == previous_group and roles else roles
            previous_group = line.group
        yield replace(line, text=elided(content, _MAX_LINE_LENGTH), roles=roles)


def file_table(files: Sequence[SourceListing]) -> HtmlTable:
    """Return a row per file: how much of each kind was reached, and the lines that were not."""
    kinds = [kind for kind in KINDS if any(kind in listing.shares for listing in files)]
    has_versions = len({listing.path for listing in files}) < len(files)
    rows = []
    for listing in files:
        name = (
            f"{listing.path} (campaigns {spans(listing.campaigns)})"
            if has_versions
            else listing.path
        )
        link = f"#{listing.id}" if listing.lines else ""
        cells = [HtmlCell(name, cls="name", link=link)]
        cells += [_share_cell(kind, listing.shares.get(kind)) for kind in kinds]
        missed = spans(listing.missed)
        rows.append((*cells, HtmlCell(elided(missed, 80), title=missed)))
    head = ("file", *kinds, "lines not reached")
    return HtmlTable("Coverage by file", head, tuple(rows))


def _share_cell(kind: str, share: tuple[int, int] | None) -> HtmlCell:
    if share is None:
        return HtmlCell("-", -1.0)
    hit, total = share
    if kind not in WITH_PROBES:
        return HtmlCell(f"{hit:,}", float(hit))
    return HtmlCell(f"{hit:,} of {total:,} ({format_percent(hit / total, 1)})", hit / total)


# All coverage, and the data of the script that shows the roles of a line.


@dataclass(frozen=True)
class CoverageSection:
    """What the tests of a study reached."""

    files: HtmlTable | None
    listings: tuple[SourceListing, ...]
    others: tuple[HtmlTable, ...]
    """Tables of the targets that have no line of source."""
    why_none: str
    groups: RoleGroups
    left_out: tuple[str, ...]


def coverage_of(
    study: Study, tables: Mapping[str, RoleTable], disk: bool = True
) -> CoverageSection:
    """Return what the tests of a study reached.

    If `disk` is set, also find out which files have changed since.
    """
    groups = RoleGroups()
    for kind in sorted(WITH_PROBES & tables.keys()):
        groups.add(tables[kind])
    files = listings(study, groups, disk)
    tests = int(study.evidence.hits_known.sum())
    others = [
        target_table(kind, table, tests)
        for kind, table in tables.items()
        if kind != "fault" and kind not in WITH_PROBES
    ]
    left_out = []
    hidden = [file.path for file in files if not file.lines]
    if hidden:
        left_out.append(
            f"{plural(len(hidden), 'file')} without a listing, because a page has at most "
            f"{MOST_LINES:,} lines of source, or the source was not stored: {', '.join(hidden)}"
        )
    unknown = study.evidence.n - tests
    if unknown:
        left_out.append(f"{plural(unknown, 'test')} whose coverage is not known")
    if len(study.evidence.features) > MOST_ROLES:
        left_out.append(f"of each line, features beyond the {MOST_ROLES} with the clearest roles")
    why_none = (
        nothing_watched(study.store.campaign(study.evidence.campaigns[0])) if not files else ""
    )
    return CoverageSection(
        file_table(files) if files else None,
        tuple(files),
        tuple(others),
        why_none,
        groups,
        tuple(left_out),
    )


def script_data(study: Study, coverage: CoverageSection) -> dict[str, Any]:
    """Return the data that the page's script needs to show the roles of a line."""
    numbers = " ".join(map(str, study.evidence.campaigns))
    command = command_text(f"roles {numbers} TARGET", study.store.url)
    return {
        "features": [printable(feature) for feature in study.evidence.features],
        "groups": coverage.groups.entries,
        "files": {
            file.id: {"path": printable(file.path), "tests": file.tests, "places": file.places}
            for file in coverage.listings
            if file.lines
        },
        "command": command + confidence_words(study.confidence),
    }


# Targets without a line of source, and all targets as CSV.

MOST_TARGETS = 200
_MAX_NAME_LENGTH = 120


def target_table(kind: str, table: RoleTable, tests: int) -> HtmlTable:
    """Return the rarest targets of a kind, with their triggers and suppressors."""
    order = sorted(
        range(len(table.targets)),
        key=lambda number: (table.hits[number], table.targets[number].name),
    )
    rows = []
    for number in order[:MOST_TARGETS]:
        target, hits = table.targets[number], int(table.hits[number])
        name = " ".join(filter(None, [target.name, target.detail]))
        rows.append(
            (
                HtmlCell(elided(name, _MAX_NAME_LENGTH), cls="name", title=name),
                number_cell(hits),
                percent_cell(hits / max(tests, 1)),
                *(_features_cell(table, number, role) for role in (TRIGGER, SUPPRESSOR)),
            )
        )
    unlisted = len(table.targets) - len(rows)
    note = f"The {len(rows)} rarest are shown; {unlisted:,} more are not." if unlisted else ""
    head = (kind, "tests", "share", "triggers", "suppressors")
    return HtmlTable(
        f"{words_for(kind)[1].capitalize()} that were reached", head, tuple(rows), note
    )


def _features_cell(table: RoleTable, number: int, role: str) -> HtmlCell:
    marked = [f"{MARKS[role]}{feature}" for feature in table.discovered(number, role)]
    return HtmlCell(" ".join(marked), cls=role)


def targets_csv(table: RoleTable, tests: int) -> str:
    """Return every target with its hits and its discovered triggers and suppressors, as CSV."""
    rows = []
    for number, target in enumerate(table.targets):
        names = [" ".join(table.discovered(number, role)) for role in (TRIGGER, SUPPRESSOR)]
        hits = int(table.hits[number])
        rows.append((target.kind, target.name, hits, tests, hits / max(tests, 1), *names))
    head = ("kind", "target", "hits", "tests", "hitting_fraction", "triggers", "suppressors")
    return csv_text(head, rows)
