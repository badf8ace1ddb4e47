"""The test that a user names on the command line: in a store, or in a file."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swarmtest.campaign.isolated import run_isolated
from swarmtest.campaign.limits import Limits
from swarmtest.cli.options import existing_store, refuse_imported
from swarmtest.errors import UserError
from swarmtest.result import Result, Verdict
from swarmtest.space import Configuration, Space
from swarmtest.store import Store
from swarmtest.subjects.loading import SubjectReference
from swarmtest.subjects.subject import Subject


@dataclass(frozen=True)
class NamedTest:
    """A test with the subject that can run it."""

    subject: Subject
    data: Any
    fault: str | None
    """What it showed when it was recorded; empty: it passed. None: not known."""


def named_test(name: str, store: str | None, timeout: float | None) -> NamedTest:
    """The test of ``3#17``, of a fault's id, or of a file that `replay --save` wrote."""
    if re.fullmatch(r"\d+#\d+", name):
        campaign, trial = map(int, name.split("#"))
        return _from_store(existing_store(store), campaign, trial, timeout)
    if Path(name).exists():
        return _from_file(Path(name))
    if re.fullmatch(r"[0-9a-f]{8}", name):
        opened = existing_store(store)
        return _from_store(opened, *_shortest_of_fault(opened, name), timeout)
    if "#" in name or name.isdigit():
        raise UserError(f"{name!r} is not CAMPAIGN#TRIAL, like 3#17, nor a file")
    return _from_file(Path(name))


def save_test(path: Path, named: NamedTest, data: Any) -> None:
    """Write a test: as code if the file is named like its kind of code, else as JSON."""
    try:
        if path.suffix == named.subject.suffix:
            path.write_bytes(_code(named.subject, data))
        else:
            path.write_text(json.dumps(data, indent=1) + "\n")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


def _code(subject: Subject, data: Any) -> bytes:
    """A test as a file; what is printed of one that is no text would be another test."""
    if hasattr(subject, "content"):
        content: bytes = subject.content(data)
        return content
    return subject.code(data).encode()


def _shortest_of_fault(store: Store, fault: str) -> tuple[int, int]:
    found = [
        (record.size, campaign.id, record.trial)
        for campaign in store.campaigns()
        for record in store.faults(campaign.id)
        if record.id == fault and record.test is not None
    ]
    if not found:
        raise UserError(
            f"{store.url} has no test of a fault {fault}: `swarmtest faults` lists them"
        )
    return min(found)[1:]


def _from_store(store: Store, campaign: int, number: int, timeout: float | None) -> NamedTest:
    record = store.campaign(campaign)
    refuse_imported(record, "replayed")
    trial = store.trial(campaign, number)
    reference = record.options.get("subject")
    if not reference:
        raise UserError(
            f"campaign {campaign} tested {record.subject}, which cannot be imported by name; "
            "replay it from the program that defined it"
        )
    if trial.verdict == Verdict.INVALID:
        raise UserError(f"{campaign}#{number} is no test, its generator failed: {trial.missing}")
    subject = SubjectReference.from_json(reference).load()
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
    return NamedTest(subject, data | {"reference": reference}, trial.fault or "")


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


def _from_file(path: Path) -> NamedTest:
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
        return NamedTest(reference.load(), data, None)
    except UserError as error:
        raise UserError(f"{path} is a test of {reference.text}: {error}") from None
