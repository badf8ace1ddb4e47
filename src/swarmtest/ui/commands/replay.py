"""``swarmtest replay``: running one test again, or the tests of all faults."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click

from swarmtest.core.errors import UserError
from swarmtest.core.formatting import plural
from swarmtest.core.result import Result, Verdict
from swarmtest.processes.fork_pool import run_isolated
from swarmtest.processes.perturbation import replayed
from swarmtest.reduce.assertion_values import with_values
from swarmtest.reduce.fault_replays import (
    TIMES,
    FaultReplay,
    examine_fault,
    lives_to_replay,
    replay_fault,
)
from swarmtest.reduce.named_tests import (
    NamedTest,
    load_subject,
    named_test,
    save_test,
    seconds_of,
    stored_code,
)
from swarmtest.search.command import find_searched_trial, replay_trial
from swarmtest.store.fault_lives import fault_lives
from swarmtest.store.interface import Store
from swarmtest.subjects.subject import Subject, named_fault
from swarmtest.ui import completion
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import existing_store, store_option, trust_option
from swarmtest.ui.run_options import own_memory_option, timeout_option


@click.command(cls=HelpfulCommand)
@click.argument(
    "test",
    metavar="CAMPAIGN#TRIAL | FAULT | FILE",
    required=False,
    shell_complete=completion.faults,
)
@click.option(
    "-o",
    "--output",
    "save",
    shell_complete=completion.files,
    metavar="FILE",
    help="Write the test as JSON, or as code if FILE ends in .py.",
)
@timeout_option
@own_memory_option
@click.option("--no-run", is_flag=True, help="Print the test without running it.")
@click.option(
    "--pdb", is_flag=True, help="Run in this process, and start the debugger if it fails."
)
@click.option(
    "--times",
    type=click.IntRange(1, 1000),
    default=TIMES,
    show_default=True,
    metavar="N",
    help="How often the test of a fault has to pass before the fault is called fixed.",
)
@click.option(
    "--faults",
    "subject",
    metavar="SUBJECT",
    help="Run the tests of all faults of a subject: which are fixed, which are back?",
)
@click.option("--json", "as_json", is_flag=True, help="With --faults: print JSON lines.")
@trust_option
@store_option
def replay(test: str | None, subject: str | None, store: str | None, **options: Any) -> int:
    """Run one test again, and print it as code.

    \b
    swarmtest replay 3#17               trial 17 of campaign 3
    swarmtest replay 4ee18053           the smallest test of a fault
    swarmtest replay test.json          a test that was saved
    swarmtest replay --faults stack.py  the tests of all faults of a subject

    If the test of a fault passes, it is run again, and the fault is called fixed if it passes each
    time. Exit status: 0 the test passes (with --faults: all do), 1 it fails.
    """
    if subject is not None:
        if test is not None:
            raise UserError("--faults runs the tests of all faults: name no test")
        return _replay_all(subject, store, options)
    if test is None:
        raise UserError("name a test: CAMPAIGN#TRIAL, like 3#17, a fault, or a file")
    return _replay_one(test, store, options)


def _replay_one(test: str, store: str | None, options: dict[str, Any]) -> int:
    save, timeout, no_run = options["save"], options["timeout"], options["no_run"]
    searched = find_searched_trial(test, store)
    if searched is not None:
        if save is not None or options["pdb"]:
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
    if options["pdb"]:
        return _debug(subject, data)
    seconds = seconds_of(subject, timeout)
    result = replayed(
        lambda: run_isolated(lambda: subject.replay(data), seconds),
        lambda fault: not named.fault or named_fault(subject, fault).is_called(named.fault),
    )
    if result.fault is not None:
        shown = with_values(subject, data, named_fault(subject, result.fault), seconds)
        result = result._replace(fault=shown)
    click.echo("\n" + _verdict(result, named.fault, subject.part))
    if named.campaign is not None and re.fullmatch(r"[0-9a-f]{8}", test):
        _note_replay(test, named, result, store, options)
    return int(result.verdict == Verdict.FAILED)


def _note_replay(
    fault: str, named: NamedTest, first: Result, store: str | None, options: dict[str, Any]
) -> None:
    """Note in the history of a fault what replaying its test shows; run it again if it passes."""
    seconds = seconds_of(named.subject, options["timeout"])
    waiting = [first]

    def run(test: NamedTest) -> Result:
        if waiting:
            return waiting.pop()
        return replayed(
            lambda: run_isolated(lambda: test.subject.replay(test.data), seconds, quiet=True),
            lambda shown: named_fault(test.subject, shown).is_called(fault),
        )

    try:
        opened = existing_store(store, write=True)
        assert named.campaign is not None
        life = fault_lives(opened, opened.campaign(named.campaign).subject)[fault]
        done = examine_fault(opened, life, named, run, options["times"])
    except UserError as error:
        click.echo(f"note: the history of the fault is not updated: {error}")
        return
    if not done.shown or done.after.state != done.before.state:
        click.echo(done.text)  # otherwise the verdict has said it: the same as recorded


def _replay_all(text: str, store: str | None, options: dict[str, Any]) -> int:
    for name in ("save", "no_run", "pdb"):
        if options[name]:
            raise UserError(f"--{name.replace('_', '-')} is for one test, not for --faults")
    opened = existing_store(store, write=True)
    shown = 0
    for subject in _subjects(opened, text):
        lives = lives_to_replay(opened, subject)
        if lives:
            _load(opened, subject)  # so that a mistake in the program is said once
        for life in lives:
            try:
                done = replay_fault(opened, life, options["times"], options["timeout"])
            except UserError as error:  # the others may still run
                done = FaultReplay(life, life, 0, 0, Result(Verdict.INVALID), str(error))
            shown += bool(done.shown)
            click.echo(json.dumps(_replay_data(done)) if options["as_json"] else done.text)
    return int(shown > 0)


def _load(store: Store, subject: str) -> None:
    """Load a subject; raise `UserError` if that is not possible."""
    records = [record for record in store.campaigns() if record.subject == subject]
    load_subject([record for record in records if record.options.get("subject")][-1])


def _subjects(store: Store, text: str) -> list[str]:
    """Return the subjects of the store that a user names, with or without the name in the file."""
    subjects = list(dict.fromkeys(record.subject for record in store.campaigns()))
    chosen = [
        each for each in subjects if each == text or each.startswith((f"{text}::", f"{text}:"))
    ]
    if not chosen:
        known = f": it has {', '.join(subjects[:5])}" if subjects else ""
        raise UserError(f"{store.url} has no campaign of {text}{known}")
    return chosen


def _replay_data(done: FaultReplay) -> dict[str, Any]:
    return {
        "event": "replayed",
        "fault": done.after.fault,
        "subject": done.after.subject,
        "state_before": done.before.state,
        "state": done.after.state,
        "shown": done.shown,
        "runs": done.runs,
        "unclear": done.unclear,
        "text": done.text,
    }


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
