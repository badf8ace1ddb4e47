"""``swarmtest run --avoid`` and ``--tolerate``: what to do about faults that are known."""

from __future__ import annotations

import json
from dataclasses import replace

import click

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.formatting import format_percent
from swarmtest.core.space import Space
from swarmtest.core.targets import Target
from swarmtest.roles.study import Study
from swarmtest.roles.triage import CommonFeatures, avoiding, triage
from swarmtest.store.interface import Store
from swarmtest.subjects.loading import SubjectReference

_ALL_KNOWN = "known"


def avoiding_faults(
    reference: SubjectReference, store: Store, asked: tuple[str, ...], quiet: bool
) -> SubjectReference:
    """Return the subject with constraints that keep the triggers of faults out."""
    subject = reference.load()
    study = _study(store, subject.name, subject.space)
    named = [_fault(study, text) for text in asked if text != _ALL_KNOWN]
    avoided = dict(avoiding(study, named))
    if _ALL_KNOWN in asked:
        triaged = triage(study).faults
        avoided |= {
            entry.fault: entry.combination for entry in triaged if entry.combination is not None
        }
        if not avoided:
            raise UserError(f"no fault of {subject.name} is understood well enough to be avoided")
    if not quiet:
        for fault, shared in avoided.items():
            click.echo(_avoided_text(fault, shared))
    constraints = [shared.forbidden(fault.name) for fault, shared in avoided.items()]
    try:
        subject.space.constrained(constraints)
    except UserError as error:
        raise UserError(f"{error}: avoid fewer faults") from None
    return replace(reference, avoid=tuple(constraints))


def tolerating_faults(
    reference: SubjectReference, store: Store, asked: tuple[str, ...]
) -> SubjectReference:
    """Return the subject with tests that go on after the faults that are named."""
    known = {
        fault.id: fault
        for record in store.campaigns()
        if record.subject == reference.load().name
        for fault in store.faults(record.id)
    }
    named: list[str] = []
    for text in asked:
        if text == _ALL_KNOWN:
            if not known:
                raise UserError(f"{store.url} has no fault of {reference.text} to tolerate")
            named += known
        else:
            id = text.removeprefix("fault:")
            matches = [fault for fault in known if id and fault.startswith(id)]
            named += matches if len(matches) == 1 else [text]
    return replace(reference, tolerate=tuple(dict.fromkeys(named)))


def _study(store: Store, subject: str, space: Space) -> Study:
    names = space.feature_names
    usable = [
        record
        for record in store.campaigns()
        if record.subject == subject
        and record.space["dimensions"]
        and Space.from_json(record.space).feature_names == names
        # A campaign that avoided a fault shows it rarely, and then with other features.
        and not record.avoids
        and store.summary(record.id)["trials"]
    ]
    # Campaigns with the same strategy, seed and constraints have the same tests: take one of them.
    campaigns = {
        (record.strategy, record.seed, json.dumps(record.space)): record.id for record in usable
    }
    if not campaigns:
        raise UserError(
            f"{store.url} has no earlier campaign of {subject} (with these features): there is no "
            "known fault to avoid"
        )
    return Study(store, list(campaigns.values()))


def _fault(study: Study, text: str) -> Target:
    id = text.removeprefix("fault:")
    matches = [fault for fault in study.faults if id and fault.name.startswith(id)]
    if len(matches) == 1:
        return matches[0]
    suggestion = did_you_mean(id, [fault.name for fault in study.faults])
    raise UserError(
        f"--avoid takes a fault's id or {_ALL_KNOWN!r}, and {text!r} is none{suggestion}"
    )


def _avoided_text(fault: Target, shared: CommonFeatures) -> str:
    return (
        f"avoiding fault {fault.name}: no {shared} ({format_percent(shared.failing, 0)} "
        f"of the tests that showed it, {format_percent(shared.passing, 0)} of the others)"
    )
