"""``swarmtest export`` and ``swarmtest delete``."""

from __future__ import annotations

import importlib.util
from typing import BinaryIO, cast

import click

from swarmtest.cli.options import existing_store, latest_campaign, store_option
from swarmtest.errors import UserError
from swarmtest.store import FORMATS, export_campaign


@click.command()
@click.argument("campaign", type=int, required=False)
@click.option(
    "-f", "--format", "kind", type=click.Choice(list(FORMATS)), help="[default: by the file's name]"
)
@click.option("-o", "--output", metavar="FILE", default="-", help="[default: standard output]")
@store_option
def export(campaign: int | None, kind: str | None, output: str, store: str | None) -> None:
    """Export a campaign, one row per test: CSV, JSON lines or Parquet."""
    opened = existing_store(store)
    number = latest_campaign(opened, campaign)
    if kind is None:
        ending = output.rpartition(".")[2].lower()
        if output != "-" and ending not in FORMATS:
            raise UserError(
                f"{output}: the name does not say the format: end it in .{' or .'.join(FORMATS)}, "
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


@click.command()
@click.argument("campaigns", type=int, nargs=-1, required=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@store_option
def delete(campaigns: tuple[int, ...], yes: bool, store: str | None) -> None:
    """Delete campaigns with all their trials, faults and tests."""
    opened = existing_store(store, write=True)
    for number in campaigns:
        record = opened.campaign(number)
        tests = opened.summary(number)["trials"]
        if not yes:
            click.confirm(
                f"delete campaign {number} ({record.subject}, {tests:,} tests)?", abort=True
            )
        opened.delete_campaign(number)
        click.echo(f"campaign {number} is deleted")
