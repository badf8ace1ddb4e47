"""The command line: commands parse and print; everything else is in the rooms below."""

from __future__ import annotations

import importlib
import io
import sys

import click

from swarmtest.errors import UserError

COMMANDS = {
    "init": "init:init",
    "check": "check:check",
    "features": "features:features",
    "plan": "plan:plan",
    "run": "run:run",
    "focus": "focus:focus",
    "resume": "run:resume",
    "list": "browse:list_campaigns",
    "show": "browse:show",
    "faults": "browse:faults",
    "roles": "roles:roles",
    "triage": "triage:triage",
    "coverage": "coverage:coverage",
    "growth": "growth:growth",
    "compare": "compare:compare",
    "report": "report:report",
    "dashboard": "dashboard:dashboard",
    "replay": "replay:replay",
    "reduce": "reduce:reduce",
    "mutate": "mutate:mutate",
    "suite": "suite:suite",
    "search": "search:search",
    "race": "race:race",
    "export": "keep:export",
    "import-coverage": "coverage:import_coverage",
    "copy": "copy:copy",
    "delete": "keep:delete",
    "strategies": "strategies:strategies",
    "cc": "cc:cc",
}
"""Where each command is, in the order in which help lists them; loaded when it is asked for."""


class Commands(click.Group):
    """Loads a command's module only when it runs: `swarmtest list` needs no templates."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of a user's day."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(f"swarmtest.cli.{module}"), name)
        return command


@click.group(
    cls=Commands,
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


def main() -> None:
    """Entry point of the ``swarmtest`` program."""
    for stream in (sys.stdout, sys.stderr):
        # A signature with a character that the terminal cannot show must not end a campaign.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
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
