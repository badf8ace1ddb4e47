"""``swarmtest export``, ``delete`` and ``copy``: moving campaigns out of a store."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from typing import BinaryIO, cast

import click

from swarmtest.core.errors import UserError
from swarmtest.store import open_store
from swarmtest.store.copies import COPYING, copy_campaign
from swarmtest.store.export import FORMATS, export_campaign
from swarmtest.store.fault_lives import keep_history
from swarmtest.store.interface import Store, is_postgres
from swarmtest.ui import completion
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import (
    STORE_IN_USE,
    all_campaign_numbers,
    campaign_argument,
    campaigns_argument,
    existing_store,
    latest_campaign,
    named_campaigns,
    refuse_running,
    store_option,
)


@click.command(cls=HelpfulCommand)
@campaign_argument
@click.option(
    "-f",
    "--format",
    "kind",
    type=click.Choice(list(FORMATS)),
    help="Format of the file.  [default: by the file's name]",
)
@click.option(
    "-o",
    "--output",
    shell_complete=completion.files,
    metavar="FILE",
    default="-",
    help="The file to write.  [default: standard output]",
)
@store_option
def export(campaign: int | None, kind: str | None, output: str, store: str | None) -> None:
    """Export a campaign, one row per test: CSV, JSON lines or Parquet.

    \b
    swarmtest export > tests.csv              the newest campaign
    swarmtest export 3 -f parquet -o 3.parquet

    CAMPAIGN is a number; by default, the newest.
    """
    opened = existing_store(store)
    number = latest_campaign(opened, campaign)
    if kind is None:
        ending = output.rpartition(".")[2].lower()
        if output != "-" and ending not in FORMATS:
            raise UserError(
                f"{output}: the name does not tell the format: end it in .{' or .'.join(FORMATS)}, "
                "or pass --format"
            )
        kind = ending if output != "-" else "csv"
    if kind == "parquet" and importlib.util.find_spec("pyarrow") is None:
        raise UserError("Parquet needs pyarrow: pip install 'swarmtest[parquet]'")
    try:
        with click.open_file(output, "wb") as out:
            export_campaign(opened, number, kind, cast(BinaryIO, out))
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise UserError(f"cannot write {output}: {error.strerror}") from None


@click.command(cls=HelpfulCommand)
@campaigns_argument
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@store_option
def delete(campaigns: list[int], yes: bool, store: str | None) -> None:
    """Delete campaigns with all their trials, faults and tests.

    \b
    swarmtest delete 3
    swarmtest delete 4-33 --yes      from 4 to 33, without asking

    The history of their faults stays, as long as there is another campaign of the same subject.
    """
    if not campaigns:
        raise UserError("name the campaigns to delete, like 7, 3-9, or latest")
    opened = existing_store(store, write=True)
    # All are looked at before one is deleted: one of the numbers may be a mistake.
    for record in [opened.campaign(number) for number in named_campaigns(opened, campaigns)]:
        refuse_running(record, "deleted")
        number = record.id
        tests = opened.summary(number)["trials"]
        if not yes and not _agrees(
            f"delete campaign {number} ({record.subject}, {tests:,} tests)?"
        ):
            click.echo(f"campaign {number} is kept")
            continue
        keep_history(opened, number)
        opened.delete_campaign(number)
        click.echo(f"campaign {number} is deleted")


def _agrees(question: str) -> bool:
    """Ask the user; raise `UserError` if nobody can answer."""
    try:
        return click.confirm(question)
    except click.Abort as end:
        if isinstance(end.__context__, KeyboardInterrupt):
            raise
        click.echo()
        raise UserError("nobody answers, so nothing is deleted: pass --yes to delete") from None


@click.command(cls=HelpfulCommand)
@click.argument("source", metavar="FROM", shell_complete=completion.files)
@click.argument("destination", metavar="TO", shell_complete=completion.files)
@click.option(
    "-c",
    "--campaign",
    "campaigns",
    callback=all_campaign_numbers,
    multiple=True,
    metavar="CAMPAIGN",
    shell_complete=completion.campaigns,
    help="Copy only this campaign, or a range like 3-9. May be repeated.  [default: all]",
)
def copy(source: str, destination: str, campaigns: list[int]) -> None:
    """Copy campaigns from one store to another.

    \b
    swarmtest copy .swarmtest/swarmtest.db team.db
    swarmtest copy team.db postgresql://me@host/tests -c 3

    FROM and TO are files, or postgresql://USER@HOST/DATABASE. Each copy is read back, and its hash
    compared. `swarmtest list` shows an interrupted copy as `copying`; run the command again to
    continue it.
    """
    click.get_current_context().meta[STORE_IN_USE] = source
    with existing_store(source) as old:
        everything = [record.id for record in old.campaigns()]
        numbers = named_campaigns(old, campaigns) if campaigns else everything
        for number in numbers:
            _refuse_unfinished(old, number)
        if not numbers:
            raise UserError(f"{old.url} holds no campaign yet: there is nothing to copy")
        if _is_same_store(source, destination):
            raise UserError(f"{old.url} is both FROM and TO: name two stores")
        with open_store(destination) as new:
            for number in numbers:
                _copy(old, new, number)


def _refuse_unfinished(store: Store, number: int) -> None:
    if store.campaign(number).status == COPYING:
        raise UserError(
            f"campaign {number} in {store.url} is itself an unfinished copy: finish it first, "
            f"or delete it with `swarmtest delete {number}`"
        )


def _is_same_store(source: str, destination: str) -> bool:
    if is_postgres(source) or is_postgres(destination):
        return source == destination
    paths = [path.removeprefix("sqlite:///") for path in (source, destination)]
    return os.path.realpath(paths[0]) == os.path.realpath(paths[1])


def _copy(old: Store, new: Store, number: int) -> None:
    copied = copy_campaign(old, new, number, _CopyProgress(number, old.summary(number)["trials"]))
    comparison = "was copied before" if copied.was_there else "equal"
    click.echo(
        f"campaign {number} -> {copied.number}: {copied.trials:,} trials, "
        f"sha256 {copied.hash} {comparison}"
    )
    if copied.unknown_targets:
        click.echo(
            f"  {copied.unknown_targets:,} hit targets were not copied: {old.url} no longer has "
            "their names"
        )


class _CopyProgress:
    """A callback that prints a line on standard error every few seconds."""

    def __init__(self, campaign: int, total: int) -> None:
        self._campaign, self._total = campaign, total
        self._next = time.monotonic() + 2

    def __call__(self, trials: int) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + (1 if sys.stderr.isatty() else 10)
            click.echo(f"campaign {self._campaign}: {trials:,} of {self._total:,} trials", err=True)
