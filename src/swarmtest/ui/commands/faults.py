"""``swarmtest faults``: the faults of a campaign, with their tests; their states, and marks."""

from __future__ import annotations

import json
import shlex
import time

import click

from swarmtest.campaign.reduced_faults import reductions_of
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.formatting import is_plain_id, printable, typed_word
from swarmtest.roles.roles import FeatureRole
from swarmtest.roles.views import role_lines, study_or_none
from swarmtest.store import open_store
from swarmtest.store.fault_lives import (
    BACK,
    MARKS,
    FaultLife,
    events_of,
    fault_lives,
    lives_of,
)
from swarmtest.store.interface import Store
from swarmtest.store.records import FaultEvent, FaultRecord
from swarmtest.subjects.input_files import input_of_test, prepared_directory
from swarmtest.subjects.stored_tests import StoredTests
from swarmtest.ui import completion
from swarmtest.ui.commands import fault_decisions
from swarmtest.ui.help import HelpfulCommand
from swarmtest.ui.options import (
    campaign_numbers,
    existing_store,
    latest_campaign,
    screen_width,
    store_option,
    trust_option,
)
from swarmtest.ui.terminal.fault_lives import date_text, life_data, life_lines, state_text
from swarmtest.ui.terminal.fault_order import brief_lines, divided
from swarmtest.ui.terminal.reduced_tests import as_shown, reduction_line, replay_words
from swarmtest.ui.terminal.tables import (
    command_text,
    fault_configurations,
    fault_lines,
    screen_table,
)
from swarmtest.ui.terminal.text import one_line
from swarmtest.why.explanation import explanations_of
from swarmtest.why.views import explanation_lines

_STATES = ("open", BACK, "known", "fixed")
"""The order of states in a list: what is to be done comes first."""


@click.command(cls=HelpfulCommand)
@click.argument("campaign", required=False, shell_complete=completion.campaigns_or_faults)
@click.argument("fault", required=False, shell_complete=completion.faults)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="List the faults of all campaigns, a line each, with state and history.",
)
@click.option("--full", is_flag=True, help="Show each fault with its test, however many there are.")
@click.option(
    "--mark",
    type=click.Choice(MARKS),
    help="Mark FAULT, or the only fault of CAMPAIGN: known (and we live with it), open, fixed.",
)
@click.option("--note", metavar="TEXT", help="With --mark: why, or where it is tracked.")
@trust_option
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
@click.option(
    "--merge", nargs=2, metavar="FAULT FAULT", help="Show two faults as one, named as the first."
)
@click.option("--split", metavar="FAULT", help="Show the identities behind a fault apart.")
@click.option("--undo", metavar="FAULT", help="Take back what was merged or split by hand.")
@click.option(
    "--inputs",
    metavar="DIR",
    help="Write the smallest input of each fault to DIR/ID, and its stack to DIR/ID.txt.",
)
def faults(
    campaign: str | None,
    fault: str | None,
    everything: bool,
    full: bool,
    mark: str | None,
    note: str | None,
    store: str | None,
    as_json: bool,
    merge: tuple[str, str] | None,
    split: str | None,
    undo: str | None,
    inputs: str | None,
) -> None:
    """Show the faults of a campaign, with the smallest test of each.

    CAMPAIGN is a number, a range like 3-9, or latest; by default, the newest. FAULT is the id of a
    fault, or the beginning of one: show only this fault, with its traceback.

    --merge, --split and --undo decide which faults are one, in all campaigns of the store. What was
    recorded stays as it is.

    \b
    swarmtest faults                 the faults of the newest campaign
    swarmtest faults --all           all faults, with their states
    swarmtest faults 4ee18053 --mark known --note "issue 17"
    swarmtest faults --inputs crashes/   an input and a stack for each, as fuzzers write them
    """
    if merge or split or undo:
        _decide(store, merge, split, undo)
        return
    if campaign is not None and "-" in campaign and campaign_numbers(campaign):
        if mark or note:
            raise UserError(f"--mark is for one campaign, not for {campaign}")
        opened = existing_store(store)
        for each in campaign_numbers(campaign):
            _show_faults(opened, latest_campaign(opened, each), fault, full, as_json)
        return
    if campaign is not None and not _is_number(campaign):
        campaign, fault = None, campaign
    number = None if campaign in (None, "latest") else int(campaign)
    if mark is not None:
        _mark(existing_store(store, write=True), number, fault, mark, note)
        return
    if note is not None:
        raise UserError("--note goes with --mark: say what to mark the fault as")
    opened = existing_store(store)
    if everything:
        if number is not None or fault is not None:
            raise UserError("--all lists the faults of all campaigns: name none")
        _list_all(opened, as_json)
        return
    if inputs is not None:
        _write_inputs(opened, latest_campaign(opened, number), fault, inputs)
        return
    _show_faults(opened, latest_campaign(opened, number), fault, full, as_json)


