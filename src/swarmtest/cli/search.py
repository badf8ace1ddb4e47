"""``swarmtest search``: look for the best settings of a test, and study what was found."""

from __future__ import annotations

import sys
from typing import Any

import click

from swarmtest.cli.options import existing_store, latest_campaign, store_option
from swarmtest.cli.run_options import parse_seed
from swarmtest.cli.search_options import (
    campaign_argument,
    engine_option,
    fitness_option,
    json_option,
    limits_of,
    loaded,
    search_limits,
    title_of,
)
from swarmtest.cli.search_study import best_sequence_of, correlate, export, plot, roles
from swarmtest.errors import UserError
from swarmtest.report.quantities import json_text
from swarmtest.report.search import (
    comparison_text,
    outcome_text,
    progress_line,
    summaries_text,
)
from swarmtest.search.comparing import compare_engines, replay_space
from swarmtest.search.exploration import Exploration
from swarmtest.search.outcome import SearchOutcome
from swarmtest.search.reading import load_space
from swarmtest.search.repeating import repeat_search, summaries
from swarmtest.search.search import Search
from swarmtest.search.space import SearchSpace
from swarmtest.search.stopping import SearchProgress
from swarmtest.store import FaultRecord, Store, open_store


@click.group(invoke_without_command=True)
@click.pass_context
def search(context: click.Context) -> None:
    """Search a space of test settings: which threads, which noise, which options find most.

    A space has dimensions, of which exactly one names the test; an engine proposes points, the test
    runs there, and what it reached and measured is kept.

    \b
    swarmtest search run airlines.toml --engine climb --points 300
    swarmtest search correlate            which settings matter
    swarmtest search roles                which settings trigger or suppress a fault
    swarmtest search best-sequence        which few settings together reach everything
    swarmtest search compare 1 -e climb -e random   engines on what is recorded
    swarmtest search plot 1 -o space.svg  the whole space in a picture
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@search.command()
@click.argument("space", metavar="FILE.toml | FILE.py::SPACE")
@engine_option("random")
@fitness_option("hits")
@search_limits
@click.option(
    "--keep",
    type=click.Choice(["all", "combined"]),
    help="Of repeated tests: all results, or one per point.  [default: all]",
)
@click.option(
    "--combine",
    type=click.Choice(["cumulated", "best", "worst"]),
    help="How results of a point become one.  [default: cumulated]",
)
@click.option("--seed", default="0", show_default=True, help="Same seed, same points; or `random`.")
@click.option("--repeats", type=int, default=1, metavar="K", help="Search K times, other seeds.")
@click.option(
    "-w",
    "--workers",
    type=int,
    default=1,
    show_default=True,
    metavar="N",
    help="Visit N points at a time, each in a process of its own.",
)
@click.option("--resume", type=int, metavar="CAMPAIGN", help="Go on with a search that stopped.")
@store_option
@json_option
@click.option("-q", "--quiet", is_flag=True, help="Only the result, no progress.")
def run(space: str, **options: Any) -> int:
    """Search a space that a TOML file or a Python object describes.

    \b
    swarmtest search run airlines.toml                          all points, in random order
    swarmtest search run airlines.toml -e climb --time 10m      uphill, with restarts
    swarmtest search run airlines.py::space -e optuna:sampler=tpe --fitness failed -n 200
    swarmtest search run airlines.toml --fitness hits,-seconds -e optuna:sampler=nsga2
    swarmtest search run airlines.toml --resume 3               after Ctrl-C

    Exit status 1 if a test failed.
    """
    file = load_space(space)
    if options["resume"] is not None and options["repeats"] != 1:
        raise UserError("--resume goes on with one search: leave --repeats out")
    told = file.search | {
        name: options[name] for name in ("engine", "fitness", "keep", "combine") if options[name]
    }
    told |= limits_of(options)
    told.setdefault("engine", "random")
    told.setdefault("fitness", "hits")
    shown = not options["quiet"] and not options["as_json"]
    told |= {"file": space, "workers": options["workers"]}
    with open_store(options["store"]) as store:
        return run_searches(file.space, told, store, options, shown)


def run_searches(
    space: SearchSpace, told: dict[str, Any], store: Store, options: dict[str, Any], shown: bool
) -> int:
    """Search as `told` says, once or several times, and print what came of it."""
    seed = parse_seed(options["seed"])

    def make(number: int) -> Search:
        view = _Progress() if shown else None
        return Search(space, seed=number, store=store, on_progress=view, **told)

    if shown:
        limit = make(seed).stopping.describe()
        click.echo(f"{space.name}: {space.size:,} points, {told['engine']}, until {limit}")
    if options["resume"] is not None:
        outcomes = [make(store.campaign(options["resume"]).seed).run(options["resume"])]
    else:
        outcomes = repeat_search(make, options["repeats"], seed)
    if options["as_json"]:
        for outcome in outcomes:
            click.echo(json_text(_outcome_data(outcome)))
    else:
        for outcome in outcomes:
            click.echo(outcome_text(outcome, told["fitness"]))
        if len(outcomes) > 1:
            click.echo("\n" + summaries_text(summaries(outcomes), len(outcomes)))
    if any(outcome.interrupted for outcome in outcomes):
        return 130
    return int(any(outcome.faults for outcome in outcomes))


class _Progress:
    """A line that is written over on a terminal; new faults as lines of their own."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()

    def __call__(self, progress: SearchProgress, faults: list[FaultRecord]) -> None:
        clear = "\r\x1b[K" if self._live else ""
        for fault in faults:
            click.echo(f"{clear}new fault {fault.id}: {fault.signature}", err=True)
        if self._live:
            click.echo(f"{clear}{progress_line(progress)}", nl=False, err=True)


