"""``swarmtest run`` and ``swarmtest resume``: running a campaign, and reducing its faults."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import click

from swarmtest.campaign.budget import Budget, Limits
from swarmtest.campaign.campaign import Campaign, Outcome
from swarmtest.campaign.failing_faults import ANY, NEW, RunLives
from swarmtest.campaign.reduced_faults import FaultReductions, reductions_of
from swarmtest.core.errors import UserError
from swarmtest.core.formatting import plural
from swarmtest.reduce.hypothesis_export import hand_over_faults
from swarmtest.store import open_store
from swarmtest.store.fault_lives import fault_lives, lives_by_recorded_fault
from swarmtest.store.interface import Store
from swarmtest.strategies.strategy import strategy_text
from swarmtest.subjects.machine.subject import MachineSubject
from swarmtest.subjects.subject import Subject
from swarmtest.ui import completion
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import (
    campaign_argument,
    existing_store,
    latest_campaign,
    refuse_imported,
    refuse_running,
    store_option,
)
from swarmtest.ui.run_options import (
    avoid_option,
    budget_options,
    coverage_options,
    executor_options,
    fail_on_option,
    parse_budget,
    parse_coverage,
    parse_executor_options,
    parse_reduction_time,
    parse_seed,
    parse_subject,
    reduce_options,
    subject_options,
    tolerate_option,
    view_options,
    why_option,
    workers_option,
)
from swarmtest.ui.run_report import report_outcome
from swarmtest.ui.terminal.progress import JsonLines, ProgressView, view_for
from swarmtest.ui.terminal.tables import command_text

_DEFAULT_BUDGET = Budget(tests=10_000, wall_seconds=60.0)


@click.command(cls=HelpfulCommand)
@click.argument("path", metavar="PATH[::MACHINE]", shell_complete=completion.files)
@click.option(
    "-s",
    "--strategy",
    shell_complete=completion.strategies,
    metavar="NAME[:KEY=VALUE,...]",
    help="How configurations are chosen; `swarmtest strategies` lists the names.  [default: "
    "layered; coin where features can only be on or off]",
)
@budget_options
@click.option(
    "--seed",
    default="0",
    show_default=True,
    help="The same seed gives the same tests; `random` picks one.",
)
@workers_option
@executor_options
@subject_options
@avoid_option
@tolerate_option
@coverage_options
@reduce_options
@why_option
@fail_on_option
@click.option("--keep-tests", is_flag=True, help="Store every test, not only failing ones.")
@click.option(
    "--allow-unused", is_flag=True, help="Accept actions that never ran, instead of exit status 2."
)
@store_option
@view_options
def run(path: str, **options: Any) -> int:
    """Generate random tests from a swarm of configurations, and run them.

    \b
    swarmtest run stack.py                    until 10,000 tests or 60 seconds
    swarmtest run stack.py --time 10m -j 8    for ten minutes, with eight workers
    swarmtest run shop.cart:Cart --api        any class, without a machine
    swarmtest run stack.py --coverage line    also see what tests reach

    PATH is a Python file or module with a Machine; with --api, MODULE:CLASS or FILE.py::CLASS is
    any class. Without limits, a campaign ends after 10,000 tests or 60 seconds.

    Exit status: 0 no fault (with --fail-on new: no new one), 1 faults, 2 something to fix,
    130 interrupted.
    """
    reference = parse_subject(path, options)
    budget = parse_budget(options) or _DEFAULT_BUDGET
    parse_reduction_time(options)  # to refuse wrong options before the campaign, not after it
    store = open_store(options["store"])
    if options["tolerate"]:
        from swarmtest.ui.commands.avoid import tolerating_faults

        reference = tolerating_faults(reference, store, options["tolerate"])
    if options["avoid"]:
        from swarmtest.ui.commands.avoid import avoiding_faults

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
            limits=Limits(options["timeout"], options["memory"]),
            keep_tests=options["keep_tests"],
            coverage=parse_coverage(options),
            on_progress=view.update,
            executor=parse_executor_options(options),
        )
        return _run(campaign, store, view, options)
    finally:
        view.end()


@click.command(cls=HelpfulCommand)
@campaign_argument
@budget_options
@workers_option
@executor_options
@reduce_options
@why_option
@fail_on_option
@click.option(
    "--allow-unused", is_flag=True, help="Accept actions that never ran, instead of exit status 2."
)
@store_option
@view_options
def resume(campaign: int | None, **options: Any) -> int:
    """Continue a campaign that was interrupted, or give a finished one a larger budget.

    \b
    swarmtest resume                 the newest campaign
    swarmtest resume 3 -n 100000     campaign 3, until it has 100,000 tests

    CAMPAIGN is its number; the default is the newest one.
    """
    parse_reduction_time(options)  # to refuse wrong options before the campaign, not after it
    store = existing_store(options["store"], write=True)
    number = latest_campaign(store, campaign)
    record = store.campaign(number)
    refuse_imported(record, "resumed")
    refuse_running(record, "resumed")
    if "search" in record.options:
        from swarmtest.search.command import resume_search

        return resume_search(store, record, options)
    previous = Budget(**record.options["budget"])
    budget = parse_budget(options) or previous
    view = _view(budget, options)
    try:
        executor = parse_executor_options(options)
        workers = options["workers"]
        resumed = Campaign.resume(store, number, budget, workers, view.update, executor)
        before = store.summary(number)["trials"]
        status = _run(resumed, store, view, options)
        if not options["as_json"] and status == 0 and store.summary(number)["trials"] == before:
            click.echo("note: nothing was run, the budget is used up: give a larger one, like -n N")
        return status
    finally:
        view.end()


def _run(campaign: Campaign, store: Store, view: ProgressView, options: dict[str, Any]) -> int:
    # SIGTERM ends a campaign as Ctrl-C does.
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
            f"{_where(campaign)}, "
            f"until {campaign.budget.describe()}"
            + (f", coverage {','.join(campaign.coverage.kinds)}" if campaign.coverage else "")
        )
    if not options["quiet"] and not isinstance(view, JsonLines):
        for line in _derivation_notes(campaign.subject):
            click.echo(line)
    before = fault_lives(store, campaign.subject.name)
    view.before = lives_by_recorded_fault(store, campaign.subject.name)
    outcome = campaign.run()
    view.end()
    reduced = _reduce(campaign, store, outcome, view, options)
    stopped_explaining = not _explain(campaign, store, outcome, reduced, options)
    # Faults whose small tests are the same have become one: a known one may be among them.
    outcome = replace(outcome, faults=store.faults(outcome.campaign))
    reductions = reductions_of(store, outcome.campaign)
    stopped = outcome.interrupted
    handed = [] if stopped else hand_over_faults(campaign.subject, outcome.faults, reductions)
    lives = RunLives.until_now(before, store, campaign.subject.name)
    avoided = options.get("avoid", ())
    fail_on = options["fail_on"] or (NEW if "known" in avoided else ANY)
    forgiven = [] if options["fail_on"] else _avoided(outcome, avoided)
    failing = lives.failing(fail_on, [fault.id for fault in outcome.faults], forgiven)
    report_outcome(campaign, store, outcome, view, handed, reduced, lives, failing)
    if (reduced and reduced.interrupted) or stopped_explaining:
        return 130
    return _status(outcome, options, failing, steps=campaign.subject.part == "step")


def _derivation_notes(subject: Subject) -> list[str]:
    """Return what a machine that was derived from a class does not test."""
    changed = getattr(subject, "changed", ())
    if changed:
        return [f"left out because only one release has them in this form: {', '.join(changed)}"]
    machine = getattr(subject, "machine", None)
    left_out = getattr(machine, "left_out", ())
    if hasattr(machine, "models"):
        return [f"left out because the class has no such operation: {', '.join(left_out)}"][
            : bool(left_out)
        ]
    lines = [f"left out because they lack type hints: {', '.join(left_out)}"] if left_out else []
    if hasattr(machine, "calls"):
        from swarmtest.subjects.api_trial_calls import never_accepted, trial_calls

        never = never_accepted(trial_calls(cast(MachineSubject, subject)))
        lines += [f"rejected every call in the first tests: {', '.join(never)}"] if never else []
    return lines


def _avoided(outcome: Outcome, avoided: Sequence[str]) -> list[str]:
    """Return the faults that were to be avoided by name, and showed all the same."""
    starts = [text.removeprefix("fault:") for text in avoided if text != "known"]
    return [fault.id for fault in outcome.faults if fault.id.startswith(tuple(starts))]


def _where(campaign: Campaign) -> str:
    if campaign.executor.is_own:
        return f"executor {campaign.executor.text}"
    if not campaign.executor.is_local:
        return f"at {campaign.executor.text}"
    return plural(campaign.workers, "worker") if campaign.workers else "in this process"


def _reduce(
    campaign: Campaign,
    store: Store,
    outcome: Outcome,
    view: ProgressView,
    options: dict[str, Any],
) -> FaultReductions | None:
    """Reduce the faults; return None if that is not wanted, or the user has interrupted."""
    allowed = parse_reduction_time(options)
    if allowed is None or outcome.interrupted or not outcome.faults:
        return None
    from swarmtest.reduce.fault_reductions import reduce_and_show

    return reduce_and_show(campaign.subject, store, outcome.campaign, allowed, view)


def _explain(
    campaign: Campaign,
    store: Store,
    outcome: Outcome,
    reduced: FaultReductions | None,
    options: dict[str, Any],
) -> bool:
    """Explain the reduced faults by experiments; return False if the user has interrupted."""
    if reduced is None or reduced.interrupted or options["no_why"]:
        return True
    from swarmtest.why.fault_explanations import IN_PASSING, explain_faults

    try:
        explain_faults(campaign.subject, store, outcome.campaign, budget=IN_PASSING)
    except KeyboardInterrupt:
        return False
    return True


def _view(budget: Budget, options: dict[str, Any]) -> ProgressView:
    return view_for(
        budget,
        quiet=options["quiet"],
        as_json=options["as_json"],
        workers=options["workers"],
    )


def _status(outcome: Outcome, options: dict[str, Any], failing: list[str], *, steps: bool) -> int:
    """Return the exit status; `failing` are the faults that count for it.

    `steps` says that tests consist of actions; then an action that never ran is a mistake.
    """
    if outcome.interrupted:
        return 130
    if outcome.progress.tests and outcome.progress.invalid == outcome.progress.tests:
        raise UserError(
            f"none of the {plural(outcome.progress.tests, 'test')} was valid, so nothing was "
            f"tested: see `{command_text(f'show {outcome.campaign}', outcome.store)}`"
        )
    if not outcome.progress.tests and not outcome.faults and "time" in outcome.reason:
        raise UserError(
            "no test ended before the campaign's time was up, so nothing is known: give it more "
            "time, or fewer steps (--steps), or a smaller time limit for one test (--timeout)"
        )
    every_test_failed = outcome.progress.failed == outcome.progress.tests
    if outcome.unused and not options["allow_unused"] and not every_test_failed and steps:
        name, tests = next(iter(outcome.unused.items()))
        others = f" (and {len(outcome.unused) - 1} more)" if len(outcome.unused) > 1 else ""
        raise UserError(
            f"action {name!r}{others} was allowed in {tests:,} tests and never ran: its guard was "
            "never true (or its pool always empty); fix its when=, lengthen the tests with "
            "--steps, or pass --allow-unused; the campaign is kept"
        )
    if steps and outcome.progress.tests and not outcome.progress.steps and not outcome.faults:
        raise UserError(
            f"no action ran in {plural(outcome.progress.tests, 'test')}, so nothing was tested: "
            "at the start, no guard was true (when=), or every pool was empty"
        )
    return 1 if failing else 0
