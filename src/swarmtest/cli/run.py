"""``swarmtest run`` and ``swarmtest resume``."""

from __future__ import annotations

import json
import signal
from typing import Any

import click

from swarmtest.campaign import Budget, Campaign, Limits, Outcome
from swarmtest.campaign.budget import parse_bytes
from swarmtest.campaign.handing_over import hand_over_faults
from swarmtest.cli.avoid import avoid_option, avoiding_faults
from swarmtest.cli.options import (
    budget_options,
    coverage_options,
    existing_store,
    latest_campaign,
    parse_budget,
    parse_coverage,
    parse_seed,
    parse_subject,
    refuse_imported,
    store_option,
    subject_options,
    view_options,
    workers_option,
)
from swarmtest.errors import UserError
from swarmtest.report.coverage import campaign_tally, coverage_lines
from swarmtest.report.progress import JsonLines, ProgressView, view_for
from swarmtest.report.roles import study_or_none, why_in_short
from swarmtest.report.terminal import command_text, fault_configurations, outcome_text, plural
from swarmtest.store import Store, open_store
from swarmtest.strategies import strategy_text

_LEAST_MEMORY = 64 << 20
_NAMED = 8
_QUICKLY_STUDIED = 200_000
"""Tests that are studied within a second or two."""
_DEFAULT_BUDGET = Budget(tests=10_000, wall_seconds=60.0)


@click.command()
@click.argument("path", metavar="PATH[::MACHINE]")
@click.option(
    "-s",
    "--strategy",
    metavar="NAME[:KEY=VALUE,...]",
    help="Who chooses the configurations; `swarmtest strategies` lists them.  [default: layered; "
    "coin where features can only be on or off]",
)
@budget_options
@click.option(
    "--seed", default="0", show_default=True, help="Same seed, same tests; `random` for another."
)
@workers_option
@subject_options
@click.option(
    "--memory",
    default="auto",
    show_default=True,
    metavar="SIZE",
    help="Memory of one worker: 512MB, 2GB, none; auto: its share of the machine.",
)
@avoid_option
@coverage_options
@click.option("--keep-tests", is_flag=True, help="Store every test whole, not only failing ones.")
@click.option(
    "--allow-unused", is_flag=True, help="Do not mind actions that never ran (exit status 2)."
)
@store_option
@view_options
def run(path: str, **options: Any) -> int:
    """Test a machine: generate random tests from a swarm of configurations, and run them.

    PATH is a Python file or module with a Machine; with --api, MODULE:CLASS or FILE.py::CLASS is
    any class. Without limits, a campaign ends after 10,000 tests or 60 seconds.
    """
    reference = parse_subject(path, options)
    budget = parse_budget(options) or _DEFAULT_BUDGET
    store = open_store(options["store"])
    if options["avoid"]:
        quiet = options["quiet"] or options["as_json"]
        reference = avoiding_faults(reference, store, options["avoid"], quiet)
    view = _view(budget, options)
    try:
        campaign = Campaign(
            reference,
            options["strategy"],
            budget,
            parse_seed(options["seed"]),
            options["workers"],
            store,
            limits=Limits(options["timeout"], _memory(options["memory"])),
            keep_tests=options["keep_tests"],
            coverage=parse_coverage(options),
            on_progress=view.update,
        )
        return _run(campaign, view, options)
    finally:
        view.end()


@click.command()
@click.argument("campaign", type=int, required=False)
@budget_options
@workers_option
@click.option(
    "--allow-unused", is_flag=True, help="Do not mind actions that never ran (exit status 2)."
)
@store_option
@view_options
def resume(campaign: int | None, **options: Any) -> int:
    """Go on with a campaign that was interrupted, or give a finished one a larger budget.

    CAMPAIGN is its number; the newest one if left out.
    """
    store = existing_store(options["store"], write=True)
    number = latest_campaign(store, campaign)
    record = store.campaign(number)
    refuse_imported(record, "resumed")
    known = Budget(**record.options["budget"])
    budget = parse_budget(options) or known
    view = _view(budget, options)
    try:
        resumed = Campaign.resume(store, number, budget, options["workers"], view.update)
        return _run(resumed, view, options)
    finally:
        view.end()


