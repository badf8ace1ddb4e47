"""``swarmtest replay``: run one test again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click

from swarmtest.campaign.budget import parse_seconds
from swarmtest.campaign.isolated import run_isolated
from swarmtest.cli.options import existing_store, refuse_imported, store_option
from swarmtest.errors import UserError
from swarmtest.result import Result, Verdict
from swarmtest.space import Configuration
from swarmtest.subjects.loading import SubjectReference
from swarmtest.subjects.machine_subject import MachineSubject


@click.command()
@click.argument("test", metavar="CAMPAIGN#TRIAL | FILE")
@click.option("--save", metavar="FILE", help="Write the test as JSON (or .py: as code).")
@click.option("--timeout", default="10s", show_default=True, metavar="TIME", help="Longest time.")
@click.option("--no-run", is_flag=True, help="Print the test, do not run it.")
@click.option("--pdb", is_flag=True, help="Run in this process, under the debugger if it fails.")
@store_option
def replay(
    test: str, save: str | None, timeout: str, no_run: bool, pdb: bool, store: str | None
) -> int:
    """Run one test again and print it as code.

    \b
    swarmtest replay 3#17         trial 17 of campaign 3
    swarmtest replay test.json    a test that was saved

    Exit status: 0 passes, 1 fails.
    """
    if re.fullmatch(r"\d+#\d+", test):
        subject, data, recorded = _from_store(test, store, parse_seconds(timeout))
    elif ("#" in test or test.isdigit()) and not Path(test).exists():
        raise UserError(f"{test!r} is not CAMPAIGN#TRIAL, like 3#17, nor a file")
    else:
        subject, data, recorded = _from_file(Path(test))
    code = subject.code(data)
    if save is not None:
        _save(Path(save), code, data)
    click.echo(code.rstrip())
    if no_run:
        return 0
    if pdb:
        return _debug(subject, data)
    result = run_isolated(lambda: subject.replay(data), parse_seconds(timeout))
    click.echo("\n" + _verdict(result, recorded))
    return int(result.verdict == Verdict.FAILED)


def _save(path: Path, code: str, data: Any) -> None:
    try:
        path.write_text(code if path.suffix == ".py" else json.dumps(data, indent=1) + "\n")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


def _from_store(
    name: str, store: str | None, seconds: float
) -> tuple[MachineSubject, Any, str | None]:
    opened = existing_store(store)
    campaign, number = map(int, name.split("#"))
    record = opened.campaign(campaign)
    refuse_imported(record, "replayed")
    trial = opened.trial(campaign, number)
    reference = record.options.get("subject")
    if not reference:
        raise UserError(
            f"campaign {campaign} tested {record.subject}, which cannot be imported by name; "
            "replay it from the program that defined it"
        )
    subject = SubjectReference.from_json(reference).load()
    kept = opened.test(campaign, number)
    if kept is not None:
        data = json.loads(kept)
    else:
        configuration = Configuration.from_bytes(subject.space, trial.configuration)
        data = _regenerated(subject, configuration, trial.seed, seconds)
    return subject, data | {"reference": reference}, trial.fault or ""


def _regenerated(
    subject: MachineSubject, configuration: Configuration, seed: int, seconds: float
) -> Any:
    """A test that was not kept whole, made again from its seed, in a process of its own."""

    def run() -> Result:
        made = subject.test_of(configuration, seed).to_json()
        return Result(Verdict.PASSED, test=made)

    result = run_isolated(run, seconds)
    if result.test is None:
        raise UserError("the test ends its process and was not kept; run the campaign again")
    return result.test


def _from_file(path: Path) -> tuple[MachineSubject, Any, None]:
    try:
        data = json.loads(path.read_text())
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("subject"), str):
        raise UserError(f"{path} is not a test that `swarmtest replay --save` wrote")
    try:
        reference = SubjectReference.from_json(data.get("reference", {"text": data["subject"]}))
    except (KeyError, TypeError, AttributeError):
        raise UserError(f"{path}: its 'reference' is broken") from None
    return reference.load(), data, None


def _verdict(result: Result, recorded: str | None) -> str:
    lines = []
    if result.fault is None:
        lines.append(f"passes: {result.steps} steps ran")
    else:
        if result.fault.details:
            lines.append(result.fault.details.rstrip())
        lines.append(f"fails: fault {result.fault.id}: {result.fault.signature}")
    if result.skipped:
        lines.append(f"{result.skipped} steps were skipped: their value or guard was gone")
    if recorded is not None:
        shown = result.fault.id if result.fault else ""
        same = shown == recorded
        was = f"fault {recorded}" if recorded else "a pass"
        lines.append("the same as recorded" if same else f"not what was recorded: {was}")
    return "\n".join(lines)


def _debug(subject: MachineSubject, data: Any) -> int:
    """Run the printed code itself, so that the debugger stops in the user's own frames."""
    import linecache
    import pdb as debugger
    import sys
    import traceback

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
