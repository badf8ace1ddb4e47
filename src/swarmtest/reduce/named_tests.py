"""Find the test that a user names on the command line, in a store or in a file.

A name is ``CAMPAIGN#TRIAL``, the id of a fault, or a file that ``replay --save`` wrote. If the test
of a trial was not stored, it is generated again from its configuration and seed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swarmtest.campaign.budget import Limits
from swarmtest.campaign.reduced_faults import reductions_of
from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.formatting import duration
from swarmtest.core.result import Result, Verdict
from swarmtest.core.space import Space
from swarmtest.processes.fork_pool import run_isolated
from swarmtest.reduce.keep_criteria import test_content
from swarmtest.store import open_store
from swarmtest.store.fault_groups import groups_of, names_of_faults
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord
from swarmtest.subjects.loading import SubjectReference, enclosed_test, with_reference
from swarmtest.subjects.stored_reference import stored_reference
from swarmtest.subjects.stored_tests import StoredTests
from swarmtest.subjects.subject import Subject

Prepare = Callable[[SubjectReference], None]
"""Called with the subject that is about to be loaded."""


@dataclass(frozen=True)
class NamedTest:
    """A test with the subject that can run it."""

    subject: Subject
    data: Any
    fault: str | None
    """The fault that was recorded; empty if the test passed, None if nothing was recorded."""
    campaign: int | None = None
    """The campaign that it comes from, if any."""
    reference: Any = None
    """How its subject is loaded, as JSON data; None if that is not known."""


def named_test(
    name: str, store: str | None, timeout: float | None, before_loading: Prepare | None = None
) -> NamedTest:
    """Return the test named ``3#17``, the smallest of a fault's id, or the one in a file.

    `before_loading` is called with the subject before it is loaded, because coverage has to be
    installed first.
    """
    _refuse_no_name(name)
    prepare = before_loading or (lambda reference: None)
    if re.fullmatch(r"\d+#\d+", name):
        campaign, trial = map(int, name.split("#"))
        return _from_store(_open(store), campaign, trial, timeout, prepare)
    if Path(name).exists():
        return _from_file(Path(name), prepare)
    if re.fullmatch(r"[0-9a-f]{8}", name):
        opened = _open(store)
        name = groups_of(opened.fault_decisions()).get(name, name)
        return fault_test(opened, name, None, timeout, prepare)
    if "#" in name or name.isdigit():
        raise UserError(f"{name!r} is not CAMPAIGN#TRIAL, like 3#17, nor a file")
    return _from_file(Path(name), prepare)


def fault_test(
    store: Store,
    fault: str,
    subject: str | None,
    timeout: float | None,
    before_loading: Prepare | None = None,
) -> NamedTest:
    """Return the smallest test of a fault, of this subject or of any."""
    prepare = before_loading or (lambda reference: None)
    campaign, trial, reduced_test = _smallest_of_fault(store, fault, subject)
    if reduced_test is None:
        return _from_store(store, campaign, trial, timeout, prepare)
    loaded, reference = load_subject(store.campaign(campaign), prepare)
    loaded.fault_names = names_of_faults(store, campaign)
    return NamedTest(loaded, json.loads(reduced_test), fault, campaign, reference)


def _refuse_no_name(name: str) -> None:
    if not name:  # as a path, that would be the current directory
        raise UserError("name a test: CAMPAIGN#TRIAL, like 3#17, a fault, or a file")


def stored_code(name: str, store: str | None) -> str | None:
    """Return the code of a test without loading its subject; None if the test is not stored.

    `name` is as for `named_test`. The test of a trial is stored only on request and for faults.
    """
    _refuse_no_name(name)
    if re.fullmatch(r"\d+#\d+", name):
        campaign, trial = map(int, name.split("#"))
        return _code_of_trial(_open(store), campaign, trial)
    if Path(name).exists():
        return StoredTests().code(enclosed_test(_data_in(Path(name))))
    if not re.fullmatch(r"[0-9a-f]{8}", name):
        return None
    opened = _open(store)
    name = groups_of(opened.fault_decisions()).get(name, name)
    campaign, trial, reduced_test = _smallest_of_fault(opened, name)
    for reduction in opened.reductions(campaign):
        if (reduction.fault, reduction.test) == (name, reduced_test) and reduction.code:
            return reduction.code
    if reduced_test is not None:
        return StoredTests().code(json.loads(reduced_test))
    return _code_of_trial(opened, campaign, trial)


def _code_of_trial(store: Store, campaign: int, trial: int) -> str | None:
    for fault in store.faults(campaign):
        if fault.trial == trial and fault.code:
            return fault.code
    test = store.test(campaign, trial)
    return None if test is None else StoredTests().code(json.loads(test))


def save_test(path: Path, named: NamedTest, data: Any) -> None:
    """Write a test: as code if the file has the suffix of the subject's code, else as JSON."""
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


def _open(store: str | None) -> Store:
    return open_store(store, must_exist=True, read_only=True)


