"""``swarmtest search``: search a space of test settings, resume and replay, compare engines.

`resume_search` and `replay_trial` serve ``swarmtest resume`` and ``swarmtest replay`` for
campaigns that are searches.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import click

from swarmtest.campaign.budget import Budget, parse_seconds
from swarmtest.campaign.failing_faults import ANY, RunLives
from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.formatting import plural
from swarmtest.core.result import Result, Verdict
from swarmtest.core.sampling import Proposal
from swarmtest.processes.fork_pool import run_isolated
from swarmtest.search.engine_comparison import (
    compare_engines,
    repeat_search,
    replay_space,
    summaries,
)
from swarmtest.search.executors.wrapping import once
from swarmtest.search.exploration import Exploration
from swarmtest.search.reader import SpaceFile, load_space
from swarmtest.search.results import Fitness, combination_of, combine_results
from swarmtest.search.search import Search, SearchOutcome
from swarmtest.search.space import SearchSpace
from swarmtest.search.stopping import SearchProgress
from swarmtest.search.study_command import (
    Command,
    best_sequence_of,
    correlate,
    export,
    json_option,
    load_exploration,
    plot,
    roles,
    title_of,
)
from swarmtest.search.views import (
    comparison_text,
    format_number,
    outcome_text,
    point_text,
    progress_line,
    summaries_text,
)
from swarmtest.search.visits import Visit
from swarmtest.store import open_store
from swarmtest.store.fault_lives import FaultLife, fault_lives
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, FaultRecord
from swarmtest.ui import completion
from swarmtest.ui.help import HelpfulCommand, HelpfulGroup
from swarmtest.ui.options import campaign_argument, existing_store, latest_campaign, store_option
from swarmtest.ui.run_options import fail_on_option, parse_budget, parse_seed
from swarmtest.ui.terminal.fault_lives import announce
from swarmtest.ui.terminal.output import show_status
from swarmtest.ui.terminal.text import json_text

# Options.


def engine_option(default: str | None) -> Callable[[Command], Command]:
    """Add ``--engine``."""
    shown = f"  [default: {default}]" if default else ""
    return click.option(
        "-e",
        "--engine",
        metavar="NAME[:KEY=VALUE,...]",
        help="What proposes points: sequential, random, climb, optuna:sampler=tpe (cma, nsga2, "
        f"qmc, gp), or a strategy.{shown}",
    )


def fitness_option(default: str | None) -> Callable[[Command], Command]:
    """Add ``--fitness``."""
    shown = f"  [default: {default}]" if default else ""
    return click.option(
        "--fitness",
        metavar="MEASURE,...",
        help="What is maximised: hits, hits.KIND, failed, seconds, a measure of the test, or "
        f"FILE.py::FUNCTION; -NAME is minimised.{shown}",
    )


def search_limits(command: Command) -> Command:
    """Add the options that say when a search ends."""
    options = [
        click.option("-n", "--points", type=int, metavar="N", help="Stop after N points."),
        click.option("--time", "wall", metavar="TIME", help="Stop after this time: 30s, 5m, 2h."),
        click.option("--reach", type=float, metavar="X", help="Stop at a fitness of X."),
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


# The commands that search.


@click.group(cls=HelpfulGroup, invoke_without_command=True)
@click.pass_context
def search(context: click.Context) -> None:
    """Search a space of test settings for those that find most.

    A space has dimensions, and one of them names the test. An engine proposes points, the test runs
    at each point, and what it reached and measured is stored.

    \b
    swarmtest search run airlines.toml --engine climb --points 300
    swarmtest search correlate            which settings matter
    swarmtest search roles                which trigger or suppress a fault
    swarmtest search best-sequence        which few together reach everything
    swarmtest search compare 1            engines, on recorded results
    swarmtest search plot 1 -o space.svg  the whole space in a picture
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@search.command(cls=HelpfulCommand)
@click.argument("space", metavar="FILE.toml | FILE.py::SPACE", shell_complete=completion.files)
@engine_option("random")
@fitness_option("hits")
@search_limits
@click.option(
    "--keep",
    type=click.Choice(["all", "combined"]),
    help="What is stored of repeated tests: all results, or one per point.  [default: all]",
)
@click.option(
    "--combine",
    type=click.Choice(["cumulated", "best", "worst"]),
    help="How the results of a point are combined into one.  [default: cumulated]",
)
@click.option(
    "--seed",
    default="0",
    show_default=True,
    help="The same seed gives the same points; or `random`.",
)
@click.option(
    "--repeats", type=int, default=1, metavar="K", help="Search K times, with different seeds."
)
@click.option(
    "-j",
    "--workers",
    type=int,
    default=1,
    show_default=True,
    metavar="N",
    help="Visit N points at a time, each in its own process.",
)
@click.option("--resume", type=int, metavar="CAMPAIGN", help="Continue a search that stopped.")
@fail_on_option
@store_option
@json_option
@click.option("-q", "--quiet", is_flag=True, help="Print only the result, no progress.")
def run(space: str, **options: Any) -> int:
    """Search a space that a TOML file or a Python object describes.

    \b
    swarmtest search run airlines.toml                          all points, in random order
    swarmtest search run airlines.toml -e climb --time 10m      hill climbing, with restarts
    swarmtest search run airlines.py::space -e optuna:sampler=tpe --fitness failed -n 200
    swarmtest search run airlines.toml --fitness hits,-seconds -e optuna:sampler=nsga2
    swarmtest search run airlines.toml --resume 3               after Ctrl-C

    Exit status: 0 no fault (with --fail-on new: no new one), 1 faults found.
    """
    file = load_space(space)
    if options["resume"] is not None and options["repeats"] != 1:
        raise UserError("--resume continues one search: leave out --repeats")
    arguments = file.search | {
        name: options[name] for name in ("engine", "fitness", "keep", "combine") if options[name]
    }
    arguments |= limits_of(options)
    arguments.setdefault("engine", "random")
    arguments.setdefault("fitness", "hits")
    shown = not options["quiet"] and not options["as_json"]
    arguments |= {"file": space, "workers": options["workers"]}
    with open_store(options["store"]) as store:
        return run_searches(file.space, arguments, store, options, shown)


