"""Asking a study: finding targets by what people write, and refusing what cannot be told."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_campaigns import record, space_of

from swarmtest import open_store
from swarmtest.core.errors import UserError
from swarmtest.core.targets import Target, pack_hits
from swarmtest.roles.study import Study
from swarmtest.store.records import CampaignRecord, FaultRecord

SPACE = space_of(4)
LINES = [
    Target("line", "cart.py:12"),
    Target("branch", "cart.py:12"),
    Target("line", "cart.py:31"),
    Target("event", "full"),
    Target("event", "feed"),
]


@pytest.fixture
def study() -> Study:
    """A campaign in which every tenth test fails, and all tests hit all targets."""
    store, drawn = open_store(":memory:"), open_store(":memory:")
    ids = store.target_ids(LINES)
    faults = [
        FaultRecord(name, "exception", f"Error: {name}", "", 1, 1, 3, None)
        for name in ("feed1234", "fade5678")
    ]
    trials = [
        trial._replace(
            hits=pack_hits(ids), fault=faults[trial.trial % 2].id if trial.trial % 5 == 0 else None
        )
        for trial in drawn.trials(record(drawn, SPACE, "coin", 60, 1))
    ]
    campaign = store.add_campaign(CampaignRecord("simulated", "coin", 1, SPACE.to_json()))
    store.record(campaign, trials, faults)
    return Study(store, [campaign])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("line:cart.py:12", "line:cart.py:12"),
        ("branch:cart.py:12", "branch:cart.py:12"),
        ("cart.py:31", "line:cart.py:31"),
        ("event:full", "event:full"),
        ("full", "event:full"),
        ("fault:feed1234", "fault:feed1234"),
        ("fault:fee", "fault:feed1234"),
        ("fade", "fault:fade5678"),
    ],
)
def test_a_target_is_found_by_its_name_with_or_without_its_kind(study, text, found):
    assert str(study.find(text)) == found


def test_a_line_goes_before_a_branch_at_the_same_place(study):
    assert study.find("cart.py:12").kind == "line"


def test_a_name_in_full_goes_before_the_beginning_of_a_faults_id(study):
    assert str(study.find("feed")) == "event:feed"


def test_fault_alone_is_ambiguous_when_there_are_two(study):
    with pytest.raises(UserError, match="fault:feed1234, fault:fade5678: say which"):
        study.find("fault")


def test_the_beginning_of_two_ids_is_ambiguous(study):
    with pytest.raises(UserError, match="say which"):
        study.find("fault:f")


def test_a_name_that_no_test_hit_names_the_nearest(study):
    with pytest.raises(UserError, match=r"did you mean 'line:cart\.py:31'"):
        study.find("line:cart.py:32")


def test_an_empty_name_finds_nothing(study):
    with pytest.raises(UserError):
        study.find("")


def test_kinds_name_faults_first(study):
    assert study.kinds() == ["fault", "branch", "event", "line"]


def test_a_kind_that_was_never_hit_is_an_empty_table(study):
    table = study.table("path")
    assert table.targets == ()
    assert table.codes.shape == (0, 4)
    assert table.discoveries().shape == (0, 4)


def test_the_roles_of_one_target_are_its_row_in_the_table(study):
    table = study.table("line")
    row = [str(target) for target in table.targets].index("line:cart.py:31")
    one = study.roles(study.find("line:cart.py:31"))
    assert [role.role for role in one] == [role.role for role in table.of(row)]
    assert [role.hits for role in one] == [role.hits for role in table.of(row)]


def test_faults_have_roles_effects_and_hits_like_other_targets(study):
    fault = study.find("fault:feed")
    hit = study.hit(fault)
    assert np.flatnonzero(hit).tolist() == [0, 10, 20, 30, 40, 50]
    assert len(study.roles(fault)) == len(study.effects(fault)) == 4


def test_the_roles_of_a_fault_are_computed_once_and_its_list_is_the_callers(study, monkeypatch):
    fault = study.faults[0]
    roles = study.roles(fault)
    monkeypatch.setattr(type(study), "_row", lambda *_: pytest.fail("they are known"))
    study.roles(fault).clear()
    assert study.roles(fault) == roles != []


def test_a_campaign_with_everything_always_on_says_what_to_run_instead():
    store = open_store(":memory:")
    study = Study(store, [record(store, SPACE, "all-on", 20, 1)])
    with pytest.raises(UserError, match="all features were always on"):
        study.require_variation()


def test_a_swarm_has_the_variation_that_roles_need(study):
    study.require_variation()


def test_a_confidence_of_95_is_refused_before_anything_is_read():
    with pytest.raises(UserError, match=r"from 0\.01 to 0\.999999"):
        Study(open_store(":memory:"), [1], confidence=95)
