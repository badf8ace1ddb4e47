"""``swarmtest coverage`` and ``swarmtest import-coverage``: showing and importing coverage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from swarmtest.campaign.imported_coverage import import_coverage as import_into
from swarmtest.core.errors import UserError
from swarmtest.core.formatting import plural
from swarmtest.coverage.interchange.formats import format_of, is_python
from swarmtest.coverage.scope import project_root
from swarmtest.coverage.totals import Tally
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.ui import completion
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import (
    campaign_argument,
    existing_store,
    latest_campaign,
    screen_width,
    store_option,
)
from swarmtest.ui.terminal.coverage import (
    ALL_KINDS,
    annotated_source,
    campaign_tally,
    changed_line,
    coverage_table,
    find_function,
    find_source,
    nothing_watched,
    target_rows,
)
from swarmtest.ui.terminal.tables import table


@click.command(cls=HelpfulCommand)
@campaign_argument
@click.option(
    "--show",
    metavar="FILE | FUNCTION",
    help="Print a file or a function, with the number of tests that hit each line.",
)
@click.option("--targets", is_flag=True, help="List every target, the rarest first.")
@click.option(
    "--kind",
    type=click.Choice([*ALL_KINDS, "event"]),
    metavar="KIND",
    help=f"With --targets: only targets of this kind: {', '.join(ALL_KINDS)} or event.",
)
@click.option(
    "--file", default="", metavar="FILE", help="With --targets: only targets in this file."
)
@click.option(
    "--unreached", is_flag=True, help="With --targets: only targets that no test reached."
)
@click.option(
    "-o",
    "--output",
    shell_complete=completion.files,
    metavar="FILE",
    help="Write coverage to a file: .json, .lcov, .xml (Cobertura), or else a "
    "coverage.py data file.",
)
@click.option(
    "--by-test",
    is_flag=True,
    help="With -o: also write which test hit what (contexts, test names).",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@store_option
def coverage(campaign: int | None, store: str | None, **options: Any) -> None:
    """Show what the tests of a campaign reached: lines, branches, paths.

    CAMPAIGN is a number; by default, the newest. Measure coverage with
    `swarmtest run --coverage line,branch`, or `swarmtest race --coverage pair,sync,shared`.

    \b
    swarmtest coverage                      a table of files
    swarmtest coverage --show shop/cart.py  a file, with the tests per line
    swarmtest coverage --show Cart.add      a function
    swarmtest coverage -o .coverage         for `coverage report` and `coverage html`
    """
    _check_options(options)
    opened = existing_store(store)
    number = latest_campaign(opened, campaign)
    with_events = options["targets"] or options["as_json"] or _is_json(options["output"])
    tally = campaign_tally(opened, number, options["by_test"], events=with_events)
    if not tally.catalogue.targets:
        raise UserError(nothing_watched(opened.campaign(number)))
    if options["output"] is not None:
        _write(opened, number, tally, options["output"])
    elif options["as_json"]:
        click.echo(json.dumps(tally.to_json()))
    elif options["show"] is not None:
        function = find_function(tally, options["show"])
        file, part = function if function else (options["show"], None)
        source = find_source(opened, number, file)
        click.echo(annotated_source(source, tally, part))
        _say(changed_line([source], number, "shown"))
    elif options["targets"]:
        _list_targets(opened, number, tally, options)
    else:
        click.echo(coverage_table(tally, screen_width()))
    for missing in tally.missing_lines():
        click.echo(missing, err=options["as_json"])


def _check_options(options: dict[str, Any]) -> None:
    """Raise `UserError` for options that do not go together."""
    names = {"show": "--show", "targets": "--targets", "as_json": "--json", "output": "-o"}
    asked = [name for key, name in names.items() if options[key] not in (None, False)]
    if len(asked) > 1:
        raise UserError(f"{' and '.join(asked)} cannot be combined: choose one")
    if options["by_test"] and not {"-o", "--json"} & {*asked}:
        raise UserError("--by-test needs -o FILE or --json")
    for key in ("kind", "file", "unreached"):
        if options[key] and not options["targets"]:
            raise UserError(f"--{key} needs --targets")
    if options["output"] is not None:
        format_of(options["output"])


def _is_json(output: str | None) -> bool:
    return output is not None and format_of(output) == "json"


def _write(store: Store, campaign: int, tally: Tally, output: str) -> None:
    tally.write(output, str(project_root()))
    click.echo(f"{output}: {tally.summary()}")
    sources = store.sources(campaign)
    _say(changed_line(sources, campaign, "exported"))
    others = [source.path for source in sources if not is_python(source.path)]
    if others and format_of(output) == "coverage.py":
        click.echo(f"left out, for coverage.py can show Python only: {', '.join(others)}")


def _list_targets(store: Store, campaign: int, tally: Tally, options: dict[str, Any]) -> None:
    file = find_source(store, campaign, options["file"]).path if options["file"] else ""
    tests = store.summary(campaign)["trials"] - tally.missing.total()
    rows = target_rows(tally, tests, options["kind"] or "", file, options["unreached"])
    head = ("target", "tests", "share", "function", "detail")
    if rows:
        click.echo(table(head, rows, right=" rr", width=screen_width()))
    else:
        click.echo(f"campaign {campaign} has no target like this")


def _say(line: str) -> None:
    if line:
        click.echo(line)


@click.command("import-coverage", cls=HelpfulCommand)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", help="Name of the campaign.  [default: the file's name]")
@store_option
def import_coverage(file: Path, name: str | None, store: str | None) -> None:
    """Import coverage that another tool measured, as a campaign.

    \b
    swarmtest import-coverage .coverage
    swarmtest import-coverage lcov.info --name nightly

    FILE is a coverage.py data file, LCOV (.lcov, .info), Cobertura (.xml), or swarmtest's .json.
    Each context of a coverage.py file, and each test name (TN) of an LCOV file, becomes a test.
    """
    with open_store(store) as opened:
        number, tests = import_into(opened, file, name or file.name)
    click.echo(f"campaign {number}: {plural(tests, 'test')} from {file}")
