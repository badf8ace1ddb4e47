"""``swarmtest faults``: the faults of a campaign, with their tests."""

from __future__ import annotations

import json
import shlex
from typing import Any

import click

from swarmtest.campaign.reduced_faults import reductions_of
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.roles.roles import FeatureRole
from swarmtest.roles.views import role_lines, study_or_none
from swarmtest.store.interface import Store
from swarmtest.ui.options import existing_store, latest_campaign, screen_width, store_option
from swarmtest.ui.report.faults import load_subject
from swarmtest.ui.terminal.reduced_tests import as_shown, reduction_line, replay_words
from swarmtest.ui.terminal.tables import command_text, fault_configurations, fault_lines


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
