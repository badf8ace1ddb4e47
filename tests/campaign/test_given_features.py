"""`features()` gives plain `@given` tests swarm configurations, and records them as a campaign."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from swarmtest import Feature, Space, UserError, open_store
from swarmtest.campaign.hypothesis_features import DrawnFeatures, features
from swarmtest.store.interface import Store
from swarmtest.store.records import unpack_floats

QUIET = settings(
    database=None, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
NAMES = ("push", "pop", "clear", "peek")


def stack_of(size: int) -> Callable[[DrawnFeatures, Any], None]:
    """A test of a stack that must not grow to a size; it notes when it is half full."""

    def run(swarm: DrawnFeatures, source: Any) -> None:
        items = 0
        for _ in range(30):
            match swarm.choose(source):
                case "push":
                    items += 1
                    assert items < size, "overflow"
                case "pop":
                    items = max(0, items - 1)
                case "clear":
                    items = 0
            if items == 8:
                swarm.event("eight")

    return run


def failure_of(test: Callable[[], None]) -> str:
    with pytest.raises(AssertionError) as caught:
        test()
    return "\n".join(caught.value.__notes__)


def configurations(strategy: str, tests: int = 200, **more: Any) -> list[tuple[str, ...]]:
    seen: list[tuple[str, ...]] = []

    @settings(QUIET, max_examples=tests, phases=[Phase.generate])
    @given(swarm=features(*NAMES, strategy=strategy, **more))
    def test(swarm: DrawnFeatures) -> None:
        seen.append(swarm.enabled)

    test()
    return seen


def test_tests_get_different_configurations_and_never_an_empty_one() -> None:
    seen = configurations("coin")
    assert set(seen) == {
        tuple(name for at, name in enumerate(NAMES) if bits >> at & 1) for bits in range(1, 16)
    }


def test_the_strategy_decides() -> None:
    # Hypothesis begins with simple tests, whose configurations are smaller.
    assert Counter(configurations("all-on", 100))[NAMES] > 80
    counts = Counter(name for enabled in configurations("coin(p=0.2)") for name in enabled)
    # A fifth of 200, more because the empty set is drawn again: 0.2 / (1 - 0.8 ** 4) = 0.34.
    assert all(40 < counts[name] < 100 for name in NAMES)


def test_the_same_choices_give_the_same_configuration() -> None:
    assert configurations("layered", 30) == configurations("layered", 30)


def test_a_failing_example_keeps_the_features_that_are_needed() -> None:
    run = stack_of(15)

    @settings(QUIET, max_examples=300)
    @given(swarm=features(*NAMES), data=st.data())
    def test(swarm: DrawnFeatures, data: Any) -> None:
        run(swarm, data)

    assert "swarm=<push, without pop clear peek>" in failure_of(test)


def test_features_that_are_needed_together_stay_together() -> None:
    @settings(QUIET, max_examples=300)
    @given(swarm=features("a", "b", "c", "d", "e"))
    def test(swarm: DrawnFeatures) -> None:
        assert not (swarm.b and "d" in swarm)

    assert "swarm=<b d, without a c e>" in failure_of(test)


def test_a_feature_that_prevents_a_failure_stays_out() -> None:
    @settings(QUIET, max_examples=300)
    @given(swarm=features("a", "b", "c"))
    def test(swarm: DrawnFeatures) -> None:
        assert not swarm.a or swarm.c

    assert "swarm=<a, without b c>" in failure_of(test)


def test_constraints_hold_also_while_shrinking() -> None:
    space = [Feature("open"), Feature("close", requires=["open"]), Feature("sync")]

    @settings(QUIET, max_examples=200)
    @given(swarm=features(space))
    def test(swarm: DrawnFeatures) -> None:
        assert swarm.open or not swarm.close
        assert not swarm.close, "closed"

    assert "swarm=<open close, without sync>" in failure_of(test)


def test_weights_steer_what_is_chosen() -> None:
    space = Space(["often", "seldom"])
    swarm = DrawnFeatures(space.configuration({"often": 1, "seldom": 0.25}))
    rng = random.Random(1)
    counts = Counter(swarm.choose(rng) for _ in range(1000))
    assert 140 < counts["seldom"] < 260
    drawn: Counter[str] = Counter()

    @settings(QUIET, max_examples=200, phases=[Phase.generate])
    @given(st.data())
    def test(data: Any) -> None:
        drawn[DrawnFeatures(swarm.configuration).choose(data)] += 1

    test()
    assert drawn["often"] > 2 * drawn["seldom"] > 0


def test_one_of_leaves_out_what_is_not_included() -> None:
    swarm = DrawnFeatures(Space(["numbers", "words"]).configuration(["words"]))

    @settings(QUIET, max_examples=20)
    @given(swarm.one_of(numbers=st.integers(), words=st.text()))
    def test(value: object) -> None:
        assert isinstance(value, str)

    test()
    assert swarm.one_of(numbers=st.integers()).is_empty


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store(":memory:") as opened:
        yield opened


def test_generated_tests_are_recorded_with_their_odds(store: Store) -> None:
    strategy = features(*NAMES, record=store)
    run = stack_of(99)
    ran = 0

    @settings(QUIET, max_examples=150)
    @given(swarm=strategy, data=st.data())
    def test_stack(swarm: DrawnFeatures, data: Any) -> None:
        nonlocal ran
        ran += 1
        run(swarm, data)

    test_stack()
    strategy.close()  # type: ignore[attr-defined]
    (campaign,) = store.campaigns()
    assert campaign.subject == "test_given_features:test_stack"
    assert campaign.strategy == "coin"
    trials = list(store.trials(1))
    assert 30 < len(trials) <= ran
    assert {tuple(unpack_floats(trial.propensities)) for trial in trials} == {(0.5,)}


def test_configurations_are_recorded_as_often_as_they_are_drawn(store: Store) -> None:
    """Hypothesis mutates tests with many choices more often: such tests do not count."""
    strategy = features("push", "pop", record=store)

    @settings(QUIET, max_examples=600)
    @given(swarm=strategy, data=st.data())
    def test(swarm: DrawnFeatures, data: Any) -> None:
        if swarm.pop:
            data.draw(st.lists(st.integers()))

    test()
    strategy.close()  # type: ignore[attr-defined]
    included = Counter(trial.configuration for trial in store.trials(1))
    tests = sum(included.values())
    assert tests > 150
    # Three configurations, a third each: four standard deviations.
    margin = 4 * (tests * 2 / 9) ** 0.5
    assert all(abs(count - tests / 3) < margin for count in included.values())


def test_each_test_has_a_campaign_of_its_own(store: Store) -> None:
    """Also tests that share a strategy, and a test that makes one whenever it runs."""
    shared = features("a", "b", record=store)

    @settings(QUIET, max_examples=20)
    @given(swarm=shared)
    def test_one(swarm: DrawnFeatures) -> None: ...

    class TestOthers:
        @settings(QUIET, max_examples=20)
        @given(data=st.data())
        def test_two(self, data: Any) -> None:
            data.draw(shared)
            data.draw(features("a", "b", record=store))

    test_one()
    TestOthers().test_two()
    shared.close()  # type: ignore[attr-defined]
    assert [campaign.subject for campaign in store.campaigns()] == [
        "test_given_features:test_one",
        "test_given_features:TestOthers.test_two",
        "test_given_features:TestOthers.test_two (2)",
    ]


def test_what_hypothesis_tries_while_it_shrinks_does_not_count(store: Store) -> None:
    strategy = features(*NAMES, record=store)
    ran = 0

    @settings(QUIET, max_examples=300)
    @given(swarm=strategy, values=st.lists(st.integers(0, 1000)))
    def test(swarm: DrawnFeatures, values: list[int]) -> None:
        nonlocal ran
        ran += 1
        assert not swarm.push or sum(values) < 777

    failure_of(test)
    strategy.close()  # type: ignore[attr-defined]
    summary = store.summary(1)
    assert 1 <= summary["failed"] <= summary["trials"] < ran / 2
    (fault,) = store.faults(1)
    place = "test_what_hypothesis_tries_while_it_shrinks_does_not_count.<locals>.test"
    statement = "assert not swarm.push or sum(values) < 777"
    assert fault.signature == f"AssertionError [{place}: {statement}]"


def test_recorded_tests_tell_triggers_and_suppressors(tmp_path: Path) -> None:
    (tmp_path / "test_stack.py").write_text(
        "from hypothesis import given, settings, strategies as st\n"
        "from swarmtest.campaign.hypothesis_features import features\n"
        "@settings(max_examples=400, derandomize=True, deadline=None)\n"
        "@given(swarm=features('push', 'pop', 'clear', 'peek'), data=st.data())\n"
        "def test_stack(swarm, data):\n"
        "    size = 0\n"
        "    for _ in range(40):\n"
        "        name = swarm.choose(data)\n"
        "        after = {'push': size + 1, 'pop': max(0, size - 1), 'clear': 0}\n"
        "        size = after.get(name, size)\n"
        "        if size == 9: swarm.event('nine')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_stack.py"],
        cwd=tmp_path,
        env={"SWARMTEST_RECORD": "s.db"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout
    told = subprocess.run(
        [sys.executable, "-m", "swarmtest", "roles", "event:nine", "--store", "s.db"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stderr
    assert "push   trigger" in told.stdout, told.stdout
    assert "clear  suppressor" in told.stdout


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: features(), "name at least one feature"),
        (lambda: features("push", strategy="coim"), "coin"),
        (lambda: features("push", "push"), "twice: push"),
    ],
)
def test_a_mistake_is_one_line(make: Callable[[], object], words: str) -> None:
    with pytest.raises(UserError, match=words):
        make()


def test_an_unknown_feature_suggests_the_nearest() -> None:
    swarm = DrawnFeatures(Space(["push", "pop"]).default())
    with pytest.raises(UserError, match="no feature 'pusj'; did you mean 'push'"):
        _ = "pusj" in swarm
    with pytest.raises(AttributeError, match="did you mean 'push'"):
        _ = swarm.pusj
    with pytest.raises(UserError, match="no feature 'pusj'"):
        swarm.one_of(pusj=st.none())
