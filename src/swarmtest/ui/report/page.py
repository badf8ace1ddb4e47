"""The report: its contents, gathered from a store, and its HTML.

`make_page` gathers everything about some campaigns into a `ReportPage`, and `report_html` renders
it as one HTML file that needs nothing else: no network, no fonts, no libraries. The dashboard
shares the templates (`environment`).
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import platform
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from swarmtest.analysis.discovery import discovery
from swarmtest.campaign.liveness import status_in
from swarmtest.compare.comparison import compare_campaigns
from swarmtest.compare.views import conclusions
from swarmtest.core.errors import UserError, version
from swarmtest.core.formatting import duration, format_percent, plural, words_for
from swarmtest.growth.growth import Growth, measure_growth
from swarmtest.growth.verdict import verdict
from swarmtest.roles.roles import RoleTable
from swarmtest.roles.study import Study
from swarmtest.roles.triage import triage
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord
from swarmtest.ui.report.coverage import (
    CoverageSection,
    SourceListing,
    coverage_of,
    script_data,
    targets_csv,
)
from swarmtest.ui.report.faults import (
    MOST_FAULTS,
    MOST_LISTED,
    FaultView,
    ReportedFault,
    fault_groups,
    fault_views,
    known_faults,
    lifelines_of,
)
from swarmtest.ui.report.figures import (
    DiscoveryPlot,
    Figure,
    HeatMap,
    RoleShares,
    configurations,
    discovery_curves,
    role_shares,
)
from swarmtest.ui.report.file_heat import FileHeat, file_heats
from swarmtest.ui.report.highlighting import (
    highlighted_code,
    highlighted_lines,
    highlighted_traceback,
)
from swarmtest.ui.report.lifelines import Lifelines
from swarmtest.ui.report.reproduce import confidence_words, run_command
from swarmtest.ui.report.strategy_plot import StrategyPlot, strategy_plots
from swarmtest.ui.report.svg_figures import figure_svg
from swarmtest.ui.report.tables import (
    HtmlCell,
    HtmlTable,
    comparison_tables,
    growth_table,
    number_cell,
    percent_cell,
)
from swarmtest.ui.terminal.tables import command_text
from swarmtest.ui.terminal.text import printable, spans

_FAULTS_OF_MANY = 20
"""How many faults are described if there are too many to list: a page must still open quickly."""

# Templates.


def environment(*packages: str) -> Environment:
    """Return an environment with the templates of the report and of other packages.

    Text is escaped, and characters that cannot be seen are shown as codes.
    """
    templates = Environment(
        loader=ChoiceLoader(
            [PackageLoader(package, "templates") for package in (*packages, "swarmtest.ui.report")]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    templates.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    templates.filters["svg"] = lambda figure: Markup(figure_svg(figure))
    templates.filters["phone_svg"] = lambda figure: Markup(figure_svg(figure, phone=True))
    templates.filters["code"] = highlighted_code
    templates.filters["output"] = highlighted_traceback
    templates.filters["source"] = _source
    templates.filters["percent"] = lambda share: format_percent(share, 1)
    templates.filters["plural"] = plural
    templates.filters["prose"] = prose
    templates.filters["spans"] = spans
    templates.filters["kind_name"] = lambda kind: words_for(kind)[1]
    return templates


def prose(sentence: str) -> Markup:
    """Return a sentence as HTML: what is in backticks becomes code.

    >>> prose("use `--coverage line` & wait")
    Markup('use <code>--coverage line</code> &amp; wait')
    """
    parts = str(sentence).split("`")
    if len(parts) % 2 == 0:  # one without its partner
        return escape(printable(sentence))
    shown = [escape(printable(part)) for part in parts]
    shown[1::2] = [Markup("<code>{}</code>").format(part) for part in shown[1::2]]
    return Markup("").join(shown)


def _source(listing: SourceListing, coloured: bool) -> tuple[Markup, ...]:
    """Return the lines of a file as HTML."""
    text = "\n".join(line.text for line in listing.lines)
    return highlighted_lines(text, listing.path if coloured else "")


def _finalize(value: Any) -> Any:
    """Make text printable before it enters a page; markup was already made by us."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def asset(name: str) -> str:
    """Return a style sheet or a script of the report."""
    return files("swarmtest.ui.report").joinpath("templates", name).read_text(encoding="utf-8")


