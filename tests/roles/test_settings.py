"""Roles of settings: a target that only tests with some values hit."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from swarmtest import Campaign, Choice, Flag, Integer, Machine, Space, action, open_store
from swarmtest.analysis.role_cells import FIXED, INSUFFICIENT, IRRELEVANT, TRIGGER
from swarmtest.core.errors import UserError
from swarmtest.roles import Study
from swarmtest.roles.command import roles as roles_command
from swarmtest.roles.settings import SettingValues, setting_roles
from swarmtest.subjects import MachineSubject


class Buffer(Machine):
    steps = 20
    dimensions = (
        Integer("size", 1, 64),
        Choice("mode", ["slow", "fast", "odd"]),
        Flag("sync"),
        Integer("always", 3, 3),
        Integer("unrelated", 0, 100_000),
    )

    def start(self):
        self.items = 0

    @action
    def put(self):
        self.items += 1
        assert not (self.settings["size"] > 40 and self.items > 6), "overflow"
        if self.settings["mode"] == "fast" and self.items == 5:
            self.event("skipped ahead")
        if not self.settings["sync"] and self.items == 4:
            self.event("delayed")

    @action
    def get(self):
        self.items = max(0, self.items - 1)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    url = str(tmp_path_factory.mktemp("settings") / "s.db")
    with open_store(url) as store:
        Campaign(Buffer, "coin", 500, store=store, workers=0, seed=2).run()
    return url


@pytest.fixture(scope="module")
def study(campaign):
    with open_store(campaign) as store:
        study = Study(store, [1])
        for target in ("fault", "event:skipped ahead", "event:delayed"):
            study.settings(study.find(target))
        yield study


def role(study, target, setting):
    return next(r for r in study.settings(study.find(target)) if r.setting == setting)


def test_a_fault_of_large_values_has_the_limit(study):
    found = role(study, "fault", "size")
    assert (found.role, found.values, found.share) == (TRIGGER, "above 40", 1.0)
    assert abs(found.base - 24 / 64) < 0.1


def test_a_target_of_one_value_of_a_choice_has_that_value(study):
    found = role(study, "event:skipped ahead", "mode")
    assert (found.role, found.values) == (TRIGGER, "= fast")


def test_a_target_of_a_flag_that_is_off_has_that_value(study):
    found = role(study, "event:delayed", "sync")
    assert (found.role, found.values) == (TRIGGER, "= False")


def test_settings_that_do_not_matter_have_no_role(study):
    assert role(study, "fault", "unrelated").role == IRRELEVANT
    assert role(study, "event:delayed", "mode").role == IRRELEVANT
    assert role(study, "fault", "always").role == FIXED


class Evidence:
    """What `setting_roles` reads of the evidence."""

    def __init__(self, clusters):
        self.clusters, self.n = np.asarray(clusters, np.int32), len(clusters)


def made_up(count, random, clusters=None, values=100):
    index = random.integers(0, values, (1, count)).astype(np.int32)
    settings = SettingValues((Integer("size", 0, values - 1),), (tuple(range(values)),), index)
    return Evidence(np.full(count, -1) if clusters is None else clusters), settings


def test_of_targets_of_pure_luck_hardly_any_has_a_role():
    random = np.random.default_rng(4)
    wrong = 0
    for _ in range(120):
        evidence, values = made_up(300, random)
        hits = np.flatnonzero(random.random(300) < 0.1)
        (found,) = setting_roles(evidence, values, hits)
        wrong += found.role == TRIGGER
    # 5% promised: at most 6 of 120, and three standard deviations.
    assert wrong <= 13


def test_the_values_may_favour_a_target_from_below():
    evidence, values = made_up(400, np.random.default_rng(1))
    hits = np.flatnonzero((values.index[0] <= 12) & (np.arange(400) % 2 == 0))
    (found,) = setting_roles(evidence, values, hits)
    assert (found.role, found.values, found.hits) == (TRIGGER, "at most 12", len(hits))


def test_a_hundred_tests_of_one_configuration_are_one_draw():
    random = np.random.default_rng(2)
    evidence, values = made_up(300, random, clusters=np.zeros(300))
    values.index[:] = 70
    hits = np.arange(200)
    (found,) = setting_roles(evidence, values, hits)
    assert (found.role, found.hits) == (INSUFFICIENT, 1)


def test_more_targets_beside_each_other_need_clearer_evidence():
    evidence, values = made_up(300, np.random.default_rng(3))
    hits = np.flatnonzero(values.index[0] > 60)[:9]
    (alone,) = setting_roles(evidence, values, hits)
    (among_many,) = setting_roles(evidence, values, hits, targets=1000)
    assert alone.adjusted < among_many.adjusted
    assert (alone.role, among_many.role) == (TRIGGER, IRRELEVANT)


def test_the_command_says_which_values_it_takes(campaign):
    shown = CliRunner().invoke(roles_command, ["--store", campaign])
    assert "size above 40  100% of" in shown.stdout
    assert "no role shown: mode, sync, unrelated" in shown.stdout
    plain = CliRunner().invoke(roles_command, ["--store", campaign, "--json"])
    settings = json.loads(plain.stdout.splitlines()[0])["settings"]
    assert [s["values"] for s in settings if s["role"] == "trigger"] == ["above 40"]


class Ranged(Machine):
    steps = (5, 400)

    def start(self):
        self.calls = 0

    @action
    def call(self):
        self.calls += 1
        if self.calls > 200:
            self.event("worn out")


class Long(Ranged):
    dimensions = (Integer("steps", 5, 400),)


def test_a_setting_named_steps_is_the_length_of_the_test_and_has_a_role():
    with open_store(":memory:") as store:
        Campaign(Long, "coin", 150, store=store, workers=0).run()
        study = Study(store, [1])
        found = role(study, "event:worn out", "steps")
    assert found.role == TRIGGER
    assert 190 <= int(found.values.removeprefix("above ")) <= 220


def test_a_range_of_lengths_is_a_setting_with_a_role():
    with open_store(":memory:") as store:
        Campaign(Ranged, "layered", 200, store=store, workers=0, seed=3).run()
        found = role(Study(store, [1]), "event:worn out", "steps")
    assert found.role == TRIGGER
    assert 190 <= int(found.values.removeprefix("above ")) <= 230


def test_a_range_of_lengths_is_not_among_the_settings_that_the_machine_reads():
    subject = MachineSubject(Ranged)
    configuration = subject.space.configuration({"call": 1, "steps": 17})
    result = subject.execute(configuration, seed=1)
    assert (result.steps, subject.settings_of(configuration)) == (17, {})
    assert "steps" not in subject.test_of(configuration, 1).get("settings", {})
    assert MachineSubject(Ranged, steps=(3, 8)).space.settings[0].values == range(3, 9)
    assert MachineSubject(Ranged, steps=12).space.settings == ()
    assert MachineSubject(Long, steps=(3, 8)).space.settings[0].values == range(5, 401)


def test_configurations_without_a_length_are_of_old_stores_and_draw_it_as_before():
    subject = MachineSubject(Ranged)
    old = Space(["call"]).configuration(["call"])
    lengths = {subject.execute(old, seed).steps for seed in range(40)}
    assert len(lengths) > 20
    assert all(5 <= length <= 400 for length in lengths)


def test_a_length_that_is_asked_for_takes_precedence_over_the_setting():
    subject = MachineSubject(Long, steps=7)
    assert subject.execute(subject.space.configuration(["call"]), seed=1).steps == 7
    again = MachineSubject(Long).repeating(0.5)
    configuration = again.space.configuration({"call": 1, "steps": 30})
    assert again.execute(configuration, seed=1).steps == 30


def test_a_length_that_no_test_can_have_is_refused():
    class Never(Long):
        dimensions = (Integer("steps", 0, 4),)

    with pytest.raises(UserError, match="length of a test, so it is an Integer from 1"):
        MachineSubject(Never)