def _outcome_data(outcome: SearchOutcome) -> dict[str, Any]:
    return {
        "campaign": outcome.campaign,
        "reason": outcome.reason,
        **vars(outcome.progress),
        "faults": [{"id": one.id, "signature": one.signature} for one in outcome.faults],
        "notes": outcome.notes,
    }


@search.command()
@campaign_argument
@engine_option("climb")
@fitness_option("hits")
@search_limits
@click.option("--seed", default="0", show_default=True, help="Same seed, same points.")
@store_option
@json_option
def replay(campaign: int | None, store: str | None, **options: Any) -> int:
    """Search a recorded exploration: no test runs, and results are there at once.

    The search is kept as a campaign of its own.

    \b
    swarmtest search replay 1 --engine climb:restarts=0
    swarmtest search replay 1 --engine optuna:sampler=tpe --points 100
    """
    told = limits_of(options)
    fitness = options["fitness"] or "hits"
    with existing_store(store, write=True) as opened:
        exploration = Exploration.load(opened, latest_campaign(opened, campaign))
        engine, seed = options["engine"] or "climb", parse_seed(options["seed"])
        space = replay_space(exploration)
        outcome = Search(space, engine, fitness=fitness, seed=seed, store=opened, **told).run()
    if options["as_json"]:
        click.echo(json_text(_outcome_data(outcome)))
    else:
        click.echo(outcome_text(outcome, fitness))
    return 0


@search.command()
@campaign_argument
@click.option(
    "-e",
    "--engine",
    "engines",
    multiple=True,
    metavar="NAME[:KEY=VALUE,...]",
    help="May be repeated.  [default: climb, random]",
)
@fitness_option("hits")
@click.option("-n", "--points", type=int, metavar="N", help="Each search ends after N points.")
@click.option("--repeats", type=int, default=100, show_default=True, metavar="K")
@click.option("--seed", default="0", show_default=True, help="Of the first search.")
@store_option
@json_option
def compare(campaign: int | None, store: str | None, **options: Any) -> int:
    """Compare engines fairly: each searches the same recorded exploration, many times.

    \b
    swarmtest search compare 1 -e climb:restarts=0 -e random --points 300
    swarmtest search compare 1 -e optuna:sampler=tpe -e optuna:sampler=qmc -n 100 --repeats 20
    """
    exploration = loaded(campaign, store)
    shown = not options["as_json"] and sys.stderr.isatty()
    found = compare_engines(
        exploration,
        options["engines"] or ("climb", "random"),
        options["fitness"] or "hits",
        points=options["points"],
        repeats=options["repeats"],
        seed=parse_seed(options["seed"]),
        on_progress=_replays if shown else None,
    )
    if shown:
        click.echo("\r\x1b[K", nl=False, err=True)
    if options["as_json"]:
        click.echo(json_text([one.to_json() for one in found]))
        return 0
    title = f"{title_of(exploration)}\n{options['repeats']} searches each"
    click.echo(comparison_text(found, title))
    return 0


def _replays(engine: str, done: int, count: int) -> None:
    click.echo(f"\r\x1b[K{engine}: {done:,} of {count:,} searches", nl=False, err=True)


for command in (best_sequence_of, correlate, roles, plot, export):
    search.add_command(command)
