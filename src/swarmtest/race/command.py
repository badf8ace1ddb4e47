"""The ``swarmtest race`` command."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from swarmtest.campaign.budget import Budget
from swarmtest.campaign.campaign import Campaign, Outcome
from swarmtest.campaign.failing_faults import ANY, RunLives
from swarmtest.campaign.reduced_faults import reductions_of
from swarmtest.core.errors import UserError
from swarmtest.core.formatting import plural
from swarmtest.coverage.options import CoverageOptions
from swarmtest.race.explanation import explore, search_all
from swarmtest.race.mermaid import mermaid_text
from swarmtest.race.race_test import RaceTest
from swarmtest.race.raced_program import MODES, SECONDS, RacedProgram, split_kinds
from swarmtest.race.regression_test import replay_code
from swarmtest.race.views import after_data, after_text, search_text
from swarmtest.reduce.fault_reductions import reduce_and_show
from swarmtest.reduce.named_tests import named_test
from swarmtest.store import open_store
from swarmtest.store.fault_lives import fault_lives, lives_by_recorded_fault
from swarmtest.store.interface import Store
from swarmtest.subjects.loading import SubjectReference
from swarmtest.ui import completion
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import store_option
from swarmtest.ui.run_options import (
    budget_options,
    fail_on_option,
    parse_budget,
    parse_reduction_time,
    parse_seed,
    reduce_options,
    timeout_option_of,
    view_options,
    workers_option,
)
from swarmtest.ui.run_report import race_width, report_outcome
from swarmtest.ui.terminal.progress import JsonLines, ProgressView, view_for
from swarmtest.ui.terminal.text import json_text

_DEFAULT_BUDGET = Budget(tests=1_000, wall_seconds=20.0)
_SYSTEMATIC_BUDGET = Budget(wall_seconds=60.0)
_NO_LIMIT = 24 * 3600.0
_NATIVE = "swarmtest.native_command"
_DEFAULT_NEIGHBOURS = 1_000


class _RaceCommand(HelpfulCommand):
    """A command that leaves everything after ``--`` to the program named there."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            mark = args.index("--")
            ctx.meta[_NATIVE] = args[mark + 1 :]
            args = args[:mark]
        return super().parse_args(ctx, args)


