"""``swarmtest compare``: which strategy finds more, and was swarm testing worth it?"""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click
from click.core import ParameterSource

from swarmtest.analysis.intervals import normal_quantile
from swarmtest.campaign.budget import Budget, Limits, Progress
from swarmtest.compare.comparison import Comparison, compare_campaigns
from swarmtest.compare.repeated_runs import (
    DEFAULT_REPEATS,
    DEFAULT_TESTS,
    ComparisonPlan,
    ComparisonRun,
    ComparisonRuns,
    plan_comparison,
)
from swarmtest.compare.views import comparison_text
from swarmtest.core.errors import UserError
from swarmtest.core.formatting import plural
from swarmtest.store import open_store
from swarmtest.store.interface import redacted
from swarmtest.strategies.strategy import parse_strategy, strategy_text
from swarmtest.ui import completion
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import (
    campaign_numbers,
    confidence_option,
    existing_store,
    latest_campaign,
    screen_width,
    store_option,
)
from swarmtest.ui.run_options import (
    coverage_options,
    parse_budget,
    parse_coverage,
    parse_seed,
    parse_subject,
    subject_options,
    view_options,
    workers_option,
)
from swarmtest.ui.terminal.tables import command_text, wrapped
from swarmtest.ui.terminal.text import json_text

_OF_RESULTS = {"arguments", "baseline", "confidence", "store", "as_json", "quiet"}
"""Options that also make sense for campaigns that are in the store already."""


