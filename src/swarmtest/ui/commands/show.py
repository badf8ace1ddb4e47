"""``swarmtest show``: one campaign, with its features and faults."""

from __future__ import annotations

from typing import Any

import click

from swarmtest.campaign.liveness import status_in
from swarmtest.campaign.reduced_faults import reductions_of
from swarmtest.store.fault_lives import fault_lives
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, ReductionRecord
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import (
    campaigns_argument,
    existing_store,
    named_campaigns,
    screen_width,
    store_option,
)
from swarmtest.ui.run_report import invalid_lines
from swarmtest.ui.terminal.coverage import campaign_tally, coverage_lines
from swarmtest.ui.terminal.tables import (
    campaign_lines,
    command_text,
    feature_rows,
    indented_lines,
    screen_table,
)
from swarmtest.ui.terminal.text import json_text

_FEATURE_HEAD = ("feature", "allowed in", "used in", "times", "fails if allowed", "fails if not")


@click.command(cls=HelpfulCommand)
@campaigns_argument
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@store_option
def show(campaigns: list[int], as_json: bool, store: str | None) -> None:
    """Show a campaign: totals, features and faults.

    \b
    swarmtest show                   the newest campaign
    swarmtest show 3-5               three of them

    CAMPAIGN is a number, a range like 3-5, or latest; by default, the newest.
    """
    opened = existing_store(store)
    for at, number in enumerate(named_campaigns(opened, campaigns)):
        record = opened.campaign(number)
        if as_json:
            click.echo(json_text(_campaign_data(opened, record)))
        else:
            click.echo("\n" * bool(at), nl=False)
            _show_campaign(opened, record)


def _show_campaign(opened: Store, record: CampaignRecord) -> None:
    number = record.id
    for line in campaign_lines(record, opened.summary(number), status_in(opened, record)):
        click.echo("\n".join(indented_lines(line, screen_width())))
    features = feature_rows(opened, number)
    if features:
        click.echo("\n" + screen_table(_FEATURE_HEAD, features, " rrrrr", screen_width()))
        invalid = invalid_lines(opened, number)
        if invalid:
            click.echo("\n" + "\n".join(invalid))
    tally = campaign_tally(opened, number)
    if tally.catalogue.targets:
        command = command_text(f"coverage {number}", opened.url)
        asked = opened.campaign(number).options.get("coverage")
        click.echo("\n" + "\n".join(coverage_lines(tally, command, asked)))
    faults = opened.faults(number)
    if faults:
        reductions = reductions_of(opened, number)
        lives = fault_lives(opened, record.subject)
        rows = [
            (
                fault.id,
                fault.kind,
                lives[fault.id].state,
                f"{fault.count:,}",
                str(fault.first_trial),
                str(fault.size),
                _reduced_size(reductions.get(fault.id)),
                fault.signature,
            )
            for fault in faults
        ]
        head = ("fault", "kind", "state", "tests", "first", "steps", "reduced", "signature")
        click.echo("\n" + screen_table(head, rows, "   rrrr", screen_width(), [7]))
        click.echo(f"\ntests as code: {command_text(f'faults {number}', opened.url)}")


def _campaign_data(store: Store, record: CampaignRecord) -> dict[str, Any]:
    """Return what is shown of a campaign, as JSON data."""
    lives = fault_lives(store, record.subject)
    return {
        "campaign": record.id,
        "subject": record.subject,
        "strategy": record.strategy,
        "avoids": record.avoids,
        "seed": record.seed,
        "status": status_in(store, record),
        "begun": record.created,
        "wall_seconds": record.wall_seconds,
        "totals": store.summary(record.id),
        "features": [
            dict(zip(_FEATURE_HEAD, row, strict=True)) for row in feature_rows(store, record.id)
        ],
        "faults": [
            {
                "fault": fault.id,
                "kind": fault.kind,
                "state": lives[fault.id].state,
                "tests": fault.count,
                "first": fault.first_trial,
                "steps": fault.size,
                "signature": fault.signature,
            }
            for fault in store.faults(record.id)
        ],
    }


def _reduced_size(reduction: ReductionRecord | None) -> str:
    """Return the size of a reduced test, for a table."""
    return str(reduction.size) if reduction is not None and reduction.test is not None else "-"
