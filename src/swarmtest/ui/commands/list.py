"""``swarmtest list``: the campaigns of a store."""

from __future__ import annotations

import json

import click

from swarmtest.ui.options import existing_store, store_option
from swarmtest.ui.terminal.tables import campaign_rows, table

_HEAD = ("campaign", "begun", "subject", "strategy", "seed", "status", "tests", "faults")
_NUMBERS = ("campaign", "seed", "tests", "faults")


@click.command("list")
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
def list_campaigns(store: str | None, as_json: bool) -> None:
    """List the campaigns in a store."""
    opened = existing_store(store)
    rows = campaign_rows(opened)
    if as_json:
        for row in rows:
            values = dict(zip(_HEAD, row, strict=True))
            numbers = {name: int(values[name].replace(",", "")) for name in _NUMBERS}
            record = opened.campaign(numbers["campaign"])
            details = {"strategy": record.strategy, "avoids": record.avoids}
            click.echo(json.dumps(values | numbers | details))
    elif rows:
        click.echo(table(_HEAD, rows, right="r   r rr"))
    else:
        click.echo(f"{opened.url} holds no campaign yet")
