"""Which faults to look at first, which may be one bug, which two, and how to get past them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from simulated_campaigns import propose, record, space_of, weights_of

from swarmtest import Campaign, Machine, Space, UserError, action, open_store
from swarmtest.core.targets import Target
from swarmtest.roles.study import Study
from swarmtest.roles.triage import (
    FaultRelation,
    Triage,
    avoiding,
    common_features,
    triage,
    two_causes_against_one,
)


class FileSystem(Machine):
    """The same overflow seen by two calls, and another bug."""

    steps = 30

    def start(self):
        self.open, self.linked = 0, 0

    @action
    def open_file(self):
        self.open += 1

    @action
    def close_file(self):
        self.open = 0

    @action
    def write(self):
        pass

    @action
    def link(self):
        self.linked += 1

    @action
    def sync(self):
        pass

    @action
    def stat(self):
        if self.open >= 9:
            raise RuntimeError("table overflows")

    @action
    def read(self):
        if self.open >= 9:
            raise LookupError("table overflows too")

    @action
    def rename(self):
        if self.linked >= 9:
            raise RuntimeError("lost a page")


def study_of(machine, tests=6000, strategy="coin"):
    store = open_store(":memory:")
    outcome = Campaign(machine, strategy, tests, store=store, workers=0).run()
    return Study(store, [outcome.campaign])


@pytest.fixture(scope="module")
def study():
    return study_of(FileSystem)


def fault(study, words):
    (found,) = [target for target in study.faults if words in target.detail]
    return found


def test_rare_faults_with_known_triggers_come_first(study):
    found = triage(study).faults
    assert all(one.explained for one in found)
    assert [one.hits for one in found] == sorted(one.hits for one in found)


def test_each_fault_is_told_with_its_triggers_and_suppressors(study):
    by_signature = {one.fault.detail: one for one in triage(study).faults}
    overflow = next(one for text, one in by_signature.items() if "overflows [" in text)
    assert {"open_file", "stat"} <= {*overflow.triggers}
    assert "close_file" in overflow.suppressors
    assert "read" in overflow.suppressors  # it fails first, with the other signature


def test_a_fault_that_three_tests_showed_says_how_many_more_are_needed():
    class Rare(Machine):
        @action
        def a(self):
            raise ValueError("rare")

        @action
        def b(self):
            raise KeyError("other")

        @action
        def c(self):
            pass

    study = study_of(Rare, tests=6)
    one = min(triage(study).faults, key=lambda one: one.hits)
    assert 0 < one.hits < 4
    assert one.missing_hits >= 4 - one.hits
    assert not one.explained


def test_a_signature_that_shows_with_one_feature_or_with_another_may_be_two_bugs():
    class TwoWays(Machine):
        steps = 30

        def start(self):
            self.a = self.b = 0

        @action
        def alpha(self):
            self.a += 1

        @action
        def beta(self):
            self.b += 1

        @action
        def idle(self):
            pass

        @action
        def check(self):
            if self.a > 8 or self.b > 8:
                raise RuntimeError("broken")

    (one,) = triage(study_of(TwoWays, tests=4000)).faults
    assert [{pair.feature, pair.other} for pair in one.two_causes] == [{"alpha", "beta"}]


class TwoFaces(Machine):
    """One bug, two signatures: whichever of two ways to look comes first."""

    steps = 40

    def start(self):
        self.n = 0

    @action
    def up(self):
        self.n += 1

    @action
    def down(self):
        self.n = 0

    @action
    def idle(self):
        pass

    @action
    def look(self, rng=None):
        if self.n > 8:
            if self.n % 2:
                raise LookupError("odd")
            raise KeyError("even")


def test_two_signatures_that_no_feature_tells_apart_may_be_one_bug():
    found = triage(study_of(TwoFaces, tests=3000))
    (relation,) = found.relations
    assert {relation.one.detail.split(":")[0], relation.other.detail.split(":")[0]} == {
        "LookupError",
        "KeyError",
    }
    assert "perhaps one bug" in relation.sentence()


def sentences_about_two_faults(hits, second, seeds=20):
    """Two simulated faults: the first needs f0 and f1, the second what `second` says.

    Each shows in about so many tests, of twenty times as many.
    """
    space, tests = space_of(10), 20 * hits
    said = []
    for seed in range(seeds):
        enabled = weights_of(propose("coin", space, tests, seed), space) > 0
        rng = np.random.default_rng(seed + 1)
        shows = [
            cause & (rng.random(tests) < hits / cause.sum())
            for cause in (enabled[:, 0] & enabled[:, 1], second(enabled))
        ]
        faults = ["aa" if a else "bb" if b else None for a, b in zip(*shows, strict=True)]
        store = open_store(":memory:")
        study = Study(store, [record(store, space, "coin", tests, seed, fault=faults)])
        odds = two_causes_against_one(*(study.roles(fault) for fault in study.faults))
        said.append((odds, " ".join(triage(study).sentences())))
    return said


@pytest.mark.parametrize("hits", [10, 20])
@pytest.mark.parametrize("other", [(2, 3), (0, 2)], ids=["other triggers", "one trigger shared"])
def test_two_faults_with_different_triggers_are_not_said_to_be_one_bug(hits, other):
    """The error that is allowed is one in twenty, and there are twenty runs."""
    said = sentences_about_two_faults(hits, lambda e: e[:, other[0]] & e[:, other[1]])
    wrong = sum("perhaps one bug" in text for _, text in said)
    assert wrong <= 1
    assert sum(odds < 1 / 3 for odds, _ in said) <= 1
    assert sum(odds > 3 for odds, _ in said) >= len(said) // 2
    assert hits == 10 or all(odds > 3 for odds, _ in said)


def test_one_bug_with_two_signatures_is_recognised_with_enough_hits_and_before_that_left_open():
    few, many = (sentences_about_two_faults(n, lambda e: e[:, 0] & e[:, 1]) for n in (10, 60))
    assert sum("perhaps one bug" in text for _, text in many) >= 0.8 * len(many)
    assert sum("too few hits to tell" in text for _, text in few) >= 1
    # Silence about a pair means that it was taken for two bugs.
    assert sum(odds >= 3 for odds, _ in few + many) <= 2


def test_many_pairs_with_too_few_hits_are_one_sentence():
    faults = [Target("fault", name) for name in ("a", "b", "c", "d")]
    pairs = [FaultRelation(x, y, uncertain=True) for x, y in combinations(faults, 2)]
    (sentence,) = Triage((), tuple(pairs)).sentences()
    assert sentence == (
        "too few hits to tell which of these are one bug: "
        "a and b, a and c, a and d, and 3 more pairs"
    )


def test_a_fault_that_needs_more_than_another_may_be_the_same_seen_through_more():
    class Deep(Machine):
        steps = 40

        def start(self):
            self.n, self.watched = 0, False

        @action
        def up(self):
            self.n += 1
            if self.n > 5:
                raise LookupError("seen") if self.watched else RuntimeError("broken")

        @action
        def watch(self):
            self.watched = True

        @action
        def down(self):
            self.n = 0

        @action
        def idle(self):
            pass

    found = triage(study_of(Deep, tests=3000))
    (relation,) = found.relations
    assert relation.beyond == ("watch",)
    assert relation.other.detail.startswith("LookupError")


def test_a_feature_that_makes_the_difference_and_also_matters_by_itself_relates_no_faults():
    class Two(Machine):
        steps = 40

        def start(self):
            self.n = self.flushed = 0

        @action
        def up(self):
            self.n += 1
            if self.n > 5 and not self.flushed:
                raise RuntimeError("never flushed")

        @action
        def flush(self):
            self.flushed += 1
            if self.n > 3 and self.flushed > 22:
                raise LookupError("flushed too often")

        @action
        def idle(self):
            pass

    assert triage(study_of(Two, tests=3000)).relations == ()


def test_faults_with_different_triggers_are_not_related(study):
    related = {
        frozenset((relation.one.detail, relation.other.detail))
        for relation in triage(study).relations
    }
    lost, overflow = fault(study, "lost a page"), fault(study, "table overflows [")
    assert frozenset((lost.detail, overflow.detail)) not in related


def test_the_combination_of_a_fault_names_what_its_tests_have_and_what_they_lack(study):
    found = common_features(study, fault(study, "table overflows ["))
    assert found
    assert "open_file" in found.inside
    assert "stat" in found.inside
    assert "close_file" in found.outside
    assert found.failing > 0.8
    assert found.passing < 0.2


def test_a_fault_without_known_features_cannot_be_avoided():
    class Always(Machine):
        @action
        def a(self):
            raise ValueError("always")

        @action
        def b(self):
            raise ValueError("always")

    study = study_of(Always, tests=3)
    with pytest.raises(UserError, match="cannot be avoided: insufficient data"):
        avoiding(study, list(study.faults))


def test_what_is_avoided_is_a_constraint_that_every_strategy_keeps(study):
    target = fault(study, "table overflows [")
    ((_, found),) = avoiding(study, [target])
    constraint = found.forbidden(target.name)
    space = Space(study.evidence.features, [constraint])
    assert str(constraint).startswith(f"avoid fault {target.name}: no ")
    bits = sum(1 << space.feature_number[name] for name in found.inside)
    assert space.violated(bits) == [str(constraint)]
    if found.outside:
        assert not space.violated(bits | 1 << space.feature_number[found.outside[0]])


def test_a_campaign_from_python_avoids_too(study):
    target = fault(study, "table overflows [")
    ((_, found),) = avoiding(study, [target])
    again = Campaign(
        FileSystem,
        "coin",
        2000,
        store=":memory:",
        workers=0,
        avoid=[found.forbidden(target.name)],
    ).run()
    counts = {one.id: one.count for one in again.faults}
    assert counts.get(target.name, 0) < study.hit(target).sum() / 3 / 5
