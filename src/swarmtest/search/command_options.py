"""Options that the commands of ``swarmtest search`` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from swarmtest.campaign.budget import parse_seconds
from swarmtest.search.exploration import Exploration
from swarmtest.ui.options import existing_store, latest_campaign

Command = TypeVar("Command", bound=Callable[..., Any])


def campaign_argument(command: Command) -> Command:
    """Add ``[CAMPAIGN]``: the search whose exploration is read; by default the newest."""
    return click.argument("campaign", type=int, required=False)(command)


def json_option(command: Command) -> Command:
    """Add ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def engine_option(default: str | None) -> Callable[[Command], Command]:
    """Add ``--engine``."""
    shown = f"  [default: {default}]" if default else ""
    return click.option(
        "-e",
        "--engine",
        metavar="NAME[:KEY=VALUE,...]",
        help="Which engine proposes points: sequential, random, climb, optuna:sampler=tpe "
        f"(cma, nsga2, qmc, gp), or a strategy.{shown}",
    )


def fitness_option(default: str | None) -> Callable[[Command], Command]:
    """Add ``--fitness``."""
    shown = f"  [default: {default}]" if default else ""
    return click.option(
        "--fitness",
        metavar="MEASURE,...",
        help="What to maximise: hits, hits.KIND, failed, seconds, or a measure that the test "
        f"reports; -NAME to minimise it; or FILE.py::FUNCTION.{shown}",
    )


def search_limits(command: Command) -> Command:
    """Add the options that say when a search ends."""
    options = [
        click.option("-n", "--points", type=int, metavar="N", help="Stop after N points."),
        click.option("--time", "wall", metavar="TIME", help="Stop after this time: 30s, 5m, 2h."),
        click.option("--reach", type=float, metavar="X", help="Stop when the fitness reaches X."),
        click.option("-x", "first", is_flag=True, help="Stop at the first fault."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def limits_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the limits that were given, as arguments of `Search`."""
    limits = {
        "points": options["points"],
        "seconds": parse_seconds(options["wall"]) if options["wall"] else None,
        "reach": options["reach"],
        "faults": 1 if options["first"] else None,
    }
    return {name: value for name, value in limits.items() if value is not None}


def loaded(campaign: int | None, store: str | None, kind: str = "") -> Exploration:
    """Return the exploration of a campaign; only its targets of one kind, if a kind is given."""
    with existing_store(store) as opened:
        exploration = Exploration.load(opened, latest_campaign(opened, campaign))
    return exploration.of_kind(kind) if kind else exploration


def title_of(exploration: Exploration) -> str:
    """Return a line that says what is studied."""
    numbers = ", ".join(map(str, exploration.campaigns))
    runs = sum(map(len, exploration.runs.values()))
    which = "campaign" if len(exploration.campaigns) == 1 else "campaigns"
    return (
        f"{which} {numbers}: {exploration.name}, {len(exploration.points):,} points, {runs:,} runs"
    )