@click.command(cls=_RaceCommand)
@click.argument(
    "path",
    metavar="PATH[::NAME] | -- PROGRAM [ARGUMENT]...",
    required=False,
    shell_complete=completion.files,
)
@budget_options
@click.option(
    "--seed",
    default="0",
    show_default=True,
    help="The same seed gives the same schedules; `random` picks a new one.",
)
@click.option(
    "--cover",
    multiple=True,
    metavar="NAME",
    help="A module, package or path in which threads are switched. May be repeated.  "
    "[default: the file and the code beside it]",
)
@click.option(
    "--coverage",
    "kinds",
    metavar="KIND,...",
    help="Record what threads do to each other: shared (variables), pair (of accesses, one after "
    "the other), sync (locks and the like); and what runs execute: line, branch, ...",
)
@click.option(
    "--control",
    "mode",
    flag_value="control",
    help="Only controlled runs: one thread runs at a time.",
)
@click.option(
    "--noise",
    "mode",
    flag_value="noise",
    help="Only runs with noise: threads run freely, with random delays.",
)
@click.option(
    "--isolated", is_flag=True, help="Run each test in its own process; scripts always do."
)
@click.option(
    "-o",
    "--output",
    "save",
    shell_complete=completion.files,
    metavar="FILE",
    help="Write a pytest test that replays the race (.py), or its diagram for Mermaid (.mmd).",
)
@click.option(
    "--after",
    metavar="FAULT | FILE",
    shell_complete=completion.faults,
    help="After a fix: try schedules near the one that showed this fault, and bound how many fail.",
)
@click.option(
    "--preemptions",
    type=click.IntRange(0, 10),
    metavar="N",
    help="For small programs: run all schedules that stop a thread at most N times although it "
    "could continue.",
)
@click.option(
    "--expect",
    metavar="STATUS,...",
    help="Exit statuses of a native program that are not failures.  [default: 0]",
)
@timeout_option_of(f"{SECONDS:g}s; for native programs 10s")
@workers_option
@reduce_options
@fail_on_option
@store_option
@view_options
@click.pass_context
def race(context: click.Context, /, path: str | None, **options: Any) -> int:
    """Find races, deadlocks and lost wake-ups; replay, shrink and explain them.

    \b
    swarmtest race shop.py::sell_out             a function without arguments
    swarmtest race tests/test_shop.py::test_sell  a pytest test, with its fixtures
    swarmtest race server.py                     a script; each run has its own process
    swarmtest race -- ./server --port 0          any program with POSIX threads

    Each run has settings of its own, drawn as a swarm: how the next thread is chosen, and where
    threads are switched. Without limits it ends after 1,000 runs or 20 seconds.

    With --preemptions 2, all schedules with at most two preemptions are run, or as many as fit into
    60 seconds.

    Exit status: 0 no fault (with --fail-on new: no new one), 1 faults found.
    """
    native = context.meta.get(_NATIVE)
    reference = _reference(path, native, options)
    if options["after"]:
        return _check_fix(reference, options)
    if options["preemptions"] is not None:
        return _search_systematically(reference, options)
    if options["save"] and (native or not options["save"].endswith((".py", ".mmd"))):
        raise UserError(
            "--output writes a test of a Python program: name a file that ends in .py, or in .mmd "
            "for its diagram"
        )
    parse_reduction_time(options)
    budget = parse_budget(options) or _DEFAULT_BUDGET
    view = view_for(
        budget, quiet=options["quiet"], as_json=options["as_json"], workers=options["workers"]
    )
    with open_store(options["store"]) as store:
        try:
            return _race(reference, budget, store, view, options)
        finally:
            view.end()


def _reference(path: str | None, native: list[str] | None, options: dict[str, Any]) -> str:
    if native is not None:
        if path is not None or not native:
            raise UserError("a native program is named after --: swarmtest race -- ./program args")
        for name in ("cover", "mode", "isolated", "after", "preemptions"):
            if options[name] not in (None, False, ()):
                raise UserError(
                    f"--{options[name] if name == 'mode' else name} works only for Python programs"
                )
        if options["kinds"]:
            raise UserError(
                "--coverage works only for Python programs: native programs always record it"
            )
        seconds = f"--seconds {options['timeout']:g} " if options["timeout"] else ""
        expected = f"--expect {_checked_statuses(options['expect'])} " if options["expect"] else ""
        return f"race {seconds}{expected}-- {shlex.join(native)}"
    if options["expect"]:
        raise UserError("--expect works only for native programs, which are named after --")
    if path is None:
        raise UserError("name what to race: FILE.py::FUNCTION, a test, a script, or -- ./program")
    modes = (options["mode"],) if options["mode"] else MODES
    raced = RacedProgram.of(
        path,
        options["cover"],
        modes=modes,
        isolated=options["isolated"],
        coverage=split_kinds(options["kinds"])[1] if options["kinds"] else (),
        seconds=options["timeout"] or SECONDS,
    )
    return str(raced)


def _checked_statuses(text: str) -> str:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdigit() and int(word) < 256 for word in words):
        raise UserError(f"--expect {text}: exit statuses are numbers from 0 to 255, like 0,3")
    return ",".join(words)


