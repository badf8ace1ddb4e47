"""All that a report tells, gathered from a store; drawing it is for others."""

from __future__ import annotations

import datetime
import platform
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from swarmtest.analysis.comparable import compare_campaigns
from swarmtest.analysis.discovery import discovery
from swarmtest.analysis.growth import Growth, growth
from swarmtest.analysis.roles import RoleTable
from swarmtest.analysis.study import Study
from swarmtest.analysis.verdict import verdict
from swarmtest.errors import UserError
from swarmtest.instrument.kinds import WITH_PROBES
from swarmtest.report.comparison_tables import comparison_tables, growth_table
from swarmtest.report.coverage import nothing_watched
from swarmtest.report.fault_views import (
    MOST_FAULTS,
    FaultView,
    KnownFault,
    fault_views,
    known_faults,
    load_subject,
)
from swarmtest.report.figures import Curves, Figure, HeatMap, RoleShares
from swarmtest.report.listing import MOST_LINES, Listing, file_table, listings
from swarmtest.report.numbers import duration
from swarmtest.report.page_tables import Cell, Table, number_cell, percent, percent_cell
from swarmtest.report.reproduce import confidence_words, run_command
from swarmtest.report.role_groups import MOST_ROLES, RoleGroups
from swarmtest.report.study_figures import configurations, discovery_curves, role_shares
from swarmtest.report.target_tables import target_table, targets_csv
from swarmtest.report.terminal import command_text, plural
from swarmtest.store import CampaignRecord, Store


@dataclass(frozen=True)
class Outlook:
    """What the growth of the campaigns of one strategy says."""

    strategy: str
    sentence: str
    """What to do and why; or why that cannot be told."""
    growth: Growth | None
    command: str


@dataclass(frozen=True)
class Comparing:
    """How strategies compare; or why they cannot be compared."""

    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    refusal: str
    command: str


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


@dataclass(frozen=True)
class Page:
    """A report."""

    title: str
    records: tuple[CampaignRecord, ...]
    study: Study
    totals: tuple[tuple[str, str], ...]
    campaigns: Table
    runs: tuple[str, ...]
    """Commands that run the campaigns again."""
    command: str
    """Makes this report again."""
    made: str
    outlooks: tuple[Outlook, ...]
    growth: Table
    no_variation: str
    fault_table: Table
    faults: tuple[FaultView, ...]
    no_subject: str
    shares: tuple[RoleShares, ...]
    curves: tuple[tuple[Curves, ...], ...]
    """By kind: by tests and by CPU time."""
    comparing: Comparing | None
    heat: HeatMap
    coverage: Coverage
    tables: dict[str, RoleTable]
    """By kind of target."""

    def again(self, command: str, campaigns: Sequence[int], *words: str) -> str:
        """A command about some campaigns, quoted for a shell."""
        told = " ".join([command, *map(str, campaigns), *map(shlex.quote, words)])
        return command_text(told, self.study.store.url)

    def figures(self) -> list[Figure]:
        """Everything that can be drawn."""
        plots = [fault.plot for fault in self.faults if fault.plot]
        curves = [one for kind in self.curves for one in kind]
        return [*plots, *self.shares, *curves, self.heat]

    def data(self) -> dict[str, str]:
        """Tables for spreadsheets that are no figures, by name."""
        tests = int(self.study.evidence.known.sum())
        return {
            f"targets-{kind}": targets_csv(
                table, self.study.evidence.n if kind == "fault" else tests
            )
            for kind, table in self.tables.items()
        }


def make_page(
    store: Store, campaigns: Sequence[int], confidence: float = 0.95, title: str = ""
) -> Page:
    """Gather everything about campaigns of one subject."""
    campaigns = list(dict.fromkeys(campaigns))
    study = Study(store, campaigns, confidence)
    records = tuple(store.campaign(campaign) for campaign in campaigns)
    faults = known_faults(store, campaigns)
    subject, no_subject = load_subject(store, campaigns[0]) if faults else (None, "")
    tables = {kind: study.table(kind) for kind in study.kinds()}
    no_variation = _no_variation(study)
    coverage = _coverage(study, tables)
    outlooks = _outlooks(store, records)
    curves = discovery_curves([discovery(store, campaign) for campaign in campaigns])
    named = " ".join(map(str, campaigns))
    return Page(
        title=title or f"{records[0].subject}: swarm testing report",
        records=records,
        study=study,
        totals=_totals(store, study, faults, coverage),
        campaigns=_campaign_table(store, records),
        runs=tuple(filter(None, map(run_command, records))),
        command=command_text(f"report {named}{confidence_words(confidence)}", store.url),
        made=_made(),
        outlooks=tuple(outlooks),
        growth=growth_table([outlook.growth for outlook in outlooks if outlook.growth]),
        no_variation=no_variation,
        fault_table=_fault_table(faults, study),
        faults=tuple(fault_views(study, faults[:MOST_FAULTS], subject)),
        no_subject=no_subject,
        shares=()
        if no_variation
        else tuple(role_shares(kind, table) for kind, table in tables.items()),
        curves=tuple(zip(curves[::2], curves[1::2], strict=True)),
        comparing=_comparing(store, records, confidence),
        heat=configurations(study),
        coverage=coverage,
        tables=tables,
    )