def run_searches(
    space: SearchSpace,
    arguments: dict[str, Any],
    store: Store,
    options: dict[str, Any],
    shown: bool,
) -> int:
    """Search once or several times with these `arguments`, and print the outcome."""
    seed = parse_seed(options["seed"])

    before = fault_lives(store, space.name)

    def make(number: int) -> Search:
        view = _Progress(before) if shown else None
        return Search(space, seed=number, isolated=True, store=store, on_progress=view, **arguments)

    if shown:
        limit = make(seed).stopping.describe()
        click.echo(f"{space.name}: {space.size:,} points, {arguments['engine']}, until {limit}")
    if options["resume"] is not None:
        outcomes = [make(store.campaign(options["resume"]).seed).run(options["resume"])]
    else:
        outcomes = repeat_search(make, options["repeats"], seed)
    if options["as_json"]:
        for outcome in outcomes:
            click.echo(json_text(_outcome_data(outcome)))
    else:
        for outcome in outcomes:
            click.echo(outcome_text(outcome, arguments["fitness"]))
        if len(outcomes) > 1:
            click.echo("\n" + summaries_text(summaries(outcomes), len(outcomes)))
    if any(outcome.interrupted for outcome in outcomes):
        return 130
    found = {fault.id: None for outcome in outcomes for fault in outcome.faults}
    lives = RunLives.until_now(before, store, space.name)
    return int(bool(lives.failing(options["fail_on"] or ANY, found)))


class _Progress:
    """A progress line, overwritten on a terminal; new faults get lines of their own."""

    def __init__(self, before: Mapping[str, FaultLife]) -> None:
        self._before = before
        self._live = sys.stderr.isatty()

    def __call__(self, progress: SearchProgress, faults: list[FaultRecord]) -> None:
        for fault in faults:
            if self._live:
                show_status("")
            click.echo(str(announce(fault, self._before)), err=True)
        if self._live:
            show_status(progress_line(progress))


def _outcome_data(outcome: SearchOutcome) -> dict[str, Any]:
    return {
        "campaign": outcome.campaign,
        "reason": outcome.reason,
        **vars(outcome.progress),
        "faults": [{"id": fault.id, "signature": fault.signature} for fault in outcome.faults],
        "notes": outcome.notes,
    }


