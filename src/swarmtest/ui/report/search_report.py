"""The report of a search: pictures of the space, what matters in it, its best points and faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from swarmtest.analysis.role_cells import INSUFFICIENT, SUPPRESSOR, TRIGGER
from swarmtest.core.errors import UserError
from swarmtest.core.formatting import p_value, percent_interval, plural
from swarmtest.search.exploration import Exploration, best_sequence, random_sequence, visit_of
from swarmtest.search.export import collapsed
from swarmtest.search.pictures import collapsed_svg, growth_svg
from swarmtest.search.value_statistics import Correlation, ValueRole, correlations, value_roles
from swarmtest.search.views import format_number, point_text
from swarmtest.store.interface import Store
from swarmtest.store.records import FaultRecord
from swarmtest.ui.report.page import asset, environment
from swarmtest.ui.report.reproduce import run_command
from swarmtest.ui.report.tables import HtmlCell, HtmlTable, number_cell, percent_cell
from swarmtest.ui.terminal.tables import command_text
from swarmtest.ui.terminal.text import kind_and_signature

_MAX_STEPS = 40


@dataclass(frozen=True)
class SearchPage:
    """The contents of the report of a search."""

    title: str
    exploration: Exploration
    totals: tuple[tuple[str, str], ...]
    pictures: tuple[tuple[str, Markup], ...]
    """For each picture, what it shows and its drawing."""
    correlations: tuple[HtmlTable, ...]
    sequence: HtmlTable | None
    faults: HtmlTable
    roles: tuple[HtmlTable, ...]
    commands: tuple[str, ...]


def are_searches(store: Store, campaigns: Sequence[int]) -> bool:
    """Return whether campaigns are searches; raise `UserError` if only some of them are."""
    searches = [campaign for campaign in campaigns if "search" in store.campaign(campaign).options]
    if searches and len(searches) < len(campaigns):
        raise UserError(
            f"campaign {searches[0]} is a search, others are not: write separate reports"
        )
    return bool(searches)


def search_page(store: Store, campaigns: Sequence[int], title: str = "") -> SearchPage:
    """Gather everything about searches of one space."""
    campaigns = tuple(dict.fromkeys(campaigns))
    exploration = Exploration.load(store, *campaigns)
    faults = [(campaign, fault) for campaign in campaigns for fault in store.faults(campaign)]
    all_correlations = correlations(exploration, ())
    numbers = " ".join(map(str, campaigns))
    again = [run_command(store.campaign(number), _visits(store, number)) for number in campaigns]
    words = [f"search correlate {numbers}", f"search plot {numbers} -o FILE.svg"]
    words += [f"search roles {numbers}"] if faults else []
    more = [command_text(command, store.url) for command in words] if len(campaigns) == 1 else []
    report = command_text(f"report {numbers}", store.url)
    return SearchPage(
        title=title or f"{exploration.name}: search report",
        exploration=exploration,
        totals=_totals(exploration, faults),
        pictures=tuple(_pictures(exploration, all_correlations)),
        correlations=tuple(_correlation_tables(all_correlations)),
        sequence=_sequence(exploration),
        faults=_fault_table(faults),
        roles=tuple(_role_tables(value_roles(exploration))) if faults else (),
        commands=tuple(filter(None, (*again, *more, report))),
    )


def search_html(page: SearchPage) -> str:
    """Return the report as one HTML file."""
    template = environment().get_template("search_report.html")
    return template.render(page=page, style=Markup(asset("report.css")))


def _visits(store: Store, campaign: int) -> int:
    blocks = store.blocks(campaign, hits=False)
    return 1 + max(visit_of(origin) for block in blocks for origin in block.origins)


def _totals(
    exploration: Exploration, faults: Sequence[tuple[int, FaultRecord]]
) -> tuple[tuple[str, str], ...]:
    runs = [run for runs_of_point in exploration.runs.values() for run in runs_of_point]
    return (
        ("points", f"{len(exploration.points):,}"),
        ("runs", f"{len(runs):,}"),
        ("failed runs", f"{sum(run.status == 'failed' for run in runs):,}"),
        ("distinct faults", f"{len({fault.id for _, fault in faults}):,}"),
        ("targets", f"{len(exploration.targets):,}"),
        ("engine", ", ".join(exploration.engines)),
    )


def _pictures(
    exploration: Exploration, all_correlations: Sequence[Correlation]
) -> list[tuple[str, Markup]]:
    pictures = []
    varying = dict.fromkeys(
        correlation.measure for correlation in all_correlations if _varies(correlation)
    )
    measure = "hits" if "hits" in varying else next(iter(varying), "")
    if measure:
        words = f"All points along one line, and {measure} of each"
        line = collapsed(exploration, measure)
        pictures.append((words, Markup(collapsed_svg(line, words, alone=False))))
    if exploration.targets:
        best, chance = best_sequence(exploration).points, random_sequence(exploration, 0).points
        curves = [
            (f"best sequence ({len(best)} points)", exploration.growth(best)),
            (f"random sequence ({len(chance)} points)", exploration.growth(chance)),
        ]
        words = "What the best points reach, run by run, and what random points reach"
        pictures.append((words, Markup(growth_svg(curves, words, "targets reached", alone=False))))
    return pictures


def _varies(correlation: Correlation) -> bool:
    return len({mean for _, mean in correlation.means}) > 1


def _correlation_tables(all_correlations: Sequence[Correlation]) -> list[HtmlTable]:
    tables = []
    for measure in dict.fromkeys(
        correlation.measure for correlation in all_correlations if _varies(correlation)
    ):
        rows = tuple(
            _correlation_row(correlation)
            for correlation in all_correlations
            if correlation.measure == measure
        )
        head = ("dimension", "explains", "rank", "p", "at its values")
        note = "explains: share of the variance between points; p: permutation test, corrected"
        tables.append(HtmlTable(f"What {measure} depends on", head, rows, note))
    return tables


def _correlation_row(correlation: Correlation) -> tuple[HtmlCell, ...]:
    means = ", ".join(
        f"{point_text({'': name})[1:]}: {format_number(mean)}" for name, mean in correlation.means
    )
    return (
        HtmlCell(correlation.dimension, cls="name"),
        percent_cell(correlation.explained),
        HtmlCell("-")
        if correlation.rank is None
        else number_cell(correlation.rank, f"{correlation.rank:+.2f}"),
        number_cell(correlation.adjusted, p_value(correlation.adjusted)),
        HtmlCell(means),
    )


def _sequence(exploration: Exploration) -> HtmlTable | None:
    if not exploration.targets:
        return None
    sequence = best_sequence(exploration, _MAX_STEPS)
    rows = tuple(
        (
            number_cell(number),
            number_cell(step.new),
            number_cell(step.reached, f"{step.reached} of {sequence.total}"),
            number_cell(step.runs),
            HtmlCell(point_text(step.point.to_json())),
        )
        for number, step in enumerate(sequence.steps, 1)
    )
    caption = "A few points that together reach most"
    return HtmlTable(caption, ("no.", "new", "reached", "runs", "point"), rows)


def _fault_table(faults: Sequence[tuple[int, FaultRecord]]) -> HtmlTable:
    rows = tuple(
        (
            HtmlCell(fault.id),
            HtmlCell(kind_and_signature(fault.kind, fault.signature), cls="name"),
            number_cell(fault.count),
            HtmlCell(f"{campaign}#{fault.first_trial}"),
        )
        for campaign, fault in faults
    )
    return HtmlTable("Faults", ("fault", "signature", "runs", "first run"), rows)


def _role_tables(all_roles: Sequence[ValueRole]) -> list[HtmlTable]:
    tables = []
    for target in dict.fromkeys(role.target for role in all_roles):
        roles = [role for role in all_roles if role.target == target]
        rows = tuple(
            (
                HtmlCell(f"{role.dimension}={point_text({'': role.value})[1:]}", cls="name"),
                HtmlCell(role.role, cls=role.role),
                percent_cell(role.share, title=percent_interval(role.low, role.high)),
                percent_cell(role.base),
                number_cell(role.adjusted, p_value(role.adjusted)),
            )
            for role in sorted(roles, key=lambda role: role.adjusted)
            if role.role in (TRIGGER, SUPPRESSOR)
        )
        head = ("value", "role", "of these points", "chance", "p")
        insufficient = sum(role.role == INSUFFICIENT for role in roles)
        note = (
            f"shown at {plural(roles[0].hits, 'point')}; no role shown: "
            f"{plural(len(roles) - len(rows) - insufficient, 'value')}; insufficient data: "
            f"{plural(insufficient, 'value')}"
        )
        tables.append(HtmlTable(target, head, rows, note))
    return tables