# The head of a report: totals, and tables of campaigns and faults.


def totals_of(
    study: Study, faults: Sequence[ReportedFault], coverage: CoverageSection
) -> tuple[tuple[str, str], ...]:
    """Return the numbers that a reader looks for first, each with its name."""
    evidence = study.evidence
    failing = int((evidence.fault >= 0).sum())
    totals = [
        ("tests", f"{evidence.n:,}"),
        ("distinct faults", f"{len(faults):,}"),
        ("tests that fail", f"{failing:,} ({format_percent(failing / evidence.n, 1)})"),
        ("features", f"{len(evidence.features):,}"),
        ("CPU time of tests", duration(float(evidence.cpu_seconds.sum()))),
    ]
    for kind in ("line", "branch"):
        shares = [file.shares[kind] for file in coverage.listings if kind in file.shares]
        if shares:
            hit, total = (sum(part) for part in zip(*shares, strict=True))
            totals.append((f"{kind} coverage", f"{format_percent(hit / total, 1)} of {total:,}"))
    return tuple(totals)


def campaign_table(store: Store, records: Sequence[CampaignRecord]) -> HtmlTable:
    """Return a table with a row per campaign."""
    rows = []
    for record in records:
        summary = store.summary(record.id)
        created = datetime.datetime.fromtimestamp(record.created).strftime("%Y-%m-%d %H:%M")
        rows.append(
            (
                number_cell(record.id),
                HtmlCell(created),
                HtmlCell(record.label, cls="name"),
                HtmlCell(str(record.seed), float(record.seed)),
                HtmlCell(status_in(store, record)),
                number_cell(summary["trials"]),
                number_cell(summary["failed"]),
                number_cell(summary["invalid"]),
                number_cell(summary["steps"]),
                HtmlCell(duration(summary["cpu_ns"] / 1e9), summary["cpu_ns"]),
                HtmlCell(str(record.options.get("python", "?"))),
            )
        )
    head = ("campaign", "begun", "strategy", "seed", "status", "tests", "failed", "invalid")
    return HtmlTable("Campaigns", (*head, "steps", "CPU in tests", "Python"), tuple(rows))


def fault_table(faults: Sequence[ReportedFault], study: Study, detailed: int) -> HtmlTable:
    """Return a table with a row per fault; the first `detailed` ones are described below."""
    tests = study.evidence.n
    campaigns = len(study.evidence.campaigns)
    rows = []
    for position, fault in enumerate(faults[:MOST_LISTED]):
        also = f"also seen as {', '.join(fault.also_ids)}" if fault.also else ""
        link = f"#fault-{fault.record.id}" if position < detailed else ""
        by_campaign = ", ".join(f"{number}: {count:,}" for number, count in fault.counts.items())
        rows.append(
            (
                HtmlCell(fault.record.signature, cls="wide name", link=link, note=also),
                number_cell(fault.count),
                percent_cell(fault.count / tests),
                number_cell(fault.size),
                HtmlCell(fault.state),
                HtmlCell(fault.record.kind),
                HtmlCell("{}#{}".format(*fault.first)),
                *([HtmlCell(by_campaign)] if campaigns > 1 else []),
                HtmlCell(fault.record.id, cls="name"),
            )
        )
    notes = []
    if len(faults) > len(rows):
        notes.append(f"The {len(faults) - len(rows):,} rarest are not listed one by one.")
    if len(faults) > detailed:
        notes.append(f"The {detailed} most frequent are described below.")
    head = ("fault", "tests", "share", "smallest, steps", "state", "kind", "first test")
    by = ("by campaign",) if campaigns > 1 else ()
    return HtmlTable(
        "Faults, the most frequent first", (*head, *by, "id"), tuple(rows), " ".join(notes)
    )


