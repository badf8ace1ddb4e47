"""Faults in the order in which to look at them, as text."""

from __future__ import annotations

import shlex

import click

from swarmtest.roles.study import Study
from swarmtest.roles.triage import Triage, TriagedFault
from swarmtest.roles.triage import triage as triaged
from swarmtest.ui.options import (
    campaigns_argument,
    confidence_option,
    existing_store,
    latest_campaign,
    screen_width,
    store_option,
)
from swarmtest.ui.terminal.tables import command_text, lines_of, plural, table
from swarmtest.ui.terminal.text import json_text, one_line

_HEAD = ("fault", "tests", "one in", "signature")


def triage_lines(found: Triage, screen: int = 0) -> list[str]:
    """Each fault with what is known about its features, and what may be one bug or two."""
    rows = [_row(one) for one in found.faults]
    head, rule, *body = table(_HEAD, rows, right=" rr", width=screen).split("\n")
    lines = [head, rule]
    for row, one in zip(body, found.faults, strict=True):
        lines += [row, *(f"          {part}" for part in lines_of(_features(one), screen - 10))]
    related = [relation.sentence() for relation in found.relations]
    related += [
        f"{one.fault.name}: {pair.sentence()}: perhaps two bugs behind one signature"
        for one in found.faults
        for pair in one.two_causes
    ]
    told = [part for line in related for part in lines_of(line, screen)]
    return lines + (["", *told] if told else [])


def _row(one: TriagedFault) -> tuple[str, ...]:
    least, most = (f"{1 / share:,.0f}" if share else "" for share in (one.high, one.low))
    rarity = f"{1 / one.fraction:,.0f} ({least} to {most})"
    return one.fault.name, f"{one.hits:,}", rarity, one_line(one.fault.detail)


def _features(one: TriagedFault) -> str:
    if one.missing_hits:
        return f"insufficient data: {plural(one.missing_hits, 'more hit')} needed"
    named = [
        f"{word}: {', '.join(names)}"
        for word, names in (("triggers", one.triggers), ("suppressors", one.suppressors))
        if names
    ]
    return "; ".join(named) or "no triggers or suppressors found"


# -------------------------------------------------------------------------------------------------
# ``swarmtest triage``: which faults to look at first.


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
