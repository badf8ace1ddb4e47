"""``swarmtest reduce``: make a failing test small."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from swarmtest.campaign.budget import parse_seconds
from swarmtest.campaign.isolated import run_isolated
from swarmtest.campaign.reducing import Reduced, reduce_test
from swarmtest.cli.named_tests import NamedTest, named_test, save_test, seconds_of
from swarmtest.cli.options import store_option, timeout_option
from swarmtest.errors import UserError
from swarmtest.report.terminal import plural
from swarmtest.result import Verdict


@click.command()
@click.argument("test", metavar="CAMPAIGN#TRIAL | FAULT | FILE")
@click.option(
    "-o", "--output", metavar="FILE", help="Write the result as JSON; as code if named so (.py)."
)
@click.option(
    "--time",
    "budget",
    default="60s",
    show_default=True,
    metavar="TIME",
    help="Then the smallest test so far is the result.",
)
@timeout_option
@click.option("-q", "--quiet", is_flag=True, help="Only the result, no progress.")
@store_option
def reduce(
    test: str,
    output: str | None,
    budget: str,
    timeout: float | None,
    quiet: bool,
    store: str | None,
) -> int:
    """Make a failing test smaller while it keeps its fault, and print it.

    \b
    swarmtest reduce 3#17                     trial 17 of campaign 3
    swarmtest reduce 4ee18053 -o small.json   the shortest test of a fault
    swarmtest reduce test.json                a test that was saved

    The fault is the same when its signature is: a test that fails otherwise does not count.
    """
    named = named_test(test, store, timeout)
    fault = named.fault or _fault_now(named, test, timeout)
    part = named.subject.part
    shown = not quiet and sys.stderr.isatty()

    def progress(runs: int, size: int) -> None:
        if shown:
            click.echo(f"\r{plural(runs, 'run')}, {plural(size, part)} left  ", nl=False, err=True)

    reduced = reduce_test(
        named.subject,
        named.data,
        fault,
        seconds=seconds_of(named.subject, timeout),
        budget=parse_seconds(budget),
        on_run=progress,
    )
    if shown:
        click.echo("\r\x1b[K", nl=False, err=True)
    whole = reduced.test | {key: named.data[key] for key in ("reference",) if key in named.data}
    if output is not None:
        save_test(Path(output), named, whole)
    click.echo(named.subject.code(reduced.test).rstrip())
    click.echo(f"\n{_summary(reduced, part)}")
    return 0


def _fault_now(named: NamedTest, test: str, timeout: float | None) -> str:
    """The fault that a test shows when it is run: a file does not say."""
    if named.fault == "":
        raise UserError(f"{test} passed: only a test that fails can be reduced")
    result = run_isolated(
        lambda: named.subject.replay(named.data), seconds_of(named.subject, timeout)
    )
    if result.verdict == Verdict.INVALID:
        raise UserError(f"{test} is invalid: {result.missing}")
    if result.fault is None:
        raise UserError(f"{test} passes: only a test that fails can be reduced")
    return result.fault.id


def _summary(reduced: Reduced, part: str) -> str:
    fault = reduced.fault
    end = "nothing more can go" if reduced.complete else "the time was up; --time gives it more"
    return (
        f"from {plural(reduced.before, part)} to {reduced.size:,}, in {plural(reduced.runs, 'run')}"
        f"; {end}\nfault {fault.id}: {fault.signature}"
    )
