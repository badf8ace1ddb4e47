"""``swarmtest watch``: keep testing while you work, or every night."""

from __future__ import annotations

import contextlib
import datetime
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from swarmtest.campaign.budget import parse_seconds
from swarmtest.campaign.failing_faults import FAIL_ON, NEVER, NEW
from swarmtest.campaign.subject_version import directory_of
from swarmtest.core.errors import UserError
from swarmtest.core.formatting import printable_line
from swarmtest.coverage.kinds import parse_kinds
from swarmtest.store import DEFAULT_PATH, open_store
from swarmtest.store.fault_lives import fault_lives
from swarmtest.store.interface import Store
from swarmtest.strategies.strategy import parse_strategy
from swarmtest.ui import completion
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import store_option
from swarmtest.ui.run_options import parse_seed, parse_subject, subject_options, workers_option
from swarmtest.ui.terminal.text import json_text
from swarmtest.watch.code_state import WatchedCode
from swarmtest.watch.jobs import end_command, start_command
from swarmtest.watch.session import WatchPlan, WatchSession

_STRATEGIES = ("", "coin", "all-on")
"""The strategies that share the time, unless the user names others; empty: the usual one."""


@click.command(cls=HelpfulCommand)
@click.argument("path", metavar="PATH[::MACHINE]", shell_complete=completion.files)
@click.option("--time", "wall", metavar="TIME", help="End after this time: 30m, 8h.")
@click.option(
    "--on-save", is_flag=True, help="Look at saved files too, not only at new commits of git."
)
@click.option(
    "-s",
    "--strategy",
    "strategies",
    multiple=True,
    metavar="NAME[:KEY=VALUE,...]",
    help="A strategy that gets a campaign of its own. May be repeated.  [default: the usual one, "
    "coin, and all-on]",
)
@click.option(
    "--slice",
    "slice_time",
    default="30s",
    show_default=True,
    metavar="TIME",
    help="How long a campaign goes on before it is decided again which one is best.",
)
@click.option(
    "--focus-time",
    default="30s",
    show_default=True,
    metavar="TIME",
    help="How long tests are aimed at the difference after a change; 0s: not at all.",
)
@click.option("--seed", default="0", show_default=True, help="New campaigns get seeds from here.")
@click.option(
    "--coverage",
    "kinds",
    default="line",
    show_default=True,
    metavar="KIND,... | none",
    help="What campaigns measure; it shows which of them still finds something.",
)
@click.option(
    "--dashboard",
    is_flag=True,
    help="Serve the dashboard meanwhile, on any free port of this machine.",
)
@click.option(
    "--fail-on",
    type=click.Choice(FAIL_ON),
    default=NEW,
    show_default=True,
    help="Which faults give exit status 1: new ones and those that are back again, any that is "
    "there at the end, or never.",
)
@workers_option
@subject_options
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
def watch(path: str, **options: Any) -> int:
    """Keep testing a subject while its code changes, until Ctrl-C or for a time.

    After each commit, the tests of all faults are run again: some are fixed, some may be back. Then
    tests are aimed at the difference. The rest of the time goes, slice by slice, to the campaign
    that still finds most (see `swarmtest growth`). The program is imported again for each of these.
    All is in one store: a watch that has ended goes on where it was.

    \b
    swarmtest watch stack.py --on-save             while you work
    swarmtest watch stack.py --time 8h             a night
    swarmtest watch stack.py --dashboard

    Exit status: 0 no new fault, 1 new faults or faults that are back, 2 something to fix,
    130 interrupted.
    """
    signal.signal(signal.SIGTERM, lambda number, frame: signal.raise_signal(signal.SIGINT))
    plan = _plan(path, options)
    log = _json_log if options["as_json"] else _log
    url = options["store"] or DEFAULT_PATH
    code = WatchedCode(directory_of(path))
    if not code.is_repository and not plan.on_save:
        raise UserError(
            f"{path} is in no git repository, so there are no commits to watch: pass --on-save"
        )
    with open_store(options["store"]) as store:
        session = WatchSession(plan, store, url, code, log)
        with _dashboard(options["dashboard"], url, log):
            try:
                session.run()
            except KeyboardInterrupt:
                log(f"interrupted: {session.result}")
                return 130
        return _status(session, store, options["fail_on"])


def _status(session: WatchSession, store: Store, fail_on: str) -> int:
    if not session.result.slices:
        raise UserError("nothing was tested: see above why")
    if fail_on == NEVER:
        return 0
    result = session.result
    if fail_on == NEW:
        return int(bool(result.new or result.back))
    subject = session.subject
    lives = fault_lives(store, subject).values() if subject else ()
    return int(any(life.is_there for life in lives))


def _plan(path: str, options: dict[str, Any]) -> WatchPlan:
    """Return what the options ask for; a mistake in them is found before anything is started."""
    parse_subject(path, options)
    if path.startswith(("race ", "-")):
        raise UserError("watch is for what `swarmtest run` tests: name a file, or MODULE:CLASS")
    subject_words = [f"--steps={options['steps']}"] if options["steps"] else []
    subject_words += ["--api"] if options["api"] else []
    subject_words += [f"--raises={name}" for name in options["raises"]]
    if options["timeout"] is not None:
        subject_words.append(f"--timeout={options['timeout']:g}s")
    if options["memory"] != "auto":
        subject_words.append(f"--memory={options['memory'] or 'none'}")
    for text in options["strategies"]:
        parse_strategy(text)
    wall = None if options["wall"] is None else parse_seconds(options["wall"])
    workers = options["workers"]
    return WatchPlan(
        path,
        tuple(subject_words),
        () if workers is None else (f"--workers={workers}",),
        _coverage_words(path, options["kinds"]),
        tuple(dict.fromkeys(options["strategies"])) or _STRATEGIES,
        parse_seconds(options["slice_time"]),
        parse_seconds(options["focus_time"]),
        options["on_save"],
        parse_seed(options["seed"]),
        None if wall is None else time.monotonic() + wall,
    )


def _coverage_words(path: str, kinds: str) -> tuple[str, ...]:
    # A program that is not Python says in its TOML file what is measured.
    if kinds == "none" or ".toml" in Path(path).suffixes:
        return ()
    parse_kinds(kinds)
    return (f"--coverage={kinds}",)


def _log(text: str) -> None:
    """Print one line, with the time."""
    now = datetime.datetime.now().strftime("%H:%M:%S")
    click.echo(f"{now} {printable_line(text)}")


def _json_log(text: str) -> None:
    """Print one line as a JSON object, with the time in seconds."""
    click.echo(json_text({"event": "log", "at": time.time(), "text": text}))


@contextlib.contextmanager
def _dashboard(wanted: bool, store: str, log: Callable[[str], None]) -> Iterator[None]:
    """Serve the dashboard in a process of its own, if that is wanted."""
    if not wanted:
        yield
        return
    process = start_command(["dashboard", "--port=0"], store)
    try:
        log(f"dashboard: {_first_line(process)}")
        yield
    finally:
        end_command(process)


def _first_line(process: subprocess.Popen[bytes]) -> str:
    """Return the first line that the dashboard prints, which has its address."""
    assert process.stdout is not None
    return process.stdout.readline().decode(errors="replace").strip()
