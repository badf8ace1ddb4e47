"""``swarmtest reduce``: shrink a test while it keeps what ``--keep`` asks for.

The work is done by `reduce_named_test`; the command parses its options and prints the result.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from swarmtest.campaign.budget import parse_seconds
from swarmtest.core.formatting import plural
from swarmtest.coverage.kinds import parse_kinds
from swarmtest.coverage.options import CoverageOptions
from swarmtest.reduce.named_reduction import (
    DRAWN_MUTANTS,
    NamedReduction,
    ReductionProgress,
    parse_runs,
    reduce_named_test,
)
from swarmtest.reduce.named_tests import NamedTest, save_test, saved_data
from swarmtest.reduce.quality import PARTS, Quality
from swarmtest.reduce.reduction import Reduced
from swarmtest.subjects.subject import named_fault
from swarmtest.ui import completion
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import store_option, trust_option
from swarmtest.ui.run_options import own_memory_option, timeout_option, workers_option
from swarmtest.ui.terminal.output import show_status
from swarmtest.ui.terminal.text import json_text


@click.command(cls=HelpfulCommand)
@click.argument("test", metavar="CAMPAIGN#TRIAL | FAULT | FILE", shell_complete=completion.faults)
@click.option(
    "-k",
    "--keep",
    multiple=True,
    metavar="WHAT",
    help="What the smaller test has to keep: fault, coverage, coverage=90, line=FILE:LINE, ...; "
    "--help-all lists all. May be repeated: then all of it is kept.",
)
@click.option(
    "-o",
    "--output",
    shell_complete=completion.files,
    metavar="FILE",
    help="Write the result to a file: as JSON, or as code if the name ends like code (.py).",
)
@click.option(
    "--time",
    "budget",
    default="60s",
    show_default=True,
    metavar="TIME",
    help="Stop after this time; the smallest test so far is the result.",
)
@click.option(
    "--runs",
    default="1/1",
    show_default=True,
    metavar="K/N",
    help="For flaky tests: what is to be kept must show in K of N runs.",
)
@click.option(
    "--state", metavar="FILE", help="Save progress here; the same command continues from it."
)
@click.option(
    "--coverage",
    default="line",
    show_default=True,
    metavar="KINDS",
    help="What to watch in Python code: line, branch, ...; none: watch nothing.",
)
@click.option(
    "--cover", multiple=True, metavar="NAME", help="A module or path to watch. May be repeated."
)
@click.option(
    "--mutants",
    type=int,
    metavar="N",
    help="Draw N mutants, and report how many are still killed.  "
    f"[default: {DRAWN_MUTANTS} if some are to be kept, else none]",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed of what is drawn at random."
)
@click.option(
    "--parts",
    default="lines",
    show_default=True,
    metavar="KIND",
    help=f"The parts of a plain file: {', '.join(PARTS)}.",
)
@timeout_option
@own_memory_option
@workers_option
@click.option("-q", "--quiet", is_flag=True, help="Print only the result, no progress.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@trust_option
@store_option
def reduce(test: str, **options: Any) -> int:
    """Shrink a test while it still fails, or keeps the coverage you ask for, and print it.

    \b
    swarmtest reduce 3#17                       a failing test keeps its fault
    swarmtest reduce 4ee18053 -o small.json     the shortest test of a fault
    swarmtest reduce 3#5 --keep coverage=90     90% of what it covers
    swarmtest reduce 3#5 --keep mutants=8       eight mutants that it kills
    swarmtest reduce bug.c --keep 'command=./still-crashes.sh {}'

    \b
    --keep says what to keep:
      fault              the same fault (the same signature, not any failure); the default for
                         a test that fails
      coverage=C         C percent of the targets that the test hits (default: 100)
      targets=NAME       these targets, like line:cart.py:12; * matches any text
      mutants=N          N of the mutants that it kills, drawn at random
      minimal-mutants=N  N of those that `swarmtest mutate` found to be hard to kill
      command=COMMAND    a shell command exits with status 0; {} is the file of the test

    A test that keeps coverage or mutants must also still pass, or still show its fault.
    """
    reduction = reduce_named_test(
        test,
        options["keep"],
        store=options["store"],
        state=options["state"],
        budget=parse_seconds(options["budget"]),
        runs=parse_runs(options["runs"]),
        coverage=_coverage_options(options),
        mutants=options["mutants"],
        seed=options["seed"],
        parts=options["parts"],
        timeout=options["timeout"],
        workers=options["workers"],
        progress=_progress_line(options),
    )
    _clear_line(options)
    _print_result(reduction, options)
    return 130 if reduction.reduced.interrupted else 0


def _coverage_options(options: dict[str, Any]) -> CoverageOptions | None:
    if options["coverage"] == "none":
        return None
    return CoverageOptions(parse_kinds(options["coverage"]), tuple(options["cover"]))


def _progress_line(options: dict[str, Any]) -> Callable[[ReductionProgress], None] | None:
    if options["quiet"] or options["as_json"] or not sys.stderr.isatty():
        return None

    def show(progress: ReductionProgress) -> None:
        runs, left = plural(progress.runs, "run"), plural(progress.size, progress.part)
        show_status(f"{runs}, {left} left")

    return show


def _clear_line(options: dict[str, Any]) -> None:
    if not options["quiet"] and sys.stderr.isatty():
        show_status("")


def _print_result(reduction: NamedReduction, options: dict[str, Any]) -> None:
    named, reduced, quality = reduction.named, reduction.reduced, reduction.quality
    if options["output"] is not None:
        save_test(Path(options["output"]), named, reduced.test)
    if options["as_json"]:
        click.echo(json_text(_as_json_data(named, reduced, quality)))
        return
    click.echo(named.subject.code(reduced.test).rstrip())
    click.echo(f"\n{_summary(reduced, named.subject.part, options['state'])}")
    if quality is not None and quality.cpr is not None:
        click.echo(str(quality))
    if reduced.fault is not None:
        fault = named_fault(named.subject, reduced.fault)
        click.echo(f"fault {fault.id}: {fault.signature}")


def _as_json_data(named: NamedTest, reduced: Reduced, quality: Quality | None) -> dict[str, Any]:
    fault = reduced.fault and named_fault(named.subject, reduced.fault)
    return {
        "test": saved_data(named, reduced.test),
        "before": reduced.before,
        "size": reduced.size,
        "runs": reduced.runs,
        "seconds": reduced.seconds,
        "complete": reduced.complete,
        "fault": {"id": fault.id, "signature": fault.signature} if fault else None,
        "rates": vars(quality) if quality else {"srr": reduced.srr},
    }


def _summary(reduced: Reduced, part: str, state: str | None) -> str:
    if reduced.complete:
        end = "nothing more can go"
    else:
        why = "interrupted" if reduced.interrupted else "the time was up"
        end = f"{why}; " + ("the same command continues" if state else "use --time to allow more")
    return (
        f"from {plural(reduced.before, part)} to {reduced.size:,}, in {plural(reduced.runs, 'run')}"
        f"; {end}"
    )
