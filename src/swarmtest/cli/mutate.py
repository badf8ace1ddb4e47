"""``swarmtest mutate``: would the tests notice?"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import click

from swarmtest.campaign.usual_workers import usual_workers
from swarmtest.cli.options import existing_store, latest_campaign, store_option
from swarmtest.cli.run_options import workers_option
from swarmtest.errors import UserError
from swarmtest.focus.found import Found
from swarmtest.focus.wanted import from_diff, from_lines
from swarmtest.instrument.scope import shown_path
from swarmtest.mutation import OPERATORS, KillMatrix, mutate_campaign, mutate_pytest
from swarmtest.report.mutation import mutation_data, mutation_text
from swarmtest.report.quantities import json_text
from swarmtest.report.terminal import command_text
from swarmtest.store import Store

_TESTS = 200


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--campaign", type=int, metavar="N", help="Whose tests; the newest unless given.")
@click.option(
    "--pytest",
    "suites",
    multiple=True,
    metavar="PATH",
    help="The tests of a pytest suite instead of a campaign's. May be repeated.",
)
@click.option(
    "--pytest-option",
    "pytest_options",
    multiple=True,
    metavar="OPTION",
    help="One more argument for pytest, such as `-oaddopts=`. May be repeated.",
)
@click.option(
    "-n",
    "--tests",
    type=int,
    default=_TESTS,
    show_default=True,
    metavar="N",
    help="So many of the campaign's tests at most.",
)
@click.option("--sample", type=int, metavar="N", help="So many mutants, drawn at random.")
@click.option("--diff", metavar="REV", help="Only lines that were changed since a git revision.")
@click.option(
    "--lines", multiple=True, metavar="FILE:A-B", help="Only these lines. May be repeated."
)
@click.option(
    "--operators",
    default="",
    metavar="NAME,...",
    help=f"Kinds of changes, `-NAME` for all but one: {', '.join(OPERATORS)}.",
)
@click.option("--first-kill", is_flag=True, help="Each mutant only until a test kills it.")
@click.option(
    "--isolate",
    is_flag=True,
    help="A process for each mutant: slower, and no mutant can spoil what follows it.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the samples.")
@workers_option
@click.option("--all", "everything", is_flag=True, help="Show every survivor.")
@click.option("-o", "--output", metavar="FILE", help="Write the kill matrix as CSV.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@store_option
def mutate(paths: tuple[str, ...], store: str | None, **options: Any) -> int:
    """Change the program in small ways, and see whether its tests notice.

    PATH is a file or a directory of the program; unless given, what the campaign watched. The tests
    are those of a campaign, or of a pytest suite. Mutants are switched on in the running program,
    or while it is imported in a fork: no file is written. Those of a C program, which a TOML file
    with a table [mutate] tells how to build, are built in copies of its directory.

    \b
    swarmtest mutate                               the newest campaign's tests
    swarmtest mutate shop/cart.py --sample 100
    swarmtest mutate --diff main                   only what a branch has changed
    swarmtest mutate shop/cart.py --pytest tests   an ordinary suite
    swarmtest mutate src/prog.c --campaign 1       a C program, with a campaign of commands

    What a test kills is kept as what it hits: `swarmtest roles --kind mutant` tells which features
    help to kill, `swarmtest focus --mutant ID` aims at one.

    Exit status: 0 all that tests reach are killed, 1 some survived, 2 something to mend.
    """
    files = list(paths)
    lines = _lines(options)
    show = _progress(options)
    common = {
        "operators": options["operators"],
        "lines": lines,
        "sample": options["sample"],
        "seed": options["seed"],
        "workers": options["workers"] or usual_workers(),
        "first_kill": options["first_kill"],
        **({"mutants_per_fork": 1} if options["isolate"] else {}),
        "on_progress": show,
    }
    if options["suites"]:
        files = files or sorted(lines or ())
        more = options["pytest_options"]
        matrix = mutate_pytest(options["suites"], files, options=more, **common)
        _tell(matrix, options)
    else:
        with existing_store(store, write=True) as opened:
            number = latest_campaign(opened, options["campaign"])
            matrix = mutate_campaign(opened, number, files, tests=options["tests"], **common)
            _keep(opened, number, matrix)
            _tell(matrix, options)
            if not options["as_json"]:
                command = command_text(f"roles {number} --kind mutant", opened.url)
                click.echo(f"\nwhich features help to kill them: {command}")
    return 1 if matrix.survivors else 0


def _lines(options: dict[str, Any]) -> dict[str, set[int]] | None:
    """The lines that count, by the path that their file has in names."""
    if not options["diff"] and not options["lines"]:
        return None
    found = Found()
    for text in options["lines"]:
        found += from_lines(text)
    if options["diff"]:
        found += from_diff(options["diff"], os.getcwd())
    lines: dict[str, set[int]] = {}
    for wanted in found.wanted:
        lines.setdefault(shown_path(wanted.place), set()).add(wanted.line)
    return lines


def _keep(store: Store, campaign: int, matrix: KillMatrix) -> None:
    """Kills are hits: roles, comparison and focus know mutants like any other target."""
    store.add_sources(campaign, matrix.sources)
    ids = store.target_ids(matrix.targets())
    hits = {
        int(name.rpartition("#")[2]): [ids[i] for i in column.nonzero()[0]]
        for name, column in zip(matrix.tests, matrix.killed.T, strict=True)
    }
    store.add_hits(campaign, {trial: some for trial, some in hits.items() if some})


def _tell(matrix: KillMatrix, options: dict[str, Any]) -> None:
    if options["output"]:
        _write_csv(matrix, options["output"])
    if options["as_json"]:
        click.echo(json_text(mutation_data(matrix)))
    else:
        click.echo(mutation_text(matrix, options["everything"]))


def _write_csv(matrix: KillMatrix, path: str) -> None:
    try:
        with Path(path).open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("mutant", "file", "line", "operator", *matrix.tests))
            for mutant, row in zip(matrix.mutants, matrix.killed, strict=True):
                cells = row.astype(int).tolist()
                writer.writerow((mutant.id, mutant.path, mutant.line, mutant.operator, *cells))
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


def _progress(options: dict[str, Any]) -> Any:
    if options["as_json"] or not os.isatty(2):
        return None

    def show(done: int, count: int) -> None:
        click.echo(f"\r{done:,} of {count:,} mutants", err=True, nl=done == count)

    return show
