"""The command line: the group of all commands, and the entry point of the program.

The table of commands has the first sentence of each command's help, so that listing the commands
imports none of them.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from swarmtest.core.errors import UserError
from swarmtest.core.formatting import printable_line
from swarmtest.ui.terminal.output import protect_terminal

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class CommandEntry(NamedTuple):
    """A command in the list of commands, before its module is imported."""

    reference: str
    """Where the command is, as ``MODULE:NAME``."""
    help: str
    """The first sentence of its help text."""


COMMANDS = {
    "init": CommandEntry(
        "swarmtest.ui.commands.check:init",
        "Write a commented TOML file for testing a program with a test generator.",
    ),
    "check": CommandEntry(
        "swarmtest.ui.commands.check:check",
        "Check a subject before you run a campaign.",
    ),
    "features": CommandEntry(
        "swarmtest.ui.commands.features:features",
        "List the features of a subject, and which of them depend on others.",
    ),
    "plan": CommandEntry(
        "swarmtest.plan.command:plan",
        "Compute how many tests it takes until certain features come together in one test.",
    ),
    "run": CommandEntry(
        "swarmtest.ui.commands.run:run",
        "Generate random tests from a swarm of configurations, and run them.",
    ),
    "focus": CommandEntry(
        "swarmtest.focus.command:focus",
        "Test chosen code: generate random tests that hit it much more often.",
    ),
    "watch": CommandEntry(
        "swarmtest.watch.command:watch",
        "Keep testing a subject while its code changes, until Ctrl-C or for a time.",
    ),
    "resume": CommandEntry(
        "swarmtest.ui.commands.run:resume",
        "Continue a campaign that was interrupted, or give a finished one a larger budget.",
    ),
    "list": CommandEntry(
        "swarmtest.ui.commands.list:list_campaigns",
        "List the campaigns in a store.",
    ),
    "show": CommandEntry(
        "swarmtest.ui.commands.show:show",
        "Show a campaign: totals, features and faults.",
    ),
    "faults": CommandEntry(
        "swarmtest.ui.commands.faults:faults",
        "Show the faults of a campaign, with the smallest test of each.",
    ),
    "roles": CommandEntry(
        "swarmtest.roles.command:roles",
        "Show which features make a fault, a line or an event more likely, and which less.",
    ),
    "triage": CommandEntry(
        "swarmtest.roles.triage_command:triage",
        "Sort the faults, and show which of them may be the same bug, or two bugs.",
    ),
    "why": CommandEntry(
        "swarmtest.why.command:why",
        "Explain a fault from one failing test: what it needs, in which order, and what "
        "prevents it.",
    ),
    "coverage": CommandEntry(
        "swarmtest.ui.commands.coverage:coverage",
        "Show what the tests of a campaign reached: lines, branches, paths.",
    ),
    "growth": CommandEntry(
        "swarmtest.growth.command:growth",
        "Tell whether to run more tests, to stop, or to change the configuration.",
    ),
    "compare": CommandEntry(
        "swarmtest.compare.command:compare",
        "Compare what strategies find with equal tests and with equal CPU time.",
    ),
    "report": CommandEntry(
        "swarmtest.ui.commands.report:report",
        "Write an HTML report: faults, triggers and suppressors, coverage.",
    ),
    "dashboard": CommandEntry(
        "swarmtest.ui.commands.report:dashboard",
        "Watch campaigns live in a browser, and start and stop them there.",
    ),
    "replay": CommandEntry(
        "swarmtest.ui.commands.replay:replay",
        "Run one test again, and print it as code.",
    ),
    "reduce": CommandEntry(
        "swarmtest.reduce.command:reduce",
        "Shrink a test while it still fails, or keeps the coverage you ask for, and print it.",
    ),
    "mutate": CommandEntry(
        "swarmtest.mutate.command:mutate",
        "Change the program in small ways, and see whether its tests notice.",
    ),
    "suite": CommandEntry(
        "swarmtest.suite.command:suite",
        "Write a few short tests that reach what all tests of a campaign reached.",
    ),
    "search": CommandEntry(
        "swarmtest.search.command:search",
        "Search a space of test settings for those that find most.",
    ),
    "race": CommandEntry(
        "swarmtest.race.command:race",
        "Find races, deadlocks and lost wake-ups; replay, shrink and explain them.",
    ),
    "export": CommandEntry(
        "swarmtest.ui.commands.export:export",
        "Export a campaign, one row per test: CSV, JSON lines or Parquet.",
    ),
    "import-coverage": CommandEntry(
        "swarmtest.ui.commands.coverage:import_coverage",
        "Import coverage that another tool measured, as a campaign.",
    ),
    "copy": CommandEntry(
        "swarmtest.ui.commands.export:copy",
        "Copy campaigns from one store to another.",
    ),
    "delete": CommandEntry(
        "swarmtest.ui.commands.export:delete",
        "Delete campaigns with all their trials, faults and tests.",
    ),
    "doctor": CommandEntry(
        "swarmtest.ui.commands.doctor:doctor",
        "Check a store for damage, and save what can be read.",
    ),
    "strategies": CommandEntry(
        "swarmtest.ui.commands.features:strategies",
        "List the strategies, with their parameters and their purpose.",
    ),
    "cc": CommandEntry(
        "swarmtest.ui.commands.check:cc",
        "Compile C or C++ with coverage for swarmtest.",
    ),
}
"""The commands, in the order in which the help lists them."""


_LOADING = frozenset(COMMANDS) - {"init", "list", "show", "strategies", "cc", "copy", "delete"}
"""Commands that may import the user's modules."""


