"""``swarmtest suite``: build a small regression suite from a campaign's tests.

The command comes first; below it, a suite as text for the terminal and as data for ``--json``.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from swarmtest.campaign.budget import parse_seconds
from swarmtest.core.errors import UserError
from swarmtest.core.formatting import counted, duration, format_percent, plural
from swarmtest.store.interface import redacted
from swarmtest.subjects.input_files import add_to_corpus
from swarmtest.suite.build import make_suite
from swarmtest.suite.formatting import name_of
from swarmtest.suite.output_files import SavedSuite, check_place, check_pytest, save_suite
from swarmtest.suite.selection import FAULTS, METHODS, SuiteRequest
from swarmtest.suite.suite import Suite, SuiteTest
from swarmtest.ui import completion
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import (
    campaign_argument,
    existing_store,
    latest_campaign,
    refuse_imported,
    screen_width,
    store_option,
    trust_option,
)
from swarmtest.ui.run_options import own_memory_option
from swarmtest.ui.terminal.output import show_status
from swarmtest.ui.terminal.tables import table
from swarmtest.ui.terminal.text import json_text


@click.command(cls=HelpfulCommand)
@campaign_argument
@click.option(
    "-o",
    "--output",
    shell_complete=completion.files,
    metavar="FILE",
    help="The pytest file to write; without it, only a table is printed.",
)
@click.option(
    "--keep",
    type=float,
    default=100,
    show_default=True,
    metavar="PERCENT",
    help="Share of the targets that the chosen tests must hit.",
)
@click.option(
    "--keep-parts",
    type=float,
    default=100,
    show_default=True,
    metavar="PERCENT",
    help="Share of what a test adds that it must keep when it is reduced.",
)
@click.option(
    "--kind",
    "kinds",
    default="",
    metavar="KIND,...",
    help="What counts: coverage, line, ..., event, mutant, fault.  "
    "[default: everything that was recorded]",
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="PATTERN",
    help="Count only targets that match, like `line:shop/*`. May be repeated.",
)
@click.option(
    "--time",
    "budget",
    metavar="TIME",
    help="Make the best suite that takes no longer than this: 10s.",
)
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default=METHODS[0],
    show_default=True,
    help="exact finds the fewest tests; greedy is quicker and may need a few more.",
)
@click.option(
    "--faults",
    type=click.Choice(FAULTS),
    default=FAULTS[0],
    show_default=True,
    help="How to write tests of faults: expected to fail, failing, skipped, or left out.",
)
@click.option(
    "--inputs",
    metavar="DIR",
    help="Add the tests to a corpus directory, each as the input of the program.",
)
@click.option("--no-reduce", is_flag=True, help="Do not reduce the tests.")
@click.option(
    "--reduce-time",
    default="30s",
    show_default=True,
    metavar="TIME",
    help="Longest time for the reduction of one test.",
)
@click.option(
    "--force", is_flag=True, help="Overwrite a file even if `swarmtest suite` did not write it."
)
@own_memory_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Only the result, no progress.")
@trust_option
@store_option
def suite(campaign: int | None, store: str | None, **options: Any) -> int:
    """Write a few short tests that reach what all tests of a campaign reached.

    Choose tests, reduce each to what it adds to those before it, sort them by what they add per
    second, write them as a plain pytest file, and run that file to check it.

    \b
    swarmtest suite                                     only show it
    swarmtest suite 3 -o tests/test_swarm_regressions.py
    swarmtest suite 3 --keep 95 --keep-parts 90           much smaller, and nearly as good
    swarmtest suite 3 --time 10s -o tests/test_quick.py   the best that takes 10 s
    swarmtest suite 3 --kind line,mutant                  after `swarmtest mutate`
    swarmtest suite 3 --inputs corpus/                    inputs for a fuzzer, or as seeds

    Everything that tests hit counts: lines and branches (`run --coverage`), events, and mutants
    that they kill. The suite has a test of every fault.
    """
    request = _request(options)
    output = Path(options["output"]) if options["output"] is not None else None
    if output is not None:
        check_place(output, options["force"])
        check_pytest()
    shown = not options["quiet"] and not options["as_json"] and sys.stderr.isatty()
    with existing_store(store) as opened:
        number = latest_campaign(opened, campaign)
        refuse_imported(opened.campaign(number), "chosen")
        built = make_suite(opened, number, request, on_progress=_progress if shown else None)
    if shown:
        show_status("")
    saved = None
    if output is not None:
        saved = save_suite(built, output, _command(number, store, options), options["force"])
        built = saved.suite
    new = None
    if options["inputs"] is not None:
        new = add_to_corpus(options["inputs"], (test.data for test in built.tests))
    if options["as_json"]:
        click.echo(json_text(suite_data(built, saved)))
    else:
        click.echo(suite_text(built, saved, screen_width()))
        if new is not None:
            click.echo(f"{options['inputs']}: {plural(new, 'new input')}")
    return 0


def _progress(what: str, done: int, count: int) -> None:
    show_status(f"{what}: {done:,} of {count:,}")


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
    """Return the command line that builds the same file again."""
    words = ["swarmtest", "suite", str(campaign)]
    words += ["-o", Path(options["output"]).as_posix()]
    for name, default in (("keep", 100), ("keep_parts", 100), ("reduce_time", "30s")):
        if options[name] != default:
            value = options[name]
            text = f"{value:g}" if isinstance(value, float) else value
            words += [f"--{name.replace('_', '-')}", text]
    words += ["--kind", options["kinds"]] if options["kinds"] else []
    words += [word for pattern in options["targets"] for word in ("--target", pattern)]
    words += ["--time", options["budget"]] if options["budget"] else []
    words += ["--method", options["method"]] if options["method"] != METHODS[0] else []
    words += ["--faults", options["faults"]] if options["faults"] != FAULTS[0] else []
    words += ["--no-reduce"] if options["no_reduce"] else []
    words += ["--store", redacted(store)] if store else []
    return shlex.join(words)


# A suite as text and as data.


def suite_text(suite: Suite, saved: SavedSuite | None, width: int = 0) -> str:
    """Return a table of the tests with what each adds, and a summary of what they keep."""
    part = suite.subject.part
    head = ("adds", f"{part}s", "of", "time", "test")
    rows = [
        (
            f"{len(test.adds):,}",
            f"{test.size:,}",
            f"{test.before:,}",
            duration(test.seconds) if test.seconds else "-",
            name_of(test),
        )
        for test in suite.tests
    ]
    parts = [table(head, rows, right="rrrr", width=width), "\n".join(_summary(suite))]
    if saved is not None:
        parts.append("\n".join(_written(saved)))
    remarks = [f"note: {note}" for note in suite.notes]
    remarks += [
        f"dropped: trial {trial}: {why}"
        for trial, why in suite.dropped
        # That others keep what a test adds is the normal case, not worth a remark.
        if "kept by others" not in why
    ]
    parts += ["\n".join(remarks)] if remarks else []
    return "\n\n".join(parts)


def _summary(suite: Suite) -> list[str]:
    part = suite.subject.part
    lines = [f"{plural(len(suite.tests), 'test')} of {suite.trials:,}{_kept_targets(suite)}"]
    faults = {test.fault.id for test in suite.tests if test.fault is not None}
    if faults:
        lines.append(f"{plural(len(faults), 'fault')} shown: {', '.join(sorted(faults))}")
    lines.append(f"chosen: {plural(suite.chosen, 'whole test')} ({suite.method}), {_proof(suite)}")
    before, now = suite.parts
    lines.append(
        f"reduced: from {plural(before, part)} to {now:,} ({format_percent(suite.srr)} smaller), "
        f"from {duration(suite.seconds[0])} to {duration(suite.seconds[1])}; "
        f"all tests took {duration(suite.trials_seconds)}"
    )
    unfinished = sum(not test.complete for test in suite.tests)
    if unfinished:
        lines.append(f"{plural(unfinished, 'test')} could become smaller: use --reduce-time")
    return lines


def _proof(suite: Suite) -> str:
    if suite.proven:
        return "and no smaller number keeps as much"
    if suite.at_least:
        return f"perhaps not the fewest: at least {suite.at_least:,} are needed"
    return "not known to be the fewest"


def _kept_targets(suite: Suite) -> str:
    if not suite.targets:
        return "; only faults were recorded"
    verb = "keeps" if len(suite.tests) == 1 else "keep"
    by_kind = [
        f"{kept:,} of {counted(count, kind)}" for kind, (kept, count) in suite.by_kind.items()
    ]
    return (
        f" {verb} {len(suite.kept):,} of {plural(len(suite.targets), 'target')} "
        f"({format_percent(suite.share)}): {', '.join(by_kind)}"
    )


def _written(saved: SavedSuite) -> list[str]:
    tests = saved.suite.tests
    faults = sum(test.fault is not None for test in tests)
    outcomes = [f"{len(tests) - faults} passed"] if len(tests) > faults else []
    words = {"xfail": "failed as expected", "fail": "failed as they should", "skip": "skipped"}
    outcomes += [f"{faults} {words[saved.suite.faults]}"] if faults else []
    need = "needs" if saved.needs_swarmtest else "does not need"
    return [
        f"written: {saved.path}, {', '.join(outcomes)}, twice, in {duration(saved.seconds)}; "
        f"it {need} swarmtest"
    ]


def suite_data(suite: Suite, saved: SavedSuite | None) -> dict[str, Any]:
    """Return a suite as dictionaries and lists, for JSON."""
    return {
        "campaign": suite.campaign,
        "tests": [_test_data(test) for test in suite.tests],
        "targets": len(suite.targets),
        "kept": len(suite.kept),
        "by_kind": {
            kind: {"kept": kept, "targets": count} for kind, (kept, count) in suite.by_kind.items()
        },
        "trials": suite.trials,
        "trials_seconds": suite.trials_seconds,
        "chosen": suite.chosen,
        "chosen_kept": suite.chosen_kept,
        "method": suite.method,
        "at_least": suite.at_least or None,
        "proven": suite.proven,
        "parts": list(suite.parts),
        "seconds": list(suite.seconds),
        "srr": suite.srr,
        "dropped": [{"trial": trial, "reason": why} for trial, why in suite.dropped],
        "notes": list(suite.notes),
        "file": str(saved.path) if saved else None,
        "pytest_seconds": saved.seconds if saved else None,
        "needs_swarmtest": saved.needs_swarmtest if saved else None,
    }


def _test_data(test: SuiteTest) -> dict[str, Any]:
    return {
        "trial": test.trial,
        "name": name_of(test),
        "fault": test.fault.id if test.fault else None,
        "adds": [str(target) for target in test.adds],
        "hits": len(test.hits),
        "before": test.before,
        "size": test.size,
        "srr": test.srr,
        "seconds": test.seconds,
        "seconds_before": test.seconds_before,
        "complete": test.complete,
        "test": test.data,
    }