def _run(campaign: Campaign, view: ProgressView, options: dict[str, Any]) -> int:
    signal.signal(signal.SIGTERM, lambda number, frame: signal.raise_signal(signal.SIGINT))
    if isinstance(view, JsonLines):
        view.event(
            "start",
            {
                "subject": campaign.subject.name,
                "strategy": strategy_text(campaign.strategy),
                "seed": campaign.seed,
                "features": list(campaign.subject.space.feature_names),
                "constraints": [str(c) for c in campaign.subject.space.constraints],
                "coverage": list(campaign.coverage.kinds) if campaign.coverage else [],
            },
        )
    elif not options["quiet"]:
        click.echo(
            f"{campaign.subject.name}: {plural(len(campaign.subject.space.features), 'feature')}, "
            f"strategy {strategy_text(campaign.strategy)}, seed {campaign.seed}, "
            f"{plural(campaign.workers, 'worker') if campaign.workers else 'in this process'}, "
            f"until {campaign.budget.describe()}"
            + (f", coverage {','.join(campaign.coverage.kinds)}" if campaign.coverage else "")
        )
    left_out = getattr(getattr(campaign.subject, "machine", None), "left_out", ())
    if left_out and not options["quiet"] and not isinstance(view, JsonLines):
        click.echo(f"left out, for want of type hints: {', '.join(left_out)}")
    outcome = campaign.run()
    view.end()
    handed = [] if outcome.interrupted else hand_over_faults(campaign.subject, outcome.faults)
    with open_store(outcome.store, read_only=True) as store:
        _report(campaign, store, outcome, view, handed)
    return _status(outcome, options, steps=campaign.subject.part == "step")


def _view(budget: Budget, options: dict[str, Any]) -> ProgressView:
    return view_for(
        budget,
        quiet=options["quiet"],
        as_json=options["as_json"],
        workers=options["workers"],
    )


def _report(
    campaign: Campaign, store: Store, outcome: Outcome, view: ProgressView, handed: list[str]
) -> None:
    """`handed`: what became of faults that another tool keeps as well."""
    tally = campaign_tally(store, outcome.campaign)
    if isinstance(view, JsonLines):
        faults = [
            fault._asdict() | {"test": json.loads(fault.test) if fault.test else None}
            for fault in outcome.faults
        ]
        view.event(
            "end",
            {
                "campaign": outcome.campaign,
                "reason": outcome.reason,
                "progress": vars(outcome.progress),
                "faults": faults,
                "unused": outcome.unused,
                "notes": [*outcome.notes, *handed],
                "coverage": tally.shares(),
                "coverage_missing": dict(tally.missing),
            },
        )
        return
    for note in [*outcome.notes, *_never_seen(campaign, outcome)]:
        click.echo(f"note: {note}")
    configurations = fault_configurations(store, outcome.campaign, outcome.faults)
    click.echo(outcome_text(outcome, campaign.subject, configurations, _why(store, outcome)))
    if outcome.faults:
        command = command_text(f"roles {outcome.campaign}", outcome.store)
        click.echo(f"  why, with intervals: {command}")
    for line in handed:
        click.echo(f"  {line}")
    if campaign.coverage is not None or tally.catalogue.targets:  # native code needs no option
        command = command_text(f"coverage {outcome.campaign}", outcome.store)
        click.echo("\n" + "\n".join(coverage_lines(tally, command)))
    if outcome.interrupted:
        command = command_text(f"resume {outcome.campaign}", outcome.store)
        click.echo(f"\neverything so far is kept; go on with: {command}")


def _never_seen(campaign: Campaign, outcome: Outcome) -> list[str]:
    """Of generators, features that never appeared are worth a note; they may just be rare."""
    if not outcome.unused or campaign.subject.part == "step":
        return []
    names = list(outcome.unused)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return [f"allowed, but in no test: {', '.join(names[:_NAMED])}{more}"]


def _why(store: Store, outcome: Outcome) -> dict[str, list[str]]:
    """Triggers and suppressors in short, unless a long campaign would make its user wait."""
    if not outcome.faults or outcome.progress.tests > _QUICKLY_STUDIED:
        return {}
    return why_in_short(study_or_none(store, outcome.campaign))


def _status(outcome: Outcome, options: dict[str, Any], *, steps: bool) -> int:
    """The exit status; `steps`: tests are made of actions, and one that never runs is a mistake."""
    if outcome.interrupted:
        return 130
    if outcome.progress.tests and outcome.progress.invalid == outcome.progress.tests:
        raise UserError(
            f"none of the {plural(outcome.progress.tests, 'test')} was valid, so nothing was "
            f"tested: see `{command_text(f'show {outcome.campaign}', outcome.store)}`"
        )
    every_test_failed = outcome.progress.failed == outcome.progress.tests
    if outcome.unused and not options["allow_unused"] and not every_test_failed and steps:
        name, tests = next(iter(outcome.unused.items()))
        others = f" (and {len(outcome.unused) - 1} more)" if len(outcome.unused) > 1 else ""
        raise UserError(
            f"action {name!r}{others} was allowed in {tests:,} tests and never ran: its guard was "
            "never true (or its pool always empty); mend its when=, lengthen the tests with "
            "--steps, or pass --allow-unused; the campaign is kept"
        )
    return 1 if outcome.faults else 0


def _memory(text: str) -> int | str:
    if text == "auto":
        return text
    size = 0 if text == "none" else parse_bytes(text)
    if 0 < size < _LEAST_MEMORY:
        raise UserError(f"--memory {text}: a worker needs at least 64MB")
    return size