def _write_inputs(opened: Store, number: int, fault: str | None, directory: str) -> None:
    """Write the smallest input of each fault, and beside it what is known about the fault."""
    records = _chosen_faults(opened, number, fault)
    reductions = reductions_of(opened, number)
    place = prepared_directory(directory)
    for record in records:
        reduction = reductions.get(record.id)
        command = command_text(replay_words(number, record, reduction), opened.url)
        record = as_shown(record, reduction)
        if record.test is None:
            signature = one_line(record.signature)
            click.echo(f"{one_line(record.id)}  {signature}: its test was not stored", err=True)
            continue
        if not is_plain_id(record.id):
            # It becomes a path, and it comes from the store, which may be hostile.
            raise UserError(f"{record.id!r} is not the id of a fault: is the store damaged?")
        (place / record.id).write_bytes(input_of_test(json.loads(record.test)))
        about = f"{record.kind}: {record.signature}\n{command}\n\n{record.details}\n"
        (place / f"{record.id}.txt").write_text(printable(about), encoding="utf-8")
        click.echo(f"{place / record.id}  {one_line(record.signature)}")
    if not records:
        click.echo(f"campaign {number} found no fault")


def _is_number(text: str) -> bool:
    """Return whether a word names a campaign; some ids of faults have only digits."""
    if text.startswith("0"):
        return False
    return text == "latest" or (text.isdecimal() and text.isascii() and len(text) < 8)


def _show_faults(opened: Store, number: int, fault: str | None, full: bool, as_json: bool) -> None:
    records = _chosen_faults(opened, number, fault)
    reductions = reductions_of(opened, number)
    explanations = explanations_of(opened, number)
    lives = fault_lives(opened, opened.campaign(number).subject)
    if as_json:
        for record in records:
            reduction, explanation = reductions.get(record.id), explanations.get(record.id)
            more = {
                "reduced": reduction._asdict() if reduction else None,
                "why": explanation.to_json() if explanation else None,
                "life": life_data(lives.get(record.id)),
            }
            click.echo(json.dumps(record._asdict() | more))
        return
    if not records:
        click.echo(f"campaign {number} found no fault")
    faults = divided(records, full or fault is not None)
    records = faults.full
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
            why += explanation_lines(explanations[record.id], min(screen_width() or 98, 98) - 2)
        life = life_lines(lives.get(record.id))
        lines = fault_lines(
            record, tests, configuration, command, why, reduced, life, screen_width()
        )
        click.echo("\n".join(lines))
        if is_replayable and any(role.is_discovery() for role in roles):
            click.echo(f"  go on without it: {_avoid_command(opened, number, record.id)}")
        click.echo()
        if fault is not None and record.details:
            click.echo(record.details)
    command = command_text(f"faults {number} --full", opened.url)
    if faults.brief:
        click.echo("\n".join(brief_lines(faults, command)[1:]))


