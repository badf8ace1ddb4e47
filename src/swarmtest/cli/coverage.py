"""``swarmtest coverage`` and ``swarmtest import-coverage``."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from swarmtest.campaign.imported import import_coverage as import_into
from swarmtest.cli.options import existing_store, latest_campaign, store_option
from swarmtest.errors import UserError
from swarmtest.instrument.scope import project_root
from swarmtest.report.coverage import (
    annotated_source,
    campaign_tally,
    coverage_table,
    missing_line,
    target_rows,
)
from swarmtest.report.terminal import plural, table
from swarmtest.store import open_store


@click.command()
@click.argument("campaign", type=int, required=False)
@click.option("--show", "file", metavar="FILE", help="Print a file with tests per line.")
@click.option("--targets", "as_targets", is_flag=True, help="List every target, the rarest first.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write it: .json, .lcov, .xml (Cobertura), or a coverage.py data file.",
)
@click.option(
    "--by-test", is_flag=True, help="With -o: also which test hit what (contexts, test names)."
)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@store_option
def coverage(
    campaign: int | None,
    file: str | None,
    as_targets: bool,
    output: str | None,
    by_test: bool,
    as_json: bool,
    store: str | None,
) -> None:
    """What a campaign's tests reached: lines, branches, paths.

    CAMPAIGN is its number; the newest one if left out. Collect coverage with
    `swarmtest run --coverage line,branch`.

    \b
    swarmtest coverage                      a table of files
    swarmtest coverage --show shop/cart.py  a file, with the number of tests per line
    swarmtest coverage -o .coverage         for `coverage report` and `coverage html`
    """
    opened = existing_store(store)
    number = latest_campaign(opened, campaign)
    tally = campaign_tally(opened, number, named_tests=by_test)
    if not tally.catalogue.targets:
        raise UserError(
            f"campaign {number} collected no coverage: run it with `--coverage line` (or branch, "
            "path, ...)"
        )
    if output:
        tally.write(output, str(project_root()))
        click.echo(f"{output}: {tally.summary()}")
    elif as_json:
        click.echo(json.dumps(tally.to_json()))
    elif file:
        click.echo(annotated_source(opened, number, tally, os.path.normpath(file)))
    elif as_targets:
        tests = opened.summary(number)["trials"]
        head = ("target", "tests", "share", "function", "detail")
        click.echo(table(head, target_rows(tally, tests), right="tests share"))
    else:
        click.echo(coverage_table(tally))
        missing = missing_line(opened, number)
        if missing:
            click.echo(missing)


@click.command("import-coverage")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", help="What the campaign is called.  [default: the file's name]")
@store_option
def import_coverage(file: Path, name: str | None, store: str | None) -> None:
    """Take coverage that another tool measured into the store, as a campaign.

    FILE is a coverage.py data file, LCOV (.lcov, .info) or Cobertura (.xml). Each context of a
    coverage.py file, and each test name (TN) of an LCOV file, becomes a test.
    """
    with open_store(store) as opened:
        number, tests = import_into(opened, file, name or file.name)
    click.echo(f"campaign {number}: {plural(tests, 'test')} from {file}")
