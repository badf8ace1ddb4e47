"""``swarmtest focus``: the command, its options and exit status.

Options come first, then the command itself; below it are the checks of the options, the screen
output while campaigns run, and the reports at the end.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click

from swarmtest.campaign.budget import Budget, Limits, Progress
from swarmtest.campaign.failing_faults import ANY, RunLives
from swarmtest.campaign.loop import Show
from swarmtest.campaign.reduced_faults import ReductionTime
from swarmtest.core.errors import UserError
from swarmtest.coverage.options import CoverageOptions
from swarmtest.coverage.scope import project_root
from swarmtest.focus.base_version import baseline_of
from swarmtest.focus.comments import NoComment, comment_text, find_discussion
from swarmtest.focus.focus import Focus
from swarmtest.focus.outcome import FocusOutcome
from swarmtest.focus.request import FocusRequest
from swarmtest.focus.views.annotations import (
    code_quality,
    github_annotations,
    junit_xml,
    sarif,
)
from swarmtest.focus.views.markdown import focus_json, markdown_summary
from swarmtest.focus.views.terminal import focus_text
from swarmtest.languages.places import NothingToAimAt
from swarmtest.reduce.fault_reductions import reduce_and_show
from swarmtest.store import open_store
from swarmtest.store.fault_lives import events_of, lives_of
from swarmtest.store.interface import Store
from swarmtest.store.records import FaultRecord
from swarmtest.strategies.directed.directed import STRATEGIES
from swarmtest.strategies.directed.merging import MERGES
from swarmtest.subjects.subject import Subject
from swarmtest.ui import completion
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import confidence_option, screen_width, store_option
from swarmtest.ui.run_options import (
    budget_options,
    coverage_options,
    executor_options,
    fail_on_option,
    parse_budget,
    parse_coverage,
    parse_executor_options,
    parse_reduction_time,
    parse_seed,
    parse_subject,
    reduce_options,
    subject_options,
    view_options,
    workers_option,
)
from swarmtest.ui.terminal.fault_lives import life_lines
from swarmtest.ui.terminal.progress import ProgressView, view_for
from swarmtest.ui.terminal.reduced_tests import reduction_notes
from swarmtest.ui.terminal.tables import command_text, test_code

# Options.


def target_options(command: click.decorators.FC) -> click.decorators.FC:
    """Add the options that name targets."""
    options = [
        click.option(
            "--line", multiple=True, metavar="FILE:LINE", help="Aim at a line. May be repeated."
        ),
        click.option(
            "--lines",
            multiple=True,
            metavar="FILE:A-B",
            help="Aim at all statements from line A to B. May be repeated.",
        ),
        click.option(
            "--function",
            multiple=True,
            metavar="MODULE:NAME",
            help="Aim at all statements of a function, such as shop.cart:Cart.total or "
            "cart.py:Cart.total. May be repeated.",
        ),
        click.option(
            "--diff",
            metavar="REV",
            default="",
            help="What was changed since a git revision (for a branch: since you branched off), "
            "committed or not.",
        ),
        click.option(
            "--fault",
            multiple=True,
            metavar="ID",
            shell_complete=completion.faults,
            help="A fault that was found before.",
        ),
        click.option(
            "--mutant", multiple=True, metavar="ID", help="A mutant that a test has killed."
        ),
        click.option(
            "--target",
            multiple=True,
            metavar="KIND:NAME",
            help="Aim at any other target, such as 'event:stack was full'. May be repeated.",
        ),
        click.option(
            "--rare", is_flag=True, help="Lines that few tests hit, but enough for statistics."
        ),
        click.option(
            "--targets-from",
            multiple=True,
            metavar="FILE",
            help="A file with one target per line, or the SARIF file of a static analyser.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def output_options(command: click.decorators.FC) -> click.decorators.FC:
    """Add the options that say what is written besides the terminal output."""
    options = [
        click.option("--junit", metavar="FILE", help="Write the result as JUnit XML."),
        click.option("--sarif", metavar="FILE", help="Write the result as SARIF 2.1.0."),
        click.option("--markdown", metavar="FILE", help="Write a summary in Markdown."),
        click.option(
            "--code-quality",
            metavar="FILE",
            help="Write a Code Quality report, which GitLab shows at the lines of a merge request.",
        ),
        click.option(
            "--github",
            is_flag=True,
            help="Print annotations for GitHub Actions, and add to the job summary.",
        ),
        click.option(
            "--comment",
            is_flag=True,
            help="In a job of GitHub Actions or GitLab CI: write the summary as a comment on the "
            "pull request or merge request, or update the comment of the run before.",
        ),
        click.option("--all", "everything", is_flag=True, help="List every target."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


# The command.

_DEFAULT_BUDGET = Budget(tests=10_000, wall_seconds=60.0)


@click.command(cls=HelpfulCommand)
@click.argument("path", metavar="PATH[::MACHINE]", shell_complete=completion.files)
@target_options
@click.option(
    "-s",
    "--strategy",
    shell_complete=completion.strategies,
    metavar="NAME",
    default=STRATEGIES[0],
    show_default=True,
    help=f"How to aim: {', '.join(STRATEGIES)}.",
)
@click.option(
    "--merge",
    metavar="HOW",
    default="",
    help=f"For the last three strategies, how targets share tests: {', '.join(MERGES)}.  "
    "[default: aggressive]",
)
@budget_options
@click.option(
    "--seed",
    default="0",
    show_default=True,
    help="Use this seed, or the next one that no earlier campaign used.",
)
@workers_option
@executor_options
@subject_options
@coverage_options
@click.option("--fresh", is_flag=True, help="Run a baseline even if the store has data.")
@click.option(
    "--baseline-tests",
    type=int,
    metavar="N",
    help="Number of tests of the baseline, if one is run; it takes at most half of --time.  "
    "[default: 2,000, and at most a quarter of --time]",
)
@click.option(
    "--control",
    type=float,
    default=0.1,
    show_default=True,
    metavar="SHARE",
    help="Share of tests that are not directed, for comparison: half of them undirected, half with "
    "all features on.",
)
@click.option(
    "--hot",
    type=float,
    default=0.5,
    show_default=True,
    metavar="SHARE",
    help="Do not aim at targets that more than this share of tests hit anyway.",
)
@click.option(
    "--no-base-check",
    is_flag=True,
    help="With --diff: do not run failing tests on the base version too.",
)
@click.option(
    "--allow-nothing",
    is_flag=True,
    help="Exit with status 0, not 2, if there is nothing to aim at.",
)
@click.option(
    "--require-hits",
    is_flag=True,
    help="Exit with status 1 also if a target that can be aimed at was never hit.",
)
@confidence_option
@reduce_options
@fail_on_option
@output_options
@store_option
@view_options
def focus(path: str, **options: Any) -> int:
    """Test chosen code: generate random tests that hit it much more often.

    PATH is the same as for `swarmtest run`. The triggers and suppressors of the targets come from
    earlier campaigns in the store; if there are none, a baseline campaign is run first.

    \b
    swarmtest focus cart.py --line shop/cart.py:120
    swarmtest focus cart.py --function shop.cart:Cart.total --time 2m
    swarmtest focus cart.py --diff main               what a branch has changed
    swarmtest focus cart.py --fault 4ee18053          more tests that show a fault
    swarmtest focus cart.py --rare                    lines that tests rarely reach
    swarmtest focus cart.py --targets-from bandit.sarif

    Exit status: 0 no fault (with --diff: no fault that the base version does not show too; with
    --fail-on new: no new one), 1 faults, 2 something to fix, 130 interrupted.
    """
    _check_shares(options)
    budget = parse_budget(options) or _DEFAULT_BUDGET
    executor = parse_executor_options(options)
    _check_outputs(options)
    screen = _Screen(options)
    signal.signal(signal.SIGTERM, lambda number, frame: signal.raise_signal(signal.SIGINT))
    allowed = parse_reduction_time(options)
    reference = parse_subject(path, options)
    with open_store(options["store"]) as store:
        try:
            focused = Focus(
                reference,
                _request(options),
                store,
                budget,
                strategy=options["strategy"],
                merge=options["merge"],
                seed=parse_seed(options["seed"]),
                workers=options["workers"],
                executor=executor,
                limits=Limits(options["timeout"], options["memory"]),
                coverage=_coverage(options),
                baseline=_baseline(options, budget),
                fresh=options["fresh"],
                control=options["control"],
                hot=options["hot"],
                confidence=options["confidence"],
                check_base=not options["no_base_check"],
                say=screen.say,
                shown_by=screen.shown_by,
            )
            outcome = focused.run()
        except NothingToAimAt as error:
            if not options["allow_nothing"]:
                raise
            return _report_nothing(path, error, options)
        finally:
            screen.end()
        if outcome.faults and not outcome.interrupted and allowed is not None:
            outcome = _reduce_faults(
                outcome, focused.campaigns, reference.load(), store, allowed, screen.still()
            )
        lives = _lives(store, outcome, focused.campaigns)
        outcome = _with_lives(_with_commands(outcome, store.url), lives)
        resume = command_text(f"resume {outcome.campaign}{executor.words}", store.url)
    _report(outcome, options)
    if outcome.interrupted and not options["as_json"]:
        click.echo(f"interrupted: everything is kept, `{resume}` continues")
    return _status(outcome, options, lives)


def _check_shares(options: dict[str, Any]) -> None:
    if not 0 < options["hot"] <= 1:
        raise UserError(f"--hot is a share above 0 and at most 1, not {options['hot']:g}")
    tests = options["baseline_tests"]
    if tests is not None and tests < 1:
        raise UserError(f"--baseline-tests is a number of tests, not {tests}")


def _check_outputs(options: dict[str, Any]) -> None:
    """Raise an error before the tests are run if a report could not be written."""
    if options["comment"]:
        with suppress(NoComment):  # told at the end, beside the result
            find_discussion(os.environ)
    paths = [options[name] for name in ("junit", "sarif", "markdown", "code_quality")]
    for path in filter(None, [*paths, _step_summary() if options["github"] else None]):
        folder = Path(path).absolute().parent
        if not folder.is_dir():
            raise UserError(f"cannot write {path}: there is no directory {folder}")


def _step_summary() -> str | None:
    """Return the file that a GitHub runner shows on the job's page, if there is one."""
    return os.environ.get("GITHUB_STEP_SUMMARY") or None


