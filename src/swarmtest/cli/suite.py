"""``swarmtest suite``: from a campaign to a small suite that a team commits."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from swarmtest.campaign.budget import parse_seconds
from swarmtest.cli.options import (
    existing_store,
    latest_campaign,
    refuse_imported,
    screen_width,
    store_option,
)
from swarmtest.errors import UserError
from swarmtest.report.quantities import json_text
from swarmtest.report.suite import suite_data, suite_text
from swarmtest.store import redacted
from swarmtest.suites import SuiteRequest, make_suite, save_suite
from swarmtest.suites.choosing import FAULTS, METHODS
from swarmtest.suites.placing import check_place


@click.command()
@click.argument("campaign", type=int, required=False)
@click.option(
    "-o", "--output", metavar="FILE", help="The pytest file to write; without, only a table."
)
@click.option(
    "--keep",
    type=float,
    default=100,
    show_default=True,
    metavar="PERCENT",
    help="Of the targets, by whole tests.",
)
@click.option(
    "--keep-parts",
    type=float,
    default=100,
    show_default=True,
    metavar="PERCENT",
    help="Of what each test adds, when it is reduced.",
)
@click.option(
    "--kinds",
    default="",
    metavar="KIND,...",
    help="What counts: coverage, line, ..., event, mutant, fault.  [default: all there is]",
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="PATTERN",
    help="Only targets like `line:shop/*`. May be repeated.",
)
@click.option("--time", "budget", metavar="TIME", help="The best suite that takes no longer: 10s.")
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default=METHODS[0],
    show_default=True,
    help="The fewest tests, or quickly few.",
)
@click.option(
    "--faults",
    type=click.Choice(FAULTS),
    default=FAULTS[0],
    show_default=True,
    help="What tests of faults are: expected to fail, failing, skipped, left out.",
)
@click.option("--no-reduce", is_flag=True, help="Leave tests whole.")
@click.option(
    "--reduce-time",
    default="30s",
    show_default=True,
    metavar="TIME",
    help="For the reduction of one test.",
)
@click.option("--force", is_flag=True, help="Overwrite a file that was not made like this.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Only the result, no progress.")
@store_option
def suite(campaign: int | None, store: str | None, **options: Any) -> int:
    """Make a small suite of a campaign's tests: few, short, and it keeps what all of them reached.

    Tests are chosen, reduced to what each adds to those before it, put in the order of what they
    add per second, and written as a plain pytest file, which is run.

    \b
    swarmtest suite                                       what it would be
    swarmtest suite 3 -o tests/test_swarm_regressions.py
    swarmtest suite 3 --keep 95 --keep-parts 90           much smaller, and nearly as good
    swarmtest suite 3 --time 10s -o tests/test_quick.py   the best that takes 10 s
    swarmtest suite 3 --kinds line,mutant                 after `swarmtest mutate`

    What counts is all that tests hit: lines and branches (`run --coverage`), events, and mutants
    that they kill. Every fault keeps a test.
    """
    request = _request(options)
    output = Path(options["output"]) if options["output"] is not None else None
    if output is not None:
        check_place(output, options["force"])
    shown = not options["quiet"] and not options["as_json"] and sys.stderr.isatty()
    with existing_store(store) as opened:
        number = latest_campaign(opened, campaign)
        refuse_imported(opened.campaign(number), "chosen")
        made = make_suite(opened, number, request, on_progress=_progress if shown else None)
    if shown:
        click.echo("\r\x1b[K", nl=False, err=True)
    saved = None
    if output is not None:
        saved = save_suite(made, output, _command(number, store, options), options["force"])
        made = saved.suite
    if options["as_json"]:
        click.echo(json_text(suite_data(made, saved)))
    else:
        click.echo(suite_text(made, saved, screen_width()))
    return 0


def _progress(what: str, done: int, count: int) -> None:
    click.echo(f"\r\x1b[K{what}: {done:,} of {count:,}", nl=False, err=True)


def _request(options: dict[str, Any]) -> SuiteRequest:
    kinds = tuple(kind.strip() for kind in options["kinds"].split(",") if kind.strip())
    return SuiteRequest(
        keep=_share(options["keep"], "--keep"),
        keep_parts=_share(options["keep_parts"], "--keep-parts"),
        kinds=kinds,
        targets=options["targets"],
        seconds=parse_seconds(options["budget"]) if options["budget"] else None,
        method=options["method"],
        faults=options["faults"],
        reduce=not options["no_reduce"],
        budget=parse_seconds(options["reduce_time"]),
    )


def _share(percent: float, option: str) -> float:
    if not 0 < percent <= 100:
        raise UserError(f"{option} is a percentage above 0, up to 100, not {percent:g}")
    return percent / 100


def _command(campaign: int, store: str | None, options: dict[str, Any]) -> str:
    """The command that makes the file again."""
    words = ["swarmtest", "suite", str(campaign)]
    words += ["-o", Path(options["output"]).as_posix()]
    for name, usual in (("keep", 100), ("keep_parts", 100), ("reduce_time", "30s")):
        if options[name] != usual:
            value = options[name]
            text = f"{value:g}" if isinstance(value, float) else value
            words += [f"--{name.replace('_', '-')}", text]
    words += ["--kinds", options["kinds"]] if options["kinds"] else []
    words += [word for pattern in options["targets"] for word in ("--target", pattern)]
    words += ["--time", options["budget"]] if options["budget"] else []
    words += ["--method", options["method"]] if options["method"] != METHODS[0] else []
    words += ["--faults", options["faults"]] if options["faults"] != FAULTS[0] else []
    words += ["--no-reduce"] if options["no_reduce"] else []
    words += ["--store", redacted(store)] if store else []
    return shlex.join(words)