_ANALYSING = frozenset(
    {
        *("faults", "roles", "triage", "growth", "compare", "report", "dashboard"),
        *("export", "copy", "doctor"),
    }
)
"""Commands that read whole campaigns, and run no tests themselves."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's `mallopt`."""
_KEPT_BYTES = 128 << 20


@contextmanager
def _tuned_for_analysis() -> Iterator[None]:
    """Let numpy, if it is imported now, do linear algebra in one thread, and reuse memory.

    Our matrices are small: several threads would spend five times as much CPU time waiting for each
    other. The environment is restored, because a dashboard starts campaigns. Blocks of trials need
    the same arrays of some megabytes again and again; to give them back to the system each time
    takes longer than to fill them.
    """
    name = "OPENBLAS_NUM_THREADS"
    is_set = name in os.environ
    os.environ.setdefault(name, "1")
    _keep_freed_memory()
    try:
        yield
    finally:
        if not is_set:
            del os.environ[name]


def _keep_freed_memory() -> None:
    """Ask the C library to keep memory that was freed, where it is known how to ask (glibc)."""
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_MMAP_THRESHOLD, _KEPT_BYTES)


class CommandGroup(click.Group):
    """A click group that imports a command's module only to run it or to show its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order in which a user needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].reference.partition(":")
        with _tuned_for_analysis() if cmd_name in _ANALYSING else nullcontext():
            command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an exception that comes from a damaged store says so in one line."""
        try:
            return super().invoke(ctx)
        except (
            UserError,
            click.ClickException,
            click.exceptions.Exit,
            click.Abort,
            BrokenPipeError,
        ):
            raise
        except Exception as error:
            damage = _damage(ctx)
            if not damage:
                raise  # a bug in swarmtest
            raise UserError(damage) from error

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


def _damage(context: click.Context) -> str:
    """Return what is damaged in the store that a command has read; empty if nothing is.

    Commands trust what they read: checking every trial would cost more than most commands take.
    """
    from swarmtest.ui.options import STORE_IN_USE, damage_in

    return damage_in(context.meta[STORE_IN_USE]) if STORE_IN_USE in context.meta else ""


def _short_help(name: str, limit: int = 45) -> str:
    """Return a command's help, cut as click cuts it."""
    return click.Command(name, help=COMMANDS[name].help).get_short_help_str(limit)


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
)
@click.version_option(package_name="swarmtest")
@click.pass_context
def group(context: click.Context) -> None:
    """Random testing that finds more bugs, with a swarm of configurations.

    \b
    swarmtest run stack.py            test the machine in stack.py
    swarmtest run stack:Stack --api   test the public methods of a class, without a harness
    swarmtest faults                  what was found, with the shortest test of each
    swarmtest roles                   why: the features that trigger or suppress each fault
    swarmtest replay 1#17             run trial 17 of campaign 1 again

    Exit status: 0 no fault, 1 faults found (--fail-on says which count), 2 an error in the input
    (one line says which), 130 interrupted.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
    elif context.invoked_subcommand in _LOADING:
        from swarmtest.languages.user_objects import isolate_imports

        isolate_imports()


def main() -> None:
    """Run the ``swarmtest`` program."""
    protect_terminal()
    try:
        status = group.main(standalone_mode=False)
        sys.stdout.flush()
    except UserError as error:
        click.echo(f"swarmtest: {printable_line(str(error))}", err=True)
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
    except OSError as error:
        if error.errno not in _EXHAUSTED:
            raise
        _discard_output()
        what = f" ({error.filename})" if error.filename else ""
        click.echo(f"swarmtest: {error.strerror}{what}: {_EXHAUSTED[error.errno]}", err=True)
        status = 2
    if status == 2:
        _remove_empty_stores()
    sys.exit(status or 0)


def _remove_empty_stores() -> None:
    """Delete a store that the command has created before it found a mistake in its input."""
    stores = sys.modules.get("swarmtest.store.sqlite.file")
    if stores is not None:
        stores.remove_empty_stores()


_EXHAUSTED = {
    errno.ENOSPC: "free some space, or write the output elsewhere",
    errno.EDQUOT: "free some space, or write the output elsewhere",
    errno.EMFILE: "allow more of them with `ulimit -n 1024`, or use fewer workers with -j",
    errno.ENFILE: "end other programs, or use fewer workers with -j",
    errno.EAGAIN: "allow more processes with `ulimit -u`, or use fewer workers with -j",
    errno.ENOMEM: "end other programs, or use fewer workers with -j",
}
"""What to do when the machine has no more of something."""


def _discard_output() -> None:
    """Send the rest of the output nowhere, or Python would complain at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
