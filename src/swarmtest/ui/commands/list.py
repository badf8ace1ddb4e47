"""``swarmtest list``: the campaigns of a store."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from itertools import islice

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
@click.option("--runs", is_flag=True, help="Give each run of a comparison a line of its own.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines, one for each campaign.")
def list_campaigns(
    subject: str | None,
    status: str | None,
    since: str | None,
    store: str | None,
    runs: bool,
    as_json: bool,
) -> None:
    """List the campaigns in a store.

    \b
    swarmtest list
    swarmtest list --subject stack --since 7d    of the last week

    The runs of `swarmtest compare` share a line.
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
        groups = [[record] for record in selected] if runs else compared_runs(selected)
        rows = [_row(opened, group) for group in groups]
        click.echo(screen_table(_HEAD, rows, "r   r rr", screen_width(), [2, 3]))
    elif campaigns:
        click.echo(f"none of the {len(campaigns):,} campaigns in {opened.url} is like that")
    else:
        click.echo(f"{opened.url} holds no campaign yet")


def compared_runs(campaigns: Sequence[CampaignRecord]) -> list[list[CampaignRecord]]:
    """Return the campaigns in groups: one for all runs of a comparison, else one for each.

    A comparison runs some strategies with one seed, then with the next: campaigns in a row that
    differ in nothing else. Its last round may be incomplete.
    """
    groups = []
    start = 0
    while start < len(campaigns):
        size = _runs_from(campaigns, start)
        groups.append(list(campaigns[start : start + size]))
        start += size
    return groups


def _runs_from(campaigns: Sequence[CampaignRecord], start: int) -> int:
    """Return how many campaigns, from one on, are the runs of the same comparison."""
    first = campaigns[start]
    strategies: list[str] = []
    for record in islice(campaigns, start, None):
        if record.seed != first.seed or not _is_alike(record, first):
            break
        if record.label in strategies:
            return 1
        strategies.append(record.label)
    count = len(strategies)
    size = 0
    for number, record in enumerate(islice(campaigns, start, None)):
        expected = (first.seed + number // count, strategies[number % count], first.id + number)
        if (record.seed, record.label, record.id) != expected or not _is_alike(record, first):
            break
        size += 1
    # With one strategy or one seed, they may be campaigns of their own.
    return size if size > count > 1 else 1


def _is_alike(record: CampaignRecord, first: CampaignRecord) -> bool:
    """Return whether two campaigns have the same subject and options."""
    options, others = ({**each.options, "killed": None} for each in (record, first))
    return record.subject == first.subject and options == others


def _row(store: Store, group: Sequence[CampaignRecord]) -> tuple[str, ...]:
    """Return a row of the table: of a campaign, or of all runs of a comparison."""
    rows = campaign_rows(store, group)
    if len(rows) == 1:
        return rows[0]
    _, begun, subject, *_ = rows[0]
    strategies = dict.fromkeys(row[3] for row in rows)
    seeds = f"{group[0].seed}-{group[-1].seed}"
    status = ", ".join(dict.fromkeys(row[5] for row in rows))
    tests = sum(int(row[6].replace(",", "")) for row in rows)
    faults = len({fault.id for record in group for fault in store.faults(record.id)})
    numbers = f"{group[0].id}-{group[-1].id}"
    return (
        numbers,
        begun,
        subject,
        ", ".join(strategies),
        seeds,
        status,
        f"{tests:,}",
        f"{faults}",
    )


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
