"""The command line: commands parse and print; everything else is in the rooms below."""

from __future__ import annotations

import sys

import click

from swarmtest.cli.browse import faults, list_campaigns, show
from swarmtest.cli.cc import cc
from swarmtest.cli.compare import compare
from swarmtest.cli.coverage import coverage, import_coverage
from swarmtest.cli.growth import growth
from swarmtest.cli.keep import delete, export
from swarmtest.cli.plan import plan
from swarmtest.cli.replay import replay
from swarmtest.cli.report import report
from swarmtest.cli.roles import roles
from swarmtest.cli.run import resume, run
from swarmtest.cli.strategies import strategies
from swarmtest.cli.triage import triage
from swarmtest.errors import UserError


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
)
@click.version_option(package_name="swarmtest")
@click.pass_context
def group(context: click.Context) -> None:
    """Random testing that finds more bugs: swarms of configurations.

    \b
    swarmtest run stack.py            test the machine in stack.py
    swarmtest run stack:Stack --api   no harness: test the public methods of a class
    swarmtest faults                  what was found, with the shortest test of each
    swarmtest roles                   why: the features that trigger or suppress each fault
    swarmtest replay 1#17             run trial 17 of campaign 1 again

    Exit status: 0 no fault, 1 faults found, 2 something to mend (one line says what),
    130 interrupted.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in (
    plan,
    run,
    resume,
    list_campaigns,
    show,
    faults,
    roles,
    triage,
    coverage,
    compare,
    growth,
    report,
    replay,
    export,
    import_coverage,
    delete,
    strategies,
    cc,
):
    group.add_command(command)


def main() -> None:
    """Entry point of the ``swarmtest`` program."""
    try:
        status = group.main(standalone_mode=False)
    except UserError as error:
        click.echo(f"swarmtest: {error}", err=True)
        status = 2
    except click.ClickException as error:
        hint = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else ""
        try_help = f" (see `{hint} --help`)" if hint else ""
        message = " ".join(error.format_message().split())
        click.echo(f"swarmtest: {message}{try_help}", err=True)
        status = 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("swarmtest: interrupted", err=True)
        status = 130
    except BrokenPipeError:
        # The reader of our output (head, less) has seen enough.
        sys.stderr.close()
        status = 0
    sys.exit(status or 0)
