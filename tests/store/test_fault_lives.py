"""The state and the history of faults: what follows from events, and how stores keep them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from store_examples import CAMPAIGN, fault, trials

from swarmtest.store.checks import find_damage, save_readable
from swarmtest.store.copies import copy_campaign
from swarmtest.store.fault_groups import RULE, FaultDecision
from swarmtest.store.fault_lives import (
    FaultLife,
    fault_lives,
    keep_history,
    lives_by_recorded_fault,
    lives_of,
)
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, FaultEvent

Opener = Callable[..., Store]
SUBJECT = CAMPAIGN.subject
FIRST, SECOND, THIRD = "aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc"


def event(kind: str, time: float, version: str = "", **values: Any) -> FaultEvent:
    return FaultEvent(SUBJECT, "f", kind, time, version)._replace(**values)


def life(*steps: tuple[str, str]) -> FaultLife:
    """The life after events, each with its version, one second after the other."""
    events = [event(kind, 1.0 + at, version) for at, (kind, version) in enumerate(steps)]
    return lives_of(events)[SUBJECT, "f"]


@pytest.mark.parametrize(("steps", "state", "flaky"), [
    ([("seen", FIRST)], "open", False),
    ([("seen", FIRST), ("seen", SECOND)], "open", False),
    ([("seen", FIRST), ("passed", SECOND)], "fixed", False),
    ([("seen", FIRST), ("passed", SECOND), ("seen", THIRD)], "back again", False),
    ([("seen", FIRST), ("passed", SECOND), ("seen", THIRD), ("passed", "d" * 12)], "fixed", False),
    ([("seen", ""), ("passed", ""), ("seen", "")], "back again", False),
    # The same commit showed it and passed: nothing was changed, so that is no fix.
    ([("seen", FIRST), ("passed", FIRST)], "open", True),
    ([("seen", FIRST), ("passed", SECOND), ("seen", SECOND)], "open", True),
    ([("seen", FIRST), ("passed", FIRST), ("passed", SECOND)], "open", True),
    # With changes since the commit, it may be fixed.
    ([("seen", f"{FIRST}+changes"), ("passed", f"{FIRST}+changes")], "fixed", False),
    # Old versions, which had it, are tested once more.
    ([("seen", FIRST), ("passed", SECOND), ("seen", FIRST)], "fixed", False),
    ([("seen", SECOND), ("passed", THIRD), ("older", FIRST)], "fixed", False),
    # A person says so.
    ([("seen", FIRST), ("known", "")], "known", False),
    ([("seen", FIRST), ("known", ""), ("seen", SECOND)], "known", False),
    ([("seen", FIRST), ("known", ""), ("passed", SECOND)], "fixed", False),
    ([("seen", FIRST), ("known", ""), ("open", "")], "open", False),
    ([("seen", FIRST), ("fixed", "")], "fixed", False),
    ([("seen", FIRST), ("fixed", ""), ("seen", SECOND)], "back again", False),
    ([("seen", FIRST), ("passed", FIRST), ("fixed", "")], "fixed", True),
])  # fmt: skip
def test_the_state_follows_from_what_happened(
    steps: list[tuple[str, str]], state: str, flaky: bool
) -> None:
    after = life(*steps)
    assert (after.state, after.flaky) == (state, flaky)


def test_a_life_says_when_and_in_which_versions_a_fault_was_seen() -> None:
    after = life(("seen", FIRST), ("seen", SECOND), ("passed", THIRD), ("seen", FIRST))
    assert (after.first_seen, after.last_seen) == (1.0, 4.0)
    assert after.versions == [FIRST, SECOND]
    assert after.fix is not None
    assert after.fix.version == THIRD


def test_the_note_is_that_of_the_last_mark() -> None:
    marks = [event("seen", 1), event("known", 2, note="JIRA 7"), event("seen", 3)]
    assert lives_of(marks)[SUBJECT, "f"].note == "JIRA 7"


def test_events_are_read_in_the_order_of_time_and_by_subject(store: Store) -> None:
    late, early = event("seen", 9.0, FIRST), event("known", 2.0, note="later ␀ \0 \n note")
    other = event("seen", 5.0)._replace(subject="other.py")
    store.add_fault_events([late, other])
    store.add_fault_events([early])
    assert store.fault_events(SUBJECT) == [early, late]
    assert store.fault_events() == [early, other, late]


def test_an_event_that_is_stored_twice_counts_once(store: Store) -> None:
    store.add_fault_events([event("seen", 1.0, FIRST)])
    store.add_fault_events([event("seen", 1.0, FIRST), event("seen", 1.5, FIRST)])
    assert [each.time for each in store.fault_events()] == [1.0, 1.5]


def test_a_note_with_text_that_utf8_cannot_hold_is_kept(store: Store) -> None:
    store.add_fault_events([event("known", 1.0, note="\udfff")])
    assert store.fault_events()[0].note == "\\udfff"


def test_a_campaign_without_events_counts_as_one(store: Store) -> None:
    record = replace(CAMPAIGN, created=7.0, options={"version": FIRST})
    number = store.add_campaign(record)
    store.record(number, trials(0, 5), [fault("f", 1), fault("g", 3)])
    store.add_fault_events([event("seen", 8.0, SECOND, campaign=number)])
    lives = fault_lives(store, SUBJECT)
    assert (lives["f"].versions, lives["g"].versions) == ([SECOND], [FIRST])
    assert (lives["f"].first_seen, lives["g"].first_seen) == (8.0, 7.0)


def test_the_history_outlives_a_campaign_but_not_the_last_of_its_subject(store: Store) -> None:
    one, two = store.add_campaign(CAMPAIGN), store.add_campaign(CAMPAIGN)
    other = store.add_campaign(replace(CAMPAIGN, subject="other.py"))
    store.record(one, trials(0, 5), [fault("f", 1)])
    store.add_fault_events([event("known", 9e9, note="ours")])
    keep_history(store, one)
    store.delete_campaign(one)
    assert fault_lives(store, SUBJECT)["f"].state == "known"
    assert {each.campaign for each in store.fault_events()} == {0}
    store.delete_campaign(two)
    assert store.fault_events() == []
    assert [record.id for record in store.campaigns()] == [other]


def test_a_copy_has_the_history_and_gets_later_marks(store: Store, open_url: Opener) -> None:
    destination = open_url(":memory:")
    destination.add_campaign(CampaignRecord("another.py", "coin", 1, {"dimensions": []}))
    numbers = [store.add_campaign(replace(CAMPAIGN, seed=seed, created=1.0)) for seed in (1, 2)]
    for number in numbers:
        store.record(number, trials(0, 5), [fault("f", 1)])
        store.add_fault_events([event("seen", number, FIRST, campaign=number)])
    copied = copy_campaign(store, destination, numbers[0]).number
    assert [each.campaign for each in destination.fault_events()] == [copied]
    store.add_fault_events([event("known", 9.0, note="ours")])
    assert copy_campaign(store, destination, numbers[0]).was_there
    copy_campaign(store, destination, numbers[1])
    assert len(destination.fault_events()) == 3
    assert fault_lives(destination, SUBJECT)["f"].note == "ours"


def test_the_doctor_finds_events_that_cannot_be_and_saves_the_others(
    store: Store, open_url: Opener
) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, trials(0, 5), [fault("f", 1)])
    sound = [event("seen", 1.0, FIRST, campaign=number), event("known", 2.0)]
    store.add_fault_events([*sound, event("eaten", 3.0), event("seen", 4.0, campaign=99)])
    store.add_fault_events([event("seen", float("inf"))])
    store.update_campaign(number, status="finished")
    assert [f"{damage.where}: {damage.what}" for damage in find_damage(store)] == [
        "the history of faults, event 3: nothing is called 'eaten'",
        "the history of faults, event 4: there is no campaign 99",
        "the history of faults, event 5: its time is inf",
    ]
    saved = open_url(":memory:")
    list(save_readable(store, saved))
    assert saved.fault_events() == [sound[0]._replace(campaign=1), sound[1]]


def test_faults_that_are_shown_as_one_have_one_life(store: Store) -> None:
    number = store.add_campaign(CAMPAIGN)
    store.record(number, trials(0, 5), [fault("f", 1), fault("g", 2)])
    store.add_fault_events([event("seen", 1.0, FIRST, campaign=number)])
    store.add_fault_events([event("seen", 2.0, SECOND, campaign=number, fault="g")])
    store.decide_faults([FaultDecision("g", "f", RULE)])
    assert list(fault_lives(store, SUBJECT)) == ["f"]
    lives = lives_by_recorded_fault(store, SUBJECT)
    assert lives["g"] == lives["f"]
    assert lives["f"].versions == [FIRST, SECOND]
    assert {each.fault for each in store.fault_events()} == {"f", "g"}
