"""Faults that an older version of swarmtest recorded, with signatures of three functions."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from swarmtest import Campaign, Machine, action, open_store
from swarmtest.reduce import reduce_faults
from swarmtest.store.fault_groups import names_of_faults
from swarmtest.store.interface import Store
from swarmtest.store.records import FaultRecord, TrialRecord
from swarmtest.subjects import MachineSubject
from swarmtest.subjects.subject import named_fault
from swarmtest.why import explain_fault

OLD, OLD_ID = "AssertionError: burnt after # hours [Bulb.light < Lamp.switch]", "01d01d01"


class Bulb:
    hours = 0

    def light(self) -> None:
        self.hours += 1
        assert self.hours < 3, f"burnt after {self.hours} hours"
        assert self.hours < 9, "cold"


class Lamp(Machine):
    def start(self) -> None:
        self.bulb = Bulb()

    @action
    def switch(self) -> None:
        self.bulb.light()

    @action
    def rest(self) -> None:
        pass


@pytest.fixture
def old_store() -> Iterator[tuple[Store, MachineSubject]]:
    """A store with a campaign whose only fault has the signature of an older version."""
    subject = MachineSubject(Lamp)
    with open_store(":memory:") as new, open_store(":memory:") as old:
        Campaign(subject, "coin", 40, workers=0, store=new).run()
        [fault] = new.faults(1)
        campaign = old.add_campaign(new.campaign(1))
        row = TrialRecord(fault.trial, b"\1\1", verdict=1, fault=OLD_ID, steps=fault.size)
        recorded = FaultRecord(
            OLD_ID, "exception", OLD, fault.details, *fault[4:7], test=fault.test
        )
        old.record(campaign, [row], [recorded])
        yield old, subject


def test_its_test_shows_the_fault_that_was_recorded(
    old_store: tuple[Store, MachineSubject],
) -> None:
    store, subject = old_store
    [fault] = store.faults(1)
    subject.fault_names = names_of_faults(store, 1)
    shown = subject.replay(json.loads(str(fault.test))).fault
    assert shown is not None
    assert (
        shown.signature == "AssertionError: burnt after … hours [Bulb.light: assert self.hours < 3]"
    )
    assert named_fault(subject, shown).id == OLD_ID


def test_its_test_is_reduced(old_store: tuple[Store, MachineSubject]) -> None:
    store, subject = old_store
    found = reduce_faults(subject, store, 1)
    assert found.reductions[OLD_ID].size == 3


def test_it_is_explained(old_store: tuple[Store, MachineSubject]) -> None:
    store, subject = old_store
    explanation = explain_fault(store, OLD_ID, subject=subject, confirming=False)
    assert explanation.needed == {"switch": 3}
