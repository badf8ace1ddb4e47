"""``swarmtest growth``: is it still finding new things, and is it worth going on?"""

from __future__ import annotations

import contextlib

import click

from swarmtest.analysis.growth import growth as growth_of
from swarmtest.analysis.verdict import verdict as verdict_on
from swarmtest.cli.options import campaigns_argument, existing_store, latest_campaign, store_option
from swarmtest.errors import UserError
from swarmtest.report.growth import growth_text
from swarmtest.report.quantities import json_text
from swarmtest.report.terminal import command_text
from swarmtest.strategies.strategy import LearningStrategy, parse_strategy


@click.command()
@campaigns_argument
@click.option("--kind", default="", metavar="KIND", help="Only this: fault, line, branch, ...")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@store_option
def growth(campaigns: list[int], kind: str, as_json: bool, store: str | None) -> None:
    """Are tests still finding new things: stop, go on, or change the configuration?

    What was found test by test, what as many tests again would find (Good-Turing, Chao), and one
    sentence on what to do. CAMPAIGN is a number; the newest one if left out. Several campaigns of
    the same subject and strategy, with other seeds, are read as one.

    \b
    swarmtest growth                 the newest campaign
    swarmtest growth --kind branch   only branches, with a larger picture
    swarmtest growth 3 4 5           three campaigns as one
    """
    opened = existing_store(store)
    numbers = campaigns or [latest_campaign(opened, None)]
    found = growth_of(opened, numbers, kind)
    verdict = verdict_on(found)
    if as_json:
        click.echo(json_text(found.to_json() | {"verdict": verdict.to_json()}))
        return
    notes = [_LEARNS] if _learns(opened.campaign(numbers[0]).strategy) else []
    if verdict.action == "change the configuration":
        command = command_text(f"coverage {numbers[-1]} --targets --unreached", opened.url)
        notes.append(f"what was not reached: {command}")
    click.echo(growth_text(found, verdict, notes))


_LEARNS = "the strategy learns: tests change as it does, so take forecasts as rough"


def _learns(strategy: str) -> bool:
    with contextlib.suppress(UserError):  # one of the user's own, which is not here
        return isinstance(parse_strategy(strategy), LearningStrategy)
    return False
