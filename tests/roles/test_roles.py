"""Roles against known truths: nothing is claimed of irrelevant features, however they were drawn.

Margins: rates are means over independent campaigns, so their standard error is known, and five of
it are allowed (`simulated_campaigns.SIGMAS`).
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from simulated_campaigns import (
    SIGMAS,
    Rates,
    measured,
    naive_table,
    record,
    space_of,
    study_of,
)

from swarmtest import Campaign, Feature, Machine, Space, action, open_store
from swarmtest.analysis.intervals import binomial_p_value
from swarmtest.analysis.role_cells import RoleCells
from swarmtest.core.errors import UserError
from swarmtest.core.targets import Target
from swarmtest.roles.roles import RoleTable, feature_shares
from swarmtest.roles.study import Study

TRIGGER, SUPPRESSOR = 1, 2
FEATURES = 10
IRRELEVANT = tuple(range(2, FEATURES))
DIRECTED = "coin:p=0.9"
REQUIRES = Space([*(f"f{i}" for i in range(9)), Feature("f9", requires=["f8"])])
EXCLUDES = Space(
    [
        "f0",
        "f1",
        *(f"f{i}" for i in range(2, 8)),
        Feature("f8", excludes=["f9", "f7"]),
        Feature("f9", excludes=["f0"]),
    ]
)


def two_triggers(weights):
    """f0 is needed and f1 helps: what contains them has more of all features than most."""
    return 0.4 * (weights[:, 0] > 0) * np.where(weights[:, 1] > 0, 1.0, 0.2)


def hindered(weights):
    """f0 is needed and f1 hinders."""
    return 0.4 * (weights[:, 0] > 0) * np.where(weights[:, 1] > 0, 0.2, 1.0)


def needs_first(weights):
    return 0.3 * (weights[:, 0] > 0)


def at_rate(share):
    return lambda weights: np.full(len(weights), share)


@functools.cache
def simulated(
    strategies: tuple[str, ...],
    space: Space | None = None,
    tests: int = 600,
    campaigns: int = 8,
    irrelevant: tuple[int, ...] = IRRELEVANT,
) -> Rates:
    """Twelve targets, six of each truth with luck of their own, in each of some campaigns."""
    space = space or space_of(FEATURES)
    truths = [two_triggers, hindered] * 6
    studies = [study_of(strategies, truths, tests, seed, space) for seed in range(campaigns)]
    true = [{0: TRIGGER, 1: TRIGGER}, {0: TRIGGER, 1: SUPPRESSOR}] * 6
    return measured(studies, irrelevant, true)


RANDOM = [
    ("coin",),
    ("coin:p=0.2",),
    ("coin:p=random",),
    ("sized",),
    ("layered",),
    ("complete",),
    ("mixture:coin=0.5,sized=0.3,coin(p=0.8)=0.2",),
    ("coin", DIRECTED),
    ("coin", "layered"),
]
FIXED = [
    ("coin:n=20",),
    ("coin:n=100",),
    ("mixture:all-on=0.9,coin(n=30)=0.1",),
    ("covering:t=2",),
    ("covering:t=3",),
]
CONSTRAINED = [
    ("coin", REQUIRES),
    ("coin", EXCLUDES),
    ("coin:p=random", EXCLUDES),
    ("sized", EXCLUDES),
    ("layered", EXCLUDES),
    ("complete", REQUIRES),
]


@pytest.mark.parametrize("strategies", [*RANDOM, *FIXED], ids=" and ".join)
def test_irrelevant_features_show_roles_no_more_often_than_the_confidence_allows(strategies):
    assert simulated(strategies).excess() < SIGMAS


@pytest.mark.parametrize("strategies", [*RANDOM, *FIXED], ids=" and ".join)
def test_of_the_roles_that_survive_the_correction_at_most_one_in_twenty_is_false(strategies):
    assert simulated(strategies).excess_listed() < SIGMAS


@pytest.mark.parametrize("strategies", RANDOM, ids=" and ".join)
def test_most_true_triggers_and_suppressors_survive_the_correction(strategies):
    assert simulated(strategies).found.mean() > 0.6


@pytest.mark.parametrize(
    ("strategy", "count", "power"),
    [("covering:t=3", 6, 0.3), ("covering:t=3", 8, 0.8), ("complete", 8, 0.8)],
)
def test_pooled_campaigns_of_a_design_list_no_more_false_roles_than_promised(
    strategy, count, power
):
    """Ten campaigns of seeds 1 to 10, and so on: a design that ignores its seed fails here.

    Features that a fixed array happens to give to the rows that hit are in all ten campaigns, and
    about half of what was listed was false.
    """
    truths = [two_triggers, hindered] * 4
    space, studies = space_of(count), []
    for first in range(1, 61, 10):
        store = open_store(":memory:")
        seeds = range(first, first + 10)
        studies.append(Study(store, [record(store, space, strategy, 60, s, truths) for s in seeds]))
    true = [{0: TRIGGER, 1: TRIGGER}, {0: TRIGGER, 1: SUPPRESSOR}] * 4
    rates = measured(studies, range(2, count), true)
    assert rates.excess() < SIGMAS
    assert rates.excess_listed() < SIGMAS
    assert rates.found.mean() > power


@pytest.mark.parametrize("space", [space_of(6), EXCLUDES], ids=["free", "constrained"])
def test_where_nothing_matters_pooled_covering_arrays_list_nothing_beyond_chance(space):
    truths = [at_rate(0.3)] * 8
    studies = []
    for first in range(1, 41, 10):
        store = open_store(":memory:")
        seeds = range(first, first + 10)
        ids = [record(store, space, "covering:t=3", 60, seed, truths) for seed in seeds]
        studies.append(Study(store, ids))
    rates = measured(studies, range(len(space.features)))
    assert rates.excess() < SIGMAS
    assert rates.excess_listed() < SIGMAS


class SameForAllSeeds:
    """A user's strategy that ignores the seed."""

    def ask(self, space, trial, rng):
        from swarmtest.core.sampling import toss
        from swarmtest.core.seeds import Stream

        return toss(space, [0.5] * len(space.features), Stream(7, trial))


