"""``swarmtest compare``: which strategy finds more, and was swarm testing worth it?"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Sequence
from typing import Any

import click
from click.core import ParameterSource

from swarmtest.analysis.intervals import normal_quantile
from swarmtest.compare.comparison import compare_campaigns
from swarmtest.compare.repeated_runs import DEFAULT_TESTS, Speaker, plan_runs, run_all
from swarmtest.compare.views import comparison_text
from swarmtest.core.errors import UserError
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.strategies.strategy import parse_strategy, strategy_text
from swarmtest.ui.options import (
    campaign_numbers,
    confidence_option,
    existing_store,
    screen_width,
    store_option,
)
from swarmtest.ui.run_options import coverage_options, subject_options, view_options, workers_option
from swarmtest.ui.terminal.text import json_text

_OF_RESULTS = {"arguments", "baseline", "confidence", "store", "as_json", "quiet"}
"""Options that also make sense for campaigns that are in the store already."""


@click.command()
@click.argument("arguments", nargs=-1, metavar="PATH[::MACHINE] | CAMPAIGN...")
@click.option(
    "--strategies",
    multiple=True,
    metavar="NAME,NAME,...",
    help="Strategies to compare, with parameters in parentheses: default,coin(p=0.3,n=100). "
    "May be repeated.  [default: default,coin, and layered where features have weights]",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="Number of runs of each strategy, with seeds SEED, SEED + 1, ...",
)
@click.option(
    "-n",
    "--tests",
    type=int,
    metavar="N",
    help=f"Stop each run after N tests.  [default: {DEFAULT_TESTS:,}, without another limit]",
)
@click.option("--time", "wall", metavar="TIME", help="Stop each run after this time: 30s, 5m.")
@click.option(
    "--cpu-time",
    "cpu",
    metavar="TIME",
    help="Stop each run when its tests have used this much CPU time.",
)
@click.option(
    "--seed",
    default="0",
    show_default=True,
    help="Seed of the first run of each strategy; `random` draws one.",
)
@workers_option
@subject_options
@coverage_options
@click.option(
    "--continue",
    "go_on",
    is_flag=True,
    help="Continue an interrupted comparison: do not repeat runs that are in the store.",
)
@click.option(
    "--baseline",
    default="",
    metavar="NAME",
    help="The strategy that the others are compared with.  [default: "
    "`default` if it is there, else the first]",
)
@confidence_option
@store_option
@view_options
@click.pass_context
def compare(context: click.Context, /, arguments: tuple[str, ...], **options: Any) -> int:
    """Compare what strategies find with equal tests and with equal CPU time.

    With a PATH, run every strategy with several seeds, in turns, and compare them. Each run is an
    ordinary campaign in the store. With numbers of campaigns, compare these campaigns.

    \b
    swarmtest compare stack.py     default, coin and layered, 10 runs each of 1,000 tests
    swarmtest compare stack.py --strategies default,coin --repeat 20 --cpu-time 10s
    swarmtest compare 3 4 5 6      campaigns of the store
    swarmtest compare 1-20         campaigns 1 to 20
    """
    normal_quantile(options["confidence"])  # raises the error for a bad value before anything runs
    numbers = [campaign_numbers(argument) for argument in arguments]
    if not arguments:
        raise UserError("say what to compare: a PATH to run, or the numbers of campaigns")
    if all(numbers):
        _refuse_run_options(context)
        return _compare_stored([number for group in numbers for number in group], options)
    if len(arguments) > 1:
        raise UserError(
            f"{' '.join(arguments)}: name one PATH to run, or numbers of campaigns, not both"
        )
    return _compare_path(arguments[0], options)


def _compare_stored(campaigns: Sequence[int], options: dict[str, Any]) -> int:
    with existing_store(options["store"]) as store:
        notes = []
        if not any(store.sources(store.campaign(number).id) for number in campaigns):
            notes = [
                "no campaign watched code (--coverage), so only the machine is known to have been "
                "the same in all of them, not the program"
            ]
        _show(store, campaigns, options, notes)
    return 0


def _compare_path(path: str, options: dict[str, Any]) -> int:
    plan = plan_runs(path, options)
    signal.signal(signal.SIGTERM, lambda number, frame: signal.raise_signal(signal.SIGINT))
    say = Speaker(options["quiet"], options["as_json"])
    say.start(plan)
    with open_store(options["store"]) as store:
        done = run_all(plan, store, say)
        if done.interrupted:
            say.interrupted(plan, done, store.url)
            return 130
        _show(store, done.campaigns, options, done.notes)
        say.again(done.campaigns, store.url)
    return 0


def _show(
    store: Store, campaigns: Sequence[int], options: dict[str, Any], notes: Iterable[str]
) -> None:
    baseline = options["baseline"] and strategy_text(parse_strategy(options["baseline"]))
    comparison = compare_campaigns(store, campaigns, baseline, options["confidence"], notes)
    if options["as_json"]:
        click.echo(json_text({"event": "comparison"} | comparison.to_json()))
    else:
        click.echo(comparison_text(comparison, screen_width()))


def _refuse_run_options(context: click.Context) -> None:
    for parameter in context.command.params:
        was_given = context.get_parameter_source(str(parameter.name)) == ParameterSource.COMMANDLINE
        if was_given and parameter.name not in _OF_RESULTS:
            raise UserError(
                f"{parameter.opts[-1]} goes with a PATH to run; these campaigns are there already"
            )
