"""``swarmtest show``: one campaign, with its features and faults."""

from __future__ import annotations

import click

from swarmtest.campaign.liveness import status_in
from swarmtest.campaign.reduced_faults import reductions_of
from swarmtest.store.fault_lives import fault_lives
from swarmtest.store.records import ReductionRecord
from swarmtest.ui.options import existing_store, latest_campaign, store_option
from swarmtest.ui.run_report import invalid_lines
from swarmtest.ui.terminal.coverage import campaign_tally, coverage_lines
from swarmtest.ui.terminal.tables import campaign_lines, command_text, feature_rows, table

_FEATURE_HEAD = ("feature", "allowed in", "used in", "times", "fails if allowed", "fails if not")


@click.command()
@click.argument("campaign", type=int, required=False)
@store_option
def show(campaign: int | None, store: str | None) -> None:
    """Show a campaign: totals, features and faults.

    CAMPAIGN is a number; by default, the newest.
    """
    opened = existing_store(store)
    number = latest_campaign(opened, campaign)
    record = opened.campaign(number)
    for line in campaign_lines(record, opened.summary(number), status_in(opened, record)):
        click.echo(line)
    features = feature_rows(opened, number)
    if features:
        click.echo("\n" + table(_FEATURE_HEAD, features, right=" rrrrr"))
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
        click.echo("\n" + table(head, rows, right="   rrrr"))
        click.echo(f"\ntests as code: {command_text(f'faults {number}', opened.url)}")


def _reduced_size(reduction: ReductionRecord | None) -> str:
    """Return the size of a reduced test, for a table."""
    return str(reduction.size) if reduction is not None and reduction.test is not None else "-"
