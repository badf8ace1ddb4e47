"""``swarmtest reproduce``: a report of a fault for an issue tracker."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from swarmtest.core.errors import UserError
from swarmtest.processes.fork_pool import run_isolated
from swarmtest.processes.perturbation import replayed
from swarmtest.reduce.named_tests import NamedTest, named_test, seconds_of
from swarmtest.reproduce.clean_run import CleanRun, run_cleanly, shortened
from swarmtest.reproduce.issue import issue_text
from swarmtest.reproduce.standalone_script import standalone_script
from swarmtest.subjects.subject import named_fault
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import store_option, trust_option
from swarmtest.ui.run_options import timeout_option


@click.command(cls=HelpfulCommand)
@click.argument("test", metavar="FAULT | CAMPAIGN#TRIAL | FILE")
@click.option("--script", "only_script", is_flag=True, help="Print the script only.")
@timeout_option
@trust_option
@store_option
def reproduce(test: str, only_script: bool, store: str | None, **options: Any) -> None:
    """Write a report of a fault for an issue tracker, with a script that needs no swarmtest.

    \b
    swarmtest reproduce 4ee18053 > issue.md            the report, as Markdown
    swarmtest reproduce 4ee18053 --script > bug.py     its script only

    The test of a machine becomes a script that has the machine as a plain class; that of a
    comparison calls both sides. The script is run in a process of its own, where swarmtest cannot
    be imported, and only printed if it shows the fault there. The report has the versions of
    Python and of the packages that the script imports.
    """
    named = named_test(test, store, options["timeout"])
    fault = _fault_of(named, test, options["timeout"])
    script = standalone_script(named.subject, named.data)
    paths = _import_paths(named)
    run = run_cleanly(script, paths)
    if not run.shows(fault):
        raise _refusal(test, run)
    shorter = shortened(script, run, paths, fault)
    if shorter != script:
        script, run = shorter, run_cleanly(shorter, paths)
    click.echo(script.rstrip() if only_script else issue_text(fault, script, run))


def _fault_of(named: NamedTest, test: str, timeout: float | None) -> Any:
    seconds = seconds_of(named.subject, timeout)
    result = replayed(
        lambda: run_isolated(lambda: named.subject.replay(named.data), seconds, quiet=True),
        lambda fault: not named.fault or named_fault(named.subject, fault).is_called(named.fault),
    )
    if result.fault is None:
        raise UserError(f"{test}: the test passes now, so there is nothing to report")
    return named_fault(named.subject, result.fault)


def _import_paths(named: NamedTest) -> list[str]:
    """Return where the modules of the subject are found."""
    harness = getattr(named.subject, "harness", "")
    paths = [str(Path(harness).resolve().parent)] if harness else []
    return [*paths, os.getcwd(), *(os.path.abspath(path) for path in sys.path if path)]


def _refusal(test: str, run: CleanRun) -> UserError:
    return UserError(
        f"{test}: the script {run.ending} in a clean process, and does not show the fault: it may "
        "need what ran before it, or more of swarmtest than can be left out; `swarmtest replay "
        f"{test} -o test.py` writes the test as it is"
    )
