"""The report of a search: the best point, what matters, the picture of the space, its faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from swarmtest.analysis.cells import INSUFFICIENT, SUPPRESSOR, TRIGGER
from swarmtest.core.errors import UserError
from swarmtest.search.exploration import Exploration, visit_of
from swarmtest.search.export import collapsed
from swarmtest.search.pictures import collapsed_svg, growth_svg
from swarmtest.search.sequences import best_sequence, random_sequence
from swarmtest.search.value_statistics import Correlation, ValueRole, correlations, value_roles
from swarmtest.search.views import point_text, signed
from swarmtest.store.interface import Store
from swarmtest.store.records import FaultRecord
from swarmtest.ui.report.page import asset, environment
from swarmtest.ui.report.reproduce import run_command
from swarmtest.ui.report.tables import Cell, Table, number_cell, percent_cell
from swarmtest.ui.terminal.tables import command_text, plural
from swarmtest.ui.terminal.text import kind_and_signature, p_value, short_percent

_MOST_STEPS = 40


@dataclass(frozen=True)
class SearchPage:
    """All that a report tells of a search."""

    title: str
    exploration: Exploration
    totals: tuple[tuple[str, str], ...]
    pictures: tuple[tuple[str, Markup], ...]
    """What each shows, and the drawing."""
    correlations: tuple[Table, ...]
    sequence: Table | None
    faults: Table
    roles: tuple[Table, ...]
    commands: tuple[str, ...]


def are_searches(store: Store, campaigns: Sequence[int]) -> bool:
    """Whether campaigns are searches: all of them, or none."""
    searches = [one for one in campaigns if "search" in store.campaign(one).options]
    if searches and len(searches) < len(campaigns):
        raise UserError(f"campaign {searches[0]} is a search, others are not: report them apart")
    return bool(searches)


def search_page(store: Store, campaigns: Sequence[int], title: str = "") -> SearchPage:
    """Gather everything about searches of one space."""
    campaigns = tuple(dict.fromkeys(campaigns))
    exploration = Exploration.load(store, *campaigns)
    faults = [(campaign, fault) for campaign in campaigns for fault in store.faults(campaign)]
    found = correlations(exploration, ())
    numbers = " ".join(map(str, campaigns))
    again = [run_command(store.campaign(one), _visits(store, one)) for one in campaigns]
    words = [f"search correlate {numbers}", f"search plot {numbers} -o FILE.svg"]
    words += [f"search roles {numbers}"] if faults else []
    more = [command_text(one, store.url) for one in words] if len(campaigns) == 1 else []
    report = command_text(f"report {numbers}", store.url)
    return SearchPage(
        title=title or f"{exploration.name}: search report",
        exploration=exploration,
        totals=_totals(exploration, faults),
        pictures=tuple(_pictures(exploration, found)),
        correlations=tuple(_correlation_tables(found)),
        sequence=_sequence(exploration),
        faults=_fault_table(faults),
        roles=tuple(_role_tables(value_roles(exploration))) if faults else (),
        commands=tuple(filter(None, (*again, *more, report))),
    )


def search_html(page: SearchPage) -> str:
    """The whole file."""
    template = environment().get_template("search_report.html")
    return template.render(page=page, style=Markup(asset("report.css")))


def _visits(store: Store, campaign: int) -> int:
    return 1 + max(map(visit_of, store.trials(campaign)))


def _totals(
    exploration: Exploration, faults: Sequence[tuple[int, FaultRecord]]
) -> tuple[tuple[str, str], ...]:
    runs = [run for one in exploration.runs.values() for run in one]
    return (
        ("points", f"{len(exploration.points):,}"),
        ("runs", f"{len(runs):,}"),
        ("failed runs", f"{sum(run.status == 'failed' for run in runs):,}"),
        ("distinct faults", f"{len({fault.id for _, fault in faults}):,}"),
        ("targets", f"{len(exploration.targets):,}"),
        ("engine", ", ".join(exploration.engines)),
    )


def _pictures(exploration: Exploration, found: Sequence[Correlation]) -> list[tuple[str, Markup]]:
    drawn = []
    varied = dict.fromkeys(one.measure for one in found if _varies(one))
    first = "hits" if "hits" in varied else next(iter(varied), "")
    if first:
        words = f"All points along one line, and {first} of each"
        line = collapsed(exploration, first)
        drawn.append((words, Markup(collapsed_svg(line, words, alone=False))))
    if exploration.targets:
        best, chance = best_sequence(exploration).points, random_sequence(exploration, 0).points
        curves = [
            (f"best sequence ({len(best)} points)", exploration.growth(best)),
            (f"random sequence ({len(chance)} points)", exploration.growth(chance)),
        ]
        words = "What the best few points reach, run by run, and random ones"
        drawn.append((words, Markup(growth_svg(curves, words, "targets reached", alone=False))))
    return drawn


def _varies(one: Correlation) -> bool:
    return len({mean for _, mean in one.means}) > 1


def _correlation_tables(found: Sequence[Correlation]) -> list[Table]:
    tables = []
    for measure in dict.fromkeys(one.measure for one in found if _varies(one)):
        rows = tuple(_correlation_row(one) for one in found if one.measure == measure)
        head = ("dimension", "explains", "rank", "p", "at its values")
        note = "explains: share of the variance between points; p by shuffling, corrected"
        tables.append(Table(f"What {measure} has to do with", head, rows, note))
    return tables


def _correlation_row(one: Correlation) -> tuple[Cell, ...]:
    means = ", ".join(f"{point_text({'': name})[1:]}: {signed(mean)}" for name, mean in one.means)
    return (
        Cell(one.dimension, cls="name"),
        percent_cell(one.explained),
        Cell("-") if one.rank is None else number_cell(one.rank, f"{one.rank:+.2f}"),
        number_cell(one.adjusted, p_value(one.adjusted)),
        Cell(means),
    )


def _sequence(exploration: Exploration) -> Table | None:
    if not exploration.targets:
        return None
    found = best_sequence(exploration, _MOST_STEPS)
    rows = tuple(
        (
            number_cell(at),
            number_cell(step.new),
            number_cell(step.reached, f"{step.reached} of {found.total}"),
            number_cell(step.runs),
            Cell(point_text(step.point.to_json())),
        )
        for at, step in enumerate(found.steps, 1)
    )
    caption = "A few points that together reach most"
    return Table(caption, ("", "new", "reached", "runs", "point"), rows)


def _fault_table(faults: Sequence[tuple[int, FaultRecord]]) -> Table:
    rows = tuple(
        (
            Cell(fault.id),
            Cell(kind_and_signature(fault.kind, fault.signature), cls="name"),
            number_cell(fault.count),
            Cell(f"{campaign}#{fault.first_trial}"),
        )
        for campaign, fault in faults
    )
    return Table("Faults", ("fault", "what", "runs", "first"), rows)


def _role_tables(found: Sequence[ValueRole]) -> list[Table]:
    tables = []
    for target in dict.fromkeys(one.target for one in found):
        roles = [one for one in found if one.target == target]
        rows = tuple(
            (
                Cell(f"{one.dimension}={point_text({'': one.value})[1:]}", cls="name"),
                Cell(one.role, cls=one.role),
                percent_cell(
                    one.share, title=f"{short_percent(one.low)} to {short_percent(one.high)}"
                ),
                percent_cell(one.base),
                number_cell(one.adjusted, p_value(one.adjusted)),
            )
            for one in sorted(roles, key=lambda one: one.adjusted)
            if one.role in (TRIGGER, SUPPRESSOR)
        )
        head = ("value", "role", "of these points", "chance", "p")
        unknown = sum(one.role == INSUFFICIENT for one in roles)
        note = (
            f"shown at {plural(roles[0].hits, 'point')}; no role shown: "
            f"{plural(len(roles) - len(rows) - unknown, 'value')}; insufficient data: "
            f"{plural(unknown, 'value')}"
        )
        tables.append(Table(target, head, rows, note))
    return tables