def _smallest_of_fault(
    store: Store, fault: str, subject: str | None = None
) -> tuple[int, int, str | None]:
    """Return the campaign and trial of a fault's smallest test, and its reduced test or None.

    Between tests of equal size a reduced one wins, then one of the newest campaign.
    """
    candidates: list[tuple[int, int, int, int, str | None]] = []
    subjects: dict[str, int] = {}
    for campaign in store.campaigns():
        if subject is not None and campaign.subject != subject:
            continue
        number = campaign.id
        candidates += [
            (record.size, 1, -number, record.trial, None)
            for record in store.faults(number)
            if record.id == fault and record.test is not None
        ]
        if any(record.id == fault for record in store.faults(number)):
            subjects[campaign.subject] = number
        reduction = reductions_of(store, number).get(fault)
        if reduction is not None and reduction.test is not None:
            candidates.append((reduction.size, 0, -number, reduction.trial, reduction.test))
    if not candidates:
        raise UserError(
            f"{store.url} has no test of a fault {fault}: `swarmtest faults` lists them"
        )
    if len(subjects) > 1:
        # Older stores made ids without the subject, so that two programs may share one.
        tests = [f"{name} ({number}#TRIAL)" for name, number in subjects.items()]
        raise UserError(f"fault {fault} is one of {' and of '.join(tests)}: name the test")
    _, _, negated_campaign, trial, test = min(candidates, key=lambda candidate: candidate[:4])
    return -negated_campaign, trial, test


def _from_store(
    store: Store, campaign: int, number: int, timeout: float | None, prepare: Prepare
) -> NamedTest:
    record = store.campaign(campaign)
    if record.imported_from:
        raise UserError(
            f"campaign {campaign} is coverage of another tool, read from {record.imported_from}: "
            "there are no tests to be replayed"
        )
    trial = store.trial(campaign, number)
    if trial.verdict == Verdict.INVALID:
        raise UserError(
            f"{campaign}#{number} is not a test, because its generator failed: {trial.missing}"
        )
    subject, reference = load_subject(record, prepare)
    subject.fault_names = names_of_faults(store, campaign)
    stored_test = store.test(campaign, number)
    if stored_test is not None:
        data = json.loads(stored_test)
    elif _dimensions(subject.space) != _dimensions(Space.from_json(record.space)):
        raise UserError(
            f"{campaign}#{number} was not stored, and {subject.name} has other features now, "
            "so it cannot be generated again"
        )
    else:
        configuration = Configuration.from_bytes(subject.space, trial.configuration)
        data = _regenerated(subject, configuration, trial.seed, seconds_of(subject, timeout))
    return NamedTest(subject, data, trial.fault or "", campaign, reference)


def load_subject(
    record: CampaignRecord, before_loading: Prepare | None = None
) -> tuple[Subject, Any]:
    """Load the subject of a campaign; return it and its reference as JSON data."""
    reference = record.options.get("subject")
    if "search" in record.options:
        raise UserError(
            f"campaign {record.id} is a search: `swarmtest replay {record.id}#TRIAL` runs a test "
            "at a point again, and that is all that can be done"
        )
    if not reference:
        raise UserError(
            f"campaign {record.id} tested {record.subject}, which cannot be imported by name; "
            "replay it from the program that defined it"
        )
    subject_reference = stored_reference(reference)
    if before_loading is not None:
        before_loading(subject_reference)
    return subject_reference.load(), reference


def _dimensions(space: Space) -> tuple[Any, ...]:
    """Return what the stored bytes of a configuration depend on: not rates, not constraints."""
    return space.feature_names, space.settings


def seconds_of(subject: Subject, timeout: float | None) -> float:
    """Return the seconds that one run of a subject's test may take."""
    return Limits(timeout).seconds_of(subject)


def _regenerated(subject: Subject, configuration: Configuration, seed: int, seconds: float) -> Any:
    """Generate a test that was not stored again from its seed, in its own process."""
    result = run_isolated(
        lambda: Result(Verdict.PASSED, test=subject.test_of(configuration, seed)), seconds
    )
    if result.fault is not None and result.fault.kind == "timeout":
        raise UserError(
            "the test was not stored, and generating it again takes longer than "
            f"{duration(seconds)}: raise --timeout"
        )
    if result.test is None:
        raise UserError("the test ends its process and was not stored; run the campaign again")
    return result.test


def _data_in(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text())
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}") from None
    except RecursionError:
        raise UserError(f"{path} is nested too deeply to be a test") from None
    if not isinstance(data, dict) or not isinstance(data.get("subject"), str):
        raise UserError(f"{path} is not a test that `swarmtest replay --save` wrote")
    return data


def _from_file(path: Path, prepare: Prepare) -> NamedTest:
    data = _data_in(path)
    try:
        reference = stored_reference(data.get("reference", {"text": data["subject"]}))
    except (KeyError, TypeError, AttributeError):
        raise UserError(f"{path}: its 'reference' is broken") from None
    try:
        prepare(reference)
        subject = reference.load()
        return NamedTest(subject, enclosed_test(data), None, reference=data.get("reference"))
    except UserError as error:
        raise UserError(f"{path} is a test of {reference.text}: {error}") from None