def _chosen_faults(opened: Store, number: int, fault: str | None) -> list[FaultRecord]:
    """Return the faults of a campaign, or the one whose id begins like `fault`."""
    records = opened.faults(number)
    if fault is None:
        return records
    matching = [
        record
        for record in records
        if any(name.startswith(fault) for name in (record.id, *record.also))
    ]
    if not matching:
        suggestion = did_you_mean(fault, [record.id for record in records])
        raise UserError(f"campaign {number} has no fault {fault!r}{suggestion}")
    return matching


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
    return command_text(f"run {shlex.quote(subject)} --avoid {typed_word(fault)}", store.url)


# All faults, with their states.


def _list_all(store: Store, as_json: bool) -> None:
    lives = lives_of(events_of(store)).values()
    known = {(life.subject, life.fault): life for life in lives if life.sightings}
    signatures = _signatures(store)
    ordered = sorted(known.values(), key=lambda life: (_rank(life), -life.last_seen, life.fault))
    if as_json:
        for life in ordered:
            names = {"id": life.fault, "subject": life.subject}
            signature = signatures.get((life.subject, life.fault), "")
            data = life_data(life) or {}
            click.echo(json.dumps(names | {"signature": signature} | data))
        return
    if not ordered:
        click.echo(f"{store.url} has no fault")
        return
    rows = [
        (
            life.fault,
            life.state,
            date_text(life.first_seen),
            date_text(life.last_seen),
            life.subject,
            signatures.get((life.subject, life.fault), ""),
        )
        for life in ordered
    ]
    head = ("fault", "state", "first seen", "last seen", "subject", "signature")
    click.echo(screen_table(head, rows, "", screen_width(), [5, 4]))


def _rank(life: FaultLife) -> int:
    return _STATES.index(life.state) if life.state in _STATES else len(_STATES)


def _signatures(store: Store) -> dict[tuple[str, str], str]:
    """Return the signatures of all faults, by subject and fault."""
    campaigns = {record.id: record.subject for record in store.campaigns()}
    numbers = {number for number, _ in store.fault_ids()} & campaigns.keys()
    return {
        (campaigns[number], fault.id): fault.signature
        for number in sorted(numbers)
        for fault in store.faults(number)
    }


# Marks.


def _mark(
    store: Store, campaign: int | None, fault: str | None, state: str, note: str | None
) -> None:
    life = _named_life(store, campaign, fault or _only_fault(store, campaign))
    text = " ".join((note or "").split())
    event = FaultEvent(life.subject, life.fault, state, time.time(), note=text)
    store.add_fault_events([event])
    click.echo(f"fault {life.fault} of {life.subject}: {state_text(life.after(event))}")


def _only_fault(store: Store, campaign: int | None) -> str:
    """Return the fault of a campaign that has only one."""
    number = latest_campaign(store, campaign)
    found = [fault.id for fault in store.faults(number)]
    if len(found) != 1:
        have = f"campaign {number} has {', '.join(found) or 'none'}"
        raise UserError(f"--mark needs a fault, like `swarmtest faults FAULT --mark known`: {have}")
    return found[0]


def _named_life(store: Store, campaign: int | None, start: str) -> FaultLife:
    """Return the only fault whose id begins with `start`, of a campaign's subject or of all."""
    subject = None if campaign is None else store.campaign(campaign).subject
    lives = lives_of(events_of(store, subject)).values()
    found = [life for life in lives if life.fault.startswith(start)]
    if len(found) == 1:
        return found[0]
    where = "the store" if subject is None else subject
    if not found:
        suggestion = did_you_mean(start, sorted({life.fault for life in lives}))
        raise UserError(f"{where} has no fault {start!r}{suggestion}")
    if len({life.fault for life in found}) > 1:
        names = ", ".join(sorted({life.fault for life in found}))
        raise UserError(f"{start!r} may be {names}: say which")
    subjects = ", ".join(sorted(life.subject for life in found))
    raise UserError(
        f"several subjects have a fault {found[0].fault} ({subjects}): name a campaign of the one "
        f"that you mean, like `swarmtest faults 3 {found[0].fault} --mark {MARKS[0]}`"
    )
