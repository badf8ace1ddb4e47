"""``swarmtest list``: the campaigns of a store."""

from __future__ import annotations

import json
import time

import click

from swarmtest.campaign.liveness import status_in
from swarmtest.core.errors import UserError
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import existing_store, screen_width, store_option
from swarmtest.ui.terminal.tables import campaign_rows, screen_table

_HEAD = ("campaign", "begun", "subject", "strategy", "seed", "status", "tests", "faults")
_NUMBERS = ("campaign", "seed", "tests", "faults")
_SECONDS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}


@click.command("list", cls=HelpfulCommand)
@click.option("--subject", metavar="TEXT", help="Only campaigns whose subject contains this text.")
@click.option(
    "--status",
    type=click.Choice(["running", "finished", "interrupted", "stopped"]),
    help="Only campaigns with this status; `stopped`: their process is gone.",
)
@click.option("--since", metavar="AGE", help="Only campaigns that began within 30m, 12h, 7d, 2w.")
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
def list_campaigns(
    subject: str | None, status: str | None, since: str | None, store: str | None, as_json: bool
) -> None:
    """List the campaigns in a store.

    \b
    swarmtest list
    swarmtest list --subject stack --since 7d    of the last week
    """
    begun_after = time.time() - _age(since) if since else 0.0
    opened = existing_store(store)
    campaigns = opened.campaigns()
    selected = [
        record
        for record in campaigns
        if (subject is None or subject in record.subject)
        and record.created >= begun_after
        and (status is None or status_in(opened, record).startswith(status))
    ]
    if as_json:
        _print_json(opened, selected)
    elif selected:
        click.echo(
            screen_table(_HEAD, campaign_rows(opened, selected), "r   r rr", screen_width(), [2, 3])
        )
    elif campaigns:
        click.echo(f"none of the {len(campaigns):,} campaigns in {opened.url} is like that")
    else:
        click.echo(f"{opened.url} holds no campaign yet")


def _print_json(store: Store, campaigns: list[CampaignRecord]) -> None:
    for record, row in zip(campaigns, campaign_rows(store, campaigns), strict=True):
        values = dict(zip(_HEAD, row, strict=True))
        numbers = {name: int(values[name].replace(",", "")) for name in _NUMBERS}
        details = {"strategy": record.strategy, "avoids": record.avoids}
        click.echo(json.dumps(values | numbers | details))


def _age(text: str) -> float:
    """Return the seconds that an age like ``7d`` means.

    >>> _age("2h")
    7200.0
    """
    number, unit = text[:-1], text[-1:]
    if unit not in _SECONDS or not number.replace(".", "", 1).isdecimal():
        raise UserError(f"--since {text}: write an age like 30m, 12h, 7d or 2w")
    return float(number) * _SECONDS[unit]
