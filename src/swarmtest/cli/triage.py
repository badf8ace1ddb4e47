"""``swarmtest triage``: which faults to look at first."""

from __future__ import annotations

import shlex

import click

from swarmtest.analysis.study import Study
from swarmtest.analysis.triage import triage as triaged
from swarmtest.cli.options import (
    campaigns_argument,
    confidence_option,
    existing_store,
    latest_campaign,
    screen_width,
    store_option,
)
from swarmtest.report.quantities import json_text
from swarmtest.report.terminal import command_text
from swarmtest.report.triage import triage_lines


@click.command()
@campaigns_argument
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@confidence_option
@store_option
def triage(campaigns: list[int], as_json: bool, confidence: float, store: str | None) -> None:
    """Order the faults, and tell which may be one bug, or two.

    CAMPAIGN is a number, the newest one if left out; several of the same subject are taken
    together. Faults whose triggers are known come first, and rare ones before frequent ones.

    \b
    swarmtest triage            the newest campaign
    swarmtest run stack.py --avoid known   go on, keeping what is known out
    """
    opened = existing_store(store)
    study = Study(opened, campaigns or [latest_campaign(opened, None)], confidence)
    found = triaged(study)
    if as_json:
        faults = [one.to_json() for one in found.faults]
        relations = [relation.sentence() for relation in found.relations]
        told = {"faults": faults, "relations": relations, "notes": study.notes}
        click.echo(json_text(told))
        return
    if not found.faults:
        names = ", ".join(map(str, study.evidence.campaigns))
        click.echo(f"campaign {names} found no fault")
        return
    for note in study.notes:
        click.echo(f"note: {note}", err=True)
    click.echo("\n".join(triage_lines(found, screen_width())))
    record = opened.campaign(study.evidence.campaigns[0])
    if any(one.combination for one in found.faults) and record.options.get("subject"):
        words = f"run {shlex.quote(record.subject)} --avoid known"
        click.echo(f"\ngo on without them: {command_text(words, opened.url)}")
