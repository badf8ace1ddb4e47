"""``swarmtest triage``: the faults of campaigns, in the order in which to look at them."""

from __future__ import annotations

import shlex

import click

from swarmtest.core.formatting import plural
from swarmtest.roles.study import Study
from swarmtest.roles.triage import Triage, TriagedFault
from swarmtest.roles.triage import triage as triaged
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import (
    campaigns_argument,
    confidence_option,
    existing_store,
    named_campaigns,
    screen_width,
    store_option,
)
from swarmtest.ui.terminal.tables import command_text, lines_of, table
from swarmtest.ui.terminal.text import json_text, one_line

_HEAD = ("fault", "tests", "one in", "signature")


def triage_lines(found: Triage, screen: int = 0) -> list[str]:
    """Return lines for each fault and its features, and for what may be one bug or two."""
    rows = [_row(fault) for fault in found.faults]
    head, rule, *body = table(_HEAD, rows, right=" rr", width=screen).split("\n")
    lines = [head, rule]
    for row, fault in zip(body, found.faults, strict=True):
        lines += [row, *(f"          {part}" for part in lines_of(_features(fault), screen - 10))]
    related = found.sentences()
    related += [
        f"{fault.fault.name}: {pair.sentence()}: perhaps two bugs behind one signature"
        for fault in found.faults
        for pair in fault.two_causes
    ]
    relations = [part for line in related for part in lines_of(line, screen)]
    return lines + (["", *relations] if relations else [])


def _row(fault: TriagedFault) -> tuple[str, ...]:
    least, most = (f"{1 / share:,.0f}" if share else "" for share in (fault.high, fault.low))
    rarity = f"{1 / fault.fraction:,.0f} ({least} to {most})"
    return fault.fault.name, f"{fault.hits:,}", rarity, one_line(fault.fault.detail)


def _features(fault: TriagedFault) -> str:
    if fault.missing_hits:
        return f"insufficient data: {plural(fault.missing_hits, 'more hit')} needed"
    named = [
        f"{word}: {', '.join(names)}"
        for word, names in (("triggers", fault.triggers), ("suppressors", fault.suppressors))
        if names
    ]
    return "; ".join(named) or "no triggers or suppressors found"


@click.command(cls=HelpfulCommand)
@campaigns_argument
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@confidence_option
@store_option
def triage(campaigns: list[int], as_json: bool, confidence: float, store: str | None) -> None:
    """Sort the faults, and show which of them may be the same bug, or two bugs.

    CAMPAIGN is a number; the default is the newest campaign. Several campaigns of the same subject
    are analysed together. Faults whose triggers are known come first, and rare ones before frequent
    ones.

    \b
    swarmtest triage                       the newest campaign
    swarmtest run stack.py --avoid known   continue without known faults
    """
    opened = existing_store(store)
    study = Study(opened, named_campaigns(opened, campaigns), confidence)
    result = triaged(study)
    if as_json:
        faults = [fault.to_json() for fault in result.faults]
        data = {"faults": faults, "relations": result.sentences(), "notes": study.notes}
        click.echo(json_text(data))
        return
    if not result.faults:
        names = ", ".join(map(str, study.evidence.campaigns))
        click.echo(f"campaign {names} found no fault")
        return
    for note in study.notes:
        click.echo(f"note: {note}", err=True)
    click.echo("\n".join(triage_lines(result, screen_width())))
    record = opened.campaign(study.evidence.campaigns[0])
    if any(fault.combination for fault in result.faults) and record.options.get("subject"):
        words = f"run {shlex.quote(record.subject)} --avoid known"
        click.echo(f"\ncontinue without them: {command_text(words, opened.url)}")