def _request(options: dict[str, Any]) -> FocusRequest:
    return FocusRequest(**{field.name: options[field.name] for field in fields(FocusRequest)})


def _baseline(options: dict[str, Any], budget: Budget) -> Budget | None:
    tests = options["baseline_tests"]
    return baseline_of(budget, tests) if tests is not None else None


def _coverage(options: dict[str, Any]) -> CoverageOptions | None:
    """Return what to watch: lines, which are what tests are aimed at, unless asked otherwise."""
    kinds = options["kinds"] or ("line" if options["cover"] else None)
    return parse_coverage(options | {"kinds": kinds})


class _Screen:
    """The terminal output during a run: the progress of each campaign, and lines between them."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._view: ProgressView | None = None
        self._shown_faults: set[str] = set()

    def shown_by(self, budget: Budget) -> Show:
        """Return a callback that shows the progress of a campaign.

        Each fault is shown once, and without saying whether it is new, which is only checked later.
        """
        options = self._options

        def update(progress: Progress, faults: list[FaultRecord]) -> None:
            self._view = view = self._view or view_for(
                budget,
                quiet=options["quiet"],
                as_json=options["as_json"],
                workers=options["workers"],
            )
            unseen = [fault for fault in faults if fault.id not in self._shown_faults]
            self._shown_faults |= {fault.id for fault in faults}
            view.update(progress, unseen)

        return update

    def still(self) -> ProgressView:
        """Return a view of the work that follows the campaigns."""
        options = self._options
        return view_for(
            Budget(),
            quiet=options["quiet"],
            as_json=options["as_json"],
            workers=options["workers"],
        )

    def say(self, line: str) -> None:
        """Print a line of its own."""
        self.end()
        if not self._options["quiet"] and not self._options["as_json"]:
            click.echo(line)

    def end(self) -> None:
        """End the view of a campaign, if there is one."""
        if self._view is not None:
            self._view.end()
            self._view = None


def _reduce_faults(
    outcome: FocusOutcome,
    campaigns: Sequence[int],
    subject: Subject,
    store: Store,
    allowed: ReductionTime,
    view: ProgressView,
) -> FocusOutcome:
    """Reduce the faults of a focused campaign; notes in the outcome name those not reduced.

    `campaigns` are the campaigns of the focus; a fault that several of them show is reduced in the
    first one. The reductions share the time that is `allowed` in total.
    """
    faults = {fault.record.id: fault for fault in outcome.faults}
    pending, notes, started = set(faults), list(outcome.notes), time.monotonic()
    for campaign in campaigns:
        ids = {fault.id for fault in store.faults(campaign)} & pending
        if not ids:
            continue
        rest = allowed
        if allowed.total is not None:
            spent = time.monotonic() - started
            rest = replace(allowed, total=max(allowed.total - spent, 0.0))
        result = reduce_and_show(subject, store, campaign, rest, view, ids)
        pending -= ids
        for id in ids & result.reductions.keys():
            reduction = result.reductions[id]
            code = test_code(reduction.test, subject)
            faults[id] = replace(
                faults[id], reduced=reduction, reduced_in=campaign, part=subject.part, code=code
            )
        notes += reduction_notes(result, store.url)
        if result.interrupted:
            break
    return replace(outcome, faults=tuple(faults.values()), notes=tuple(notes))


def _report_nothing(path: str, why: NothingToAimAt, options: dict[str, Any]) -> int:
    """Report that there is nothing to aim at; the files are written for those who read them."""
    outcome = FocusOutcome(path, 0, options["strategy"], options["diff"], unusable=(str(why),))
    click.echo(focus_json(outcome) if options["as_json"] else f"nothing to aim at: {why}")
    _write_all(outcome, options)
    return 0


def _report(outcome: FocusOutcome, options: dict[str, Any]) -> None:
    if options["as_json"]:
        click.echo(focus_json(outcome))
    else:
        click.echo(focus_text(outcome, screen_width(), options["everything"]))
    _write_all(outcome, options)


def _write_all(outcome: FocusOutcome, options: dict[str, Any]) -> None:
    here = project_root()
    top = Path(os.environ.get("GITHUB_WORKSPACE") or os.environ.get("CI_PROJECT_DIR") or here)
    _write(options["junit"], lambda: junit_xml(outcome, options["require_hits"]))
    _write(options["sarif"], lambda: sarif(outcome, top, here))
    _write(options["code_quality"], lambda: code_quality(outcome, top, here))
    _write(options["markdown"], lambda: markdown_summary(outcome))
    if options["comment"]:
        _comment(outcome, quiet=options["as_json"])
    if options["github"]:
        click.echo(github_annotations(outcome, top, here), nl=False)
        _write(_step_summary(), lambda: markdown_summary(outcome) + "\n", "a")


def _comment(outcome: FocusOutcome, quiet: bool) -> None:
    """Write the summary as a comment; if that is not possible, say why."""
    try:
        text = comment_text(markdown_summary(outcome), outcome.subject)
        done = find_discussion(os.environ).write(text)
    except NoComment as error:
        done = f"no comment was written: {error}"
    click.echo(done, err=quiet)


def _with_commands(outcome: FocusOutcome, store: str) -> FocusOutcome:
    """Return the outcome with replay commands that name the store, if it is not the usual one."""
    faults = [
        replace(fault, replay=command_text(f"replay {fault.record.id}", store))
        for fault in outcome.faults
    ]
    return replace(outcome, faults=tuple(faults))


def _write(path: str | None, content: Callable[[], str], mode: str = "w") -> None:
    if path is None:
        return
    try:
        with Path(path).open(mode, encoding="utf-8") as file:
            file.write(content())
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


def _lives(store: Store, outcome: FocusOutcome, campaigns: Collection[int]) -> RunLives:
    """Return the lives of the subject's faults, with and without these campaigns."""
    events = events_of(store, outcome.subject)
    lives = [
        {fault: life for (_, fault), life in lives_of(some).items()}
        for some in ((event for event in events if event.campaign not in campaigns), events)
    ]
    return RunLives(*lives)


def _with_lives(outcome: FocusOutcome, lives: RunLives) -> FocusOutcome:
    faults = [
        replace(
            fault,
            known=not lives.is_new(fault.record.id),
            life=tuple(life_lines(lives.after.get(fault.record.id), lives.before)),
        )
        for fault in outcome.faults
    ]
    return replace(outcome, faults=tuple(faults))


def _status(outcome: FocusOutcome, options: dict[str, Any], lives: RunLives) -> int:
    if outcome.interrupted:
        return 130
    if outcome.tests and outcome.invalid == outcome.tests:
        raise UserError("no test was valid, so nothing was tested: see `swarmtest show`")
    found = [fault.record.id for fault in outcome.faults if fault.status != "old"]
    if lives.failing(options["fail_on"] or ANY, found):
        return 1
    never = [t for t in outcome.targets if not t.dropped and not t.directed.hits]
    return 1 if options["require_hits"] and never else 0
