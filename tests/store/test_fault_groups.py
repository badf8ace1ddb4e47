"""Recorded faults that are shown as one: what a store answers then, and how it is taken back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_examples import CAMPAIGN, fault, trial

from swarmtest.core.errors import UserError
from swarmtest.core.result import Verdict
from swarmtest.store import open_store
from swarmtest.store.content_hash import campaign_hash
from swarmtest.store.copies import copy_campaign
from swarmtest.store.fault_groups import (
    PERSON,
    RULE,
    FaultDecision,
    groups_of,
    names_of_faults,
)
from swarmtest.store.interface import Store
from swarmtest.store.records import ReductionRecord

FAILED = Verdict.FAILED
SAME = FaultDecision("b", "a", RULE, "the same small test", 5.0)


def filled(store: Store) -> int:
    """Add a campaign in which trials 1 and 4 show a, 2 shows b, and 3 shows c."""
    number = store.add_campaign(CAMPAIGN)
    shown = {1: "a", 2: "b", 3: "c", 4: "a"}
    rows = [trial(n, verdict=FAILED if n in shown else 0, fault=shown.get(n)) for n in range(6)]
    store.record(number, rows, [fault("a", 1, 9), fault("b", 2, 4), fault("c", 3, 9)])
    store.add_reduction(number, ReductionRecord("a", 1, 9, 3, "[1]", complete=True))
    store.add_reduction(number, ReductionRecord("b", 2, 4, 2, "[2]", complete=True))
    return number


def test_faults_that_are_one_are_shown_as_one_with_all_their_tests(store: Store) -> None:
    number = filled(store)
    store.decide_faults([SAME])
    first, second = store.faults(number)
    assert (first.id, first.count, first.also, first.first_trial) == ("a", 3, ("b",), 1)
    assert (first.size, first.trial) == (9, 1), "its own test, which shows what it is called"
    assert (second.id, second.count, second.also) == ("c", 1, ())
    assert store.progress(number)[-1].faults == 2


def test_trials_and_blocks_name_the_fault_as_which_theirs_is_shown(store: Store) -> None:
    number = filled(store)
    store.decide_faults([SAME])
    assert [each.fault for each in store.trials(number)] == [None, "a", "a", "c", "a", None]
    assert [each.trial for each in store.trials(number, fault="a")] == [1, 2, 4]
    assert [each.trial for each in store.trials(number, fault="b")] == [1, 2, 4]
    (block,) = store.blocks(number)
    assert block.faults == ("a", "c")
    assert block.fault_index.tolist() == [-1, 0, 0, 1, 0, -1]
    assert [each.fault for each in block.records()] == [each.fault for each in store.trials(number)]


def test_the_reduced_test_is_that_of_the_fault_as_which_they_are_shown(store: Store) -> None:
    number = filled(store)
    store.decide_faults([SAME])
    (reduction,) = store.reductions(number)
    assert (reduction.fault, reduction.size, reduction.test) == ("a", 3, "[1]")
    store.decide_faults([FaultDecision("b", "c", PERSON)])
    assert [(each.fault, each.test) for each in store.reductions(number)] == [
        ("a", "[1]"),
        ("c", "[2]"),
    ]


def test_a_campaign_that_saw_only_a_member_has_its_test_under_the_name_of_the_group(
    store: Store,
) -> None:
    filled(store)
    number = store.add_campaign(CAMPAIGN)
    store.record(number, [trial(0, verdict=FAILED, fault="b")], [fault("b", 0, 4)])
    store.decide_faults([SAME])
    (shown,) = store.faults(number)
    assert (shown.id, shown.signature, shown.also) == ("a", "Error: b", ("b",))
    assert names_of_faults(store, number) == {shown.fault: "a"}


def test_what_was_recorded_is_still_there(store: Store) -> None:
    number = filled(store)
    before = (store.faults(number), list(store.trials(number)), store.reductions(number))
    store.decide_faults([SAME])
    raw = store.recorded
    assert (raw.faults(number), list(raw.trials(number)), raw.reductions(number)) == before
    assert raw.recorded.faults(number) == before[0]


def test_the_decision_of_a_person_wins_and_can_be_taken_back(store: Store) -> None:
    number = filled(store)
    split = FaultDecision("b", "b", PERSON, "", 6.0)
    store.decide_faults([SAME, split])
    assert [each.id for each in store.faults(number)] == ["a", "b", "c"]
    assert store.fault_decisions() == [split, SAME]
    store.decide_faults([], forget=[split])
    assert [each.id for each in store.faults(number)] == ["a", "c"]


def test_a_second_decision_replaces_the_first(store: Store) -> None:
    filled(store)
    store.decide_faults([SAME])
    store.decide_faults([SAME._replace(same_as="c")])
    assert store.fault_decisions() == [SAME._replace(same_as="c")]


def test_a_copy_takes_the_decisions_about_its_faults_with_it(store: Store) -> None:
    number = filled(store)
    store.decide_faults([SAME, FaultDecision("x", "y", PERSON)])
    with open_store(":memory:") as other:
        copied = copy_campaign(store, other, number)
        assert other.fault_decisions() == [SAME]
        assert [each.id for each in other.faults(copied.number)] == ["a", "c"]
        assert campaign_hash(other, copied.number) == copied.hash
        assert copy_campaign(store, other, number).was_there


def test_a_store_that_keeps_no_decisions_says_so() -> None:
    with pytest.raises(UserError, match="keeps no decisions"):
        Store.decide_faults(object.__new__(Store), [SAME])


@given(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("abcdef")))
def test_any_decisions_lead_to_faults_that_are_shown(decisions: dict[str, str]) -> None:
    groups = groups_of(FaultDecision(fault, same, RULE) for fault, same in decisions.items())
    assert not set(groups) & set(groups.values())
    for fault_id, shown in groups.items():
        at = fault_id
        for _ in decisions:
            at = decisions.get(at, at)
        assert at == shown
