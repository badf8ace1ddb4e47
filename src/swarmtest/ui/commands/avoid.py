"""``swarmtest run --avoid``: keep what is known to fail out of new configurations."""

from __future__ import annotations

import json
from dataclasses import replace

import click

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.space import Space
from swarmtest.core.targets import Target
from swarmtest.roles.study import Study
from swarmtest.roles.triage import CommonFeatures, avoiding, triage
from swarmtest.store.interface import Store
from swarmtest.subjects.loading import SubjectReference

_KNOWN = "known"


def avoiding_faults(
    reference: SubjectReference, store: Store, asked: tuple[str, ...], quiet: bool
) -> SubjectReference:
    """The same subject with known faults kept out of its configurations."""
    subject = reference.load()
    study = _study(store, subject.name, subject.space)
    named = [_fault(study, text) for text in asked if text != _KNOWN]
    found = dict(avoiding(study, named))
    if _KNOWN in asked:
        triaged = triage(study).faults
        found |= {one.fault: one.combination for one in triaged if one.combination is not None}
        if not found:
            raise UserError(f"no fault of {subject.name} is known well enough to be avoided")
    if not quiet:
        for fault, shared in found.items():
            click.echo(_said(fault, shared))
    constraints = [shared.forbidden(fault.name) for fault, shared in found.items()]
    try:
        subject.space.constrained(constraints)
    except UserError as error:
        raise UserError(f"{error}: avoid fewer faults") from None
    return replace(reference, avoid=tuple(constraints))


def _study(store: Store, subject: str, space: Space) -> Study:
    names = space.feature_names
    same = [
        record
        for record in store.campaigns()
        if record.subject == subject
        and record.space["dimensions"]
        and Space.from_json(record.space).feature_names == names
        # What avoided a fault shows it rarely, and then with other features.
        and not record.avoids
        and store.summary(record.id)["trials"]
    ]
    # The same strategy, seed and constraints give the same tests: one of such campaigns is enough.
    campaigns = {(r.strategy, r.seed, json.dumps(r.space)): r.id for r in same}
    if not campaigns:
        raise UserError(
            f"{store.url} has no earlier campaign of {subject} (with these features): there is no "
            "known fault to avoid"
        )
    return Study(store, list(campaigns.values()))


def _fault(study: Study, text: str) -> Target:
    id = text.removeprefix("fault:")
    found = [fault for fault in study.faults if id and fault.name.startswith(id)]
    if len(found) == 1:
        return found[0]
    known = did_you_mean(id, [fault.name for fault in study.faults])
    raise UserError(f"--avoid takes a fault's id or {_KNOWN!r}, and {text!r} is none{known}")


def _said(fault: Target, shared: CommonFeatures) -> str:
    return (
        f"avoiding fault {fault.name}: no {shared} ({shared.failing:.0%} of the tests that showed "
        f"it, {shared.passing:.0%} of the others)"
    )