def group_table(faults: Sequence[ReportedFault]) -> HtmlTable | None:
    """Return a table of groups of faults; None if all faults are listed anyway."""
    if len(faults) <= MOST_LISTED:
        return None
    groups = fault_groups(faults)
    rows = [
        (
            HtmlCell(group.name, cls="wide name", note=group.faults[0].record.signature),
            number_cell(len(group.faults)),
            number_cell(group.count),
        )
        for group in groups[:MOST_LISTED]
    ]
    unlisted = len(groups) - len(rows)
    note = f"{plural(unlisted, 'more group')} with fewer faults." if unlisted else ""
    head = ("error and function, with its most frequent fault", "faults", "tests")
    return HtmlTable("Faults by error and function", head, tuple(rows), note)


# The report.


@dataclass(frozen=True)
class StrategyAdvice:
    """Advice from the growth of one strategy's campaigns."""

    strategy: str
    sentence: str
    """What to do and why, or why there is no advice."""
    growth: Growth | None
    command: str


@dataclass(frozen=True)
class ComparisonSection:
    """A comparison of strategies, or the reason why there is none."""

    conclusions: tuple[str, ...]
    """How each strategy differs from the baseline, in words."""
    plots: tuple[StrategyPlot, ...]
    tables: tuple[HtmlTable, ...]
    notes: tuple[str, ...]
    refusal: str
    command: str


@dataclass(frozen=True)
class ReportPage:
    """The contents of a report."""

    title: str
    records: tuple[CampaignRecord, ...]
    study: Study
    totals: tuple[tuple[str, str], ...]
    campaigns: HtmlTable
    runs: tuple[str, ...]
    """Commands that run the campaigns again."""
    command: str
    """The command that makes this report again."""
    written: str
    notes: tuple[str, ...]
    """What a reader should know about the data."""
    outlooks: tuple[StrategyAdvice, ...]
    growth: HtmlTable
    no_variation: str
    fault_count: int
    fault_groups: HtmlTable | None
    """All faults in groups, if there are too many to list them."""
    fault_table: HtmlTable
    faults: tuple[FaultView, ...]
    lifelines: Lifelines | None
    """The faults over versions or campaigns; None if there is only one."""
    relations: tuple[str, ...]
    """Sentences about faults that may be one bug."""
    shares: tuple[RoleShares, ...]
    curves: tuple[tuple[DiscoveryPlot, ...], ...]
    """For each kind of target, a curve by tests and a curve by CPU time."""
    comparing: ComparisonSection | None
    heat: HeatMap
    coverage: CoverageSection
    file_heats: dict[str, FileHeat]
    """Files at a glance, by the ids of their listings."""
    tables: dict[str, RoleTable]
    """The roles, by kind of target."""

    def again(self, command: str, campaigns: Sequence[int], *words: str) -> str:
        """Return a command about some campaigns, quoted for a shell."""
        line = " ".join([command, *map(str, campaigns), *map(shlex.quote, words)])
        if command in ("roles", "triage"):
            line += confidence_words(self.study.confidence)
        return command_text(line, self.study.store.url)

    def figures(self) -> list[Figure]:
        """Return all figures of the report."""
        plots = [fault.plot for fault in self.faults if fault.plot]
        curves = [curve for pair in self.curves for curve in pair]
        return [*plots, *self.shares, *curves, self.heat]

    def data(self) -> dict[str, str]:
        """Return the tables that belong to no figure as CSV, by name."""
        tests = int(self.study.evidence.hits_known.sum())
        return {
            f"targets-{kind}": targets_csv(
                table, self.study.evidence.n if kind == "fault" else tests
            )
            for kind, table in self.tables.items()
        }


