"""``swarmtest list``, ``show`` and ``faults``: look at what is kept."""

from __future__ import annotations

import json
import shlex
from typing import Any

import click

from swarmtest.analysis.roles import FeatureRole
from swarmtest.campaign.fault_reductions import reductions_of
from swarmtest.cli.options import existing_store, latest_campaign, screen_width, store_option
from swarmtest.errors import UserError, did_you_mean
from swarmtest.report.coverage import campaign_tally, coverage_lines
from swarmtest.report.fault_views import load_subject
from swarmtest.report.invalid import invalid_lines
from swarmtest.report.reduced import as_shown, reduction_line, replay_words
from swarmtest.report.roles import role_lines, study_or_none
from swarmtest.report.terminal import (
    campaign_lines,
    campaign_rows,
    command_text,
    fault_configurations,
    fault_lines,
    feature_rows,
    table,
)
from swarmtest.store import ReductionRecord, Store

_HEAD = ("campaign", "begun", "subject", "strategy", "seed", "status", "tests", "faults")
_NUMBERS = ("campaign", "seed", "tests", "faults")
_FEATURES = ("feature", "allowed in", "used in", "times", "fails if allowed", "fails if not")


@click.command("list")
@store_option
@click.option("--json", "as_json", is_flag=True, help="JSON lines, for programs.")
def list_campaigns(store: str | None, as_json: bool) -> None:
    """List the campaigns of a store."""
    opened = existing_store(store)
    rows = campaign_rows(opened)
    if as_json:
        for row in rows:
            values = dict(zip(_HEAD, row, strict=True))
            numbers = {k: int(values[k].replace(",", "")) for k in _NUMBERS}
            record = opened.campaign(numbers["campaign"])
            told = {"strategy": record.strategy, "avoids": record.avoids}
            click.echo(json.dumps(values | numbers | told))
    elif rows:
        click.echo(table(_HEAD, rows, right="r   r rr"))
    else:
        click.echo(f"{opened.url} holds no campaign yet")


@click.command()
@click.argument("campaign", type=int, required=False)
@store_option
def show(campaign: int | None, store: str | None) -> None:
    """Show a campaign: totals, features and faults. The newest one if CAMPAIGN is left out."""
    opened = existing_store(store)
    number = latest_campaign(opened, campaign)
    for line in campaign_lines(opened.campaign(number), opened.summary(number)):
        click.echo(line)
    features = feature_rows(opened, number)
    if features:
        click.echo("\n" + table(_FEATURES, features, right=" rrrrr"))
        invalid = invalid_lines(opened, number)
        if invalid:
            click.echo("\n" + "\n".join(invalid))
    tally = campaign_tally(opened, number)
    if tally.catalogue.targets:
        command = command_text(f"coverage {number}", opened.url)
        click.echo("\n" + "\n".join(coverage_lines(tally, command)))
    found = opened.faults(number)
    if found:
        small = reductions_of(opened, number)
        rows = [
            (
                f.id,
                f.kind,
                f"{f.count:,}",
                str(f.first_trial),
                str(f.size),
                _left(small.get(f.id)),
                f.signature,
            )
            for f in found
        ]
        head = ("fault", "kind", "tests", "first", "steps", "reduced", "signature")
        click.echo("\n" + table(head, rows, right="  rrrr"))
        click.echo(f"\ntests as code: {command_text(f'faults {number}', opened.url)}")


@click.command()
@click.argument("campaign", required=False)
@click.argument("fault", required=False)
@store_option
@click.option("--json", "as_json", is_flag=True, help="JSON lines, for programs.")
def faults(campaign: str | None, fault: str | None, store: str | None, as_json: bool) -> None:
    """Show the faults of a campaign, each with its smallest test and how to replay it.

    CAMPAIGN is a number, the newest one if left out; FAULT is a fault's id (or its beginning), for
    that one with its traceback.
    """
    opened = existing_store(store)
    if campaign is not None and not campaign.isdigit():
        campaign, fault = None, campaign
    number = latest_campaign(opened, None if campaign is None else int(campaign))
    found = opened.faults(number)
    if fault is not None:
        chosen = [f for f in found if f.id.startswith(fault)]
        if not chosen:
            known = did_you_mean(fault, [f.id for f in found])
            raise UserError(f"campaign {number} has no fault {fault!r}{known}")
        found = chosen
    reductions = reductions_of(opened, number)
    if as_json:
        for f in found:
            small = reductions.get(f.id)
            click.echo(json.dumps(f._asdict() | {"reduced": small._asdict() if small else None}))
        return
    if not found:
        click.echo(f"campaign {number} found no fault")
    subject = subject_or_none(opened, number)
    configurations = fault_configurations(opened, number, found)
    study = study_or_none(opened, number) if found else None
    part = opened.campaign(number).options.get("part", "step")
    for f in found:
        small = reductions.get(f.id)
        command = command_text(replay_words(number, f, small), opened.url) if subject else ""
        roles = study.roles(study.find(f"fault:{f.id}")) if study else []
        reduced = reduction_line(f, small, number, part)
        f = as_shown(f, small)
        lines = fault_lines(f, subject, configurations[f.id], command, _why(roles), reduced)
        click.echo("\n".join(lines))
        if subject and any(role.is_discovery() for role in roles):
            click.echo(f"  go on without it: {_avoiding(opened, number, f.id)}")
        click.echo()
        if fault is not None and f.details:
            click.echo(f.details)


def _left(reduction: ReductionRecord | None) -> str:
    """The size of a test that was made small, for a table."""
    return str(reduction.size) if reduction is not None and reduction.test is not None else "-"


def _why(roles: list[FeatureRole]) -> list[str]:
    """Interval bars."""
    lines = role_lines(roles, rate=0.05, screen=screen_width())
    return ["triggers and suppressors:", *(f"  {line}" for line in lines)] if lines else []


def _avoiding(store: Store, campaign: int, fault: str) -> str:
    subject = store.campaign(campaign).subject
    return command_text(f"run {shlex.quote(subject)} --avoid {fault}", store.url)


def subject_or_none(store: Store, campaign: int) -> Any:
    """The subject of a campaign, if it can be loaded here."""
    subject, why = load_subject(store, campaign)
    if why and store.campaign(campaign).options.get("subject"):
        click.echo(f"(tests are shown as plain steps: {why})", err=True)
    return subject