@search.command(cls=HelpfulCommand)
@campaign_argument
@engine_option("climb")
@fitness_option("hits")
@search_limits
@click.option("--seed", default="0", show_default=True, help="The same seed gives the same points.")
@store_option
@json_option
def replay(campaign: int | None, store: str | None, **options: Any) -> int:
    """Search a recorded exploration again with another engine, without running tests.

    The search is stored as a campaign. CAMPAIGN is a number; by default, the newest.

    \b
    swarmtest search replay 1 --engine climb:restarts=0
    swarmtest search replay 1 --engine optuna:sampler=tpe --points 100
    """
    limits = limits_of(options)
    fitness = options["fitness"] or "hits"
    with existing_store(store, write=True) as opened:
        exploration = Exploration.load(opened, latest_campaign(opened, campaign))
        engine, seed = options["engine"] or "climb", parse_seed(options["seed"])
        space = replay_space(exploration)
        outcome = Search(space, engine, fitness=fitness, seed=seed, store=opened, **limits).run()
    if options["as_json"]:
        click.echo(json_text(_outcome_data(outcome)))
    else:
        click.echo(outcome_text(outcome, fitness))
    return 0


@search.command(cls=HelpfulCommand)
@campaign_argument
@click.option(
    "-e",
    "--engine",
    "engines",
    multiple=True,
    metavar="NAME[:KEY=VALUE,...]",
    help="An engine to compare. May be repeated.  [default: climb, random]",
)
@fitness_option("hits")
@click.option("-n", "--points", type=int, metavar="N", help="Each search ends after N points.")
@click.option(
    "--repeats",
    type=int,
    default=100,
    show_default=True,
    metavar="K",
    help="Search K times with each engine.",
)
@click.option("--seed", default="0", show_default=True, help="The seed of the first search.")
@store_option
@json_option
def compare(campaign: int | None, store: str | None, **options: Any) -> int:
    """Compare engines: each searches the same recorded exploration, many times.

    \b
    swarmtest search compare 1 -e climb:restarts=0 -e random --points 300
    swarmtest search compare 1 -e optuna:sampler=tpe -e optuna:sampler=qmc -n 100 --repeats 20
    """
    exploration = load_exploration(campaign, store)
    shown = not options["as_json"] and sys.stderr.isatty()
    results = compare_engines(
        exploration,
        options["engines"] or ("climb", "random"),
        options["fitness"] or "hits",
        points=options["points"],
        repeats=options["repeats"],
        seed=parse_seed(options["seed"]),
        on_progress=_replays if shown else None,
    )
    if shown:
        show_status("")
    if options["as_json"]:
        click.echo(json_text([summary.to_json() for summary in results]))
        return 0
    title = f"{title_of(exploration)}\n{options['repeats']} searches each"
    click.echo(comparison_text(results, title))
    return 0


def _replays(engine: str, done: int, count: int) -> None:
    show_status(f"{engine}: {done:,} of {count:,} searches")


for command in (best_sequence_of, correlate, roles, plot, export):
    search.add_command(command)


# Resuming a search, and replaying one of its runs.

_LONGEST = 600.0
"""The time limit in seconds of a run without another one."""
# The arguments of `Search` that are stored with its campaign.
_KEPT = ("fitness", "keep", "combine", "workers")
_LIMITS = ("points", "seconds", "reach", "faults")


def resume_search(store: Store, record: CampaignRecord, options: dict[str, Any]) -> int:
    """Continue a search for ``swarmtest resume``, with its own or with other limits."""
    file = _space_file(record, f"Search(...).run(resume={record.id})")
    stored = record.options["search"]
    arguments = {name: stored[name] for name in _KEPT if name in stored}
    arguments |= {"engine": record.strategy, "file": stored["file"]}
    arguments |= {"workers": options["workers"]} if options["workers"] else {}
    arguments |= {name: file.search[name] for name in ("before", "after") if name in file.search}
    arguments |= _limits(parse_budget(options)) or {n: stored[n] for n in _LIMITS if n in stored}
    shown = not options["quiet"] and not options["as_json"]
    run_options = options | {"resume": record.id, "repeats": 1, "seed": str(record.seed)}
    return run_searches(file.space, arguments, store, run_options, shown)