def test_campaigns_that_repeat_the_same_configurations_whatever_their_seeds_count_as_one():
    store = open_store(":memory:")
    seeds = range(4)
    ids = [record(store, space_of(6), SameForAllSeeds(), 60, seed, [needs_first]) for seed in seeds]
    study = Study(store, ids)
    assert study.chances.same_seed == 4
    assert any("4 hits count as one" in note for note in study.notes)
    fresh = [record(store, space_of(6), "coin", 60, seed, [needs_first]) for seed in seeds]
    assert Study(store, fresh).chances.same_seed == 1


@pytest.mark.parametrize(("strategy", "space"), CONSTRAINED)
def test_constraints_make_no_roles(strategy, space):
    rates = simulated((strategy,), space)
    assert rates.excess() < SIGMAS
    assert rates.excess_listed() < SIGMAS
    assert rates.found.mean() > 0.6


def naive_and_ours(strategies, space, irrelevant, tests=600, campaigns=10):
    studies = [
        study_of(strategies, [needs_first] * 3, tests, seed, space) for seed in range(campaigns)
    ]
    naive = measured(studies, irrelevant, tables=[naive_table(study) for study in studies])
    return naive, measured(studies, irrelevant, [{0: TRIGGER}] * 3)


class Directed:
    """A campaign that has learnt that f0 matters: always in, and f5 nearly always for company."""

    def ask(self, space, trial, rng):
        from swarmtest.core.sampling import toss

        return toss(space, [1.0, *[0.5] * 4, 0.9, *[0.5] * 4], rng, "directed")


@pytest.mark.parametrize(
    ("strategies", "space", "irrelevant"),
    [
        (("coin", Directed()), None, (5,)),
        (("coin:p=random",), None, IRRELEVANT),
        (("sized",), None, IRRELEVANT),
        (("layered",), None, IRRELEVANT),
        (("mixture:all-on=0.3,coin=0.7",), None, IRRELEVANT),
        (("coin:n=20",), None, IRRELEVANT),
        (
            ("coin",),
            Space([Feature("f0", requires=["f9"]), *(f"f{i}" for i in range(1, 10))]),
            (9,),
        ),
    ],
    ids=["directed", "random bias", "sized", "layered", "mixture", "fixed swarm", "requires"],
)
def test_comparing_shares_with_those_of_all_tests_is_wrong_and_ours_is_not(
    strategies, space, irrelevant
):
    naive, ours = naive_and_ours(strategies, space or space_of(FEATURES), irrelevant)
    assert naive.excess() > SIGMAS
    assert ours.excess() < SIGMAS
    assert ours.excess_listed() < SIGMAS
    if strategies != ("coin:n=20",):
        assert ours.found.mean() > 0.9