@click.command(cls=HelpfulCommand)
@click.argument(
    "arguments", nargs=-1, metavar="PATH[::MACHINE] | CAMPAIGN...", shell_complete=completion.files
)
@click.option(
    "--strategies",
    multiple=True,
    metavar="NAME,NAME,...",
    help="The strategies, parameters in parentheses: all-on,coin(p=0.3,n=100). May be repeated.  "
    "[default: all-on,coin, and layered where features have weights]",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=DEFAULT_REPEATS,
    show_default=True,
    metavar="N",
    help="Number of runs of each strategy, with seeds SEED, SEED + 1, ...",
)
@click.option(
    "-n",
    "--tests",
    type=int,
    metavar="N",
    help=f"Stop each run after N tests.  [default: {DEFAULT_TESTS:,} if no other limit is given]",
)
@click.option("--time", "wall", metavar="TIME", help="Stop each run after this time: 30s, 5m.")
@click.option("--cpu-time", "cpu", metavar="TIME", help="Stop each run after this CPU time.")
@click.option(
    "--seed", default="0", show_default=True, help="Seed of the first repeat, or `random`."
)
@workers_option
@subject_options
@coverage_options
@click.option(
    "--continue",
    "go_on",
    is_flag=True,
    help="Run only what the store does not have yet: the rest of an interrupted comparison.",
)
@click.option(
    "--baseline",
    default="",
    metavar="NAME",
    help="Compare the others with this strategy.  [default: all-on if it is among them, else "
    "the first]",
)
@confidence_option
@store_option
@view_options
@click.pass_context
def compare(context: click.Context, /, arguments: tuple[str, ...], **options: Any) -> int:
    """Compare what strategies find with equal tests and with equal CPU time.

    With a PATH, run every strategy with several seeds, in turn, and compare what they find. Each
    run is an ordinary campaign in the store. With numbers of campaigns, run nothing and compare
    those.

    \b
    swarmtest compare stack.py     all-on, coin and layered, 10 runs each
    swarmtest compare stack.py --strategies all-on,coin --repeat 20 --cpu-time 10s
    swarmtest compare 3 4 5 6      campaigns that are in the store
    swarmtest compare 1-20         from 1 to 20
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
        campaigns = [latest_campaign(store, number) for number in campaigns]
        notes = []
        if not any(store.sources(store.campaign(number).id) for number in campaigns):
            notes = [
                "no campaign watched code (--coverage), so only the machine is known to have been "
                "the same in all of them, not the program"
            ]
        baseline = options["baseline"] and strategy_text(parse_strategy(options["baseline"]))
        comparison = compare_campaigns(store, campaigns, baseline, options["confidence"], notes)
    _print_comparison(comparison, options)
    return 0


def _compare_path(path: str, options: dict[str, Any]) -> int:
    budget = parse_budget(options)
    plan = plan_comparison(
        parse_subject(path, options),
        options["strategies"],
        budget or Budget(tests=DEFAULT_TESTS),
        options["repeat"],
        parse_seed(options["seed"]),
        baseline=options["baseline"],
        workers=options["workers"],
        limits=Limits(options["timeout"], options["memory"]),
        coverage=parse_coverage(options),
    )
    signal.signal(signal.SIGTERM, lambda number, frame: signal.raise_signal(signal.SIGINT))
    printer = _Printer(options["quiet"], options["as_json"])
    printer.start(path, plan, has_limit=budget is not None)
    with open_store(options["store"]) as store:
        done = plan.run(
            store,
            reuse=options["go_on"],
            confidence=options["confidence"],
            progress=printer.run_is_done,
        )
    if done.comparison is None:
        rest = command_for_the_rest(sys.argv[1:], options, plan.seeds.start)
        printer.interrupted(plan.runs, done, rest)
        return 130
    _print_comparison(done.comparison, options)
    printer.how_to_show_again(done)
    return 0


def _print_comparison(comparison: Comparison, options: dict[str, Any]) -> None:
    if options["as_json"]:
        click.echo(json_text({"event": "comparison"} | comparison.to_json()))
    else:
        click.echo(comparison_text(comparison, screen_width()))


class _Printer:
    """Prints progress: lines for people, JSON lines for programs, or nothing."""

    def __init__(self, quiet: bool, as_json: bool) -> None:
        self._quiet = quiet
        self._as_json = as_json

    def start(self, path: str, plan: ComparisonPlan, has_limit: bool) -> None:
        """Print what is going to be run."""
        if self._as_json:
            fields = {"strategies": plan.strategies, "seeds": [*plan.seeds], "runs": plan.runs}
            self._event("start", subject=path, **fields)
        elif not self._quiet:
            default = "" if has_limit else " (--tests says how many)"
            self._say(
                f"{path}: {', '.join(plan.strategies)}; "
                f"{plural(len(plan.seeds), 'repeat')}, {plural(plan.runs, 'run')}, "
                f"each until {plan.budget.describe()}{default}"
            )

    def run_is_done(self, run: ComparisonRun) -> None:
        """Print that one run is done, or was in the store already."""
        if self._as_json:
            fields = {"campaign": run.campaign, "strategy": run.strategy, "seed": run.seed}
            if run.progress is None:
                self._event("kept", **fields)
            else:
                self._event("run", **fields, progress=asdict(run.progress))
        elif not self._quiet:
            self._say(
                f"run {run.number} of {run.runs}: campaign {run.campaign}, {run.strategy}, "
                f"seed {run.seed}: {_progress_text(run.progress)}"
            )
            if run.number == run.runs:
                click.echo()

    def how_to_show_again(self, done: ComparisonRuns) -> None:
        """Print the command that shows the result without running anything."""
        if not self._as_json:
            click.echo(f"\nshow this again: {command_again(done.campaigns, done.store)}")

    def interrupted(self, runs: int, done: ComparisonRuns, rest: str) -> None:
        """Print which runs are done, and how to run the rest."""
        if self._as_json:
            fields = {"campaigns": done.campaigns, "unfinished": done.unfinished or None}
            self._event("interrupted", **fields, rest=rest)
            return
        click.echo(f"interrupted: {len(done.campaigns)} of {runs} runs are done, and kept")
        click.echo(f"run the rest: {rest}")
        if len(done.campaigns) >= 2:
            click.echo(f"compare what is done: {command_again(done.campaigns, done.store)}")

    def _say(self, text: str) -> None:
        click.echo(wrapped(text, screen_width(), "  "))

    def _event(self, kind: str, **fields: Any) -> None:
        click.echo(json_text({"event": kind} | fields))


def _progress_text(progress: Progress | None) -> str:
    if progress is None:
        return "in the store already"
    targets = f", {plural(progress.targets, 'target')}" if progress.targets else ""
    return (
        f"{plural(progress.tests, 'test')}, {plural(progress.faults, 'fault')}{targets} "
        f"in {progress.wall_seconds:.1f} s"
    )


def command_for_the_rest(words: Sequence[str], options: dict[str, Any], seed: int) -> str:
    """Return the command that was typed, changed so that it continues where it was interrupted."""
    more = [] if options["go_on"] else ["--continue"]
    if options["seed"] == "random":
        more += ["--seed", str(seed)]
    return shlex.join(["swarmtest", *map(redacted, words), *more])


def command_again(campaigns: Sequence[int], store: str) -> str:
    """Return the command that shows these campaigns again.

    >>> command_again([3, 4, 5, 8], ".swarmtest/swarmtest.db")
    'swarmtest compare 3-5 8'
    """
    groups: list[list[int]] = []
    for campaign in campaigns:
        if groups and campaign == groups[-1][-1] + 1:
            groups[-1].append(campaign)
        else:
            groups.append([campaign])
    words = [str(g[0]) if len(g) == 1 else f"{g[0]}-{g[-1]}" for g in groups]
    return command_text(f"compare {' '.join(words)}", store)


def _refuse_run_options(context: click.Context) -> None:
    for parameter in context.command.params:
        was_given = context.get_parameter_source(str(parameter.name)) == ParameterSource.COMMANDLINE
        if was_given and parameter.name not in _OF_RESULTS:
            raise UserError(
                f"{parameter.opts[-1]} goes with a PATH to run; campaigns in the store are not "
                "run again"
            )
