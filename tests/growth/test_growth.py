"""What is still unseen: known truths, simulated forests, and what the verdict says of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmtest.core.errors import UserError
from swarmtest.core.targets import Source, pack_hits
from swarmtest.growth.growth import ForecastCheck, Growth, KindGrowth, measure_growth
from swarmtest.growth.richness import (
    Forecast,
    Incidence,
    least_unseen,
    new_within,
    rarer_than,
    unseen,
)
from swarmtest.growth.verdict import verdict
from swarmtest.store import open_store
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, FaultRecord, TrialRecord

TESTS = 1000
FORESTS = 400
"""Simulated campaigns per truth."""
MARGIN = 3 * math.sqrt(0.95 * 0.05 / FORESTS)
"""Three standard errors of a share that should be 95%."""

TRUTHS: dict[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]] = {
    "five faults": (np.array([0.1, 0.02, 0.003, 0.001, 0.0003]), np.ones(5, np.int64)),
    "three rare faults": (np.full(3, 0.001), np.ones(3, np.int64)),
    "fifty alike": (np.full(50, 0.002), np.ones(50, np.int64)),
    "one of fifty left": (np.full(50, 0.004), np.ones(50, np.int64)),
    "a thousand alike": (np.full(1000, 0.001), np.ones(1000, np.int64)),
    "a power law": (0.3 / np.arange(1, 201), np.ones(200, np.int64)),
    "blocks of lines": (0.3 / np.arange(1, 101), 1 + np.arange(100) * 7 % 11),
    "nothing is rare": (np.full(20, 0.3), np.ones(20, np.int64)),
}
"""The chance per test of each clump of targets, and how many targets are in it."""


def forests(truth: str) -> list[tuple[Incidence, int, int]]:
    """Many campaigns of one truth: what was seen, what as many tests again add, what is left."""
    chances, sizes = TRUTHS[truth]
    rng = np.random.default_rng(4)
    found = []
    for _ in range(FORESTS):
        hits, later = rng.binomial(TESTS, chances), rng.binomial(TESTS, chances)
        left = hits == 0
        found.append((seen(hits, sizes), int(sizes[left & (later > 0)].sum()), sizes[left].sum()))
    return found


def seen(hits: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> Incidence:
    once, twice = sizes[hits == 1], sizes[hits == 2]
    clump = (once**2).sum() / once.sum() if len(once) else 1.0
    return Incidence(
        TESTS,
        int(sizes[hits > 0].sum()),
        int(once.sum()),
        int(twice.sum()),
        int((sizes * hits).sum()),
        clump,
        (twice**2).sum() / twice.sum() if len(twice) else clump,
    )


# Forecasts


@pytest.mark.parametrize("truth", TRUTHS)
def test_what_comes_lies_in_the_interval_as_often_as_it_says(truth: str) -> None:
    right = [ForecastCheck(new_within(seen, TESTS), came).holds for seen, came, _ in forests(truth)]
    assert np.mean(right) >= 0.95 - MARGIN


@pytest.mark.parametrize("truth", ["fifty alike", "a thousand alike", "a power law"])
def test_the_forecast_is_right_on_average(truth: str) -> None:
    errors = [new_within(seen, TESTS).value - came for seen, came, _ in forests(truth)]
    assert abs(np.mean(errors)) <= 3 * np.std(errors) / math.sqrt(FORESTS)


def test_a_forecast_for_one_test_is_good_turing() -> None:
    seen = Incidence(tests=1000, found=80, once=20, twice=10, hits=9000)
    assert new_within(seen, 1).value == pytest.approx(seen.new_per_test, rel=1e-2)


@given(
    tests=st.integers(2, 10**6),
    once=st.integers(0, 500),
    twice=st.integers(0, 500),
    more=st.integers(1, 10**6),
)
def test_more_tests_never_bring_less_and_never_more_than_todays_rate(
    tests: int, once: int, twice: int, more: int
) -> None:
    seen = Incidence(tests, once + twice, min(once, tests), twice, once + 2 * twice)
    now, later = new_within(seen, more), new_within(seen, 2 * more)
    assert 0 <= now.low <= now.value <= now.high
    assert now.value <= later.value <= 2 * now.value + 1e-9
    assert now.value <= more * seen.new_per_test * (1 + 1e-9)


def test_ten_lines_that_one_test_reached_are_one_piece_of_evidence() -> None:
    together = Incidence(tests=1000, found=50, once=10, twice=0, hits=9000, clump_once=10.0)
    apart = Incidence(tests=1000, found=50, once=10, twice=0, hits=9000)
    assert unseen(together).value == 0
    assert unseen(apart).value == pytest.approx(0.999 * 45)
    assert new_within(together, 1000).low == 0 < new_within(apart, 1000).low


# What is unseen


def test_chao2_by_hand() -> None:
    found = unseen(Incidence(tests=100, found=40, once=12, twice=6, hits=300))
    assert found.value == pytest.approx(0.99 * 12**2 / (2 * 6))
    variance = 6 * (0.99 / 2 * 2**2 + 0.99**2 * 2**3 + 0.99**2 / 4 * 2**4)
    factor = math.exp(1.959964 * math.sqrt(math.log(1 + variance / found.value**2)))
    assert found.low == pytest.approx(found.value / factor, rel=1e-5)
    assert found.high == pytest.approx(found.value * factor, rel=1e-5)


@pytest.mark.parametrize(
    ("truth", "share"),
    [("a thousand alike", 0.95), ("fifty alike", 0.916), ("one of fifty left", 0.566)],
)
def test_chaos_interval_holds_the_truth_as_often_as_we_say(truth: str, share: float) -> None:
    """Shares that 10,000 campaigns with other seeds had: few unseen targets are its weakness."""
    right = [unseen(seen).low <= left <= unseen(seen).high for seen, _, left in forests(truth)]
    assert abs(np.mean(right) - share) <= 3 * math.sqrt(share * (1 - share) / FORESTS)


@pytest.mark.parametrize("truth", TRUTHS)
def test_what_is_unseen_at_least_is_no_more_than_the_truth(truth: str) -> None:
    """The point estimate is above the truth in up to 60% of these campaigns."""
    right = [least_unseen(seen, unseen(seen)) <= left for seen, _, left in forests(truth)]
    assert np.mean(right) >= 0.95 - MARGIN


def test_where_much_is_unseen_the_bound_says_so() -> None:
    found = forests("a thousand alike")
    bounds = [least_unseen(seen, unseen(seen)) for seen, _, _ in found]
    assert np.mean(bounds) > 0.7 * np.mean([left for *_, left in found])


def test_chao2_is_a_lower_bound_where_targets_differ() -> None:
    chances = np.exp(np.random.default_rng(1).normal(-7, 2, 300)).clip(0, 0.9)
    rng = np.random.default_rng(2)
    drawn = [rng.binomial(TESTS, chances) for _ in range(50)]
    estimated = [unseen(seen(hits, np.ones(300, np.int64))).value for hits in drawn]
    assert np.mean(estimated) < np.mean([(hits == 0).sum() for hits in drawn])


def test_what_is_familiar_is_what_the_next_test_mostly_reaches() -> None:
    chances, _ = TRUTHS["a power law"]
    rng = np.random.default_rng(3)
    errors = []
    for _ in range(FORESTS):
        hits = rng.binomial(TESTS, chances)
        truth = chances[hits > 0].sum() / chances.sum()
        errors.append(seen(hits, np.ones(len(chances), np.int64)).familiar - truth)
    assert abs(np.mean(errors)) <= 3 * np.std(errors) / math.sqrt(FORESTS)


@pytest.mark.parametrize("tests", [30, 300, 3000])
def test_the_rule_of_three_holds(tests: int) -> None:
    chance = 1 / rarer_than(tests)
    assert (1 - chance) ** tests <= 0.05


# What to do


def kind(
    name: str,
    found: int,
    once: int = 0,
    twice: int = 0,
    unreached: int | None = None,
    tests: int = 3000,
) -> KindGrowth:
    seen = Incidence(tests, found, once, twice, 100 * found)
    watched = None if unreached is None else found + unreached
    curve = np.full(tests, found, np.int64)
    return KindGrowth(name, seen, curve, new_within(seen, tests), unseen(seen), watched, unreached)


def said(*kinds: KindGrowth) -> str:
    tests = kinds[0].seen.tests
    return str(verdict(Growth((1,), "stack.py::Stack", "coin", tests, 0, kinds)))


def test_many_targets_that_one_test_reached_mean_go_on() -> None:
    assert said(kind("fault", 0), kind("branch", 90, once=20, twice=10)) == (
        "Go on: doubling the tests would reach about 13 more branches (95% sure: 1 to 30)."
    )


def test_a_fault_that_one_test_showed_means_go_on() -> None:
    assert said(kind("fault", 3, once=1), kind("line", 50)) == (
        "Go on: doubling the tests would reach perhaps 1 more fault (95% sure: at most 6); "
        "1 of 3 known faults was shown by one test only."
    )


def test_nothing_new_but_lines_that_were_never_reached_mean_change() -> None:
    assert said(kind("fault", 2), kind("line", 50, once=1, twice=2, unreached=41)) == (
        "Change the configuration: doubling the tests would probably reach no new line (95% sure: "
        "at most 5), but no test reached 41 watched lines; fewer than 1 test in 530 reaches any of "
        "them."
    )


def test_nothing_new_and_nothing_left_means_stop() -> None:
    assert said(kind("fault", 0), kind("line", 50, unreached=0)) == (
        "Stop: every watched line was reached; no fault in 3,000 tests, though a fault that shows "
        "in up to 1 test in 1,000 may still be unseen."
    )


def test_many_events_without_a_new_one_mean_stop() -> None:
    assert said(kind("fault", 2), kind("event", 20)) == (
        "Stop: doubling the tests would probably reach no new event (95% sure: at most 4); no new "
        "fault is in sight, though a fault that shows in up to 1 test in 1,000 may still be unseen."
    )


def test_one_new_path_in_a_thousand_is_not_worth_the_time() -> None:
    assert said(kind("path", 5000, once=10, twice=10)).startswith("Stop: ")
    assert said(kind("path", 5000, once=200, twice=100)).startswith("Go on: ")


def test_no_fault_and_no_coverage_is_too_little() -> None:
    assert said(kind("fault", 0)) == (
        "Too little data: no fault in 3,000 tests, but a fault that shows in up to 1 test in 1,000 "
        "may still be unseen; faults alone do not show whether tests still reach anything new: go "
        "on, or watch coverage (`--coverage branch`) to be able to judge."
    )


def test_one_trivial_fault_is_no_reason_to_stop() -> None:
    assert said(kind("fault", 1, tests=300)) == (
        "Too little data: no new fault is in sight, but a fault that shows in up to 1 test in 100 "
        "may still be unseen; faults alone do not show whether tests still reach anything new: go "
        "on, or watch coverage (`--coverage branch`) to be able to judge."
    )


def test_neither_are_a_handful_of_events() -> None:
    sentence = said(kind("fault", 1), kind("event", 19))
    assert sentence.startswith("Too little data: ")
    assert "faults and 19 events alone do not show" in sentence


def test_faults_that_were_asked_for_alone_are_judged_with_the_rest() -> None:
    alone = Growth((1,), "s.py::S", "coin", 3000, 0, (kind("fault", 1),), left_out=("line",))
    assert "look at all kinds, without `--kind`" in str(verdict(alone))


@pytest.mark.parametrize("tests", [300, 3000, 30_000])
def test_faults_alone_never_mean_stop_whatever_the_truth(tests: int) -> None:
    """Three faults of 1 test in 1,000 and a trivial one: what is said is never wrong."""
    rng = np.random.default_rng(tests)
    for _ in range(FORESTS):
        hits = rng.binomial(tests, [0.001, 0.001, 0.001, 0.5])
        found, once, twice = (int(count.sum()) for count in (hits > 0, hits == 1, hits == 2))
        seen = Incidence(tests, found, once, twice, 0)
        grown = KindGrowth("fault", seen, np.zeros(1, int), new_within(seen, tests), unseen(seen))
        answer = verdict(Growth((1,), "s.py::S", "coin", tests, 0, (grown,)))
        assert answer.action in ("go on", "too little data")
        if answer.action == "too little data" and tests == 300:
            assert "1 test in 100 may still be unseen" in str(answer)


def test_a_bound_on_unseen_faults_is_rarely_wrong() -> None:
    """A fault just above the bound that is named stays unseen in 1 campaign of 20 at most."""
    unseen = np.random.default_rng(5).binomial(300, 1 / 100, 20_000) == 0
    assert np.mean(unseen) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 20_000)


def test_twenty_tests_are_too_few() -> None:
    assert said(kind("fault", 1, tests=20)).startswith("Too little data: 20 tests are too few")
    assert said(kind("fault", 1, tests=1)).startswith("Too little data: 1 test is too few")


def test_a_hundred_tests_without_news_are_too_few_to_stop() -> None:
    assert said(kind("fault", 1, tests=100), kind("line", 9, unreached=0, tests=100)) == (
        "Too little data: little more is in sight, but 100 tests may have missed what 1 test in 27 "
        "reaches; run at least 300."
    )


# Campaigns in a store


def campaign(
    store: Store,
    tests: Sequence[str],
    seed: int = 0,
    strategy: str = "coin",
    source: Source | None = None,
    origins: Sequence[str] = (),
    missing: Sequence[int] = (),
) -> int:
    """A campaign whose tests are the letters they hit: capitals are faults, others lines."""
    source = source or Source("a.py", "text")
    watched = [source.target("line", letter, 1) for letter in "abcdefgh"]
    options = {"coverage": {"kinds": ["line"]}}
    number = store.add_campaign(CampaignRecord("s.py::S", strategy, seed, {}, options))
    store.add_sources(number, [source])
    ids = dict(zip("abcdefgh", store.target_ids(watched), strict=True))
    faults = sorted({letter for test in tests for letter in test if letter.isupper()})
    records = [FaultRecord(f, "exception", f"{f}Error", "", 0, 0, 1, None) for f in faults]
    trials = [
        TrialRecord(
            trial,
            b"\0\1",
            origin=origins[trial] if origins else "",
            fault=next(filter(str.isupper, test), None),
            hits=pack_hits(ids[letter] for letter in test if letter.islower()),
            missing="lost" if trial in missing else "",
        )
        for trial, test in enumerate(tests)
    ]
    store.record(number, trials, records)
    return number


@pytest.fixture
def store() -> Store:
    return open_store(":memory:")


def test_growth_counts_what_tests_reached_once_and_twice(store: Store) -> None:
    found = measure_growth(store, [campaign(store, ["a", "ab", "abc", "abF"])])
    fault, line = found.kinds
    assert (fault.seen.found, fault.seen.once) == (1, 1)
    assert (line.seen.found, line.seen.once, line.seen.twice, line.seen.hits) == (3, 1, 0, 8)
    assert line.curve.tolist() == [1, 2, 3, 3]
    assert (line.watched, line.unreached) == (8, 5)


def test_no_more_is_foretold_than_there_is(store: Store) -> None:
    left = measure_growth(store, [campaign(store, ["a", "b", "c", "d", "e", "f", "g"])], "line")
    none = measure_growth(store, [campaign(store, [*"abcdefgh"], seed=1)], "line")
    assert (left.kinds[0].new.high, none.kinds[0].new.high) == (1, 0)
    assert none.left_out == ("fault",)


def test_campaigns_with_other_seeds_are_read_as_one(store: Store) -> None:
    numbers = [campaign(store, ["a", "ab"]), campaign(store, ["b", "c"], seed=1)]
    found = measure_growth(store, numbers, "line")
    (line,) = found.kinds
    assert found.tests == 4
    assert (line.seen.found, line.seen.once, line.seen.twice) == (3, 1, 2)
    assert line.curve.tolist() == [1, 2, 2, 3]


def test_tests_without_coverage_count_for_faults_only(store: Store) -> None:
    found = measure_growth(store, [campaign(store, ["a", "aF", "b"], missing=[1])])
    assert [kind.seen.tests for kind in found.kinds] == [3, 2]
    assert found.missing == 1


def test_the_first_half_is_asked_what_the_second_will_bring(store: Store) -> None:
    tests = ["a"] * 50 + ["abcdefgh"] * 50
    (line,) = measure_growth(store, [campaign(store, tests)], "line").kinds
    assert line.check is not None
    assert line.check.found == 7
    assert not line.check.holds


def test_a_part_of_the_strategy_that_finds_most_is_named(store: Store) -> None:
    lucky = {60 + 3 * i: letter for i, letter in enumerate("bcdefgh")}
    tests = ["a" + lucky.get(at, "") for at in range(100)]
    origins = ["dominant" if at in lucky or at % 20 == 1 else "coin" for at in range(100)]
    found = measure_growth(store, [campaign(store, tests, origins=origins)])
    assert str(found.lead).startswith("7 of the last 7 tests that found something came from 'dom")


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"strategy": "layered", "seed": 1}, "the strategy of 1 is coin, of 2 layered"),
        ({"seed": 0}, "have the same seed"),
        (
            {"seed": 1, "source": Source("a.py", "edited")},
            "a.py changed between campaigns 1 and 2",
        ),
    ],
)
def test_what_is_not_one_experiment_is_not_read_as_one(
    store: Store, other: dict[str, object], words: str
) -> None:
    numbers = [campaign(store, ["a"]), campaign(store, ["a"], **other)]  # type: ignore[arg-type]
    with pytest.raises(UserError, match=words):
        measure_growth(store, numbers)


def test_a_campaign_without_tests_says_so(store: Store) -> None:
    found = measure_growth(store, [campaign(store, [])])
    assert str(verdict(found)).startswith("Too little data: 0 tests")


def test_a_forecast_prints_its_ends_in_json() -> None:
    assert Forecast(1.23456, 0.0, 4.2).to_json() == {"value": 1.235, "low": 0.0, "high": 4.2}
