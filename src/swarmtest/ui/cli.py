"""The command line: the group of all commands, and the entry point of the program.

The table of commands has the first sentence of each command's help, so that listing the commands
imports none of them.
"""

from __future__ import annotations

import importlib
import io
import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from swarmtest.core.errors import UserError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class Entry(NamedTuple):
    """A command in the list of commands, before its module is imported."""

    place: str
    """Where the command is, as ``MODULE:NAME``."""
    help: str
    """The first sentence of its help text."""


COMMANDS = {
    "init": Entry(
        "swarmtest.ui.commands.check:init",
        "Write a commented TOML file that tests a program with a generator of tests.",
    ),
    "check": Entry(
        "swarmtest.ui.commands.check:check",
        "Say what is wrong with a subject before a campaign is run.",
    ),
    "features": Entry(
        "swarmtest.ui.commands.features:features",
        "The features of a subject, and which of them mean others.",
    ),
    "plan": Entry(
        "swarmtest.plan.command:plan",
        "How many tests until certain features meet in one, and how likely do they within N?",
    ),
    "run": Entry(
        "swarmtest.ui.commands.run:run",
        "Test a machine: generate random tests from a swarm of configurations, and run them.",
    ),
    "focus": Entry(
        "swarmtest.focus.command:focus",
        "Test where you point: new random tests that hit chosen code much more often.",
    ),
    "resume": Entry(
        "swarmtest.ui.commands.run:resume",
        "Continue a campaign that was interrupted, or give a finished one a larger budget.",
    ),
    "list": Entry(
        "swarmtest.ui.commands.list:list_campaigns",
        "List the campaigns of a store.",
    ),
    "show": Entry(
        "swarmtest.ui.commands.show:show",
        "Show a campaign: totals, features and faults.",
    ),
    "faults": Entry(
        "swarmtest.ui.commands.faults:faults",
        "Show the faults of a campaign, each with its smallest test and how to replay it.",
    ),
    "roles": Entry(
        "swarmtest.roles.command:roles",
        "Which features make a fault, a line or an event more likely, and which less.",
    ),
    "triage": Entry(
        "swarmtest.roles.triage_command:triage",
        "Order the faults, and tell which may be one bug, or two.",
    ),
    "coverage": Entry(
        "swarmtest.ui.commands.coverage:coverage",
        "What a campaign's tests reached: lines, branches, paths; what threads did to each other.",
    ),
    "growth": Entry(
        "swarmtest.growth.command:growth",
        "Are tests still finding new things: stop, go on, or change the configuration?",
    ),
    "compare": Entry(
        "swarmtest.compare.command:compare",
        "Compare strategies: what each finds with equal tests and equal CPU time, and how soon.",
    ),
    "report": Entry(
        "swarmtest.ui.commands.report:report",
        "Write a report: faults, their triggers and suppressors, discovery, coverage, comparisons.",
    ),
    "dashboard": Entry(
        "swarmtest.ui.commands.report:dashboard",
        "Watch campaigns live in a browser: progress, faults, roles, source, and what is left.",
    ),
    "replay": Entry(
        "swarmtest.ui.commands.replay:replay",
        "Run one test again and print it as code.",
    ),
    "reduce": Entry(
        "swarmtest.reduce.command:reduce",
        "Make a test smaller while it keeps what it is to keep, and print it.",
    ),
    "mutate": Entry(
        "swarmtest.mutate.command:mutate",
        "Change the program in small ways, and see whether its tests notice.",
    ),
    "suite": Entry(
        "swarmtest.suite.command:suite",
        "Make a small suite of a campaign's tests: few, short, and it keeps what all of them "
        "reached.",
    ),
    "search": Entry(
        "swarmtest.search.command:search",
        "Search a space of test settings: which threads, which noise, which options find most.",
    ),
    "race": Entry(
        "swarmtest.race.command:race",
        "Find races, deadlocks and lost wake-ups; replay, shrink and explain them.",
    ),
    "export": Entry(
        "swarmtest.ui.commands.export:export",
        "Export a campaign, one row per test: CSV, JSON lines or Parquet.",
    ),
    "import-coverage": Entry(
        "swarmtest.ui.commands.coverage:import_coverage",
        "Take coverage that another tool measured into the store, as a campaign.",
    ),
    "copy": Entry(
        "swarmtest.ui.commands.export:copy",
        "Copy campaigns from one store to another: files, or postgresql://USER@HOST/DATABASE.",
    ),
    "delete": Entry(
        "swarmtest.ui.commands.export:delete",
        "Delete campaigns with all their trials, faults and tests.",
    ),
    "strategies": Entry(
        "swarmtest.ui.commands.features:strategies",
        "List the strategies, with their parameters and what they are for.",
    ),
    "cc": Entry(
        "swarmtest.ui.commands.check:cc",
        "Compile C or C++ with coverage for swarmtest.",
    ),
}
"""The commands, in the order in which the help lists them."""


class Commands(click.Group):
    """A click group that imports a command's module only to run it or to show its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order in which a user needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].place.partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table, without importing any of them."""
        limit = formatter.width - 6 - max(map(len, COMMANDS))
        rows = [(name, _short_help(name, limit)) for name in COMMANDS]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command from the table, and options as click does."""
        from click.shell_completion import CompletionItem

        names = [name for name in COMMANDS if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=_short_help(name)) for name in names), *options]


def _short_help(name: str, limit: int = 45) -> str:
    """Return a command's help, cut as click cuts it."""
    return click.Command(name, help=COMMANDS[name].help).get_short_help_str(limit)


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

    Exit status: 0 no fault, 1 faults found, 2 something to fix (one line says what),
    130 interrupted.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main() -> None:
    """Run the ``swarmtest`` program."""
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
        # The reader of our output (head, less) has closed the pipe.
        sys.stderr.close()
        status = 0
    sys.exit(status or 0)
