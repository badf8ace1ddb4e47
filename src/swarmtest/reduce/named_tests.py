"""The test that a user names on the command line: in a store, or in a file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swarmtest.campaign.budget import Limits
from swarmtest.campaign.executors.isolation import run_isolated
from swarmtest.campaign.reduced_faults import reductions_of
from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.result import Result, Verdict
from swarmtest.core.space import Space
from swarmtest.reduce.keep_criteria import test_content
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord
from swarmtest.subjects.loading import SubjectReference, enclosed_test, with_reference
from swarmtest.subjects.subject import Subject
from swarmtest.ui.options import existing_store, refuse_imported

Prepare = Callable[[SubjectReference], None]


@dataclass(frozen=True)
class NamedTest:
    """A test with the subject that can run it."""

    subject: Subject
    data: Any
    fault: str | None
    """What it showed when it was recorded; empty: it passed. None: not known."""
    campaign: int | None = None
    """Where it comes from, if from a campaign."""
    reference: Any = None
    """How its subject is loaded, as JSON data; None: not known."""


def named_test(
    name: str, store: str | None, timeout: float | None, before_loading: Prepare | None = None
) -> NamedTest:
    """The test of ``3#17``, of a fault's id, or of a file that `replay --save` wrote.

    `before_loading` is told what will be loaded: coverage has to be there first.
    """
    prepare = before_loading or (lambda reference: None)
    if re.fullmatch(r"\d+#\d+", name):
        campaign, trial = map(int, name.split("#"))
        return _from_store(existing_store(store), campaign, trial, timeout, prepare)
    if Path(name).exists():
        return _from_file(Path(name), prepare)
    if re.fullmatch(r"[0-9a-f]{8}", name):
        opened = existing_store(store)
        campaign, trial, small = _smallest_of_fault(opened, name)
        if small is None:
            return _from_store(opened, campaign, trial, timeout, prepare)
        subject, reference = _subject(opened.campaign(campaign), prepare)
        return NamedTest(subject, json.loads(small), name, campaign, reference)
    if "#" in name or name.isdigit():
        raise UserError(f"{name!r} is not CAMPAIGN#TRIAL, like 3#17, nor a file")
    return _from_file(Path(name), prepare)


def save_test(path: Path, named: NamedTest, data: Any) -> None:
    """Write a test: as code if the file is named like its kind of code, else as JSON."""
    try:
        if path.suffix == named.subject.suffix:
            path.write_bytes(test_content(named.subject, data))
        else:
            path.write_text(json.dumps(saved_data(named, data), indent=1) + "\n")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


def saved_data(named: NamedTest, data: Any) -> Any:
    """Return a test as it is saved: with the reference of its subject, if that is known."""
    if named.reference is None:
        return data
    return with_reference(data, named.subject.name, named.reference)


def _smallest_of_fault(store: Store, fault: str) -> tuple[int, int, str | None]:
    """Campaign, trial, and what was left of its test if that was reduced; else None."""
    found: list[tuple[int, int, int, int, str | None]] = []
    for campaign in store.campaigns():
        number = campaign.id
        found += [
            (record.size, 1, -number, record.trial, None)
            for record in store.faults(number)
            if record.id == fault and record.test is not None
        ]
        small = reductions_of(store, number).get(fault)
        if small is not None and small.test is not None:
            found.append((small.size, 0, -number, small.trial, small.test))
    if not found:
        raise UserError(
            f"{store.url} has no test of a fault {fault}: `swarmtest faults` lists them"
        )
    _, _, newest, trial, test = min(found, key=lambda one: one[:4])
    return -newest, trial, test


def _from_store(
    store: Store, campaign: int, number: int, timeout: float | None, prepare: Prepare
) -> NamedTest:
    record = store.campaign(campaign)
    refuse_imported(record, "replayed")
    trial = store.trial(campaign, number)
    if trial.verdict == Verdict.INVALID:
        raise UserError(f"{campaign}#{number} is no test, its generator failed: {trial.missing}")
    subject, reference = _subject(record, prepare)
    kept = store.test(campaign, number)
    if kept is not None:
        data = json.loads(kept)
    elif _dimensions(subject.space) != _dimensions(Space.from_json(record.space)):
        raise UserError(
            f"{campaign}#{number} was not kept whole, and {subject.name} has other features now, "
            "so it cannot be made again"
        )
    else:
        configuration = Configuration.from_bytes(subject.space, trial.configuration)
        data = _regenerated(subject, configuration, trial.seed, seconds_of(subject, timeout))
    return NamedTest(subject, data, trial.fault or "", campaign, reference)


def _subject(record: CampaignRecord, prepare: Prepare) -> tuple[Subject, Any]:
    """The subject of a campaign, and how it is named."""
    reference = record.options.get("subject")
    if "search" in record.options:
        raise UserError(
            f"campaign {record.id} is a search: `swarmtest replay {record.id}#TRIAL` runs a test "
            "at a point again, and that is all of it"
        )
    if not reference:
        raise UserError(
            f"campaign {record.id} tested {record.subject}, which cannot be imported by name; "
            "replay it from the program that defined it"
        )
    known = SubjectReference.from_json(reference)
    prepare(known)
    return known.load(), reference


def _dimensions(space: Space) -> tuple[Any, ...]:
    """What the stored bytes of a configuration depend on; rates and constraints do not matter."""
    return space.feature_names, space.settings


def seconds_of(subject: Subject, timeout: float | None) -> float:
    """What one run may take."""
    return Limits(timeout).seconds_of(subject)


def _regenerated(subject: Subject, configuration: Configuration, seed: int, seconds: float) -> Any:
    """A test that was not kept whole, made again from its seed, in a process of its own."""
    result = run_isolated(
        lambda: Result(Verdict.PASSED, test=subject.test_of(configuration, seed)), seconds
    )
    if result.test is None:
        raise UserError("the test ends its process and was not kept; run the campaign again")
    return result.test


def _from_file(path: Path, prepare: Prepare) -> NamedTest:
    try:
        data = json.loads(path.read_text())
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("subject"), str):
        raise UserError(f"{path} is not a test that `swarmtest replay --save` wrote")
    try:
        reference = SubjectReference.from_json(data.get("reference", {"text": data["subject"]}))
    except (KeyError, TypeError, AttributeError):
        raise UserError(f"{path}: its 'reference' is broken") from None
    try:
        prepare(reference)
        subject = reference.load()
        return NamedTest(subject, enclosed_test(data), None, reference=data.get("reference"))
    except UserError as error:
        raise UserError(f"{path} is a test of {reference.text}: {error}") from None