def _race(
    reference: str, budget: Budget, store: Store, view: ProgressView, options: dict[str, Any]
) -> int:
    campaign = Campaign(
        SubjectReference(reference),
        None,
        budget,
        parse_seed(options["seed"]),
        options["workers"],
        store,
        coverage=_code_coverage(reference, options),
        on_progress=view.update,
    )
    if not options["quiet"] and not isinstance(view, JsonLines):
        click.echo(
            f"{campaign.subject.name}: seed {campaign.seed}, "
            f"{plural(campaign.workers, 'worker')}, until {campaign.budget.describe()}"
        )
    before = fault_lives(store, campaign.subject.name)
    view.before = lives_by_recorded_fault(store, campaign.subject.name)
    outcome = campaign.run()
    view.end()
    allowed = parse_reduction_time(options)
    reductions = None
    if allowed is not None and not outcome.interrupted and outcome.faults:
        reductions = reduce_and_show(campaign.subject, store, outcome.campaign, allowed, view)
    lives = RunLives.until_now(before, store, campaign.subject.name)
    found = [fault.id for fault in outcome.faults]
    failing = lives.failing(options["fail_on"] or ANY, found)
    report_outcome(campaign, store, outcome, view, [], reductions, lives, failing)
    if options["save"]:
        _save_replay(Path(options["save"]), campaign.subject, store, outcome)
    if outcome.interrupted:
        return 130
    return int(bool(failing))


def _code_coverage(reference: str, options: dict[str, Any]) -> CoverageOptions | None:
    kinds = split_kinds(options["kinds"])[0] if options["kinds"] else ()
    return RacedProgram.parse(reference).watching(kinds) if kinds else None


def _save_replay(path: Path, subject: Any, store: Store, outcome: Outcome) -> None:
    """Write a test that replays the most frequent fault that could be replayed, or its diagram."""
    reductions = reductions_of(store, outcome.campaign)
    reduced = [reductions[fault.id].test for fault in outcome.faults if fault.id in reductions]
    tests = [RaceTest.from_json(json.loads(test)) for test in reduced if test]
    tests = [test for test in tests if test.schedule is not None]
    if not tests:
        click.echo(f"{path} was not written: no fault could be replayed")
        return
    explanation = tests[0].explanation
    if path.suffix == ".mmd":
        code = mermaid_text(explanation) if explanation is not None else ""
    else:
        code = replay_code(subject.raced, tests[0], path.parent)
    try:
        path.write_text(code)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    what = (
        "the diagram, for Mermaid" if path.suffix == ".mmd" else "it fails until the race is gone"
    )
    click.echo(f"wrote {path}: {what}")


def _check_fix(reference: str, options: dict[str, Any]) -> int:
    """Check whether a fix holds, by schedules near the one that showed the fault."""
    named = named_test(options["after"], options["store"], options["timeout"])
    test = RaceTest.from_json(named.data)
    if test.schedule is None:
        raise UserError(f"{options['after']} has no schedule: only a controlled run has one")
    budget = parse_budget(options) or Budget(tests=_DEFAULT_NEIGHBOURS, wall_seconds=20.0)
    raced = RacedProgram.parse(reference)
    seed = parse_seed(options["seed"])
    explored = explore(raced, test.schedule, budget.tests, budget.wall_seconds, seed)
    click.echo(
        json_text(after_data(explored))
        if options["as_json"]
        else after_text(explored, race_width())
    )
    return int(bool(explored.failures or explored.old_fails))


def _search_systematically(reference: str, options: dict[str, Any]) -> int:
    """Run all schedules with few preemptions."""
    if options["save"] or options["kinds"] or options["mode"] == "noise":
        raise UserError(
            "--preemptions tries all schedules and keeps no campaign: it goes with neither "
            "--output nor --coverage nor --noise"
        )
    budget = parse_budget(options) or _SYSTEMATIC_BUDGET
    searched = search_all(
        RacedProgram.parse(reference),
        options["preemptions"],
        budget.tests,
        budget.wall_seconds or _NO_LIMIT,
    )
    data = asdict(searched)
    click.echo(json_text(data) if options["as_json"] else search_text(searched, race_width()))
    return int(searched.failed is not None)