@pytest.mark.parametrize("strategy", ["coin", "coin:p=random", "sized", "layered"])
@pytest.mark.parametrize("count", [2, 4])
def test_in_a_small_space_what_is_hit_by_luck_alone_has_no_triggers(count, strategy):
    """Nothing runs the empty test, so each feature is in more often than its odds say."""
    truths = [at_rate(share) for share in (0.05, 0.5, 0.95) for _ in range(3)]
    studies = [study_of([strategy], truths, 400, seed, space_of(count)) for seed in range(10)]
    rates = measured(studies, range(count))
    assert rates.excess() < SIGMAS
    assert rates.excess_listed() < SIGMAS


class Overflow(Machine):
    """`push` alone overflows; `pop` alone does nothing at all: an empty test."""

    steps = 30

    def start(self):
        self.depth = 0

    @action
    def push(self):
        self.depth += 1
        if self.depth == 25:
            self.event("deep")

    @action(when=lambda self: self.depth)
    def pop(self):
        self.depth -= 1


class LeftOpen(Machine):
    """What is never closed is left open, and so it is by an empty test."""

    steps = 10

    def start(self):
        self.closed = False

    @action
    def close(self):
        self.closed = True

    @action
    def read(self):
        pass

    @action
    def seek(self):
        pass

    def stop(self):
        if not self.closed:
            raise RuntimeError("left open")


def roles_of(machine, strategy, target, tests=1500):
    store = open_store(":memory:")
    outcome = Campaign(machine, strategy, tests, store=store, workers=0, seed=1).run()
    study = Study(store, [outcome.campaign])
    return {role.feature: role for role in study.roles(study.find(target))}


SMALL = ["coin", "coin:p=random", "sized", "layered", "complete"]


@pytest.mark.parametrize("strategy", SMALL)
def test_where_tests_without_a_step_show_what_an_empty_test_does_two_features_are_enough(strategy):
    roles = roles_of(Overflow, strategy, "event:deep")
    assert roles["push"].role == "trigger"
    assert roles["pop"].role == "suppressor"
    assert all(role.is_discovery() for role in roles.values())


@pytest.mark.parametrize("strategy", SMALL)
def test_what_an_empty_test_would_hit_too_has_no_triggers_though_a_feature_alone_prevents_it(
    strategy,
):
    roles = roles_of(LeftOpen, strategy, "fault")
    assert [role.feature for role in roles.values() if role.is_discovery()] == ["close"]
    assert roles["close"].role == "suppressor"


def test_what_two_features_cannot_tell_is_not_claimed():
    """With the second alone nothing hits, but whether nothing at all would hit nobody knows."""

    def without(weights):
        return (weights[:, 0] > 0) & (weights[:, 1] == 0)

    study = study_of(["coin"], [without], 300, 1, space_of(2))
    first, second = study.roles(study.find("event:0"))
    assert first.role == "no variation"
    assert second.role == "suppressor"


@pytest.mark.parametrize("count", [2, 3, 8])
def test_a_line_that_every_test_hits_has_no_roles(count):
    study = study_of(["coin"], [at_rate(1.0)], 2000, 1, space_of(count))
    assert (study.table("event").discoveries() == 0).all()


@pytest.mark.parametrize("base", [0.05, 0.95])
def test_rare_and_common_features_are_judged_by_exact_tails(base):
    studies = [
        study_of([f"coin:p={base}"], [at_rate(0.02)] * 10, 500, seed, space_of(8))
        for seed in range(12)
    ]
    rates = measured(studies, range(8))
    assert rates.excess() < SIGMAS
    assert rates.excess_listed() < SIGMAS


def test_a_hundred_tests_of_one_configuration_are_one_hit():
    """However many tests of another part of the strategy hit too and say nothing."""
    always_with_first = [lambda weights: (weights[:, 0] > 0).astype(float)]
    study = study_of(
        ["mixture:all-on=0.9,coin(n=10)=0.1"], always_with_first, 5000, 1, space_of(FEATURES)
    )
    members = study.evidence.clusters[(study.evidence.clusters >= 0) & study.evidence.enabled[:, 0]]
    for role in study.roles(study.find("event:0")):
        assert role.hits == pytest.approx(len(set(members)), rel=0.05)