def make_page(
    store: Store, campaigns: Sequence[int], confidence: float = 0.95, title: str = ""
) -> ReportPage:
    """Gather everything about campaigns of one subject."""
    campaigns = list(dict.fromkeys(campaigns))
    study = Study(store, campaigns, confidence)
    records = tuple(store.campaign(campaign) for campaign in campaigns)
    faults = known_faults(store, campaigns)
    tables = study.tables(study.kinds())
    no_variation = _no_variation(study)
    coverage = coverage_of(study, tables)
    outlooks = _outlooks(store, records)
    curves = discovery_curves([discovery(store, campaign) for campaign in campaigns])
    numbers = " ".join(map(str, campaigns))
    detailed = MOST_FAULTS if len(faults) <= MOST_LISTED else _FAULTS_OF_MANY
    return ReportPage(
        title=title or f"{records[0].subject}: swarm testing report",
        records=records,
        study=study,
        totals=totals_of(study, faults, coverage),
        campaigns=campaign_table(store, records),
        runs=tuple(filter(None, (run_command(r, store.summary(r.id)["trials"]) for r in records))),
        command=command_text(f"report {numbers}{confidence_words(confidence)}", store.url),
        written=_signature(),
        notes=study.notes,
        outlooks=tuple(outlooks),
        growth=growth_table([outlook.growth for outlook in outlooks if outlook.growth]),
        no_variation=no_variation,
        fault_count=len(faults),
        fault_groups=group_table(faults),
        fault_table=fault_table(faults, study, detailed),
        faults=tuple(fault_views(study, faults[:detailed])),
        lifelines=lifelines_of(faults),
        relations=() if no_variation else _relations(study, faults[:MOST_FAULTS]),
        shares=()
        if no_variation
        else tuple(role_shares(kind, table) for kind, table in tables.items()),
        curves=tuple(zip(curves[::2], curves[1::2], strict=True)),
        comparing=_comparing(store, records, confidence),
        heat=configurations(study),
        coverage=coverage,
        file_heats=file_heats(coverage, study.evidence.features),
        tables=tables,
    )


def _signature() -> str:
    now = datetime.datetime.now().strftime("%Y-%m-%d %H:%M")
    return f"{now}, swarmtest {version()}, Python {platform.python_version()}"


def _no_variation(study: Study) -> str:
    try:
        study.require_variation()
    except UserError as error:
        return str(error)
    return ""


def _relations(study: Study, faults: Sequence[ReportedFault]) -> tuple[str, ...]:
    shown = {fault.record.id for fault in faults}
    return tuple(triage(study, [t for t in study.faults if t.name in shown]).sentences())


def _outlooks(store: Store, records: Sequence[CampaignRecord]) -> list[StrategyAdvice]:
    outlooks = []
    for strategy in dict.fromkeys(record.label for record in records):
        numbers = [record.id for record in records if record.label == strategy]
        command = command_text(f"growth {' '.join(map(str, numbers))}", store.url)
        try:
            estimate = measure_growth(store, numbers)
        except UserError as error:
            outlooks.append(StrategyAdvice(strategy, str(error), None, command))
        else:
            outlooks.append(StrategyAdvice(strategy, str(verdict(estimate)), estimate, command))
    return outlooks


def _comparing(
    store: Store, records: Sequence[CampaignRecord], confidence: float
) -> ComparisonSection | None:
    if len({record.strategy for record in records}) < 2:
        return None
    numbers = [record.id for record in records]
    words = f"compare {' '.join(map(str, numbers))}{confidence_words(confidence)}"
    command = command_text(words, store.url)
    try:
        comparison = compare_campaigns(store, numbers, confidence=confidence)
    except UserError as error:
        return ComparisonSection((), (), (), (), str(error), command)
    tables = tuple(comparison_tables(comparison))
    return ComparisonSection(
        tuple(conclusions(comparison)),
        tuple(strategy_plots(comparison)),
        tables,
        comparison.notes,
        "",
        command,
    )


# HTML.

_MAX_OPEN_LINES = 400
"""Source listings are expanded from the start if they have at most this many lines together."""
_MAX_COLOURED_LINES = 8000
"""More lines are shown without colours, which would make a large page larger by a quarter."""


def report_html(page: ReportPage) -> str:
    """Return the report as one HTML file."""
    script = Markup(asset("report.js"))  # safe: it is a file of this package and contains no data
    lines = sum(len(file.lines) for file in page.coverage.listings)
    return (
        environment()
        .get_template("report.html")
        .render(
            page=page,
            style=Markup(asset("report.css")),
            script=script,
            script_hash=hash_of_script(script),
            data=script_data(page.study, page.coverage),
            listings_open=lines <= _MAX_OPEN_LINES,
            coloured=lines <= _MAX_COLOURED_LINES,
        )
    )


def hash_of_script(script: str) -> str:
    """Return the hash by which the page's security policy allows our script and no other."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
