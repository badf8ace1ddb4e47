"""Coverage of a page, and what its script needs to tell the roles of a line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from swarmtest.analysis.roles import RoleTable
from swarmtest.analysis.study import Study
from swarmtest.instrument.kinds import WITH_PROBES
from swarmtest.report.coverage import nothing_watched
from swarmtest.report.listing import MOST_LINES, Listing, file_table, listings
from swarmtest.report.page_tables import Table
from swarmtest.report.printable import printable
from swarmtest.report.reproduce import confidence_words
from swarmtest.report.role_groups import MOST_ROLES, RoleGroups
from swarmtest.report.target_tables import target_table
from swarmtest.report.terminal import command_text, plural


@dataclass(frozen=True)
class Coverage:
    """What was reached."""

    files: Table | None
    listings: tuple[Listing, ...]
    others: tuple[Table, ...]
    """Targets without a line of source."""
    why_none: str
    groups: RoleGroups
    left_out: tuple[str, ...]


def coverage_of(study: Study, tables: Mapping[str, RoleTable], disk: bool = True) -> Coverage:
    """What the tests of a study reached; `disk`: and which files have changed since."""
    groups = RoleGroups()
    for kind in WITH_PROBES & tables.keys():
        groups.add(tables[kind])
    found = listings(study, groups, disk)
    tests = int(study.evidence.known.sum())
    others = [
        target_table(kind, table, tests)
        for kind, table in tables.items()
        if kind != "fault" and kind not in WITH_PROBES
    ]
    left_out = []
    hidden = [one.path for one in found if not one.lines]
    if hidden:
        left_out.append(
            f"{plural(len(hidden), 'file')} without a listing, for a page takes at most "
            f"{MOST_LINES:,} lines of source (or their source was not kept): {', '.join(hidden)}"
        )
    unknown = study.evidence.n - tests
    if unknown:
        left_out.append(
            f"the coverage of {plural(unknown, 'test')} is not known: they do not count"
        )
    left_out.append(f"of each line at most {MOST_ROLES} features are told, the clearest")
    why = nothing_watched(study.store.campaign(study.evidence.campaigns[0])) if not found else ""
    return Coverage(
        file_table(found) if found else None,
        tuple(found),
        tuple(others),
        why,
        groups,
        tuple(left_out),
    )


def script_data(study: Study, coverage: Coverage) -> dict[str, Any]:
    """What the page's script needs to show the roles of a line."""
    named = " ".join(map(str, study.evidence.campaigns))
    usual = command_text(f"roles {named} TARGET", study.store.url)
    return {
        "features": [printable(feature) for feature in study.evidence.features],
        "groups": coverage.groups.entries,
        "files": {
            one.id: {"path": printable(one.path), "tests": one.tests, "places": one.places}
            for one in coverage.listings
            if one.lines
        },
        "command": usual + confidence_words(study.confidence),
    }
