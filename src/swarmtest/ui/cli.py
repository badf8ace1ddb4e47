"""The command line: the group of all commands, and the entry point of the program.

The table of commands says what each command does, so that listing the commands imports none of
them.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.formatting import printable_line
from swarmtest.ui.terminal.output import protect_terminal

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class CommandEntry(NamedTuple):
    """A command in the list of commands, before its module is imported."""

    reference: str
    """Where the command is, as ``MODULE:NAME``."""
    help: str
    """What it does, in a line that fits a terminal of 80 columns."""


COMMAND_GROUPS = {
    "Start": {
        "init": CommandEntry(
            "swarmtest.ui.commands.check:init", "Write a commented TOML file for testing a program."
        ),
        "check": CommandEntry(
            "swarmtest.ui.commands.check:check", "Check a subject before you run a campaign."
        ),
        "features": CommandEntry(
            "swarmtest.ui.commands.features:features", "List the features of a subject."
        ),
        "learn": CommandEntry(
            "swarmtest.learn.command:learn", "Record the arguments that a package is called with."
        ),
        "run": CommandEntry(
            "swarmtest.ui.commands.run:run", "Generate random tests from a swarm, and run them."
        ),
        "resume": CommandEntry(
            "swarmtest.ui.commands.run:resume", "Continue a campaign, or give it a larger budget."
        ),
        "watch": CommandEntry(
            "swarmtest.watch.command:watch", "Keep testing a subject while its code changes."
        ),
        "race": CommandEntry(
            "swarmtest.race.command:race", "Find races and deadlocks; replay and explain them."
        ),
    },
    "Look": {
        "list": CommandEntry(
            "swarmtest.ui.commands.list:list_campaigns", "List the campaigns in a store."
        ),
        "show": CommandEntry(
            "swarmtest.ui.commands.show:show", "Show a campaign: totals, features and faults."
        ),
        "faults": CommandEntry(
            "swarmtest.ui.commands.faults:faults",
            "Show the faults, with the smallest test of each.",
        ),
        "coverage": CommandEntry(
            "swarmtest.ui.commands.coverage:coverage",
            "Show what tests reached: lines, branches, paths.",
        ),
        "growth": CommandEntry(
            "swarmtest.growth.command:growth", "Tell whether to run more tests, or to stop."
        ),
        "report": CommandEntry("swarmtest.ui.commands.report:report", "Write an HTML report."),
        "dashboard": CommandEntry(
            "swarmtest.ui.commands.report:dashboard", "Watch and start campaigns in a browser."
        ),
    },
    "Explain": {
        "why": CommandEntry(
            "swarmtest.why.command:why", "Explain a fault by experiments on its failing test."
        ),
        "roles": CommandEntry(
            "swarmtest.roles.command:roles", "Show the features that trigger or suppress a fault."
        ),
        "triage": CommandEntry(
            "swarmtest.roles.triage_command:triage",
            "Sort the faults; show which may be the same bug.",
        ),
        "replay": CommandEntry(
            "swarmtest.ui.commands.replay:replay", "Run one test again, and print it as code."
        ),
        "reproduce": CommandEntry(
            "swarmtest.reproduce.command:reproduce",
            "Write a fault as a report with a script of its own.",
        ),
        "reduce": CommandEntry(
            "swarmtest.reduce.command:reduce", "Shrink a test while it keeps what matters."
        ),
    },
    "Aim": {
        "focus": CommandEntry(
            "swarmtest.focus.command:focus",
            "Generate random tests that hit chosen code more often.",
        ),
        "search": CommandEntry(
            "swarmtest.search.command:search", "Search a space of test settings."
        ),
        "plan": CommandEntry(
            "swarmtest.plan.command:plan", "Compute how many tests a combination of features takes."
        ),
        "strategies": CommandEntry(
            "swarmtest.ui.commands.features:strategies",
            "List the strategies, with their parameters.",
        ),
    },
    "Keep": {
        "suite": CommandEntry(
            "swarmtest.suite.command:suite",
            "Write a few short tests that together reach everything.",
        ),
        "doctor": CommandEntry(
            "swarmtest.ui.commands.doctor:doctor",
            "Check a store for damage, and save what can be read.",
        ),
        "delete": CommandEntry(
            "swarmtest.ui.commands.export:delete", "Delete campaigns with all their trials."
        ),
    },
    "Measure": {
        "diff": CommandEntry(
            "swarmtest.ui.commands.diff:diff", "Run the same tests with two releases of a package."
        ),
        "compare": CommandEntry(
            "swarmtest.compare.command:compare", "Compare what strategies find."
        ),
        "mutate": CommandEntry(
            "swarmtest.mutate.command:mutate",
            "See whether tests notice small changes to the program.",
        ),
        "cc": CommandEntry(
            "swarmtest.ui.commands.cc:cc", "Compile C or C++ with coverage for swarmtest."
        ),
    },
    "Share": {
        "export": CommandEntry(
            "swarmtest.ui.commands.export:export", "Export a campaign: CSV, JSON lines or Parquet."
        ),
        "import-coverage": CommandEntry(
            "swarmtest.ui.commands.coverage:import_coverage",
            "Import coverage that another tool measured.",
        ),
        "copy": CommandEntry(
            "swarmtest.ui.commands.export:copy", "Copy campaigns from one store to another."
        ),
    },
}
"""The commands, in groups and in the order in which a user needs them."""

COMMANDS = {name: entry for group in COMMAND_GROUPS.values() for name, entry in group.items()}


_LOADING = frozenset(COMMANDS) - {"list", "show", "strategies", "cc", "copy", "delete"}
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

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the purpose of swarmtest, with examples that fit the terminal."""
        from swarmtest.ui.help import write_text_of_group

        write_text_of_group(formatter, self.help or "")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table, without importing any of them."""
        width = max(map(len, COMMANDS))
        for title, entries in COMMAND_GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(f"{name:{width}}", entry.help) for name, entry in entries.items()]
                )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command from the table, and options as click does."""
        from click.shell_completion import CompletionItem

        names = [name for name in COMMANDS if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=COMMANDS[name].help) for name in names), *options]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name; suggest one for a misspelt name."""
        name = args[0]
        if name in COMMANDS or name.startswith("-"):
            return super().resolve_command(ctx, args)
        if os.path.exists(name.partition("::")[0]) or name.endswith((".py", ".toml")):
            raise UserError(f"{name!r} is no command: did you mean `swarmtest run {name}`?")
        suggestion = did_you_mean(name, [*COMMANDS])
        raise UserError(f"there is no command {name!r}{suggestion} (see `swarmtest --help`)")


def _damage(context: click.Context) -> str:
    """Return what is damaged in the store that a command has read; empty if nothing is.

    Commands trust what they read: checking every trial would cost more than most commands take.
    """
    from swarmtest.ui.options import STORE_IN_USE, damage_in

    return damage_in(context.meta[STORE_IN_USE]) if STORE_IN_USE in context.meta else ""


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
    swarmtest run stack:Stack --api   test the public methods of a class
    swarmtest faults                  what was found, with the shortest tests
    swarmtest why 4ee18053            what a fault needs, and what prevents it
    swarmtest replay 1#17             run trial 17 of campaign 1 again

    Exit status: 0 no fault, 1 faults found (--fail-on says which count), 2 an error in the input
    (one line says which), 130 interrupted.
    """
    if context.invoked_subcommand is None:
        _suggest(context)
    elif context.invoked_subcommand in _LOADING:
        from swarmtest.languages.user_objects import isolate_imports

        isolate_imports()


def _suggest(context: click.Context) -> None:
    """Say what could be done in this directory; show the help page if nothing is here."""
    from swarmtest.ui.next_steps import next_steps, steps_text

    steps = next_steps(Path.cwd())
    if not steps:
        click.echo(context.get_help())
        return
    click.echo(f"What you could do here:\n\n{steps_text(steps)}\n")
    click.echo("All commands: swarmtest --help")


def main() -> None:
    """Run the ``swarmtest`` program."""
    protect_terminal()
    try:
        status = group.main(prog_name="swarmtest", standalone_mode=False)
        sys.stdout.flush()
    except UserError as error:
        click.echo(f"swarmtest: {printable_line(str(error))}", err=True)
        status = 2
    except click.ClickException as error:
        hint = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else ""
        try_help = f" (see `{hint} --help`)" if hint else ""
        message = printable_line(" ".join(error.format_message().split()))
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
