"""``swarmtest replay``: running one test again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from swarmtest.core.errors import UserError
from swarmtest.core.formatting import plural
from swarmtest.core.result import Result, Verdict
from swarmtest.processes.fork_pool import run_isolated
from swarmtest.reduce.assertion_values import with_values
from swarmtest.reduce.named_tests import named_test, save_test, seconds_of, stored_code
from swarmtest.search.command import find_searched_trial, replay_trial
from swarmtest.subjects.subject import Subject, named_fault
from swarmtest.ui.options import store_option, trust_option
from swarmtest.ui.run_options import timeout_option


@click.command()
@click.argument("test", metavar="CAMPAIGN#TRIAL | FAULT | FILE")
@click.option(
    "--save", metavar="FILE", help="Write the test as JSON, or as code if FILE ends in .py."
)
@timeout_option
@click.option("--no-run", is_flag=True, help="Print the test without running it.")
@click.option(
    "--pdb", is_flag=True, help="Run in this process, and start the debugger if it fails."
)
@trust_option
@store_option
def replay(
    test: str, save: str | None, timeout: float | None, no_run: bool, pdb: bool, store: str | None
) -> int:
    """Run one test again, and print it as code.

    \b
    swarmtest replay 3#17         trial 17 of campaign 3; of a search, the test at that point
    swarmtest replay 4ee18053     the smallest test of a fault
    swarmtest replay test.json    a test that was saved

    Exit status: 0 the test passes, 1 it fails.
    """
    searched = find_searched_trial(test, store)
    if searched is not None:
        if save is not None or pdb:
            raise UserError(
                f"{test} is a run of a search: its settings and its seed are printed above"
            )
        return replay_trial(*searched, store, timeout, no_run)
    if no_run and save is None:
        stored = stored_code(test, store)
        if stored is not None:
            click.echo(stored.rstrip())
            return 0
    named = named_test(test, store, timeout)
    subject, data = named.subject, named.data
    if save is not None:
        save_test(Path(save), named, data)
    click.echo(subject.code(data).rstrip())
    if no_run:
        return 0
    if pdb:
        return _debug(subject, data)
    result = run_isolated(lambda: subject.replay(data), seconds_of(subject, timeout))
    if result.fault is not None:
        seconds = seconds_of(subject, timeout)
        shown = with_values(subject, data, named_fault(subject, result.fault), seconds)
        result = result._replace(fault=shown)
    click.echo("\n" + _verdict(result, named.fault, subject.part))
    return int(result.verdict == Verdict.FAILED)


def _verdict(result: Result, recorded: str | None, part: str) -> str:
    lines = []
    if result.verdict == Verdict.INVALID:
        lines.append(f"invalid: {result.missing}")
    elif result.fault is None:
        ran = " ran" if part == "step" else ""
        lines.append(f"passes: {plural(result.steps, part)}{ran}")
    else:
        if result.fault.details:
            lines.append(result.fault.details.rstrip())
        lines.append(f"fails: fault {result.fault.id}: {result.fault.signature}")
    if result.missing and result.verdict != Verdict.INVALID:
        lines.append(f"note: {result.missing}")
    if result.skipped:
        lines.append(
            f"{result.skipped} steps were skipped: a value is missing, or a guard is false"
        )
    if recorded is not None:
        fault = result.fault.id if result.fault else ""
        is_same = fault == recorded
        recorded_text = f"fault {recorded}" if recorded else "a pass"
        lines.append(
            "the same as recorded" if is_same else f"not what was recorded: {recorded_text}"
        )
    return "\n".join(lines)


def _debug(subject: Subject, data: Any) -> int:
    """Run the printed code itself, so that the debugger stops in the user's own frames."""
    import linecache
    import pdb as debugger
    import sys
    import traceback

    if subject.suffix != ".py":
        raise UserError("--pdb is for tests that are Python code")
    code = subject.code(data)
    linecache.cache["<test>"] = (len(code), None, code.splitlines(True), "<test>")
    try:
        exec(compile(code, "<test>", "exec"), {"__name__": "__test__"})
    except Exception:
        traceback.print_exc()
        debugger.post_mortem(sys.exc_info()[2])
        return 1
    click.echo("passes")
    return 0
