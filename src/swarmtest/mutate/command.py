"""``swarmtest mutate``: change the program in small ways and see whether its tests notice.

The command comes first; below it, a kill matrix as text for the terminal and as data
for ``--json``.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import click

from swarmtest.campaign.budget import usual_workers
from swarmtest.core.errors import UserError
from swarmtest.core.formatting import csv_row, format_percent, percent_interval, plural
from swarmtest.coverage.scope import shown_path
from swarmtest.languages.changes import from_diff
from swarmtest.languages.places import ResolvedTargets, from_lines
from swarmtest.mutate.kill_matrix import KillMatrix
from swarmtest.mutate.mutant import Mutant
from swarmtest.mutate.mutation import mutate_campaign
from swarmtest.mutate.operators import OPERATORS
from swarmtest.mutate.pytest_suites import mutate_pytest
from swarmtest.store.interface import Store
from swarmtest.ui import completion
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import (
    campaign_number,
    existing_store,
    latest_campaign,
    screen_width,
    store_option,
)
from swarmtest.ui.run_options import workers_option
from swarmtest.ui.terminal.output import show_status
from swarmtest.ui.terminal.tables import command_text, screen_table
from swarmtest.ui.terminal.text import json_text

_TESTS = 200


@click.command(cls=HelpfulCommand)
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=completion.files)
@click.option(
    "--campaign",
    type=campaign_number,
    metavar="N",
    shell_complete=completion.campaigns,
    help="The campaign whose tests are run.  [default: the newest]",
)
@click.option(
    "--pytest",
    "suites",
    multiple=True,
    metavar="PATH",
    help="Run a pytest suite instead of a campaign's tests. May be repeated.",
)
@click.option(
    "--pytest-option",
    "pytest_options",
    multiple=True,
    metavar="OPTION",
    help="An argument for pytest, such as `-oaddopts=`. May be repeated.",
)
@click.option(
    "-n",
    "--tests",
    type=int,
    default=_TESTS,
    show_default=True,
    metavar="N",
    help="Run at most N tests of the campaign.",
)
@click.option("--sample", type=int, metavar="N", help="Try only N mutants, drawn at random.")
@click.option("--diff", metavar="REV", help="Only lines that changed since a git revision.")
@click.option(
    "--lines", multiple=True, metavar="FILE:A-B", help="Only these lines. May be repeated."
)
@click.option(
    "--operators",
    default="",
    metavar="NAME,...",
    help=f"Kinds of changes to make; `-NAME` means all but this one: {', '.join(OPERATORS)}.",
)
@click.option("--first-kill", is_flag=True, help="Run tests on a mutant only until one kills it.")
@click.option(
    "--isolate",
    is_flag=True,
    help="Start a process for each mutant: slower, but no mutant can affect the next.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the samples.")
@workers_option
@click.option("--all", "everything", is_flag=True, help="Show every survivor.")
@click.option("-o", "--output", metavar="FILE", help="Write the kill matrix as CSV.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@store_option
def mutate(paths: tuple[str, ...], store: str | None, **options: Any) -> int:
    """Change the program in small ways, and see whether its tests notice.

    PATH is a file or a directory of the program; by default, the code that the campaign measured,
    or else what the machine's file imports. Machines themselves are mutated only if named.
    The tests are those of a campaign, or of a pytest suite. No Python file is changed: mutants are
    switched on in the running program, or while a fork imports it. Mutants of a C program are built
    in copies of its directory; a TOML file with a table [mutate] says how to build it.

    \b
    swarmtest mutate                               the newest campaign's tests
    swarmtest mutate shop/cart.py --sample 100
    swarmtest mutate --diff main                   only what a branch changed
    swarmtest mutate shop/cart.py --pytest tests   an ordinary suite
    swarmtest mutate src/prog.c --campaign 1       a C program, with a campaign of commands

    A killed mutant is stored as a target that the test hits: `swarmtest roles --kind mutant` shows
    which features help to kill mutants, and `swarmtest focus --mutant ID` aims at one.

    Exit status: 0 every mutant that tests reach is killed, 1 some survive, 2 an error in the input.
    """
    if options["tests"] < 1:
        raise UserError(f"--tests {options['tests']}: at least one test is run on mutants")
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
        pytest_options = options["pytest_options"]
        matrix = mutate_pytest(options["suites"], files, options=pytest_options, **common)
        _print_result(matrix, options)
    else:
        with existing_store(store, write=True) as opened:
            number = latest_campaign(opened, options["campaign"])
            matrix = mutate_campaign(opened, number, files, tests=options["tests"], **common)
            _store_kills(opened, number, matrix)
            _print_result(matrix, options)
            if not options["as_json"]:
                command = command_text(f"roles {number} --kind mutant", opened.url)
                click.echo(f"\nwhich features help to kill them: {command}")
    return 1 if matrix.survivors else 0


def _lines(options: dict[str, Any]) -> dict[str, set[int]] | None:
    """Return the lines that ``--diff`` and ``--lines`` select, by `Source.path`; None: all."""
    if not options["diff"] and not options["lines"]:
        return None
    selected = ResolvedTargets()
    for text in options["lines"]:
        selected += from_lines(text)
    if options["diff"]:
        selected += from_diff(options["diff"], os.getcwd())
    lines: dict[str, set[int]] = {}
    for wanted in selected.wanted:
        lines.setdefault(shown_path(wanted.place), set()).add(wanted.line)
    return lines


def _store_kills(store: Store, campaign: int, matrix: KillMatrix) -> None:
    """Record kills as hits, so that roles, compare and focus treat mutants like other targets."""
    store.add_sources(campaign, matrix.sources)
    ids = store.target_ids(matrix.targets())
    hits = {
        int(name.rpartition("#")[2]): [ids[i] for i in column.nonzero()[0]]
        for name, column in zip(matrix.tests, matrix.killed.T, strict=True)
    }
    store.add_hits(campaign, {trial: targets for trial, targets in hits.items() if targets})


def _print_result(matrix: KillMatrix, options: dict[str, Any]) -> None:
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
            writer.writerow(csv_row(("mutant", "file", "line", "operator", *matrix.tests)))
            for mutant, row in zip(matrix.mutants, matrix.killed, strict=True):
                about = (mutant.id, mutant.path, mutant.line, mutant.operator)
                writer.writerow(csv_row((*about, *row.astype(int).tolist())))
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


def _progress(options: dict[str, Any]) -> Any:
    if options["as_json"] or not os.isatty(2):
        return None

    def show(done: int, count: int) -> None:
        show_status(f"{done:,} of {count:,} mutants")
        if done == count:
            click.echo(err=True)

    return show


# A kill matrix as text and as data.

_SHOWN = 10
"""How many survivors are shown with their diff, and how many files are named."""


def mutation_text(matrix: KillMatrix, everything: bool = False) -> str:
    """Return the score, the fate of the mutants, the survivors, and the smallest suite."""
    parts = [
        _score(matrix),
        _counts(matrix),
        _left_out(matrix),
        _survivors(matrix, everything),
        _smallest(matrix),
    ]
    return "\n\n".join(filter(None, parts))


def mutation_data(matrix: KillMatrix) -> dict[str, Any]:
    """Return a kill matrix as dictionaries and lists, for JSON."""
    low, high = matrix.interval()
    return {
        "score": matrix.score,
        "interval": [low, high],
        "files": [source.path for source in matrix.sources],
        "mutants": [_mutant_data(matrix, number) for number in range(len(matrix.mutants))],
        "tests": list(matrix.tests),
        "population": matrix.population or len(matrix.mutants),
        "equivalent": matrix.equivalent,
        "duplicate": matrix.duplicate,
        "not_compiled": matrix.not_compiled,
        "left_out": {why: list(tests) for why, tests in matrix.left_out.items()},
        "not_switchable": [mutant.id for mutant in matrix.not_switchable],
        "breaks_import": [mutant.id for mutant in matrix.broken],
        "complete": matrix.complete,
        "minimal_tests": matrix.minimal_tests,
        "minimal_mutants": [mutant.id for mutant in matrix.minimal_mutants],
    }


def _mutant_data(matrix: KillMatrix, number: int) -> dict[str, Any]:
    mutant = matrix.mutants[number]
    return {
        "id": mutant.id,
        "file": mutant.path,
        "line": mutant.line,
        "function": mutant.function,
        "operator": mutant.operator,
        "diff": mutant.diff_text,
        "reached": bool(matrix.reached[number].any()),
        "killed_by": [
            test for test, kills in zip(matrix.tests, matrix.killed[number], strict=True) if kills
        ],
    }


def _score(matrix: KillMatrix) -> str:
    killed = int(matrix.is_killed.sum())
    mutants = plural(len(matrix.mutants), "mutant")
    text = f"{format_percent(matrix.score, 0)} of {mutants} killed ({killed:,})"
    low, high = matrix.interval()
    if high > low:
        text += (
            f"; a sample of {matrix.population:,}, of which {percent_interval(low, high, 0)} "
            "are killed (95%)"
        )
    return f"{text} by {plural(len(matrix.tests), 'test')}{_files(matrix)}"


def _files(matrix: KillMatrix) -> str:
    files = [source.path for source in matrix.sources]
    if not files:
        return ""
    more = f" and {len(files) - _SHOWN:,} more" if len(files) > _SHOWN else ""
    return f"\nmutated: {', '.join(files[:_SHOWN])}{more}"


def _counts(matrix: KillMatrix) -> str:
    killed = int(matrix.is_killed.sum())
    rows = [
        ("killed", f"{killed:,}", _how_killed(matrix)),
        ("survived", f"{len(matrix.survivors):,}", "tests reach them and notice nothing"),
        ("not reached", f"{len(matrix.not_reached):,}", "no test executes them"),
        ("equivalent", f"{matrix.equivalent:,}", "compile to the same code: left out"),
        ("duplicate", f"{matrix.duplicate:,}", "compile to what another does: left out"),
        ("not compiled", f"{matrix.not_compiled:,}", "the compiler refuses them: left out"),
        (
            "not switchable",
            f"{len(matrix.not_switchable):,}",
            "run at import, before mutants could be made, or not live: left out",
        ),
    ]
    rows = [row for row in rows if row[1] != "0" or row[0] in ("killed", "survived")]
    return str(screen_table(("mutants", "", ""), rows, " r", screen_width(), [2]))


def _left_out(matrix: KillMatrix) -> str:
    """Return lines about the tests that could not be used."""
    return "\n".join(
        f"left out: {plural(len(tests), 'test')} ({', '.join(tests[:3])}"
        f"{', ...' if len(tests) > 3 else ''}): {why}"
        for why, tests in matrix.left_out.items()
    )


def _how_killed(matrix: KillMatrix) -> str:
    endless, broken = len(matrix.endless), len(matrix.broken)
    remarks = [
        f"{endless:,} of them never ended" if endless else "",
        f"{broken:,} of them cannot be imported" if broken else "",
    ]
    return ", ".join(filter(None, remarks))


def _survivors(matrix: KillMatrix, everything: bool) -> str:
    survivors = matrix.survivors
    if not survivors:
        return ""
    shown = survivors if everything else survivors[:_SHOWN]
    texts = [
        f"survived: mutant {mutant.id} ({mutant.operator})\n{_diff(mutant)}" for mutant in shown
    ]
    hidden = len(survivors) - len(shown)
    if hidden:
        texts.append(f"... and {hidden:,} more that survived: --all")
    return "\n\n".join(texts)


def _diff(mutant: Mutant) -> str:
    return "\n".join(f"  {line}" for line in mutant.diff_text.splitlines())


def _smallest(matrix: KillMatrix) -> str:
    if not matrix.complete or not matrix.is_killed.any():
        return ""
    tests, mutants = matrix.minimal_tests, matrix.minimal_mutants
    exact = "" if matrix.minimal_is_exact else " or fewer"
    names = ", ".join(tests[:8]) + (", ..." if len(tests) > 8 else "")
    kill = "kills" if len(tests) == 1 else "kill"
    stand, them = ("stands", "it") if len(mutants) == 1 else ("stand", "them")
    return (
        f"{plural(len(tests), 'test')}{exact} {kill} all that are killed: {names}\n"
        f"{plural(len(mutants), 'mutant')} {stand} for all: a test that kills {them} kills the "
        "others, by these tests"
    )
