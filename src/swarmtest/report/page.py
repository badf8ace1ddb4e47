"""All that a report tells, gathered from a store; drawing it is for others."""

from __future__ import annotations

import datetime
import platform
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from swarmtest.analysis.comparable import compare_campaigns
from swarmtest.analysis.discovery import discovery
from swarmtest.analysis.growth import Growth, growth
from swarmtest.analysis.roles import RoleTable
from swarmtest.analysis.study import Study
from swarmtest.analysis.triage import triage
from swarmtest.analysis.verdict import verdict
from swarmtest.errors import UserError
from swarmtest.report.comparison import conclusions
from swarmtest.report.comparison_tables import comparison_tables, growth_table
from swarmtest.report.fault_views import (
    MOST_FAULTS,
    FaultView,
    fault_views,
    known_faults,
    load_subject,
)
from swarmtest.report.figures import Curves, Figure, HeatMap, RoleShares
from swarmtest.report.overview import campaign_table, fault_table, totals_of
from swarmtest.report.page_coverage import Coverage, coverage_of
from swarmtest.report.page_tables import Table
from swarmtest.report.reproduce import confidence_words, run_command
from swarmtest.report.study_figures import configurations, discovery_curves, role_shares
from swarmtest.report.target_tables import targets_csv
from swarmtest.report.terminal import command_text
from swarmtest.store import CampaignRecord, Store
from swarmtest.version import version


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

    conclusions: tuple[str, ...]
    """In what each strategy differs from the baseline, in words."""
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    refusal: str
    command: str


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
    notes: tuple[str, ...]
    """What a reader should know about the data."""
    outlooks: tuple[Outlook, ...]
    growth: Table
    no_variation: str
    fault_table: Table
    faults: tuple[FaultView, ...]
    relations: tuple[str, ...]
    """Faults that may be one bug."""
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
        if command in ("roles", "triage"):
            told += confidence_words(self.study.confidence)
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
    coverage = coverage_of(study, tables)
    outlooks = _outlooks(store, records)
    curves = discovery_curves([discovery(store, campaign) for campaign in campaigns])
    named = " ".join(map(str, campaigns))
    return Page(
        title=title or f"{records[0].subject}: swarm testing report",
        records=records,
        study=study,
        totals=totals_of(study, faults, coverage),
        campaigns=campaign_table(store, records),
        runs=tuple(filter(None, (run_command(r, store.summary(r.id)["trials"]) for r in records))),
        command=command_text(f"report {named}{confidence_words(confidence)}", store.url),
        made=_made(),
        notes=study.notes,
        outlooks=tuple(outlooks),
        growth=growth_table([outlook.growth for outlook in outlooks if outlook.growth]),
        no_variation=no_variation,
        fault_table=fault_table(faults, study),
        faults=tuple(fault_views(study, faults[:MOST_FAULTS], subject)),
        relations=() if no_variation else tuple(r.sentence() for r in triage(study).relations),
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
    return f"{now}, swarmtest {version()}, Python {platform.python_version()}"


def _no_variation(study: Study) -> str:
    try:
        study.require_variation()
    except UserError as error:
        return str(error)
    return ""


def _outlooks(store: Store, records: Sequence[CampaignRecord]) -> list[Outlook]:
    found = []
    for strategy in dict.fromkeys(record.label for record in records):
        numbers = [record.id for record in records if record.label == strategy]
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
        return Comparing((), (), (), str(error), command)
    tables = tuple(comparison_tables(found))
    return Comparing(tuple(conclusions(found)), tables, found.notes, "", command)