def _made() -> str:
    now = datetime.datetime.now().strftime("%Y-%m-%d %H:%M")
    return f"{now}, swarmtest {version('swarmtest')}, Python {platform.python_version()}"


def _no_variation(study: Study) -> str:
    try:
        study.require_variation()
    except UserError as error:
        return str(error)
    return ""


def _totals(
    store: Store, study: Study, faults: Sequence[KnownFault], coverage: Coverage
) -> tuple[tuple[str, str], ...]:
    evidence = study.evidence
    failing = int((evidence.fault >= 0).sum())
    totals = [
        ("tests", f"{evidence.n:,}"),
        ("distinct faults", f"{len(faults):,}"),
        ("tests that fail", f"{failing:,} ({percent(failing / evidence.n)})"),
        ("features", f"{len(evidence.features):,}"),
        ("CPU time of tests", duration(float(evidence.cpu_seconds.sum()))),
    ]
    for kind in ("line", "branch"):
        shares = [one.shares[kind] for one in coverage.listings if kind in one.shares]
        if shares:
            hit, known = (sum(part) for part in zip(*shares, strict=True))
            totals.append((f"{kind} coverage", f"{percent(hit / known)} of {known:,}"))
    return tuple(totals)


def _campaign_table(store: Store, records: Sequence[CampaignRecord]) -> Table:
    rows = []
    for record in records:
        summary = store.summary(record.id)
        created = datetime.datetime.fromtimestamp(record.created).strftime("%Y-%m-%d %H:%M")
        rows.append(
            (
                number_cell(record.id),
                Cell(created),
                Cell(record.strategy, cls="name"),
                Cell(str(record.seed), float(record.seed)),
                Cell(record.status),
                number_cell(summary["trials"]),
                number_cell(summary["failed"]),
                number_cell(summary["invalid"]),
                number_cell(summary["steps"]),
                Cell(duration(summary["cpu_ns"] / 1e9), summary["cpu_ns"]),
                Cell(str(record.options.get("python", "?"))),
            )
        )
    head = ("campaign", "begun", "strategy", "seed", "status", "tests", "failed", "invalid")
    return Table("Campaigns", (*head, "steps", "CPU in tests", "Python"), tuple(rows))


def _fault_table(faults: Sequence[KnownFault], study: Study) -> Table:
    tests = study.evidence.n
    rows = [
        (
            Cell(
                fault.record.id,
                cls="name",
                link=f"#fault-{fault.record.id}" if place < MOST_FAULTS else "",
            ),
            Cell(fault.record.kind),
            number_cell(fault.count),
            percent_cell(fault.count / tests),
            number_cell(fault.record.size),
            Cell("{}#{}".format(*fault.first)),
            Cell(", ".join(f"{number}: {count:,}" for number, count in fault.counts.items())),
            Cell(fault.record.signature, cls="wide"),
        )
        for place, fault in enumerate(faults)
    ]
    left = len(faults) - MOST_FAULTS
    note = f"The {left} rarest are told of in this table only." if left > 0 else ""
    head = ("fault", "kind", "tests", "share", "shortest, steps", "first test", "by campaign")
    return Table("Faults, the most frequent first", (*head, "signature"), tuple(rows), note)


def _outlooks(store: Store, records: Sequence[CampaignRecord]) -> list[Outlook]:
    found = []
    for strategy in dict.fromkeys(record.strategy for record in records):
        numbers = [record.id for record in records if record.strategy == strategy]
        command = command_text(f"growth {' '.join(map(str, numbers))}", store.url)
        try:
            told = growth(store, numbers)
        except UserError as error:
            found.append(Outlook(strategy, str(error), None, command))
        else:
            found.append(Outlook(strategy, str(verdict(told)), told, command))
    return found


def _comparing(
    store: Store, records: Sequence[CampaignRecord], confidence: float
) -> Comparing | None:
    if len({record.strategy for record in records}) < 2:
        return None
    numbers = [record.id for record in records]
    words = f"compare {' '.join(map(str, numbers))}{confidence_words(confidence)}"
    command = command_text(words, store.url)
    try:
        found = compare_campaigns(store, numbers, confidence=confidence)
    except UserError as error:
        return Comparing((), (), str(error), command)
    return Comparing(tuple(comparison_tables(found)), found.notes, "", command)


def _coverage(study: Study, tables: dict[str, RoleTable]) -> Coverage:
    groups = RoleGroups()
    for kind in WITH_PROBES & tables.keys():
        groups.add(tables[kind])
    found = listings(study, groups)
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


def script_data(page: Page) -> dict[str, Any]:
    """What the page's script needs to show the roles of a line."""
    named = " ".join(map(str, page.study.evidence.campaigns))
    usual = command_text(f"roles {named} TARGET", page.study.store.url)
    return {
        "features": list(page.study.evidence.features),
        "groups": page.coverage.groups.entries,
        "files": {
            one.id: {"path": one.path, "tests": one.tests, "places": one.places}
            for one in page.coverage.listings
            if one.lines
        },
        "command": usual + confidence_words(page.study.confidence),
    }