def test_two_campaigns_with_one_seed_do_not_count_twice():
    """Trial 17 of both draws from the same numbers: half of the hits add nothing."""
    rates = []
    for seed in range(12):
        store = open_store(":memory:")
        space = space_of(FEATURES)
        ids = [
            record(store, space, strategy, 500, seed, [needs_first] * 6)
            for strategy in ("coin", "mixture:all-on=0.02,coin=0.98")
        ]
        rates.append(Study(store, ids))
    assert "share a seed" in " ".join(rates[0].notes)
    assert measured(rates, IRRELEVANT).excess() < SIGMAS


def test_a_campaign_that_was_run_twice_with_one_seed_is_refused():
    store = open_store(":memory:")
    ids = [record(store, space_of(3), "coin", 50, 0) for _ in range(2)]
    with pytest.raises(UserError, match="ran the same tests"):
        Study(store, ids)


# The table itself, with counts by hand.


def table(containing, informative, base, **options):
    shape = np.shape(containing)
    targets = tuple(Target("event", str(i)) for i in range(shape[0]))
    features = tuple(f"f{i}" for i in range(shape[1]))
    hits = np.max(informative, axis=1).astype(int)
    first, second, third = (np.asarray(a, float) for a in (informative, containing, base))
    cells = RoleCells(first, second, third, np.ones(shape, bool))
    return RoleTable(targets, features, hits, cells, **options)


def test_roles_are_the_papers_wilson_interval_against_the_base_rate():
    from statsmodels.stats.proportion import proportion_confint

    some = table([[40, 5, 55, 30]], [[60] * 4], [[0.4, 0.4, 0.9, 0.5]])
    expected = {40: "trigger", 5: "suppressor", 55: "irrelevant", 30: "irrelevant"}
    for role, count in zip(some.of(0), expected, strict=True):
        low, high = proportion_confint(count, 60, method="wilson")
        assert (role.low, role.high) == pytest.approx((low, high))
        assert role.role == expected[count]
    assert [role.estimate for role in some.of(0)] == pytest.approx(
        [some.of(0)[0].low, some.of(0)[1].high, 0.9, 0.5]
    )


def test_too_few_hits_say_how_many_are_missing():
    [role] = table([[2]], [[3]], [[0.5]]).of(0)
    assert (role.role, role.needed, role.missing_hits) == ("insufficient data", 4, 1)


def test_four_of_four_hits_are_a_role_but_no_discovery():
    """By chance alone one table in eight shows that."""
    [role] = table([[4]], [[4]], [[0.5]]).of(0)
    assert role.role == "trigger"
    assert role.p_value == pytest.approx(0.125)
    assert not role.is_discovery()


def test_a_feature_that_was_never_left_to_chance_has_no_variation():
    [role] = table([[0]], [[0]], [[float("nan")]]).of(0)
    assert (role.role, role.needed, role.p_value) == ("no variation", 0, 1)


def test_every_cell_with_variation_counts_as_a_comparison():
    alone = table([[18]], [[20]], [[0.5]])
    among = table([[18] + [10] * 9 + [0]], [[20] * 10 + [0]], [[0.5] * 10 + [float("nan")]])
    assert among.adjusted[0, 0] == pytest.approx(10 * alone.adjusted[0, 0])
    assert alone.adjusted[0, 0] == pytest.approx(float(binomial_p_value(18, 20, 0.5)))


def test_discoveries_keep_only_roles_that_survive_the_correction():
    many = table([[40, 4, *[20] * 50]], [[40, 4, *[40] * 50]], [[0.5] * 52])
    assert many.codes[0, :2].tolist() == [TRIGGER, TRIGGER]
    assert many.discoveries()[0].tolist() == [TRIGGER] + [0] * 51


def test_feature_shares_count_targets_with_enough_hits_only():
    some = table([[40, 0], [2, 2], [0, 20]], [[40, 40], [3, 3], [40, 40]], [[0.5, 0.5]] * 3)
    first, second = feature_shares(some)
    assert (first.trigger, first.suppressor, first.targets) == (0.5, 0.5, 2)
    assert (second.trigger, second.suppressor, second.targets) == (0, 0.5, 2)


def test_raw_roles_may_be_counted_too():
    some = table([[4], [20]], [[4], [40]], [[0.5]] * 2)
    assert feature_shares(some)[0].trigger == 0
    assert feature_shares(some, corrected=False)[0].trigger == 0.5
