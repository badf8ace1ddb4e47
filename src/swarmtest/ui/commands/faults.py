"""``swarmtest faults``: the faults of a campaign, with their tests."""

from __future__ import annotations

import json
import shlex

import click

from swarmtest.campaign.reduced_faults import reductions_of
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.roles.roles import FeatureRole
from swarmtest.roles.views import role_lines, study_or_none
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.subjects.stored_tests import StoredTests
from swarmtest.ui.commands import fault_decisions
from swarmtest.ui.options import (
    existing_store,
    latest_campaign,
    screen_width,
    store_option,
    trust_option,
)
from swarmtest.ui.terminal.reduced_tests import as_shown, reduction_line, replay_words
from swarmtest.ui.terminal.tables import command_text, fault_configurations, fault_lines
from swarmtest.why.explanation import explanations_of
from swarmtest.why.views import explanation_lines


@click.command()
@click.argument("campaign", required=False)
@click.argument("fault", required=False)
@trust_option
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
@click.option(
    "--merge", nargs=2, metavar="FAULT FAULT", help="Show two faults as one, named as the first."
)
@click.option("--split", metavar="FAULT", help="Show the identities behind a fault apart.")
@click.option("--undo", metavar="FAULT", help="Take back what was merged or split by hand.")
def faults(
    campaign: str | None,
    fault: str | None,
    store: str | None,
    as_json: bool,
    merge: tuple[str, str] | None,
    split: str | None,
    undo: str | None,
) -> None:
    """Show the faults of a campaign, with the smallest test of each.

    CAMPAIGN is a number; by default, the newest. FAULT is the id of a fault, or the beginning of
    one: show only this fault, with its traceback.

    --merge, --split and --undo decide which faults are one, in all campaigns of the store. What was
    recorded stays as it is.
    """
    if merge or split or undo:
        _decide(store, merge, split, undo)
        return
    opened = existing_store(store)
    if campaign is not None and not campaign.isdigit():
        campaign, fault = None, campaign
    number = latest_campaign(opened, None if campaign is None else int(campaign))
    records = opened.faults(number)
    if fault is not None:
        matching = [
            record
            for record in records
            if any(name.startswith(fault) for name in (record.id, *record.also))
        ]
        if not matching:
            suggestion = did_you_mean(fault, [record.id for record in records])
            raise UserError(f"campaign {number} has no fault {fault!r}{suggestion}")
        records = matching
    reductions = reductions_of(opened, number)
    explanations = explanations_of(opened, number)
    if as_json:
        for record in records:
            reduction, explanation = reductions.get(record.id), explanations.get(record.id)
            more = {
                "reduced": reduction._asdict() if reduction else None,
                "why": explanation.to_json() if explanation else None,
            }
            click.echo(json.dumps(record._asdict() | more))
        return
    if not records:
        click.echo(f"campaign {number} found no fault")
    configurations = fault_configurations(opened, number, records)
    study = study_or_none(opened, number) if records else None
    targets = {fault.name: fault for fault in study.faults} if study else {}
    options = opened.campaign(number).options
    part = str(options.get("part", "step"))
    tests = StoredTests(part)
    is_replayable = bool(options.get("subject"))
    for record in records:
        reduction = reductions.get(record.id)
        words = replay_words(number, record, reduction)
        command = command_text(words, opened.url) if is_replayable else ""
        roles = study.roles(targets[record.id]) if study and record.id in targets else []
        reduced = reduction_line(record, reduction, number, part)
        record = as_shown(record, reduction)
        configuration = configurations[record.id]
        why = _role_lines(roles)
        if record.id in explanations:
            why += explanation_lines(explanations[record.id])
        lines = fault_lines(record, tests, configuration, command, why, reduced)
        click.echo("\n".join(lines))
        if is_replayable and any(role.is_discovery() for role in roles):
            click.echo(f"  go on without it: {_avoid_command(opened, number, record.id)}")
        click.echo()
        if fault is not None and record.details:
            click.echo(record.details)


def _decide(
    store: str | None, merge: tuple[str, str] | None, split: str | None, undo: str | None
) -> None:
    if sum(map(bool, (merge, split, undo))) > 1:
        raise UserError("one of --merge, --split and --undo at a time")
    with open_store(store, must_exist=True) as opened:
        if merge:
            fault_decisions.merge(opened, merge)
        elif split:
            fault_decisions.split(opened, split)
        else:
            fault_decisions.undo(opened, str(undo))


def _role_lines(roles: list[FeatureRole]) -> list[str]:
    """Return interval bars of the features that have a role."""
    lines = role_lines(roles, rate=0.05, screen=screen_width())
    return ["triggers and suppressors:", *(f"  {line}" for line in lines)] if lines else []


def _avoid_command(store: Store, campaign: int, fault: str) -> str:
    subject = store.campaign(campaign).subject
    return command_text(f"run {shlex.quote(subject)} --avoid {fault}", store.url)