def _limits(budget: Budget | None) -> dict[str, Any]:
    """Return the limits of a campaign as those of a search: its tests are points."""
    if budget is None:
        return {}
    if budget.cpu_seconds or budget.saturation:
        raise UserError("a search ends after --tests (its points), --time, -x or --max-faults")
    limits = {"points": budget.tests, "seconds": budget.wall_seconds, "faults": budget.faults}
    return {name: value for name, value in limits.items() if value is not None}


def find_searched_trial(name: str, store: str | None) -> tuple[CampaignRecord, int] | None:
    """Return the campaign and trial with this name, if it belongs to a search."""
    if re.fullmatch(r"\d+#\d+", name):
        campaign, trial = map(int, name.split("#"))
        with existing_store(store) as opened:
            record = opened.campaign(campaign)
        return (record, trial) if "search" in record.options else None
    if not re.fullmatch(r"[0-9a-f]{8}", name):
        return None
    with existing_store(store) as opened:
        trials = [
            (record, fault.first_trial)
            for record in opened.campaigns()
            for fault in opened.faults(record.id)
            if fault.id == name
        ]
    is_search = bool(trials) and all("search" in record.options for record, _ in trials)
    return trials[-1] if is_search else None


def replay_trial(
    record: CampaignRecord, number: int, store: str | None, timeout: float | None, no_run: bool
) -> int:
    """Run a test at a point again, with the same seed."""
    file = _space_file(record, "the test itself, with its settings,")
    if file.space.to_json() != record.space:
        raise UserError(
            f"{record.options['search']['file']} now describes another space than when campaign "
            f"{record.id} searched it, so {record.id}#{number} cannot be run again"
        )
    with existing_store(store) as opened:
        trial = opened.trial(record.id, number)
    point = Configuration.from_bytes(file.space, trial.configuration)
    click.echo(f"{record.id}#{number}, {trial.origin}: seed {trial.seed}")
    click.echo(f"  {point_text(point.to_json())}")
    if no_run:
        return 0
    result = run_isolated(
        lambda: _printable_result(_run_point(record, file, point, trial.trial, trial.seed)),
        timeout or _LONGEST,
    )
    click.echo("\n" + _result_text(result, trial.fault or ""))
    return int(result.verdict == Verdict.FAILED)


def _run_point(
    record: CampaignRecord, file: SpaceFile, point: Configuration, trial: int, seed: int
) -> Result:
    """Run the point as the search did: only the one test, or all of them combined."""
    executor, stored = file.space.executor(point), record.options["search"]
    if stored["keep"] == "all":
        return once(executor).run(point, itertools.chain([seed], itertools.count(seed + 1)))[0]
    seeds = Visit(0, Proposal(point), trial).seeds(record.seed, many_of_one=True)
    combine = combination_of(stored.get("combine", "cumulated"), Fitness(stored["fitness"]))
    return combine_results(executor.run(point, seeds), combine)


def _printable_result(result: Result) -> Result:
    """Return only what is printed of a result, which can move between processes."""
    hits = {*result.hits, *(str(target) for hits in result.covered for target in hits.targets())}
    return result._replace(hits=tuple(hits), covered=(), configuration=None, test=None)


def _result_text(result: Result, recorded: str) -> str:
    """Describe a result and whether it is the recorded one."""
    numbers = [f"{name} {format_number(value)}" for name, value in result.measures.items()]
    numbers += [plural(len(result.hits), "target")] if result.hits else []
    if result.verdict == Verdict.INVALID:
        return f"invalid: {result.missing}"
    lines = [f"passes: {', '.join(numbers) or 'it measures nothing'}"]
    if result.fault is not None:
        lines = [result.fault.details.rstrip()] if result.fault.details else []
        lines.append(f"fails: fault {result.fault.id}: {result.fault.signature}")
    same = (result.fault.id if result.fault else "") == recorded
    recorded_text = f"fault {recorded}" if recorded else "a pass"
    lines.append("the same as recorded" if same else f"not what was recorded: {recorded_text}")
    return "\n".join(lines)


def _space_file(record: CampaignRecord, instead: str) -> SpaceFile:
    file = record.options["search"].get("file")
    if not file:
        raise UserError(
            f"campaign {record.id} is a search that was started from Python: call {instead} in the "
            f"program that defines the space of {record.subject}"
        )
    return load_space(file)
